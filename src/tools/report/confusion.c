/* confusion.c: which class was taken for which: a matrix, or for many classes the commonest mistakes. */
#include "report/parts.h"

enum { ROOMY = 5, WIDEST = 12, LISTED = 12 }; /* classes with shares in the cells, classes in a matrix; mistakes */

static int64_t at(const pc__report *report, int truth, int predicted)
{
    return report->confusion[(size_t)truth * report->class_count + predicted];
}

static void cell(pc__text *text, const pc__report *report, int truth, int predicted, int64_t sum)
{
    int64_t n = at(report, truth, predicted);
    double share = sum > 0 ? (double)n / (double)sum : 0;
    pc__text_add(text, "<td class='%s' style='--share:%.3f'><b>", truth == predicted ? "hit" : "miss", share);
    pc__html_count(text, n);
    pc__html_put(text, "</b>");
    if (sum > 0 && report->class_count <= ROOMY)
        pc__text_add(text, "<span>%.0f\u202f%%</span>", share * 100);
    pc__html_put(text, "</td>");
}

static void matrix(pc__text *text, const pc__report *report)
{
    pc__text_add(text,
                 "<div class='scroll'><table class='matrix'><thead><tr><td></td>"
                 "<th scope='colgroup' colspan='%d'>taken for</th></tr><tr><th scope='col'>it is</th>",
                 report->class_count);
    for (int i = 0; i < report->class_count; i++) {
        pc__html_put(text, "<th scope='col' title='");
        pc__report_class_name(text, report, i);
        pc__html_put(text, "'>");
        pc__report_class_name(text, report, i);
        pc__html_put(text, "</th>");
    }
    pc__html_put(text, "</tr></thead><tbody>\n");
    for (int truth = 0; truth < report->class_count; truth++) {
        int64_t sum = 0;
        for (int i = 0; i < report->class_count; i++)
            sum += at(report, truth, i);
        pc__html_put(text, "<tr><th scope='row'>");
        pc__report_class_name(text, report, truth);
        pc__html_put(text, "</th>");
        for (int i = 0; i < report->class_count; i++)
            cell(text, report, truth, i, sum);
        pc__html_put(text, "</tr>\n");
    }
    pc__html_put(text, "</tbody></table></div>\n");
}

typedef struct mistake {
    int truth, predicted;
    int64_t n;
} mistake;

/* Keep the LISTED commonest, in order; of equals the one that came first. */
static void keep(mistake *list, int *count, mistake new)
{
    int place = *count;
    while (place > 0 && list[place - 1].n < new.n)
        place--;
    if (place == LISTED)
        return;
    *count = PC__MIN(*count + 1, LISTED);
    memmove(list + place + 1, list + place, (size_t)(*count - 1 - place) * sizeof *list);
    list[place] = new;
}

static void mistakes(pc__text *text, const pc__report *report)
{
    mistake list[LISTED];
    int count = 0;
    for (int truth = 0; truth < report->class_count; truth++)
        for (int predicted = 0; predicted < report->class_count; predicted++)
            if (truth != predicted && at(report, truth, predicted) > 0)
                keep(list, &count, (mistake){truth, predicted, at(report, truth, predicted)});
    if (!count) {
        pc__html_put(text, "<p>No mistakes.</p>");
        return;
    }
    pc__html_put(text, "<div class='scroll'><table class='left'><thead><tr><th scope='col'>it is</th>"
                       "<th scope='col'>taken for</th><th scope='col'>times</th></tr></thead><tbody>\n");
    for (int i = 0; i < count; i++) {
        pc__html_put(text, "<tr><td>");
        pc__report_class_name(text, report, list[i].truth);
        pc__html_put(text, "</td><td>");
        pc__report_class_name(text, report, list[i].predicted);
        pc__html_put(text, "</td><td>");
        pc__html_count(text, list[i].n);
        pc__html_put(text, "</td></tr>\n");
    }
    pc__html_put(text, "</tbody></table></div>\n");
}

void pc__report_confusion(pc__text *text, const pc__report *report)
{
    if (!pc__report_count(report).total)
        return;
    bool small = report->class_count <= WIDEST;
    pc__text_add(text, "<section class='card%s'><h2>%s</h2>", small && report->class_count > ROOMY ? " wide" : "",
                 small ? "Confusion" : "Commonest mistakes");
    (small ? matrix : mistakes)(text, report);
    pc__html_put(text, "</section>\n");
}

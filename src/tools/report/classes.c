/* classes.c: what the data is and how each class fared. */
#include "report/parts.h"

#include <math.h>

enum { OPEN_ROWS = 24 }; /* longer tables start folded */

static void share(pc__text *text, int64_t part, int64_t whole)
{
    pc__html_put(text, "<td>");
    pc__html_percent(text, whole > 0 ? (double)part / (double)whole : NAN);
    pc__html_put(text, "</td>");
}

static void count(pc__text *text, int64_t value)
{
    pc__html_put(text, "<td>");
    pc__html_count(text, value);
    pc__html_put(text, "</td>");
}

static void row(pc__text *text, const pc__report *report, int class)
{
    const pc__report_class *known = report->classes ? &report->classes[class] : NULL;
    pc__html_put(text, "<tr><th scope='row'>");
    pc__report_class_name(text, report, class);
    pc__html_put(text, "</th>");
    count(text, known ? known->train : -1);
    count(text, known ? known->test : -1);
    if (report->confusion) {
        int64_t in_row = 0, in_column = 0, n = report->class_count, hit = report->confusion[class * n + class];
        for (int64_t i = 0; i < n; i++)
            in_row += report->confusion[class * n + i], in_column += report->confusion[i * n + class];
        share(text, hit, in_row);
        share(text, hit, in_column);
    }
    pc__html_put(text, "</tr>\n");
}

static int64_t total_of(const pc__report_files *files)
{
    return PC__MAX((int64_t)files->count, files->total);
}

/* The first ones by name. */
static void list(pc__text *text, const pc__report_files *files, const char *heading)
{
    const int shown = PC__MIN(files->count, PC__REPORT_FILES);
    if (!shown)
        return;
    pc__text_add(text,
                 "<div class='scroll'><table class='left'><thead><tr><th scope='col'>%s</th><th scope='col'>reason</th>"
                 "</tr></thead><tbody>\n",
                 heading);
    for (int i = 0; i < shown; i++) {
        pc__html_put(text, "<tr><td class='path'>");
        pc__html_escape(text, files->files[i].path);
        pc__html_put(text, "</td><td>");
        pc__html_escape(text, files->files[i].reason);
        pc__html_put(text, "</td></tr>\n");
    }
    pc__html_put(text, "</tbody></table></div>");
    if (total_of(files) > shown) {
        pc__html_put(text, "<p class='soft'>and ");
        pc__html_count(text, total_of(files) - shown);
        pc__html_put(text, " more</p>");
    }
}

static void skipped(pc__text *text, const pc__report_files *files)
{
    if (total_of(files) < 1)
        return;
    pc__html_put(text, "<p><b>");
    pc__html_things(text, total_of(files), "file was", "files were");
    pc__html_put(text, " skipped</b> because no whole picture could be read.</p>");
    list(text, files, "skipped file");
}

static void damaged(pc__text *text, const pc__report_files *files)
{
    if (total_of(files) < 1)
        return;
    pc__html_put(text, "<p><b>");
    pc__html_things(text, total_of(files), "file is", "files are");
    pc__html_put(text, " damaged</b> and used all the same, since all pixels are there.</p>");
    list(text, files, "damaged file");
}

static void table(pc__text *text, const pc__report *report)
{
    bool folded = report->class_count > OPEN_ROWS;
    if (folded) {
        pc__html_put(text, "<details><summary>");
        pc__html_things(text, report->class_count, "class", "classes");
        pc__html_put(text, "</summary>");
    }
    pc__html_put(text, "<div class='scroll'><table><thead><tr><th scope='col'>class</th>"
                       "<th scope='col'>train</th><th scope='col'>test</th>");
    if (report->confusion)
        pc__html_put(text, "<th scope='col'><abbr title='of the pictures of this class, the share that was "
                           "recognised'>recall</abbr></th><th scope='col'><abbr title='of the pictures that were "
                           "taken for this class, the share that is of it'>precision</abbr></th>");
    pc__html_put(text, "</tr></thead><tbody>\n");
    for (int i = 0; i < report->class_count; i++)
        row(text, report, i);
    pc__html_put(text, folded ? "</tbody></table></div></details>\n" : "</tbody></table></div>\n");
}

void pc__report_classes(pc__text *text, const pc__report *report)
{
    bool any_files = total_of(&report->skipped) > 0 || total_of(&report->damaged) > 0;
    if (report->class_count < 1 && !report->data && !any_files)
        return;
    pc__html_put(text, "<section class='card'><h2>Data</h2>");
    if (report->data) {
        pc__html_put(text, "<p class='path'>");
        pc__html_escape(text, report->data);
        pc__html_put(text, "</p>");
    }
    if (report->class_count > 0)
        table(text, report);
    skipped(text, &report->skipped);
    damaged(text, &report->damaged);
    pc__html_put(text, "</section>\n");
}

/* roc.c: two classes: what becomes of the answers when another probability than a half decides. */
#include "report/graph.h"
#include "report/parts.h"

#include <math.h>
#include <stdlib.h>

enum { THRESHOLDS = 100 };

static int by_logit(const void *a, const void *b)
{
    float x = ((const pc__report_score *)a)->logit, y = ((const pc__report_score *)b)->logit;
    return (x < y) - (x > y);
}

typedef struct curve {
    double *x, *y; /* false alarms, hits: shares */
    int64_t count;
    double area;
} curve;

/* From the surest to the least sure; scores that are equal make one point. */
static void walk(const pc__report_score *scores, int64_t n, const int64_t of[2], curve *c)
{
    int64_t hits = 0, alarms = 0;
    c->x[0] = c->y[0] = 0;
    c->count = 1;
    for (int64_t i = 0; i < n; i++) {
        hits += scores[i].second, alarms += !scores[i].second;
        if (i + 1 < n && scores[i + 1].logit == scores[i].logit)
            continue;
        c->x[c->count] = (double)alarms / (double)of[0], c->y[c->count] = (double)hits / (double)of[1];
        c->area += (c->x[c->count] - c->x[c->count - 1]) * (c->y[c->count] + c->y[c->count - 1]) / 2;
        c->count++;
    }
}

static void graph(pc__text *text, const pc__report *report, const curve *c)
{
    char name[64];
    snprintf(name, sizeof name, "AUC %.3f", c->area);
    const pc__graph_series series[] = {{name, c->x, c->y, c->count, 1, false}};
    (void)report;
    pc__graph_draw(text, &(pc__graph){.name = "ROC curve",
                                      .x_name = "false alarms",
                                      .series = series,
                                      .count = 1,
                                      .percent = true,
                                      .x_percent = true,
                                      .diagonal = true,
                                      .mark = NAN});
}

/* Of the pictures whose probability is at least the threshold: which are of the second class, which are not. */
static void count_at(const pc__report_score *scores, int64_t n, double threshold, int64_t counts[2])
{
    const double logit = threshold > 0 ? log(threshold / (1 - threshold)) : -INFINITY;
    counts[0] = counts[1] = 0;
    for (int64_t i = 0; i < n && (double)scores[i].logit >= logit; i++) /* descending */
        counts[scores[i].second]++;
}

static void share(pc__text *text, int64_t part, int64_t whole)
{
    pc__html_put(text, "<td>");
    pc__html_percent(text, whole ? (double)part / (double)whole : NAN);
    pc__html_put(text, "</td>");
}

static void row(pc__text *text, const int64_t of[2], const int64_t said[2])
{
    share(text, said[1] + of[0] - said[0], of[0] + of[1]);
    share(text, of[0] - said[0], of[0]);
    share(text, said[1], of[1]);
    share(text, said[1], said[0] + said[1]);
}

static void heading(pc__text *text, const pc__report *report, const char *before, int class, const char *title)
{
    pc__text_add(text, "<th scope='col'><abbr title='%s'>%s", title, before);
    pc__report_class_name(text, report, class);
    pc__html_put(text, "</abbr></th>");
}

static void table(pc__text *text, const pc__report *report, const pc__report_score *scores, const int64_t of[2])
{
    int64_t said[2], n = of[0] + of[1];
    pc__html_put(text, "<section class='card'><h2>Threshold</h2><p class='soft'>A picture is called \u201c");
    pc__report_class_name(text, report, 1);
    pc__html_put(text, "\u201d from this probability on. The network itself goes by 0.50.</p>"
                       "<p class='slide' hidden><input type='range' min='0' max='100' value='50' id='threshold' "
                       "aria-label='threshold'/><output id='chosen'>0.50</output></p>"
                       "<div class='scroll'><table><thead><tr><th scope='col'>from</th><th scope='col'>accuracy</th>");
    heading(text, report, "found: ", 0, "of the pictures of this class, the share that is called so");
    heading(text, report, "found: ", 1, "of the pictures of this class, the share that is called so");
    heading(text, report, "right: ", 1, "of the pictures that are called so, the share that is right");
    pc__html_put(text, "</tr></thead><tbody>\n<tr class='pick' id='pick' hidden><th scope='row'>0.50</th><td></td>"
                       "<td></td><td></td><td></td></tr>\n");
    for (int t = 10; t < THRESHOLDS; t += 10) {
        count_at(scores, n, t / (double)THRESHOLDS, said);
        pc__text_add(text, "<tr%s><th scope='row'>%.2f</th>", t == THRESHOLDS / 2 ? " class='own'" : "",
                     t / (double)THRESHOLDS);
        row(text, of, said);
        pc__html_put(text, "</tr>\n");
    }
    pc__text_add(text, "</tbody></table></div><data id='answers' value='[%lld,%lld", (long long)of[0],
                 (long long)of[1]);
    for (int t = 0; t <= THRESHOLDS; t++) {
        count_at(scores, n, t < THRESHOLDS ? t / (double)THRESHOLDS : 1, said);
        pc__text_add(text, ",%lld,%lld", (long long)said[0], (long long)said[1]);
    }
    pc__html_put(text, "]'></data></section>\n");
}

void pc__report_roc(pc__text *text, const pc__report *report)
{
    int64_t n = report->score_count, of[2] = {0, 0};
    for (int64_t i = 0; i < n; i++)
        of[report->scores[i].second]++;
    if (!pc__report_has_roc(report))
        return;
    pc__report_score *scores = pc__alloc((size_t)n * sizeof *scores);
    double *room = pc__alloc(2 * (size_t)(n + 1) * sizeof *room);
    if (scores && room) {
        curve c = {.x = room, .y = room + n + 1};
        memcpy(scores, report->scores, (size_t)n * sizeof *scores);
        qsort(scores, (size_t)n, sizeof *scores, by_logit);
        walk(scores, n, of, &c);
        pc__html_put(text, "<section class='charts'>\n");
        graph(text, report, &c);
        table(text, report, scores, of);
        pc__html_put(text, "</section>\n");
    } else {
        text->failed = true;
    }
    pc__free(scores);
    pc__free(room);
}

bool pc__report_has_roc(const pc__report *report)
{
    int64_t second = 0;
    for (int64_t i = 0; i < report->score_count; i++) {
        if (!isfinite(report->scores[i].logit))
            return false;
        second += report->scores[i].second;
    }
    return report->class_count == 2 && second > 0 && second < report->score_count;
}

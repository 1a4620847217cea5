/* steps.c: the training loss by step, and the learning rate. */
#include "report/axis.h"
#include "report/graph.h"
#include "report/parts.h"

#include <math.h>

/* The mean of a group, and a smoothed one: an average whose memory is a twentieth of the run. */
static int64_t smooth(const pc__curve *curve, double *x, double *each, double *smoothed)
{
    const double share = 1 / fmax((double)curve->count / 20, 1);
    double sum = 0, weight = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < curve->count; i++) {
        const pc__curve_group *g = &curve->groups[i];
        if (!g->seen)
            continue;
        x[n] = (double)((i + 1) * curve->width);
        each[n] = g->loss / (double)g->seen;
        if (pc__axis_can_draw(each[n])) {
            sum += share * (each[n] - sum), weight += share * (1 - weight);
            smoothed[n] = sum / weight; /* as if it had begun with the first value, not with 0 */
        } else {
            smoothed[n] = NAN;
        }
        n++;
    }
    return n;
}

static void loss_by_step(pc__text *text, const pc__curve *curve)
{
    double *x = pc__alloc(3 * PC__CURVE_GROUPS * sizeof *x);
    if (!x) {
        text->failed = true;
        return;
    }
    double *each = x + PC__CURVE_GROUPS, *smoothed = each + PC__CURVE_GROUPS;
    int64_t n = smooth(curve, x, each, smoothed);
    char name[64];
    if (curve->width > 1)
        snprintf(name, sizeof name, "mean of %lld steps", (long long)curve->width);
    else
        snprintf(name, sizeof name, "each step");
    const pc__graph_series series[] = {{name, x, each, n, 0, true}, {"smoothed", x, smoothed, n, 0, false}};
    pc__graph_draw(
        text,
        &(pc__graph){.name = "Training loss by step", .x_name = "step", .series = series, .count = 2, .mark = NAN});
    pc__free(x);
}

static void learning_rate(pc__text *text, const pc__history *history)
{
    double *x = pc__alloc(2 * (size_t)history->count * sizeof *x), *y = x + history->count;
    if (!x) {
        text->failed = true;
        return;
    }
    for (int i = 0; i < history->count; i++)
        x[i] = history->epochs[i].epoch, y[i] = history->epochs[i].lr;
    const pc__graph_series series[] = {{"learning rate", x, y, history->count, 2, false}};
    pc__graph_draw(
        text,
        &(pc__graph){
            .name = "Learning rate", .x_name = "epoch", .counts = true, .series = series, .count = 1, .mark = NAN});
    pc__free(x);
}

void pc__report_steps(pc__text *text, const pc__report *report)
{
    bool steps = report->curve && report->curve->count > 0, epochs = pc__report_epochs_done(report) > 0;
    if (!steps)
        return;
    pc__html_put(text, "<section class='charts'>\n");
    loss_by_step(text, report->curve);
    if (epochs)
        learning_rate(text, report->history);
    pc__html_put(text, "</section>\n");
}

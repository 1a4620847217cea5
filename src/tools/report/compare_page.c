/* compare_page.c: runs side by side as a page. */
#include "report/compare.h"
#include "report/graph.h"
#include "report/parts.h"

#include <math.h>

static void name_of(pc__text *html, const pc__compared *run, int i)
{
    pc__text_add(html, "<span class='run c%d'><i></i><b>", i % PC__GRAPH_COLOURS);
    pc__html_escape(html, run->folder);
    pc__html_put(html, "</b></span>");
}

/* The greatest test accuracy among the epochs that are kept; -1: none is known. */
static int best_of(const pc__compared *runs, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        double value = runs[i].kept.test_accuracy;
        if (isfinite(value) && (best < 0 || value > runs[best].kept.test_accuracy))
            best = i;
    }
    return best;
}

static void cell(pc__text *html, void (*show)(pc__text *, double), double value)
{
    pc__html_put(html, "<td>");
    show(html, value);
    pc__html_put(html, "</td>");
}

static void results(pc__text *html, const pc__compared *runs, int count)
{
    int best = best_of(runs, count);
    pc__html_put(html, "<section class='card'><h2>Results</h2><div class='scroll'><table><thead><tr>"
                       "<th scope='col'>run</th><th scope='col'>epochs</th><th scope='col'>kept epoch</th>"
                       "<th scope='col'>test accuracy</th><th scope='col'>balanced</th><th scope='col'>test loss</th>"
                       "<th scope='col'>last epoch's accuracy</th><th scope='col'>train loss</th>"
                       "<th scope='col'>training time</th></tr></thead><tbody>\n");
    for (int i = 0; i < count; i++) {
        const pc__history *h = &runs[i].history;
        pc__epoch_record last = h->count ? h->epochs[h->count - 1] : pc__epoch_unknown(0);
        pc__text_add(html, "<tr%s><th scope='row'>", i == best && count > 1 ? " class='own'" : "");
        name_of(html, &runs[i], i);
        pc__text_add(html, "</th><td>%d%s</td>", last.epoch,
                     runs[i].known && !runs[i].finished ? " <span class='soft'>not finished</span>" : "");
        pc__html_put(html, "<td>");
        pc__html_count(html, runs[i].kept.epoch ? runs[i].kept.epoch : -1);
        pc__html_put(html, "</td>");
        cell(html, pc__html_percent, runs[i].kept.test_accuracy);
        cell(html, pc__html_percent, runs[i].kept.test_balanced_accuracy);
        cell(html, pc__html_number, runs[i].kept.test_loss);
        cell(html, pc__html_percent, last.test_accuracy);
        cell(html, pc__html_number, last.loss);
        cell(html, pc__html_duration, pc__report_training_seconds(&runs[i].history));
        pc__html_put(html, "</tr>\n");
    }
    pc__html_put(html, "</tbody></table></div></section>\n");
}

/* A line of each run; x and y have room for all epochs or groups of all runs. */
static void add(pc__graph_series *series, const pc__compared *run, int i, const double *x, const double *y, int64_t n)
{
    *series = (pc__graph_series){run->folder, x, y, n, i % PC__GRAPH_COLOURS, false};
}

static void draw(pc__text *html, const char *name, const char *x_name, const pc__graph_series *series, int count,
                 bool percent)
{
    pc__graph_draw(
        html, &(pc__graph){
                  .name = name, .x_name = x_name, .series = series, .count = count, .percent = percent, .mark = NAN});
}

static void by_epoch(pc__text *html, const pc__compared *runs, int count, pc__graph_series *series, double *room)
{
    static const struct {
        const char *name;
        size_t field;
        bool percent;
    } figures[] = {{"Test accuracy", offsetof(pc__epoch_record, test_accuracy), true},
                   {"Test loss", offsetof(pc__epoch_record, test_loss), false},
                   {"Training accuracy", offsetof(pc__epoch_record, accuracy), true},
                   {"Training loss", offsetof(pc__epoch_record, loss), false}};
    for (int f = 0; f < PC__COUNT(figures); f++) {
        double *at = room;
        for (int i = 0; i < count; i++) {
            const pc__history *h = &runs[i].history;
            double *x = at, *y = at + h->count;
            for (int e = 0; e < h->count; e++)
                x[e] = h->epochs[e].epoch, y[e] = pc__report_value(&h->epochs[e], figures[f].field);
            add(&series[i], &runs[i], i, x, y, h->count);
            at = y + h->count;
        }
        draw(html, figures[f].name, "epoch", series, count, figures[f].percent);
    }
}

enum { SMOOTH = 25 }; /* points that a curve of steps has */

static void by_step(pc__text *html, const pc__compared *runs, int count, pc__graph_series *series, double *room)
{
    double *at = room;
    bool any = false;
    for (int i = 0; i < count; i++) {
        const pc__curve *c = &runs[i].curve;
        int64_t stride = PC__MAX(c->count / SMOOTH, 1), n = 0;
        double *x = at, *y = at + PC__CURVE_GROUPS;
        for (int64_t begin = 0; begin < c->count; begin += stride) {
            int64_t end = PC__MIN(begin + stride, c->count);
            pc__curve_group sum = {0};
            for (int64_t g = begin; g < end; g++)
                sum.loss += c->groups[g].loss, sum.seen += c->groups[g].seen;
            if (sum.seen)
                x[n] = (double)(end * c->width), y[n++] = sum.loss / (double)sum.seen;
        }
        add(&series[i], &runs[i], i, x, y, n);
        any |= n > 0;
        at = y + PC__CURVE_GROUPS;
    }
    if (any)
        draw(html, "Training loss by step", "step", series, count, false);
}

static void graphs(pc__text *html, const pc__compared *runs, int count)
{
    size_t room = 2 * PC__CURVE_GROUPS * (size_t)count, epochs = 0;
    for (int i = 0; i < count; i++)
        epochs += 2 * (size_t)runs[i].history.count;
    pc__graph_series *series = pc__calloc((size_t)count, sizeof *series);
    double *values = pc__alloc(PC__MAX(room, epochs + 1) * sizeof *values);
    if (series && values) {
        pc__html_put(html, "<section class='charts'>\n");
        by_epoch(html, runs, count, series, values);
        by_step(html, runs, count, series, values);
        pc__html_put(html, "</section>\n");
    } else {
        html->failed = true;
    }
    pc__free(series);
    pc__free(values);
}

static void setting(pc__text *html, const pc__compared *runs, int count, const char *line)
{
    size_t n = pc__compared_name(line), length;
    pc__html_put(html, "<tr><th scope='row'>");
    pc__html_escape_some(html, line, n);
    pc__html_put(html, "</th>");
    for (int i = 0; i < count; i++) {
        const char *value = pc__compared_setting(&runs[i], line, n, &length);
        pc__html_put(html, "<td>");
        if (value && length)
            pc__html_escape_some(html, value, length);
        else
            pc__html_put(html, value ? "yes" : pc__compared_absent(&runs[i], line));
        pc__html_put(html, "</td>");
    }
    pc__html_put(html, "</tr>\n");
}

/* Those that differ, or of one run all. */
static void settings(pc__text *html, const pc__compared *runs, int count)
{
    pc__html_put(html, count > 1 ? "<section class='card'><h2>Settings that differ</h2>"
                                 : "<section class='card'><h2>Settings</h2>");
    pc__html_put(html, "<div class='scroll'><table><thead><tr><th scope='col'>setting</th>");
    for (int i = 0; i < count; i++) {
        pc__html_put(html, "<th scope='col'>");
        name_of(html, &runs[i], i);
        pc__html_put(html, "</th>");
    }
    pc__html_put(html, "</tr></thead><tbody>\n");
    int shown = 0;
    for (int i = 0; i < count; i++)
        for (const char *line = runs[i].settings; *line; line += strcspn(line, "\n"), line += *line == '\n')
            if (pc__compared_shows(runs, count, i, line))
                setting(html, runs, count, line), shown++;
    pc__html_put(html, "</tbody></table></div>");
    pc__html_put(html, shown ? "</section>\n" : "<p class='soft'>None that is known.</p></section>\n");
}

void pc__compare_page(pc__text *html, const pc__compared *runs, int count)
{
    pc__report_head(html, "Runs compared", 0);
    pc__html_put(html, "<body>\n<main>\n<header><p class='brand'>Paracord training report</p><h1>");
    pc__html_things(html, count, "run", "runs compared");
    pc__html_put(html, "</h1></header>\n");
    results(html, runs, count);
    graphs(html, runs, count);
    settings(html, runs, count);
    pc__report_foot(html, pc_version());
    pc__html_put(html, "</main>\n</body>\n</html>\n");
}

/* graph.c: a line graph of several series. */
#include "report/graph.h"

#include "report/chart.h"

#include <math.h>

enum { POINTS = 1000, COLUMNS = 100, LISTED = 14 };

typedef struct drawing {
    const pc__graph *graph;
    pc__axis x, y;
    int64_t longest; /* the series with most points, which are not faint */
} drawing;

static double x_of(const drawing *d, double value)
{
    return PC__CHART_LEFT + pc__axis_at(&d->x, value) * (PC__CHART_RIGHT - PC__CHART_LEFT);
}

static double y_of(const drawing *d, double value)
{
    return PC__CHART_BOTTOM - pc__axis_at(&d->y, value) * (PC__CHART_BOTTOM - PC__CHART_TOP);
}

/* What counts is whole, and one alone stands in the middle. */
static void fit_x(drawing *d, double first, double last)
{
    const pc__graph *g = d->graph;
    if (g->x_percent || !g->counts)
        first = 0;
    last = g->x_percent ? 1 : fmax(last, 1);
    const double margin = first == last ? 0.5 : 0;
    pc__axis_fit(&d->x, 0, last + margin, g->x_percent);
    if (g->x_percent)
        return;
    d->x.low = first - margin, d->x.high = last + margin;
    int whole = 0;
    for (int i = 0; i < d->x.count; i++)
        if (d->x.ticks[i] == nearbyint(d->x.ticks[i]) && d->x.ticks[i] >= d->x.low)
            d->x.ticks[whole++] = d->x.ticks[i];
    d->x.count = whole, d->x.decimals = d->x.decimals < 0 ? d->x.decimals : 0;
}

static bool fit(drawing *d)
{
    const pc__graph *g = d->graph;
    double low = INFINITY, high = -INFINITY, first = INFINITY, last = 0;
    for (int s = 0; s < g->count; s++)
        for (int64_t i = 0; i < g->series[s].count; i++) {
            if (!pc__axis_can_draw(g->series[s].y[i]))
                continue;
            low = fmin(low, g->series[s].y[i]), high = fmax(high, g->series[s].y[i]);
            first = fmin(first, g->series[s].x[i]), last = fmax(last, g->series[s].x[i]);
        }
    for (int s = 0; s < g->count; s++)
        if (!g->series[s].faint && (g->series[d->longest].faint || g->series[s].count > g->series[d->longest].count))
            d->longest = s;
    if (low > high)
        return false;
    if (low == high) /* a constant stands in the middle of what it could be */
        low = PC__MIN(0, 2 * low), high = PC__MAX(0, 2 * high);
    pc__axis_fit(&d->y, g->x_percent ? 0 : low, g->x_percent ? 1 : high, g->percent);
    fit_x(d, first, last);
    return true;
}

/* Behind the axis, where there is no room for two words side by side: the first stands on the other. */
static void x_name(pc__text *text, const char *name)
{
    const char *space = strchr(name, ' ');
    const int first = space ? (int)(space - name) : (int)strlen(name), x = PC__CHART_RIGHT + 6;
    pc__text_add(text, "<text class='end' x='%d' y='%d'%s>%.*s", x, PC__CHART_BOTTOM + 4, space ? " dy='-1.1em'" : "",
                 first, name);
    if (space)
        pc__text_add(text, "<tspan x='%d' dy='1.1em'>%s</tspan>", x, space + 1);
    pc__html_put(text, "</text>\n");
}

static void axes(pc__text *text, const drawing *d)
{
    char label[32];
    pc__chart_value_axis(text, &d->y);
    pc__text_add(text, "<path class='axis' d='M%d,%dH%d'/>", PC__CHART_LEFT, PC__CHART_BOTTOM, PC__CHART_RIGHT);
    for (int i = 0; i < d->x.count && d->x.ticks[i] <= d->x.high; i++) {
        double x = x_of(d, d->x.ticks[i]);
        pc__axis_label(&d->x, d->x.ticks[i], label);
        pc__text_add(text, "<path class='axis' d='M%.1f,%dv5'/><text class='tick mid' x='%.1f' y='%d'>%s</text>", x,
                     PC__CHART_BOTTOM, x, PC__CHART_BOTTOM + 20, label);
    }
    x_name(text, d->graph->x_name);
    if (d->graph->diagonal)
        pc__text_add(text, "<path class='beat' d='M%d,%dL%d,%d'/>\n", PC__CHART_LEFT, PC__CHART_BOTTOM, PC__CHART_RIGHT,
                     PC__CHART_TOP);
    if (isfinite(d->graph->mark))
        pc__text_add(text, "<path class='kept' d='M%.1f,%dV%d'><title>%s</title></path>\n", x_of(d, d->graph->mark),
                     PC__CHART_TOP, PC__CHART_BOTTOM, d->graph->mark_name);
}

typedef struct pen {
    pc__text *text;
    bool down;
} pen;

static void point(pen *p, const drawing *d, const pc__graph_series *s, int64_t i)
{
    bool draw = pc__axis_can_draw(s->y[i]);
    /* h0 makes a lone point visible: the round cap of a line without length */
    if (draw)
        pc__text_add(p->text, p->down ? "L%.1f,%.1f" : "M%.1f,%.1fh0", x_of(d, s->x[i]), y_of(d, s->y[i]));
    p->down = draw;
}

static void line(pc__text *text, const drawing *d, const pc__graph_series *s)
{
    const int64_t stride = PC__MAX((s->count + POINTS - 1) / POINTS, 1);
    pen p = {text, false};
    pc__text_add(text, "<path class='line c%d%s' d='", s->colour, s->faint ? " faint" : "");
    for (int64_t i = 0; i < s->count; i += stride)
        point(&p, d, s, i);
    if (s->count && (s->count - 1) % stride)
        point(&p, d, s, s->count - 1);
    pc__html_put(text, "'/>\n");
    if (s->count == 1 && pc__axis_can_draw(s->y[0]))
        pc__text_add(text, "<circle class='c%d' cx='%.1f' cy='%.1f' r='3.2'/>\n", s->colour, x_of(d, s->x[0]),
                     y_of(d, s->y[0]));
}

/* The point of the series at x, or the last one before it; -1: there is none. */
static int64_t point_at(const pc__graph_series *s, double x)
{
    int64_t low = -1, high = s->count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(s->x[middle] <= x ? &low : &high) = middle;
    }
    return low;
}

static void value(pc__text *text, bool percent, double value)
{
    pc__text_add(text, percent ? "%.1f%%" : "%.4g", value * (percent ? 100 : 1));
}

/* One series under the pointer: a dot, a line to the axis, its value in the list at the right. */
static bool spot(pc__text *text, const drawing *d, const pc__graph_series *s, double x, int row)
{
    int64_t at = s->faint ? -1 : point_at(s, x);
    if (at < 0 || !pc__axis_can_draw(s->y[at]) || row >= LISTED)
        return false;
    double y = y_of(d, s->y[at]);
    pc__text_add(text,
                 "<path d='M%d,%.1fH%d'/><circle class='c%d' cx='%.1f' cy='%.1f' r='4'/>"
                 "<text class='c%d' x='%d' y='%d'>",
                 PC__CHART_LEFT, y, PC__CHART_RIGHT, s->colour, x_of(d, s->x[at]), y, s->colour, PC__CHART_RIGHT + 6,
                 PC__CHART_TOP + 6 + 17 * row);
    value(text, d->graph->percent, s->y[at]);
    pc__html_put(text, "</text>");
    return true;
}

static void hover(pc__text *text, const drawing *d)
{
    const pc__graph *g = d->graph;
    const pc__graph_series *s = &g->series[d->longest];
    int64_t columns = PC__MIN(s->count, COLUMNS);
    double left = PC__CHART_LEFT;
    for (int64_t c = 0; c < columns; c++) {
        double at = s->x[s->count * (c + 1) / columns - 1];
        double next = c + 1 < columns ? s->x[s->count * (c + 2) / columns - 1] : INFINITY;
        double x = x_of(d, at), right = isinf(next) ? PC__CHART_RIGHT : x_of(d, (at + next) / 2);
        pc__text_add(text, "<g class='at'><rect x='%.1f' y='0' width='%.1f' height='%d'/><g><path d='M%.1f,%dV%d'/>",
                     left, fmax(right - left, 0.1), PC__CHART_BOTTOM, x, PC__CHART_TOP, PC__CHART_BOTTOM);
        for (int i = 0, row = 0; i < g->count; i++)
            row += spot(text, d, &g->series[i], at, row);
        pc__text_add(text, "<text x='%d' y='17'>%s ", PC__CHART_LEFT, g->x_name);
        if (g->x_percent)
            value(text, true, at);
        else
            pc__text_add(text, "%.10g", at);
        pc__html_put(text, "</text></g></g>\n");
        left = right;
    }
}

static void legend(pc__text *text, const pc__graph *g)
{
    pc__html_put(text, "<p class='legend'>");
    for (int s = 0; s < g->count; s++) {
        pc__text_add(text, "<span class='c%d%s'><i></i><b>", g->series[s].colour, g->series[s].faint ? " faint" : "");
        pc__html_escape(text, g->series[s].name);
        pc__html_put(text, "</b></span>");
    }
    if (g->diagonal)
        pc__html_put(text, "<span><i class='dash'></i>guessing</span>");
    if (isfinite(g->mark))
        pc__text_add(text, "<span><i class='rule'></i>%s</span>", g->mark_name);
}

void pc__graph_draw(pc__text *text, const pc__graph *g)
{
    drawing d = {.graph = g};
    bool drawable = g->count > 0 && fit(&d);
    pc__text_add(text, "<figure class='chart card'><figcaption><h3>%s</h3>", g->name);
    legend(text, g);
    pc__html_put(text, drawable && d.y.logarithmic ? "<span>logarithmic scale</span></p>\n" : "</p>\n");
    pc__text_add(text, "</figcaption><svg viewBox='0 0 %d %d' role='img' aria-label='%s by %s'>\n", PC__CHART_WIDTH,
                 PC__CHART_HEIGHT, g->name, g->x_name);
    if (drawable) {
        axes(text, &d);
        for (int faint = 1; faint >= 0; faint--)
            for (int s = 0; s < g->count; s++)
                if (g->series[s].faint == faint)
                    line(text, &d, &g->series[s]);
        hover(text, &d);
    } else {
        pc__chart_nothing(text);
    }
    pc__html_put(text, "</svg></figure>\n");
}

/* chart.c: the charts of a report: axes, grid, line to beat, best epoch, labels at the ends of the lines. */
#include "report/chart.h"

#include <math.h>

static const char *const figure_names[2] = {"train", "test"};

double pc__plot_x(const pc__plot *plot, double epoch)
{
    const pc__history *history = plot->history;
    double first = history->epochs[0].epoch, last = history->epochs[history->count - 1].epoch;
    if (first == last)
        return (PC__CHART_LEFT + PC__CHART_RIGHT) / 2.0;
    return PC__CHART_LEFT + 8 + (epoch - first) / (last - first) * (PC__CHART_RIGHT - PC__CHART_LEFT - 16);
}

double pc__plot_y(const pc__plot *plot, double value)
{
    return PC__CHART_BOTTOM - pc__axis_at(&plot->axis, value) * (PC__CHART_BOTTOM - PC__CHART_TOP);
}

static void fit(pc__plot *plot)
{
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < plot->history->count; i++)
        for (int f = 0; f < 2; f++) {
            double value = pc__report_value(&plot->history->epochs[i], plot->chart->fields[f]);
            if (pc__axis_can_draw(value))
                low = fmin(low, value), high = fmax(high, value);
        }
    plot->drawable = low <= high;
    if (!plot->drawable)
        return;
    if (isfinite(plot->chart->baseline))
        low = fmin(low, fmax(0, plot->chart->baseline - 0.02)), high = fmax(high, plot->chart->baseline);
    pc__axis_fit(&plot->axis, low, high, plot->chart->percent);
}

void pc__chart_value_axis(pc__text *text, const pc__axis *axis)
{
    for (int i = 0; i < axis->count; i++) {
        char label[32];
        pc__axis_label(axis, axis->ticks[i], label);
        double y = PC__CHART_BOTTOM - pc__axis_at(axis, axis->ticks[i]) * (PC__CHART_BOTTOM - PC__CHART_TOP);
        pc__text_add(text, "<path class='grid' d='M%d,%.1fH%d'/><text class='tick' x='%d' y='%.1f'>%s</text>",
                     PC__CHART_LEFT, y, PC__CHART_RIGHT, PC__CHART_LEFT - 8, y + 4.5, label);
    }
    pc__html_put(text, "\n");
}

void pc__chart_nothing(pc__text *text)
{
    pc__text_add(text, "<text class='nothing' x='%d' y='%d'>no finite value to draw</text>", PC__CHART_WIDTH / 2,
                 PC__CHART_HEIGHT / 2);
}

/* Lines across the chart: to beat, and of the epoch that is kept. */
static void marks(pc__text *text, const pc__plot *plot)
{
    if (plot->chart->kept)
        pc__text_add(text, "<path class='kept' d='M%.1f,%dV%d'><title>kept: epoch %d</title></path>",
                     pc__plot_x(plot, plot->chart->kept), PC__CHART_TOP, PC__CHART_BOTTOM, plot->chart->kept);
    if (isfinite(plot->chart->baseline))
        pc__text_add(text, "<path class='beat' d='M%d,%.1fH%d'><title>the line to beat: %.1f\u202f%%</title></path>",
                     PC__CHART_LEFT, pc__plot_y(plot, plot->chart->baseline), PC__CHART_RIGHT,
                     plot->chart->baseline * 100);
    pc__html_put(text, "\n");
}

static void epoch_label(pc__text *text, const pc__plot *plot, long long epoch)
{
    double x = pc__plot_x(plot, (double)epoch);
    pc__text_add(text, "<path class='axis' d='M%.1f,%dv5'/><text class='tick mid' x='%.1f' y='%d'>%lld</text>", x,
                 PC__CHART_BOTTOM, x, PC__CHART_BOTTOM + 20, epoch);
}

/* Round epochs, and the first and the last where they do not crowd those. */
static void epoch_axis(pc__text *text, const pc__plot *plot)
{
    long long first = plot->history->epochs[0].epoch, last = plot->history->epochs[plot->history->count - 1].epoch;
    long long step = 1;
    for (int i = 0; (last - first) / step > 6; i++)
        step = step / (i % 3 == 1 ? 2 : 1) * (i % 3 == 1 ? 5 : 2);
    pc__text_add(text, "<path class='axis' d='M%d,%dH%d'/>", PC__CHART_LEFT, PC__CHART_BOTTOM, PC__CHART_RIGHT);
    epoch_label(text, plot, first);
    for (long long epoch = (first / step + 1) * step; epoch < last; epoch += step)
        if ((epoch - first) * 5 >= step * 3 && (last - epoch) * 5 >= step * 3)
            epoch_label(text, plot, epoch);
    if (last > first)
        epoch_label(text, plot, last);
    pc__text_add(text, "<text class='tick' x='%d' y='%d'>epoch</text>\n", PC__CHART_WIDTH - 4, PC__CHART_BOTTOM + 20);
}

/* The last value that can be drawn; NaN: none. */
static double last_value(const pc__plot *plot, int figure)
{
    for (int i = plot->history->count - 1; i >= 0; i--) {
        double value = pc__report_value(&plot->history->epochs[i], plot->chart->fields[figure]);
        if (pc__axis_can_draw(value))
            return value;
    }
    return NAN;
}

static void end_labels(pc__text *text, const pc__plot *plot)
{
    enum { APART = 19 };
    double values[2] = {last_value(plot, 0), last_value(plot, 1)}, y[2];
    for (int f = 0; f < 2; f++)
        y[f] = isnan(values[f]) ? NAN : pc__plot_y(plot, values[f]);
    int upper = y[1] < y[0] ? 1 : 0;
    double gap = y[!upper] - y[upper];
    if (gap < APART) {
        y[upper] -= (APART - gap) / 2, y[!upper] += (APART - gap) / 2;
        double below = fmax(0, y[!upper] - PC__CHART_BOTTOM);
        y[upper] -= below, y[!upper] -= below;
    }
    for (int f = 0; f < 2; f++) {
        if (isnan(values[f]))
            continue;
        pc__text_add(text, "<text class='end %s' x='%d' y='%.1f'>%s<tspan class='v'> ", figure_names[f],
                     PC__CHART_RIGHT + 6, y[f] + 4.5, figure_names[f]);
        double size = fabs(values[f]);
        if (plot->chart->percent)
            pc__text_add(text, "%.1f%%", values[f] * 100);
        else
            pc__text_add(text, size >= 0.0995 && size < 0.9995 ? "%.3f" : size < 9.995 ? "%#.3g" : "%.3g", values[f]);
        pc__html_put(text, "</tspan></text>");
    }
    pc__html_put(text, "\n");
}

static void best_mark(pc__text *text, const pc__plot *plot)
{
    int at = pc__report_best(plot->history, plot->chart->fields[1], plot->chart->smallest);
    double value = at < 0 ? NAN : pc__report_value(&plot->history->epochs[at], plot->chart->fields[1]);
    if (plot->history->count > 1 && pc__axis_can_draw(value))
        pc__text_add(text, "<circle class='best' cx='%.1f' cy='%.1f' r='5.5'/>\n",
                     pc__plot_x(plot, plot->history->epochs[at].epoch), pc__plot_y(plot, value));
}

static void legend(pc__text *text, const pc__plot *plot)
{
    bool test = !isnan(last_value(plot, 1));
    pc__html_put(text, "<p class='legend'><span class='train'><i></i>train</span>");
    if (test)
        pc__html_put(text, "<span class='test'><i></i>test</span>");
    if (test && plot->history->count > 1)
        pc__text_add(text, "<span class='test'><i class='ring'></i>%s test</span>",
                     plot->chart->smallest ? "lowest" : "best");
    if (plot->chart->kept)
        pc__html_put(text, "<span><i class='rule'></i>kept</span>");
    if (isfinite(plot->chart->baseline))
        pc__html_put(text, "<span><i class='dash'></i>guessing</span>");
    if (plot->drawable && plot->axis.logarithmic)
        pc__html_put(text, "<span>logarithmic scale</span>");
    pc__html_put(text, "</p>\n");
}

static void chart(pc__text *text, const pc__chart *what, const pc__history *history)
{
    pc__plot plot = {.chart = what, .history = history};
    fit(&plot);
    pc__text_add(text, "<figure class='chart card'><figcaption><h3>%s</h3>", what->name);
    legend(text, &plot);
    pc__text_add(text, "</figcaption><svg viewBox='0 0 %d %d' role='img' aria-label='%s over %d epochs'>\n",
                 PC__CHART_WIDTH, PC__CHART_HEIGHT, what->name, history->count);
    if (plot.drawable) {
        pc__chart_value_axis(text, &plot.axis);
        marks(text, &plot);
        epoch_axis(text, &plot);
        pc__plot_line(text, &plot, 0);
        pc__plot_line(text, &plot, 1);
        best_mark(text, &plot);
        end_labels(text, &plot);
        pc__plot_hover(text, &plot);
    } else {
        pc__chart_nothing(text);
    }
    pc__html_put(text, "</svg></figure>\n");
}

void pc__report_charts(pc__text *text, const pc__report *report)
{
    if (!pc__report_epochs_done(report)) {
        pc__html_put(text, "<p class='card empty'>No epoch is finished yet, so there is nothing to draw.</p>\n");
        return;
    }
    const pc__history *history = report->history;
    bool within = report->kept_epoch >= history->epochs[0].epoch &&
                  report->kept_epoch <= history->epochs[history->count - 1].epoch;
    const int kept = within && history->count > 1 ? report->kept_epoch : 0;
    const pc__chart charts[] = {
        {.name = "Loss",
         .fields = {offsetof(pc__epoch_record, loss), offsetof(pc__epoch_record, test_loss)},
         .smallest = true,
         .kept = kept,
         .baseline = NAN},
        {.name = "Accuracy",
         .fields = {offsetof(pc__epoch_record, accuracy), offsetof(pc__epoch_record, test_accuracy)},
         .percent = true,
         .kept = kept,
         .baseline = pc__report_count(report).baseline},
    };
    pc__html_put(text, "<section class='charts'>\n");
    for (int i = 0; i < PC__COUNT(charts); i++)
        chart(text, &charts[i], report->history);
    pc__html_put(text, "</section>\n");
}

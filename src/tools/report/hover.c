/* hover.c: what a chart shows where the pointer is, by style sheet alone: one invisible column per epoch, or per
 * group of epochs in a long run. */
#include "report/chart.h"

#include <math.h>

enum { COLUMNS = 100 };

static void value(pc__text *text, const pc__plot *plot, const char *name, double value)
{
    pc__text_add(text, "%s ", name);
    if (isnan(value))
        pc__html_put(text, "unknown");
    else if (isinf(value))
        pc__html_put(text, "infinite");
    else
        pc__text_add(text, plot->chart->percent ? "%.1f%%" : "%.4g", value * (plot->chart->percent ? 100 : 1));
}

static void words(pc__text *text, const pc__plot *plot, const pc__epoch_record *record, const char *between)
{
    pc__text_add(text, "epoch %d%s", record->epoch, between);
    value(text, plot, "train", pc__report_value(record, plot->chart->fields[0]));
    pc__html_put(text, between);
    value(text, plot, "test", pc__report_value(record, plot->chart->fields[1]));
}

static void column(pc__text *text, const pc__plot *plot, const pc__epoch_record *record, double left, double right)
{
    double x = pc__plot_x(plot, record->epoch);
    pc__text_add(text, "<g class='at'><rect x='%.1f' y='0' width='%.1f' height='%d'/><g><path d='M%.1f,%dV%d'/>", left,
                 right - left, PC__CHART_BOTTOM, x, PC__CHART_TOP, PC__CHART_BOTTOM);
    for (int f = 0; f < 2; f++) {
        double shown = pc__report_value(record, plot->chart->fields[f]);
        if (pc__axis_can_draw(shown))
            pc__text_add(text, "<path d='M%d,%.1fH%d'/><circle class='%s' cx='%.1f' cy='%.1f' r='4'/>", PC__CHART_LEFT,
                         pc__plot_y(plot, shown), PC__CHART_RIGHT, f ? "test" : "train", x, pc__plot_y(plot, shown));
    }
    pc__text_add(text, "<text x='%d' y='17'>", PC__CHART_LEFT);
    words(text, plot, record, " \u00b7 ");
    pc__html_put(text, "</text></g><title>");
    words(text, plot, record, "\n");
    pc__html_put(text, "</title></g>\n");
}

void pc__plot_hover(pc__text *text, const pc__plot *plot)
{
    int count = plot->history->count, columns = PC__MIN(count, COLUMNS);
    double left = PC__CHART_LEFT;
    for (int c = 0; c < columns; c++) {
        const pc__epoch_record *record = &plot->history->epochs[(int64_t)count * (c + 1) / columns - 1];
        const pc__epoch_record *after =
            c + 1 < columns ? &plot->history->epochs[(int64_t)count * (c + 2) / columns - 1] : NULL;
        double right = after ? pc__plot_x(plot, (record->epoch + (double)after->epoch) / 2) : PC__CHART_RIGHT;
        /* a diverged training loss has no point on the line: a cross at the top stands for it */
        if (!isfinite(record->loss))
            pc__text_add(text, "<text class='lost' x='%.1f' y='%d'>\u00d7</text>", pc__plot_x(plot, record->epoch),
                         PC__CHART_TOP + 6);
        column(text, plot, record, left, right);
        left = right;
    }
}

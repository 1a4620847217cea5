/* line.c: a figure's line through a chart, thinned so that its shape stays: of each group of epochs the
 * smallest and the greatest value. */
#include "report/chart.h"

#include <math.h>

enum { GROUPS = 240, DOTTED = 15 };

typedef struct stroke {
    pc__text *text;
    const pc__plot *plot;
    size_t field;
    bool down;
} stroke;

static void point(stroke *pen, int index)
{
    const pc__epoch_record *record = &pen->plot->history->epochs[index];
    double x = pc__plot_x(pen->plot, record->epoch), y = pc__plot_y(pen->plot, pc__report_value(record, pen->field));
    /* h0 makes a lone point visible: the round cap of a line without length */
    pc__text_add(pen->text, pen->down ? "L%.1f,%.1f" : "M%.1f,%.1fh0", x, y);
    pen->down = true;
}

static void group(stroke *pen, int begin, int end)
{
    const pc__epoch_record *epochs = pen->plot->history->epochs;
    int low = -1, high = -1;
    bool diverged = false;
    for (int i = begin; i < end; i++) {
        double value = pc__report_value(&epochs[i], pen->field);
        if (!pc__axis_can_draw(value)) {
            diverged |= !isfinite(epochs[i].loss);
            continue;
        }
        if (low < 0 || value < pc__report_value(&epochs[low], pen->field))
            low = i;
        if (high < 0 || value > pc__report_value(&epochs[high], pen->field))
            high = i;
    }
    if (diverged)
        pen->down = false;
    if (low >= 0)
        point(pen, PC__MIN(low, high));
    if (low != high)
        point(pen, PC__MAX(low, high));
}

/* A short run shows each epoch's point. */
static void dots(const stroke *pen, const char *name)
{
    const pc__history *history = pen->plot->history;
    for (int i = 0; i < history->count && history->count <= DOTTED; i++) {
        double value = pc__report_value(&history->epochs[i], pen->field);
        if (pc__axis_can_draw(value))
            pc__text_add(pen->text, "<circle class='%s' cx='%.1f' cy='%.1f' r='3.2'/>", name,
                         pc__plot_x(pen->plot, history->epochs[i].epoch), pc__plot_y(pen->plot, value));
    }
}

void pc__plot_line(pc__text *text, const pc__plot *plot, int figure)
{
    stroke pen = {.text = text, .plot = plot, .field = plot->chart->fields[figure]};
    const char *name = figure ? "test" : "train";
    int count = plot->history->count, groups = PC__MIN(count, GROUPS);
    pc__text_add(text, "<path class='line %s' d='", name);
    for (int g = 0; g < groups; g++)
        group(&pen, (int)((int64_t)count * g / groups), (int)((int64_t)count * (g + 1) / groups));
    pc__html_put(text, "'/>");
    dots(&pen, name);
    pc__html_put(text, "\n");
}

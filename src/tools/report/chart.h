/* chart.h: one line chart of a run: a figure of the training pictures and of the test pictures over epochs. */
#ifndef PC__REPORT_CHART_H
#define PC__REPORT_CHART_H

#include "report/axis.h"
#include "report/parts.h"

typedef struct pc__chart {
    const char *name; /* "Loss" */
    size_t fields[2]; /* training and test figure, offsetof in pc__epoch_record */
    bool percent;
    bool smallest;   /* the best test figure is the smallest one */
    double baseline; /* a line to beat; NaN: none */
    int kept;        /* the epoch to mark as kept; 0: none */
} pc__chart;

/* Where things are, in the drawing's own units (about a pixel on a wide page). */
enum {
    PC__CHART_WIDTH = 520,
    PC__CHART_HEIGHT = 286,
    PC__CHART_LEFT = 56,
    PC__CHART_RIGHT = 410,
    PC__CHART_TOP = 30,
    PC__CHART_BOTTOM = 258
};

typedef struct pc__plot {
    const pc__chart *chart;
    const pc__history *history; /* not empty */
    pc__axis axis;
    bool drawable; /* some value can be drawn; otherwise `axis` is not set */
} pc__plot;

/* The axis with its grid and labels; and what is drawn where there is nothing to draw. */
void pc__chart_value_axis(pc__text *text, const pc__axis *axis);
void pc__chart_nothing(pc__text *text);

double pc__plot_x(const pc__plot *plot, double epoch);
double pc__plot_y(const pc__plot *plot, double value);

/* In line.c: the line of one of the two figures, with at most about 500 points however long the run. Epochs
 * without that figure are bridged; epochs in which the run had diverged are a gap. */
void pc__plot_line(pc__text *text, const pc__plot *plot, int figure);

/* In hover.c: what appears where the pointer is: a rule, dots, the values. */
void pc__plot_hover(pc__text *text, const pc__plot *plot);

#endif

/* graph.h: a line graph of several series over one number: steps, epochs, a rate. */
#ifndef PC__REPORT_GRAPH_H
#define PC__REPORT_GRAPH_H

#include "base/base.h"

enum { PC__GRAPH_COLOURS = 8 };

typedef struct pc__graph_series {
    const char *name;    /* any text */
    const double *x, *y; /* `count` of them, x ascending; a y that cannot be drawn is a gap */
    int64_t count;
    int colour; /* 0 .. PC__GRAPH_COLOURS - 1 */
    bool faint; /* behind the others, and without values where the pointer is */
} pc__graph_series;

typedef struct pc__graph {
    const char *name, *x_name; /* "Loss by step", "step" */
    const pc__graph_series *series;
    int count;
    bool percent, x_percent; /* shares, shown as such; the whole from 0 to 1 is drawn then */
    bool counts;             /* x counts from the first one on: epochs; else it begins with 0 */
    bool diagonal;           /* a line from corner to corner: guessing */
    double mark;             /* an x to mark; NaN: none */
    const char *mark_name;
} pc__graph;

/* Append it as a figure, with the values under the pointer. At most about 1,000 points a series are drawn. */
void pc__graph_draw(pc__text *text, const pc__graph *graph);

#endif

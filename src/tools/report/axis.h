/* axis.h: a value axis: its range, round ticks, and where a value lies on it. */
#ifndef PC__REPORT_AXIS_H
#define PC__REPORT_AXIS_H

#include <stdbool.h>

enum { PC__AXIS_TICKS = 12 };

typedef struct pc__axis {
    double low, high; /* in values; low < high */
    bool logarithmic, percent;
    int decimals; /* of labels; negative: as short as they come */
    int count;
    double ticks[PC__AXIS_TICKS]; /* ascending */
} pc__axis;

/* Values that can be drawn: finite, and not so large that arithmetic on them overflows. */
bool pc__axis_can_draw(double value);

/* Fit an axis to the values from low to high, both drawable. Losses that shrink by more than 50 times get a
 * logarithmic one; shares (percent) never reach beyond 0 and 1 on their own account. */
void pc__axis_fit(pc__axis *axis, double low, double high, bool percent);

/* 0 at the axis's low end, 1 at its high end; values beyond are pulled to the ends. */
double pc__axis_at(const pc__axis *axis, double value);

/* The label of a tick. */
void pc__axis_label(const pc__axis *axis, double tick, char label[32]);

#endif

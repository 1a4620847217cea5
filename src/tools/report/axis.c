/* axis.c: a value axis with round ticks. */
#include "report/axis.h"

#include <math.h>
#include <stdio.h>

bool pc__axis_can_draw(double value)
{
    return isfinite(value) && fabs(value) < 1e100;
}

/* The smallest of 1, 2, 5 times a power of ten that is at least `least`. */
static double round_step(double least)
{
    double power = pow(10, floor(log10(least)));
    double times = least / power;
    return power * (times <= 1.0000001 ? 1 : times <= 2.0000001 ? 2 : times <= 5.0000001 ? 5 : 10);
}

static void fit_linear(pc__axis *axis, double low, double high)
{
    bool share = axis->percent && low >= 0 && high <= 1;
    double least = fmax(fmax(fabs(low), fabs(high)) * 1e-4, axis->percent ? 0.02 : 1e-9);
    if (high - low < least) {
        double middle = low + (high - low) / 2;
        low = middle - least / 2, high = middle + least / 2;
    }
    if (share)
        low = fmax(low, 0), high = fmin(high, 1);
    double step = round_step((high - low) / 5);
    double first = floor(low / step + 1e-9), last = ceil(high / step - 1e-9);
    axis->low = first * step, axis->high = last * step;
    for (double k = first; k <= last && axis->count < PC__AXIS_TICKS; k++)
        axis->ticks[axis->count++] = k * step;
    int decimals = (int)fmax(0, -floor(log10(step * (axis->percent ? 100 : 1)) + 1e-9));
    axis->decimals = decimals > 5 || fabs(axis->high) >= 1e5 || fabs(axis->low) >= 1e5 ? -1 : decimals;
}

static void fit_logarithmic(pc__axis *axis, double low, double high)
{
    low = fmax(low, high * 1e-9);
    axis->logarithmic = true;
    axis->decimals = -1;
    double decades = log10(high / low);
    int stride = decades > 6 ? 2 : 1;
    for (int k = (int)floor(log10(low)); k <= (int)ceil(log10(high)); k += stride)
        for (int i = 0; i < 3; i++) {
            double tick = pow(10, k) * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (i && decades > 2.5)
                break;
            if (tick > low * 0.999 && tick < high * 1.001 && axis->count < PC__AXIS_TICKS)
                axis->ticks[axis->count++] = tick;
        }
    axis->low = low * 0.9, axis->high = high * 1.1;
}

void pc__axis_fit(pc__axis *axis, double low, double high, bool percent)
{
    *axis = (pc__axis){.percent = percent};
    if (!percent && low > 0 && high / low > 50)
        fit_logarithmic(axis, low, high);
    else
        fit_linear(axis, low, high);
}

double pc__axis_at(const pc__axis *axis, double value)
{
    double share = axis->logarithmic ? log(fmax(value, axis->low) / axis->low) / log(axis->high / axis->low)
                                     : (value - axis->low) / (axis->high - axis->low);
    return fmin(fmax(share, 0), 1);
}

void pc__axis_label(const pc__axis *axis, double tick, char label[32])
{
    if (axis->percent)
        snprintf(label, 32, "%.*f%%", axis->decimals < 0 ? 0 : axis->decimals, tick * 100);
    else if (axis->decimals < 0)
        snprintf(label, 32, "%.3g", tick);
    else
        snprintf(label, 32, "%.*f", axis->decimals, tick == 0 ? 0.0 : tick);
}

/* schedule.c: a step's learning rate. */
#include "base/base.h"

#include <math.h>
#include <paracord/schedule.h>

/* From a to b along half a cosine. */
static double half_cosine(double a, double b, double part)
{
    return b + (a - b) / 2 * (1 + cos(3.14159265358979323846 * part));
}

/* In PyTorch's own terms: the last step of each phase. */
static double one_cycle(const pc_schedule *s, double step)
{
    const double rise = (s->warmup ? (double)s->warmup : 0.3 * (double)s->steps) - 1, last = (double)s->steps - 1;
    const double first = s->lr / 25, end = first / 1e4;
    step = fmin(step, last);
    if (step <= rise)
        return rise > 0 ? half_cosine(first, s->lr, step / rise) : s->lr;
    return half_cosine(s->lr, end, (step - rise) / (last - rise));
}

static double falling(const pc_schedule *s, double step)
{
    const double part = fmin(1, step / fmax(1, (double)(s->steps - s->warmup)));
    switch (s->kind) {
    case PC_SCHEDULE_STEP:
        return s->lr * pow(s->gamma != 0 ? s->gamma : 0.1, floor(step / (double)s->every));
    case PC_SCHEDULE_LINEAR:
        return s->lr + (s->least - s->lr) * part;
    case PC_SCHEDULE_COSINE:
        return half_cosine(s->lr, s->least, part);
    default:
        return s->lr;
    }
}

static bool makes_sense(const pc_schedule *s)
{
    const bool ends =
        s->kind == PC_SCHEDULE_LINEAR || s->kind == PC_SCHEDULE_COSINE || s->kind == PC_SCHEDULE_ONE_CYCLE;
    return (unsigned)s->kind <= PC_SCHEDULE_ONE_CYCLE && s->lr > 0 && isfinite(s->lr) && s->least >= 0 &&
           isfinite(s->least) && s->warmup >= 0 && (!ends || (s->steps > 0 && s->warmup <= s->steps)) &&
           (s->kind != PC_SCHEDULE_STEP || (s->every > 0 && s->gamma >= 0));
}

double pc_schedule_lr(const pc_schedule *schedule, int64_t step)
{
    PC__NEED_OR((double)NAN, schedule);
    const pc_schedule *s = schedule;
    if (!makes_sense(s) || step < 0) {
        (void)pc__fail(
            PC_ERR_ARGUMENT,
            "pc_schedule_lr: step %lld, kind %d, lr %g, least %g, warmup %lld of %lld steps, gamma %g every %lld: "
            "lr must be above 0, warmup at most steps, and steps (of STEP: every) above 0",
            (long long)step, (int)s->kind, s->lr, s->least, (long long)s->warmup, (long long)s->steps, s->gamma,
            (long long)s->every);
        return (double)NAN;
    }
    if (s->kind == PC_SCHEDULE_ONE_CYCLE)
        return one_cycle(s, (double)step);
    if (step < s->warmup)
        return s->lr * (double)(step + 1) / ((double)s->warmup + 1);
    return falling(s, (double)(step - s->warmup));
}

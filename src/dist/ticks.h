/* ticks.h: a clock that costs a few nanoseconds: the processor's counter where the system itself tells the time by it, else
 * pc__now, of which two looks cost more than all else that is noted of a call. */
#ifndef PC__DIST_TICKS_H
#define PC__DIST_TICKS_H

#include "device/trace.h"

extern bool pc__ticks_are_counted;

static inline int64_t pc__ticks(void)
{
#if defined __x86_64__
    if (pc__ticks_are_counted)
        return (int64_t)__builtin_ia32_rdtsc();
#elif defined __aarch64__
    if (pc__ticks_are_counted) {
        int64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return pc__now();
}

/* Before the first look, once; any thread. */
void pc__ticks_begin(void);

/* What ticks are as pc__now, by where both stand now. */
typedef struct pc__ticks_scale {
    int64_t ticks, time;
    double nanoseconds; /* of a tick */
} pc__ticks_scale;
pc__ticks_scale pc__ticks_look(void);
int64_t pc__ticks_time(const pc__ticks_scale *scale, int64_t ticks);

#endif

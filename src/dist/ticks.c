/* ticks.c: the counter and the clock side by side. Between two looks the clock may have been slewed, so times are counted back from
 * the newest one. */
#include "dist/ticks.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

bool pc__ticks_are_counted;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pc__ticks_scale first;

/* A pair between whose halves nobody else had the processor. */
static pc__ticks_scale both(void)
{
    pc__ticks_scale best = {.nanoseconds = 1};
    int64_t least = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        const int64_t before = pc__ticks(), time = pc__now(), behind = pc__ticks();
        if (behind - before >= least)
            continue;
        least = behind - before;
        best.ticks = before + least / 2;
        best.time = time;
    }
    return best;
}

static void begin(void)
{
    char source[32] = "";
    const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, source, sizeof source - 1) : 0;
    if (fd >= 0)
        close(fd);
    source[n > 0 ? strcspn(source, "\n") : 0] = 0;
    pc__ticks_are_counted = strcmp(source, "tsc") == 0 || strcmp(source, "arch_sys_counter") == 0;
    first = both();
}

void pc__ticks_begin(void)
{
    pthread_once(&once, begin);
}

pc__ticks_scale pc__ticks_look(void)
{
    pc__ticks_begin();
    pc__ticks_scale now = both();
    if (pc__ticks_are_counted && now.ticks > first.ticks)
        now.nanoseconds = (double)(now.time - first.time) / (double)(now.ticks - first.ticks);
    return now;
}

int64_t pc__ticks_time(const pc__ticks_scale *scale, int64_t ticks)
{
    return scale->time - (int64_t)((double)(scale->ticks - ticks) * scale->nanoseconds);
}

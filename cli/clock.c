/* clock.c: the host's clock, marks in a device's stream, and putting times in order. */
#include "clock.h"

#include <paracord/stream.h>
#include <stdlib.h>
#include <time.h>

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool repeat(cli_body body, void *context, int times)
{
    for (int i = 0; i < times; i++)
        if (!body(context))
            return false;
    return true;
}

bool cli_by_clock(pc_device device, cli_body body, void *context, int times, double *seconds)
{
    const double start = cli_now();
    const bool fine = repeat(body, context, times) && pc_device_synchronize(device) == PC_OK;
    *seconds = (cli_now() - start) / times;
    return fine;
}

bool cli_by_marks(pc_device device, cli_body body, void *context, int times, double *seconds)
{
    double ms = 0;
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    const bool fine = start && end && pc_event_record(start, NULL) == PC_OK && repeat(body, context, times) &&
                      pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK;
    pc_event_free(start);
    pc_event_free(end);
    *seconds = ms * 1e-3 / times;
    return fine;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cli_sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
}

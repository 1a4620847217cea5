/* bench_time.c: times of a row: the first call apart, warm-up, then batches; median and quarters. */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 31, LEAST = 5, MOST_GOES = 4000 };
static const double batch_seconds = 4e-3, row_seconds = 0.3;

void bench_settle(double *times, int n, bench_result *r)
{
    cli_sort(times, n);
    r->samples = n;
    r->best = times[0];
    r->median = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
    r->low = times[n / 4];
    r->high = times[n - 1 - n / 4];
}

bool bench_time(pc_device device, bool host, cli_body body, void *context, bench_result *r)
{
    bool (*take)(pc_device, cli_body, void *, int, double *) =
        host || device.type == PC_CPU ? cli_by_clock : cli_by_marks;
    double times[SAMPLES], second;
    if (pc_device_synchronize(device) != PC_OK || !cli_by_clock(device, body, context, 1, &r->first) ||
        !take(device, body, context, 1, &second))
        return false;
    r->goes = second > 0 ? (int)fmin(MOST_GOES, ceil(batch_seconds / second)) : MOST_GOES;
    if (!take(device, body, context, r->goes, &times[0])) /* clocks go up, caches fill */
        return false;
    const double begin = cli_now();
    int n = 0;
    while (n < SAMPLES && (n < LEAST || cli_now() - begin < row_seconds))
        if (!take(device, body, context, r->goes, &times[n++]))
            return false;
    bench_settle(times, n, r);
    return true;
}

bool bench_absent(bench_result *r, const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
    return true;
}

const bench_result *bench_found(const bench *b, const char *name)
{
    for (int i = 0; i < bench_row_count; i++)
        if (!strcmp(bench_rows[i].name, name))
            return b->chosen[i] && b->results[i].median > 0 ? &b->results[i] : NULL;
    return NULL;
}

double bench_rate(const bench_result *r)
{
    return r->amount > 0 && r->median > 0 ? r->amount / r->median : NAN;
}

double bench_share(const bench_result *r)
{
    return r->limit.rate > 0 ? bench_rate(r) / r->limit.rate : NAN;
}

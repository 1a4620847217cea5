/* bench_memory.c: rows that stream through a memory: the device's by the library's ops, the host's by plain loops. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <paracord/ops.h>
#include <paracord/threads.h>

#include "text.h"

enum { GPU_ELEMENTS = 1 << 27, LEAST_ELEMENTS = 1 << 22, MOST_ELEMENTS = 1 << 26 };

int64_t bench_elements(pc_device device)
{
    if (device.type == PC_CUDA)
        return GPU_ELEMENTS; /* 512 MiB: ten times the largest cache */
    const double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE), memory = (double)sysconf(_SC_PHYS_PAGES) * 4096;
    const double wanted = fmin(fmax(2 * cache / 4, LEAST_ELEMENTS), fmin(MOST_ELEMENTS, memory / 32 / 4));
    return (int64_t)fmax(wanted, 1 << 16) / 1024 * 1024;
}

typedef struct arrays {
    pc_tensor *a, *b, *c;
} arrays;

static bool copy(void *context)
{
    arrays *s = context;
    return pc_copy(s->c, s->a) == PC_OK;
}

static bool add(void *context)
{
    arrays *s = context;
    pc_tensor_free(s->c);
    s->c = pc_add(s->a, s->b);
    return s->c != NULL;
}

static bool saxpy(void *context)
{
    arrays *s = context;
    return pc_saxpy(s->b, 1e-9, s->a) == PC_OK;
}

bool bench_memory(bench *b, const bench_row *row, bench_result *r)
{
    static const struct {
        cli_body body;
        int passes, flops;
    } kinds[] = {{copy, 2, 0}, {add, 3, 1}, {saxpy, 3, 2}};
    const int64_t n = bench_elements(b->p.device);
    arrays s = {pc_zeros(PC_SHAPE(n), PC_F32, b->p.device), pc_zeros(PC_SHAPE(n), PC_F32, b->p.device),
                pc_zeros(PC_SHAPE(n), PC_F32, b->p.device)};
    char text[32];
    snprintf(r->size, sizeof r->size, "%s float32", cli_thousands(n, text));
    r->bytes = r->amount = 4.0 * (double)n * kinds[row->which].passes;
    r->flops = (double)n * kinds[row->which].flops;
    r->limit = b->limits.memory;
    const bool fine = s.a && s.b && s.c && bench_time(b->p.device, false, kinds[row->which].body, &s, r);
    pc_tensor_free(s.a);
    pc_tensor_free(s.b);
    pc_tensor_free(s.c);
    return fine;
}

/* --- the host's memory, by plain loops, each thread on a part of its own --- */

typedef struct part {
    double *a, *b, *c;
    int64_t n;
    bool triad;
} part;

static void *walk(void *context)
{
    part *p = context;
    double *restrict a = p->a, *restrict b = p->b, *restrict c = p->c;
    if (p->triad)
        for (int64_t i = 0; i < p->n; i++)
            c[i] = a[i] + 3.0 * b[i];
    else
        for (int64_t i = 0; i < p->n; i++)
            c[i] = a[i];
    return NULL;
}

enum { THREADS_MAX = 256 };

typedef struct crew {
    part parts[THREADS_MAX];
    int count;
} crew;

/* Threads begin and end with each go: tens of microseconds of some tens of milliseconds. */
static bool walk_together(void *context)
{
    crew *c = context;
    pthread_t threads[THREADS_MAX];
    int started = 1;
    while (started < c->count && !pthread_create(&threads[started], NULL, walk, &c->parts[started]))
        started++;
    walk(&c->parts[0]);
    for (int i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = started; i < c->count; i++) /* no more threads to be had */
        walk(&c->parts[i]);
    return true;
}

bool bench_stream(bench *b, const bench_row *row, bench_result *r)
{
    const bool triad = row->which != BENCH_COPY, alone = row->which == BENCH_ONE_THREAD;
    const int64_t n = bench_elements(PC_DEVICE_CPU) / 2;
    pc_tensor *t[3];
    double *at[3];
    crew c = {.count = alone ? 1 : (int)fmin(pc_threads_get(), THREADS_MAX)};
    bool fine = true;
    for (int i = 0; i < 3; i++) {
        t[i] = pc_zeros(PC_SHAPE(n), PC_F64, PC_DEVICE_CPU);
        at[i] = t[i] ? pc_data(t[i]) : NULL;
        fine = fine && at[i] && pc_fill(t[i], i + 1) == PC_OK;
    }
    for (int i = 0; i < c.count && fine; i++) {
        const int64_t from = n * i / c.count, to = n * (i + 1) / c.count;
        c.parts[i] = (part){at[0] + from, at[1] + from, at[2] + from, to - from, triad};
    }
    char text[32];
    snprintf(r->size, sizeof r->size, "%s float64, %d thread%s", cli_thousands(n, text), c.count,
             c.count == 1 ? "" : "s");
    r->amount = 8.0 * (double)n * (triad ? 3 : 2);
    r->limit = b->limits.host;
    fine = fine && bench_time(PC_DEVICE_CPU, true, walk_together, &c, r);
    for (int i = 0; i < 3; i++)
        pc_tensor_free(t[i]);
    return fine;
}

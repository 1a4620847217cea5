/* kernels.h: what the benchmarks of the compute kernels share: the level to run, time, medians. A benchmark prints
 * "name seconds" per measurement, the median of many runs. */
#ifndef PC_BENCH_KERNELS_H
#define PC_BENCH_KERNELS_H

#include "cpu/cpu.h"
#include "cpu/level/compute.h"
#include "base/parallel.h"

#include <paracord/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct kernels {
    const char *level;
    pc_status (*gemm)(const pc__gemm *g);
    pc_status (*conv2d)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                        uint8_t *argmax);
    pc_status (*conv2d_backward)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias);
} kernels;

#define KERNELS(level) {#level, pc__gemm_f32_##level, pc__conv2d_f32_##level, pc__conv2d_backward_f32_##level},
static const kernels all_kernels[] = {PC__EACH_LEVEL(KERNELS)};

/* The level named (the caller knows what the CPU can run), or for NULL the widest that it can. */
static inline const kernels *kernels_for(const char *level)
{
    level = level ? level : pc_cpu_level();
    for (int i = 0; i < PC__COUNT(all_kernels); i++)
        if (strcmp(all_kernels[i].level, level) == 0)
            return &all_kernels[i];
    return &all_kernels[0];
}

/* Seconds; with one thread those of the processor, so that other work on the machine does not count. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(pc_threads_get() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Print the median time of `body(context)` over about `seconds`. */
static inline void measure(const char *name, double seconds, void (*body)(void *context), void *context)
{
    enum { MOST = 20000 };
    static double times[MOST];
    for (int i = 0; i < 3; i++)
        body(context);
    int n = 0;
    for (double end = now() + seconds; n < MOST && (n < 5 || now() < end); n++) {
        double start = now();
        body(context);
        times[n] = now() - start;
    }
    qsort(times, (size_t)n, sizeof(double), by_size);
    printf("%s %.9f\n", name, times[n / 2]);
    fflush(stdout);
}

static inline float *noise(int64_t n)
{
    float *values = aligned_alloc(64, ((size_t)n * 4 + 127) / 64 * 64);
    uint64_t seed = 1;
    for (int64_t i = 0; values && i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)((double)(int64_t)seed * 0x1p-63);
    }
    return values;
}

#endif

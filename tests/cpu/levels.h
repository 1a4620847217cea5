/* levels.h: what the tests of the compute kernels share: the levels this machine can run, test values, comparison. */
#ifndef PC_TEST_LEVELS_H
#define PC_TEST_LEVELS_H

#include "cpu/level/compute.h"
#include "base/parallel.h"
#include "support.h"

#include <math.h>
#include <paracord/memory.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct kernels {
    const char *level;
    bool is_double;
    pc_status (*gemm)(const pc__gemm *g);
    pc_status (*conv2d)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                        uint8_t *argmax);
    pc_status (*conv2d_backward)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias);
    pc_status (*max_pool2d)(const pc__pool *s, const void *x, void *y, int32_t *argmax);
    pc_status (*max_pool2d_backward)(const pc__pool *s, const int32_t *argmax, const void *dy, void *dx);
    pc_status (*avg_pool2d)(const pc__pool *s, const void *x, void *y);
    pc_status (*avg_pool2d_backward)(const pc__pool *s, const void *dy, void *dx);
} kernels;

#define KERNELS(level, type, is_double)                                                                                \
    {#level,                                                                                                           \
     is_double,                                                                                                        \
     pc__gemm_##type##_##level,                                                                                        \
     pc__conv2d_##type##_##level,                                                                                      \
     pc__conv2d_backward_##type##_##level,                                                                             \
     pc__max_pool2d_##type##_##level,                                                                                  \
     pc__max_pool2d_backward_##type##_##level,                                                                         \
     pc__avg_pool2d_##type##_##level,                                                                                  \
     pc__avg_pool2d_backward_##type##_##level},
#define KERNELS_OF_LEVEL(level) KERNELS(level, f32, false) KERNELS(level, f64, true)
static const kernels all_kernels[] = {PC__EACH_LEVEL(KERNELS_OF_LEVEL)};

static inline bool level_runs(const char *level)
{
#if defined(__x86_64__)
    if (strcmp(level, "v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(level, "v4") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
    return strcmp(level, "base") == 0;
}

/* Run `body` for the kernels of every level and type that this machine can run; name the others. */
static inline void each_kernels(void (*body)(const kernels *k))
{
    for (int i = 0; i < PC__COUNT(all_kernels); i++)
        if (level_runs(all_kernels[i].level))
            body(&all_kernels[i]);
        else if (!all_kernels[i].is_double)
            printf("level %s skipped: this CPU does not have it\n", all_kernels[i].level);
}

/* Numbers in [-1, 1), the same sequence for the same seed. */
static inline double noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*seed >> 11 << 11) * 0x1p-63;
}

/* An array of test values in the type of the kernels, with guard values behind it. */
enum { GUARD = 16 };
typedef struct array {
    const kernels *k;
    int64_t n;
    void *data;
} array;

static inline double get(array a, int64_t i)
{
    return a.k->is_double ? ((double *)a.data)[i] : (double)((float *)a.data)[i];
}

static inline void set(array a, int64_t i, double value)
{
    if (a.k->is_double)
        ((double *)a.data)[i] = value;
    else
        ((float *)a.data)[i] = (float)value;
}

static inline array array_new(const kernels *k, int64_t n, uint64_t seed)
{
    array a = {k, n, malloc((size_t)(n + GUARD) * 8)};
    assert_non_null(a.data);
    for (int64_t i = 0; i < n; i++)
        set(a, i, noise(&seed));
    for (int64_t i = n; i < n + GUARD; i++)
        set(a, i, 12345);
    return a;
}

static inline void array_free(array a)
{
    for (int64_t i = a.n; i < a.n + GUARD; i++)
        assert_true(get(a, i) == 12345);
    free(a.data);
}

static inline double tolerance(const kernels *k)
{
    return k->is_double ? 1e-12 : 2e-5;
}

static inline double activated(pc__activation activation, double x)
{
    switch (activation) {
    case PC__ACT_RELU:
        return x < 0 ? 0 : x;
    case PC__ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PC__ACT_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* Run `body` with the first, the second, ... allocation failing until it succeeds: every failure is PC_ERR_MEMORY and
 * leaks nothing. Returns how often it failed. */
static int allocations_left;

static inline void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    void *block = NULL;
    return allocations_left-- > 0 && posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static inline void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

static inline void failing_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static inline int sweep_allocations(pc_status (*body)(void *context), void *context)
{
    const pc_allocator failing = {failing_alloc, failing_resize, failing_free, NULL};
    assert_ok(pc_allocator_set(&failing));
    int failures = 0;
    for (pc_status status = PC_ERR_MEMORY; status != PC_OK; failures++) {
        allocations_left = failures;
        status = body(context);
        assert_true(status == PC_OK || status == PC_ERR_MEMORY);
        assert_int_equal(pc_allocator_live(), 0);
        pc_error_clear();
    }
    assert_ok(pc_allocator_set(NULL));
    return failures - 1;
}

#endif

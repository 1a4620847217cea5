/* real.h: the element type a kernel file is compiled for (double with PC__DOUBLE, else float), its vectors, and the
 * activations. x_f64.c defines PC__DOUBLE and includes x.c, so statics keep their names. */
#ifndef PC__REAL_H
#define PC__REAL_H

#include "cpu/level/compute.h"
#include "cpu/level/functions.h"
#include "cpu/level/level.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef PC__DOUBLE
typedef double real;
typedef int64_t pc__lane_int;
#define PC__R(name) PC__K(name##_f64)
#else
typedef float real;
typedef int32_t pc__lane_int;
#define PC__R(name) PC__K(name##_f32)
#endif

/* A vector register, and the same anywhere in memory. */
typedef real vec __attribute__((vector_size(PC__VECTOR_BYTES)));
typedef real vec_in_memory __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(real)), may_alias));
typedef pc__lane_int lanes __attribute__((vector_size(PC__VECTOR_BYTES)));
typedef pc__lane_int lanes_in_memory __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(real)), may_alias));
typedef uint8_t bytes __attribute__((vector_size(PC__VECTOR_BYTES / sizeof(real))));
typedef uint8_t bytes_in_memory __attribute__((vector_size(PC__VECTOR_BYTES / sizeof(real)), aligned(1), may_alias));
#define W ((int)(PC__VECTOR_BYTES / sizeof(real)))
#define AT(pointer) (*(vec_in_memory *)(pointer))
#define LOAD(pointer) (*(const vec_in_memory *)(pointer))
#define SPLAT(x) ((x) - (vec){0})

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

static inline int64_t round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* activate.c: values[i] = activation(values[i]) */
#define activate PC__R(activate)
void activate(pc__activation activation, real *values, int64_t n);

/* The gradient before an activation from the gradient behind it and the activation's value y. */
INLINE real activation_gradient(pc__activation activation, real dy, real y)
{
    switch (activation) {
    case PC__ACT_RELU:
        return y <= 0 ? 0 : dy;
    case PC__ACT_SIGMOID:
        return dy * y * (1 - y);
    case PC__ACT_TANH:
        return dy * (1 - y * y);
    default:
        return dy;
    }
}

/* The first n elements from memory, the other lanes zero. */
INLINE vec load_some(const real *from, int64_t n)
{
    if (n >= W)
        return LOAD(from);
    real all[W] = {0};
    for (int64_t i = 0; i < n; i++)
        all[i] = from[i];
    return LOAD(all);
}

INLINE lanes load_bytes(const uint8_t *from, int64_t n)
{
    if (n >= W)
        return __builtin_convertvector((bytes) * (const bytes_in_memory *)from, lanes);
    uint8_t all[W] = {0};
    for (int64_t i = 0; i < n; i++)
        all[i] = from[i];
    return __builtin_convertvector((bytes) * (const bytes_in_memory *)all, lanes);
}

/* Lanes of x where the condition (all ones or zeros, from a comparison) holds, else zero. */
INLINE vec where(lanes condition, vec x)
{
    return (vec)(condition & (lanes)x);
}

INLINE vec choose(lanes condition, vec yes, vec no)
{
    return (vec)((condition & (lanes)yes) | (~condition & (lanes)no));
}

/* Store the first n lanes. */
INLINE void store_some(vec x, real *to, int64_t n)
{
    if (n >= W)
        AT(to) = x;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i];
}

/* to = from for n reals, below a few vectors, which may lie over each other where `to` comes first: in two halves, vectors
 * as wide as n allows, that share what is between them. */
static __attribute__((noinline, unused)) void copy_some(real *to, const real *from, int64_t n)
{
#define HALVES(bytes)                                                                                                  \
    if (n * (int64_t)sizeof(real) >= (bytes)) {                                                                        \
        typedef real part __attribute__((vector_size(bytes), aligned(sizeof(real)), may_alias));                       \
        const int64_t step = (bytes) / (int64_t)sizeof(real);                                                          \
        const part last = *(const part *)(from + n - step);                                                            \
        for (int64_t i = 0; i < n - step; i += step)                                                                   \
            *(part *)(to + i) = *(const part *)(from + i);                                                             \
        *(part *)(to + n - step) = last;                                                                               \
        return;                                                                                                        \
    }
    HALVES(PC__VECTOR_BYTES)
#if PC__VECTOR_BYTES > 32
    HALVES(32)
#endif
#if PC__VECTOR_BYTES > 16
    HALVES(16)
#endif
#undef HALVES
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

INLINE void store_bytes(lanes x, uint8_t *to, int64_t n)
{
    if (n >= W)
        *(bytes_in_memory *)to = __builtin_convertvector(x, bytes);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (uint8_t)x[i];
}

/* activation_gradient of a vector. */
INLINE vec vector_gradient(pc__activation activation, vec dy, vec y)
{
    switch (activation) {
    case PC__ACT_RELU:
        return where(~(y <= 0), dy);
    case PC__ACT_SIGMOID:
        return dy * y * (1 - y);
    case PC__ACT_TANH:
        return dy * (1 - y * y);
    default:
        return dy;
    }
}

/* The sum of a vector's lanes, by way of 16-byte parts of it, which every level adds fast. */
INLINE real vector_sum(const vec *v)
{
    typedef real part __attribute__((vector_size(16), may_alias));
    const part *parts = (const part *)v;
    part sum = parts[0];
    UNROLL for (int i = 1; i < PC__VECTOR_BYTES / 16; i++) sum += parts[i];
#ifdef PC__DOUBLE
    return sum[0] + sum[1];
#else
    sum += __builtin_shufflevector(sum, sum, 2, 3, 0, 1);
    return sum[0] + sum[1];
#endif
}

/* The sums of four, side by side: to the bits of vector_sum. */
INLINE void four_sums(const vec *v, real *out)
{
#ifdef PC__DOUBLE
    UNROLL for (int i = 0; i < 4; i++) out[i] = vector_sum(&v[i]);
#else
    typedef float part __attribute__((vector_size(16), may_alias));
    typedef float in_memory __attribute__((vector_size(16), aligned(4), may_alias));
    part sum[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const part *parts = (const part *)&v[i];
        sum[i] = parts[0];
        UNROLL for (int k = 1; k < PC__VECTOR_BYTES / 16; k++) sum[i] += parts[k];
    }
    const part low =
        __builtin_shufflevector(sum[0], sum[1], 0, 4, 1, 5) + __builtin_shufflevector(sum[0], sum[1], 2, 6, 3, 7);
    const part high =
        __builtin_shufflevector(sum[2], sum[3], 0, 4, 1, 5) + __builtin_shufflevector(sum[2], sum[3], 2, 6, 3, 7);
    *(in_memory *)out = __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
#endif
}

#endif

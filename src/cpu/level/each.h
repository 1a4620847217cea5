/* each.h: run functions for element-by-element kernels, per dtype, written once.
 *
 * A run has one loop, over dense operands; others are gathered into dense blocks that stay in the first-level cache. */
#ifndef PC__EACH_H
#define PC__EACH_H

#include "cpu/level/kernels.h"
#include "cpu/level/loop.h"
#include "ops/pointwise.h"

typedef void (*pc__dense_fn)(void *out, const void *x, const void *y, int64_t n);

/* data[0] = dense(data[1], data[2]) for n elements at any strides, in bytes; without a second input s[2] is 0 and
 * data[2] anything that may be read. */
#define pc__in_blocks PC__K(in_blocks)
void pc__in_blocks(char *const *data, const int64_t *s, int64_t n, size_t out_bytes, size_t in_bytes,
                   pc__dense_fn dense);

/* The dense loops over float32 of ops/pointwise.h's functions. */
#define pc__pointwise_f32 PC__K(pointwise_f32)
extern const pc__dense_fn pc__pointwise_f32[PC__POINTWISE_COUNT];

#define PC__RUN_DENSE(name, T, O, read_b, expression)                                                                  \
    static __attribute__((noinline)) void name##_dense(void *to, const void *first, const void *second, int64_t n)     \
    {                                                                                                                  \
        O *out = to;                                                                                                   \
        const T *x = first, *y = second;                                                                               \
        (void)y;                                                                                                       \
        _Pragma("GCC ivdep") /* the result may be an input, in its place */                                            \
            for (int64_t i = 0; i < n; i++)                                                                            \
        {                                                                                                              \
            const T a = x[i];                                                                                          \
            read_b;                                                                                                    \
            out[i] = (O)(expression);                                                                                  \
        }                                                                                                              \
    }

/* A function body over a, b of type T giving type O; `expression` uses a and b. */
#define PC__RUN2(name, T, O, expression)                                                                               \
    PC__RUN_DENSE(name, T, O, const T b = y[i], expression)                                                            \
    static void name(char *const *data, const int64_t *s, int64_t n, const void *context)                              \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        if (s[0] == (int64_t)sizeof(O) && s[1] == (int64_t)sizeof(T) && s[2] == (int64_t)sizeof(T))                    \
            name##_dense(data[0], data[1], data[2], n);                                                                \
        else                                                                                                           \
            pc__in_blocks(data, s, n, sizeof(O), sizeof(T), name##_dense);                                             \
    }

/* The same for one operand. */
#define PC__RUN1(name, T, O, expression)                                                                               \
    PC__RUN_DENSE(name, T, O, , expression)                                                                            \
    static void name(char *const *data, const int64_t *s, int64_t n, const void *context)                              \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        if (s[0] == (int64_t)sizeof(O) && s[1] == (int64_t)sizeof(T))                                                  \
            name##_dense(data[0], data[1], NULL, n);                                                                   \
        else                                                                                                           \
            pc__in_blocks((char *const[]){data[0], data[1], data[1]}, (const int64_t[]){s[0], s[1], 0}, n, sizeof(O),  \
                          sizeof(T), name##_dense);                                                                    \
    }

/* Run `runs[dtype of the first input]` over output and inputs; a missing one is an error that names op and dtype. */
#define pc__each PC__K(each)
pc_status pc__each(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost);

#endif

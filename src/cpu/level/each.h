/* each.h: run functions for element-by-element kernels, per dtype, written once.
 *
 * A run has one loop, over dense operands; others are gathered into dense blocks that stay in the first-level cache. */
#ifndef PC__EACH_H
#define PC__EACH_H

#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"
#include "cpu/level/loop.h"
#include "ops/pointwise.h"

/* `number` is what a loop takes besides its operands, if it does. */
typedef void (*pc__dense_fn)(void *out, const void *x, const void *y, int64_t n, double number);

enum { PC__BLOCK = 256 }; /* elements: 2 KiB of the widest */

/* n elements of an input from i on, side by side: there, or in `room`. What repeats one element is the same for every
 * block, and room keeps it from the first. */
#define pc__gathered PC__K(gathered)
const char *pc__gathered(const char *data, int64_t stride, int64_t i, int64_t n, size_t bytes, char *room);

/* n elements of `bytes` bytes, at any strides in bytes. */
#define pc__move PC__K(move)
void pc__move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, size_t bytes);

/* The dense loops over float32 of ops/pointwise.h's functions. */
#define pc__pointwise_f32 PC__K(pointwise_f32)
extern const pc__dense_fn pc__pointwise_f32[PC__POINTWISE_COUNT];

#define PC__DENSE(name, T, O, read_b, expression)                                                                      \
    static __attribute__((noinline)) void name(void *to, const void *first, const void *second, int64_t n,             \
                                               double number)                                                          \
    {                                                                                                                  \
        O *out = to;                                                                                                   \
        const T *x = first, *y = second;                                                                               \
        (void)y, (void)number;                                                                                         \
        _Pragma("GCC ivdep") /* the result may be an input, in its place */                                            \
            for (int64_t i = 0; i < n; i++)                                                                            \
        {                                                                                                              \
            const T a = x[i];                                                                                          \
            read_b;                                                                                                    \
            out[i] = (O)(expression);                                                                                  \
        }                                                                                                              \
    }

/* A loop over a, or a and b, of type T giving type O; `expression` uses them. Or over a, b and the number c of type T. */
#define PC__DENSE1(name, T, O, expression) PC__DENSE(name, T, O, , expression)
#define PC__DENSE2(name, T, O, expression) PC__DENSE(name, T, O, const T b = y[i], expression)
#define PC__DENSE_PARAMETRIC(name, T, expression)                                                                      \
    PC__DENSE(name, T, T, const T b = y[i]; const T c = (T)number, expression)

/* Functions of 16-bit numbers whose results are such numbers, with nothing to round. */
static inline __attribute__((always_inline)) bool pc__is_kept(int function)
{
    switch (function) {
    case PC__POINTWISE_abs:
    case PC__POINTWISE_abs_backward:
    case PC__POINTWISE_relu:
    case PC__POINTWISE_relu_backward:
    case PC__POINTWISE_relu6:
    case PC__POINTWISE_relu6_backward:
    case PC__POINTWISE_minimum:
    case PC__POINTWISE_maximum:
    case PC__POINTWISE_above:
    case PC__POINTWISE_floor:
    case PC__POINTWISE_round:
    case PC__POINTWISE_sign:
        return true;
    default:
        return false;
    }
}

/* A loop over 16-bit numbers, whole PC__HALVES of them, converted in its loop: for what takes no longer than the conversions. `kept`:
 * results are such numbers before they are rounded. */
#define PC__DENSE_HALVES(name, half, inputs, kept, expression)                                                         \
    static __attribute__((noinline)) void name(void *to, const void *first, const void *second, int64_t n,             \
                                               double number)                                                          \
    {                                                                                                                  \
        pc_##half *out = to;                                                                                           \
        const pc_##half *x = first, *y = (inputs) == 2 ? second : first;                                               \
        const float c = (float)number;                                                                                 \
        (void)c;                                                                                                       \
        for (int64_t i = 0; i < n; i += PC__HALVES) {                                                                  \
            float left[PC__HALVES], right[PC__HALVES], result[PC__HALVES];                                             \
            pc__take_##half(left, x + i);                                                                              \
            pc__take_##half(right, y + i);                                                                             \
            for (int k = 0; k < PC__HALVES; k++) {                                                                     \
                const float a = left[k], b = right[k];                                                                 \
                (void)b;                                                                                               \
                result[k] = (expression);                                                                              \
            }                                                                                                          \
            if (kept)                                                                                                  \
                pc__keep_##half(out + i, result);                                                                      \
            else                                                                                                       \
                pc__put_##half(out + i, result);                                                                       \
        }                                                                                                              \
    }

/* The same of such numbers and one of float32. */
#define PC__DENSE_BY_NUMBER(name, half, expression)                                                                    \
    static __attribute__((noinline)) void name(void *to, const void *first, const void *second, int64_t n,             \
                                               double number)                                                          \
    {                                                                                                                  \
        pc_##half *out = to;                                                                                           \
        const pc_##half *x = first;                                                                                    \
        const float b = (float)number;                                                                                 \
        (void)second;                                                                                                  \
        for (int64_t i = 0; i < n; i += PC__HALVES) {                                                                  \
            float taken[PC__HALVES], result[PC__HALVES];                                                               \
            pc__take_##half(taken, x + i);                                                                             \
            for (int k = 0; k < PC__HALVES; k++) {                                                                     \
                const float a = taken[k];                                                                              \
                result[k] = (expression);                                                                              \
            }                                                                                                          \
            pc__put_##half(out + i, result);                                                                           \
        }                                                                                                              \
    }

/* The loop of a call, and what it needs to be run over any strides: a context of pc__run_dense. */
typedef struct pc__dense {
    pc__dense_fn loop;
    int inputs; /* 1 or 2 */
    size_t out_bytes, in_bytes;
    bool whole; /* the loop is one over 16-bit numbers, and takes whole PC__HALVES of them */
    double number;
} pc__dense;

#define pc__run_dense PC__K(run_dense)
void pc__run_dense(char *const *data, const int64_t *s, int64_t n, const void *dense);

/* Run loops[dtype of the first input] over output and inputs; a missing one is an error that names op and dtype, but
 * 16-bit numbers are then computed by float32's. */
#define pc__each PC__K(each)
pc_status pc__each(const pc_call *call, const pc__dense_fn loops[PC_DTYPE_COUNT], int cost);

/* The same with loops of 16-bit numbers and a number, by dtype, that are NULL where there is none. */
#define pc__each_or_number PC__K(each_or_number)
pc_status pc__each_or_number(const pc_call *call, const pc__dense_fn loops[PC_DTYPE_COUNT],
                             const pc__dense_fn by_number[PC_DTYPE_COUNT], int cost);

/* The same by runs, which get the call's attributes. */
#define pc__each_run PC__K(each_run)
pc_status pc__each_run(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost);

#endif

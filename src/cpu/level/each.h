/* each.h: run functions for element-by-element kernels, per dtype, written once.
 *
 * A run is compiled three ways: all operands dense, the last operand one repeated value, and any strides. */
#ifndef PC__EACH_H
#define PC__EACH_H

#include "cpu/level/kernels.h"
#include "cpu/level/loop.h"

/* A function body over a, b of type T giving type O; `expression` uses a and b. */
#define PC__RUN2(name, T, O, expression)                                                                               \
    static void name(char *const *data, const int64_t *s, int64_t n, const void *context)                              \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        if (s[0] == (int64_t)sizeof(O) && s[1] == (int64_t)sizeof(T) && s[2] == (int64_t)sizeof(T)) {                  \
            O *out = (O *)(void *)data[0];                                                                             \
            const T *x = (const T *)(const void *)data[1], *y = (const T *)(const void *)data[2];                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T a = x[i], b = y[i];                                                                                  \
                out[i] = (O)(expression);                                                                              \
            }                                                                                                          \
        } else if (s[0] == (int64_t)sizeof(O) && s[1] == (int64_t)sizeof(T) && s[2] == 0) {                            \
            O *out = (O *)(void *)data[0];                                                                             \
            const T *x = (const T *)(const void *)data[1], b = *(const T *)(const void *)data[2];                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T a = x[i];                                                                                            \
                out[i] = (O)(expression);                                                                              \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T a = *(const T *)(const void *)(data[1] + i * s[1]),                                                  \
                  b = *(const T *)(const void *)(data[2] + i * s[2]);                                                  \
                *(O *)(void *)(data[0] + i * s[0]) = (O)(expression);                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

/* The same for one operand. */
#define PC__RUN1(name, T, O, expression)                                                                               \
    static void name(char *const *data, const int64_t *s, int64_t n, const void *context)                              \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        if (s[0] == (int64_t)sizeof(O) && s[1] == (int64_t)sizeof(T)) {                                                \
            O *out = (O *)(void *)data[0];                                                                             \
            const T *x = (const T *)(const void *)data[1];                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T a = x[i];                                                                                            \
                out[i] = (O)(expression);                                                                              \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T a = *(const T *)(const void *)(data[1] + i * s[1]);                                                  \
                *(O *)(void *)(data[0] + i * s[0]) = (O)(expression);                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Run `runs[dtype of the first input]` over output and inputs; a missing one is an error that names op and dtype. */
#define pc__each PC__K(each)
pc_status pc__each(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost);

#endif

/* reduce_truth.c: whether any number is not 0, or all are. What is looked for is a number that decides: one that is not 0, or one
 * that is. */
#include "cpu/level/reduce.h"

enum {
    LOOK = 1024, /* numbers looked through together */
    ROWS = 16,
};

#define ANY(x) ((x) != 0)
#define ALL(x) ((x) == 0)
#define HALF(x) ((x)&0x7fff) /* whose sign is no part of it */
#define AS_IS(x) (x)

/* U, as wide as T, has whether one was found: `truth` then, else the other. */
#define TRUTH(name, T, U, IS, of, truth)                                                                               \
    static uint64_t found_##name(const T *x, int64_t n)                                                                \
    {                                                                                                                  \
        for (int64_t begin = 0; begin < n; begin += LOOK) {                                                            \
            const int64_t end = PC__MIN(begin + LOOK, n);                                                              \
            U found = 0;                                                                                               \
            for (int64_t i = begin; i < end; i++)                                                                      \
                found |= (U)IS(of(x[i]));                                                                              \
            if (found)                                                                                                 \
                return truth;                                                                                          \
        }                                                                                                              \
        return 1 - (truth);                                                                                            \
    }                                                                                                                  \
    static void row_##name(const void *x, int64_t n, pc__partial *value, void *also)                                   \
    {                                                                                                                  \
        (void)also;                                                                                                    \
        value->u = found_##name(x, n);                                                                                 \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               void *also)                                                                             \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        U found[PC__COLUMNS], all = 0;                                                                                 \
        (void)also;                                                                                                    \
        memset(found, 0, sizeof found);                                                                                \
        for (int64_t begin = 0; begin < reduced && !all; begin += ROWS) {                                              \
            for (int64_t r = begin; r < PC__MIN(begin + ROWS, reduced); r++)                                           \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    found[j] |= (U)IS(of(x[r * step + j]));                                                            \
            all = 1;                                                                                                   \
            for (int64_t j = 0; j < n; j++)                                                                            \
                all &= found[j];                                                                                       \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++)                                                                                \
            value[j].u = found[j] ? truth : 1 - (truth);                                                               \
    }

#define TRUTHS(kind, IS, truth)                                                                                        \
    TRUTH(kind##_u8, uint8_t, uint8_t, IS, AS_IS, truth)                                                               \
    TRUTH(kind##_half, uint16_t, uint16_t, IS, HALF, truth)                                                            \
    TRUTH(kind##_i32, int32_t, int32_t, IS, AS_IS, truth)                                                              \
    TRUTH(kind##_i64, int64_t, int64_t, IS, AS_IS, truth)                                                              \
    TRUTH(kind##_f32, float, int32_t, IS, AS_IS, truth)                                                                \
    TRUTH(kind##_f64, double, int64_t, IS, AS_IS, truth)
TRUTHS(any, ANY, 1)
TRUTHS(all, ALL, 0)

#define JOIN(name, operator)                                                                                           \
    static void join_##name(pc__partial *value, void *also, const pc__partial *more, const void *more_also,            \
                            int64_t first, int64_t rows, int64_t n)                                                    \
    {                                                                                                                  \
        (void)also, (void)more_also, (void)first, (void)rows;                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            value[j].u operator more[j].u;                                                                             \
    }
JOIN(any, |=)
JOIN(all, &=)

#define ROW(kind, name)                                                                                                \
    {                                                                                                                  \
        row_##kind##_##name, columns_##kind##_##name, join_##kind, pc__reduce_store                                    \
    }
#define ROWS_OF(kind)                                                                                                  \
    [PC_BOOL] = ROW(kind, u8), [PC_U8] = ROW(kind, u8), [PC_I32] = ROW(kind, i32), [PC_I64] = ROW(kind, i64),          \
    [PC_F16] = ROW(kind, half), [PC_BF16] = ROW(kind, half), [PC_F32] = ROW(kind, f32), [PC_F64] = ROW(kind, f64)

PC__KERNEL(any)
{
    static const pc__reduction kinds[PC_DTYPE_COUNT] = {ROWS_OF(any)};
    (void)stream;
    return pc__reduce(call, &kinds[call->in[0]->dtype], NULL);
}

PC__KERNEL(all)
{
    static const pc__reduction kinds[PC_DTYPE_COUNT] = {ROWS_OF(all)};
    (void)stream;
    return pc__reduce(call, &kinds[call->in[0]->dtype], NULL);
}

/* reduce_sum.c: sums, of rows and down columns. */
#include "cpu/level/sum_row.h"
#include "tensor/half.h"

enum { ROWS = 32 }; /* that are added in their own type */

/* T in memory, C while rows are added, A beyond; `take` gives n numbers as C, in their place or in `room`; `member` of a
 * partial has A. */
#define COLUMNS(name, T, C, A, take, member)                                                                           \
    /* Rows one behind the other are as one where several fit. */                                                      \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               int64_t *place)                                                                         \
    {                                                                                                                  \
        const int64_t fold = step == n ? PC__MAX(PC__MIN(PC__COLUMNS / n, reduced), 1) : 1, wide = fold * n;           \
        const int64_t rows = reduced / fold, left = reduced % fold * n;                                                \
        C part[PC__COLUMNS], room[4][PC__COLUMNS];                                                                     \
        A total[PC__COLUMNS];                                                                                          \
        (void)place;                                                                                                   \
        for (int64_t j = 0; j < wide; j++)                                                                             \
            total[j] = 0;                                                                                              \
        for (int64_t begin = 0; begin < rows; begin += ROWS) {                                                         \
            const int64_t end = PC__MIN(begin + ROWS, rows);                                                           \
            int64_t r = begin;                                                                                         \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                part[j] = 0;                                                                                           \
            for (; r + 4 <= end; r += 4) {                                                                             \
                const T *row = (const T *)from + r * fold * step;                                                      \
                const C *x = take(room[0], row, wide), *y = take(room[1], row + fold * step, wide),                    \
                        *z = take(room[2], row + 2 * fold * step, wide),                                               \
                        *u = take(room[3], row + 3 * fold * step, wide);                                               \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)(part[j] + ((x[j] + y[j]) + (z[j] + u[j])));                                          \
            }                                                                                                          \
            for (; r < end; r++) {                                                                                     \
                const C *x = take(room[0], (const T *)from + r * fold * step, wide);                                   \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)(part[j] + x[j]);                                                                     \
            }                                                                                                          \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                total[j] += part[j];                                                                                   \
        }                                                                                                              \
        const C *x = take(room[0], (const T *)from + rows * fold * step, left);                                        \
        for (int64_t j = 0; j < left; j++)                                                                             \
            total[j] += x[j];                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = total[j];                                                                   \
        for (int64_t f = 1; f < fold; f++)                                                                             \
            for (int64_t j = 0; j < n; j++)                                                                            \
                PC__MEMBER(value, j, member) += total[f * n + j];                                                      \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, int64_t *place, const pc__partial *more, const int64_t *where,         \
                            int64_t first, int64_t n)                                                                  \
    {                                                                                                                  \
        (void)place, (void)where, (void)first;                                                                         \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) += PC__MEMBER(more, j, member);                                               \
    }
#define IN_PLACE(room, from, n) ((void)(room), from)
#define HALVES(half)                                                                                                   \
    static inline const float *from_##half(float *room, const pc_##half *from, int64_t n)                              \
    {                                                                                                                  \
        pc__load_halves(room, from, n, sizeof(#half) == sizeof("f16"));                                                \
        return room;                                                                                                   \
    }
HALVES(f16)
HALVES(bf16)
#define AS_IS(x) (x)

PC__SUM_ROW(u64, uint64_t, wholes, wholes, uint64_t, AS_IS, u)
PC__SUM_ROW(f16, pc_f16, singles, doubles, double, (double)pc__f16_float, d)
PC__SUM_ROW(bf16, pc_bf16, singles, doubles, double, (double)pc__bf16_float, d)
PC__SUM_ROW(f32, float, singles, doubles, double, (double), d)
PC__SUM_ROW(f64, double, doubles, doubles, double, AS_IS, d)
COLUMNS(u64, uint64_t, uint64_t, uint64_t, IN_PLACE, u)
COLUMNS(f16, pc_f16, float, double, from_f16, d)
COLUMNS(bf16, pc_bf16, float, double, from_bf16, d)
COLUMNS(f32, float, float, double, IN_PLACE, d)
COLUMNS(f64, double, double, double, IN_PLACE, d)

#define STORE(T, of, member)                                                                                           \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                               \
    break

#define TO_FLOAT(x) ((float)(x))
#define TO_F16(x) pc__f16_of((float)(x))
#define TO_BF16(x) pc__bf16_of((float)(x))

static void store(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)
{
    switch (dtype) {
    case PC_F16:
        STORE(pc_f16, TO_F16, d);
    case PC_BF16:
        STORE(pc_bf16, TO_BF16, d);
    case PC_F32:
        STORE(float, TO_FLOAT, d);
    case PC_F64:
        STORE(double, AS_IS, d);
    default:
        STORE(uint64_t, AS_IS, u);
    }
}

PC__KERNEL(sum)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, store                                                                 \
    }
    static const pc__reduction sums[PC_DTYPE_COUNT] = {
        [PC_I64] = ROW(u64), [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    (void)stream;
    return pc__reduce(call, &sums[call->in[0]->dtype], NULL);
}

/* reduce_lanes.h: sums and products. A few numbers are joined in their own type, in vectors, and
 * those in the wider type. 16-bit numbers are float32 on the way. */
#ifndef PC__CPU_REDUCE_LANES_H
#define PC__CPU_REDUCE_LANES_H

#include "cpu/level/halves.h"
#include "cpu/level/reduce.h"

#define PC__PLUS(a, b) ((a) + (b))
#define PC__TIMES(a, b) ((a) * (b))
#define PC__AS_IS(x) (x)

enum {
    PC__LANES = 32, /* numbers that are joined in four vectors of eight, these in two pairs, before they are widened */
    PC__ROWS = 8,   /* the same of columns: so many equal numbers are added up exactly */
    PC__RUN = 1024, /* 16-bit numbers, whose sums stay exact longer */
};

/* Vectors of numbers of a type, however many registers that is: compilers take two well, and go by memory for more. */
#define PC__FOUR(T) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias)) T
#define PC__EIGHT(T) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias)) T

#define PC__WIDE(x) __builtin_convertvector(*(const narrow *)(x), wide) /* four of them */

/* T in memory, C while a few are joined, A beyond; of none it is NOTHING. `whole` joins what fills lanes, and says how much that
 * was; `take` gives n numbers as C, in their place or in `room`; `member` of a partial has A. */
#define PC__FOLD_ROW(name, T, C, A, NOTHING, JOIN, whole, take, member)                                                \
    static void row_##name(const void *from, int64_t n, pc__partial *value, void *also)                                \
    {                                                                                                                  \
        typedef PC__FOUR(C) narrow;                                                                                    \
        typedef PC__FOUR(A) wide;                                                                                      \
        wide low = (wide){0} + (NOTHING), high = low;                                                                  \
        A total = (NOTHING);                                                                                           \
        C room[PC__LANES];                                                                                             \
        const int64_t done = whole(&low, &high, from, n), left = n - done;                                             \
        const C *x = take(room, (const T *)from + done, left);                                                         \
        int64_t i = 0;                                                                                                 \
        (void)also, (void)room;                                                                                        \
        for (; i + 8 <= left; i += 8) {                                                                                \
            low = JOIN(low, PC__WIDE(x + i));                                                                          \
            high = JOIN(high, PC__WIDE(x + i + 4));                                                                    \
        }                                                                                                              \
        for (; i < left; i++)                                                                                          \
            total = JOIN(total, x[i]);                                                                                 \
        low = JOIN(low, high);                                                                                         \
        low = JOIN(low, __builtin_shufflevector(low, low, 2, 3, 0, 1));                                                \
        value->member = JOIN(total, JOIN(low[0], low[1]));                                                             \
    }

/* The same down columns. Rows one behind the other are as one where several fit, whose results are joined by halves. */
#define PC__FOLD_COLUMNS(name, T, C, A, NOTHING, JOIN, take, member)                                                   \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               void *also)                                                                             \
    {                                                                                                                  \
        const int64_t fold = step == n ? PC__MAX(PC__MIN(PC__COLUMNS / n, reduced), 1) : 1, wide = fold * n;           \
        const int64_t rows = reduced / fold, left = reduced % fold * n;                                                \
        C part[PC__COLUMNS], room[4][PC__COLUMNS];                                                                     \
        A total[PC__COLUMNS];                                                                                          \
        (void)also;                                                                                                    \
        for (int64_t j = 0; j < wide; j++)                                                                             \
            total[j] = (NOTHING);                                                                                      \
        for (int64_t begin = 0; begin < rows; begin += PC__ROWS) {                                                     \
            const int64_t end = PC__MIN(begin + PC__ROWS, rows);                                                       \
            int64_t r = begin;                                                                                         \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                part[j] = (NOTHING);                                                                                   \
            for (; r + 4 <= end; r += 4) {                                                                             \
                const T *row = (const T *)from + r * fold * step;                                                      \
                const C *x = take(room[0], row, wide), *y = take(room[1], row + fold * step, wide),                    \
                        *z = take(room[2], row + 2 * fold * step, wide),                                               \
                        *u = take(room[3], row + 3 * fold * step, wide);                                               \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)JOIN(part[j], JOIN(JOIN(x[j], y[j]), JOIN(z[j], u[j])));                              \
            }                                                                                                          \
            for (; r < end; r++) {                                                                                     \
                const C *x = take(room[0], (const T *)from + r * fold * step, wide);                                   \
                for (int64_t j = 0; j < wide; j++)                                                                     \
                    part[j] = (C)JOIN(part[j], x[j]);                                                                  \
            }                                                                                                          \
            for (int64_t j = 0; j < wide; j++)                                                                         \
                total[j] = JOIN(total[j], part[j]);                                                                    \
        }                                                                                                              \
        const C *x = take(room[0], (const T *)from + rows * fold * step, left);                                        \
        for (int64_t j = 0; j < left; j++)                                                                             \
            total[j] = JOIN(total[j], x[j]);                                                                           \
        for (int64_t folds = fold, half = fold / 2; half > 0; folds -= half, half = folds / 2)                         \
            _Pragma("GCC ivdep") for (int64_t j = 0; j < half * n; j++) total[j] =                                     \
                JOIN(total[j], total[(folds - half) * n + j]);                                                         \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = total[j];                                                                   \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, void *also, const pc__partial *more, const void *more_also,            \
                            int64_t first, int64_t rows, int64_t n)                                                    \
    {                                                                                                                  \
        (void)also, (void)more_also, (void)first, (void)rows;                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = JOIN(PC__MEMBER(value, j, member), PC__MEMBER(more, j, member));            \
    }

#define PC__FOLD(name, T, C, A, NOTHING, JOIN, whole, take, member)                                                    \
    PC__FOLD_ROW(name, T, C, A, NOTHING, JOIN, whole, take, member)                                                    \
    PC__FOLD_COLUMNS(name, T, C, A, NOTHING, JOIN, take, member)
#define PC__IN_PLACE(room, from, n) ((void)(room), from)

/* whole_NAME over C, joined in A: OF of eight numbers at once, in registers whatever the compiler unrolls. */
#define PC__WHOLE(name, C, A, JOIN, OF)                                                                                \
    static inline int64_t whole_##name(void *to_low, void *to_high, const C *x, int64_t n)                             \
    {                                                                                                                  \
        typedef PC__EIGHT(C) eight;                                                                                    \
        typedef PC__FOUR(C) narrow;                                                                                    \
        typedef PC__FOUR(A) wide;                                                                                      \
        wide low = *(wide *)to_low, high = *(wide *)to_high;                                                           \
        int64_t i = 0;                                                                                                 \
        for (; i + PC__LANES <= n; i += PC__LANES) {                                                                   \
            const eight *from = (const eight *)(x + i);                                                                \
            const eight few = JOIN(JOIN(OF(from[0]), OF(from[1])), JOIN(OF(from[2]), OF(from[3])));                    \
            low = JOIN(low, PC__WIDE((const C *)&few));                                                                \
            high = JOIN(high, PC__WIDE((const C *)&few + 4));                                                          \
        }                                                                                                              \
        *(wide *)to_low = low, *(wide *)to_high = high;                                                                \
        return i;                                                                                                      \
    }

/* take_NAME: OF of each. */
#define PC__TAKE_OF(name, C, OF)                                                                                       \
    static inline const C *take_##name(C *room, const C *x, int64_t n)                                                 \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++)                                                                                \
            room[j] = OF(x[j]);                                                                                        \
        return room;                                                                                                   \
    }

/* The same of 16-bit numbers, by those of float32: whole_KIND_f32, take_KIND_f32. */
#define PC__BY_SINGLES(kind, half)                                                                                     \
    static inline int64_t whole_##kind##_##half(void *low, void *high, const pc_##half *x, int64_t n)                  \
    {                                                                                                                  \
        _Alignas(PC__VECTOR_BYTES) float room[PC__RUN];                                                                \
        const int64_t whole = n / PC__LANES * PC__LANES;                                                               \
        for (int64_t i = 0; i < whole; i += PC__RUN) {                                                                 \
            const int64_t count = PC__MIN(PC__RUN, whole - i);                                                         \
            pc__load_halves(room, x + i, count, sizeof(#half) == sizeof("f16"));                                       \
            (void)whole_##kind##_f32(low, high, room, count);                                                          \
        }                                                                                                              \
        return whole;                                                                                                  \
    }                                                                                                                  \
    static inline const float *take_##kind##_##half(float *room, const pc_##half *x, int64_t n)                        \
    {                                                                                                                  \
        pc__load_halves(room, x, n, sizeof(#half) == sizeof("f16"));                                                   \
        return take_##kind##_f32(room, room, n);                                                                       \
    }

#endif

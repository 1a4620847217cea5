/* sum_columns.h: the sums of columns side by side. Some rows are added in their own type, in vectors that stay in registers,
 * and these sums in the wider type. Rows one behind the other are as one where several fit. */
#ifndef PC__SUM_COLUMNS_H
#define PC__SUM_COLUMNS_H

#include "cpu/level/half_vectors.h"
#include "cpu/level/sum_row.h"

enum {
    ROWS = 8,     /* that are added in their own type */
    TOGETHER = 8, /* vectors */
    FOLDED = 128, /* numbers that several rows come to, */
    FOLDS = 6,    /* and how many such there are at least */
};

/* The first sums in the wider type, or more of them. */
INLINE void add_singles(double *to, singles x, bool is_first)
{
    typedef VECTOR(float, PC__VECTOR_BYTES / 2) half;
    const half *part = (const half *)&x;
    doubles *total = (doubles *)to;
    const doubles low = __builtin_convertvector(part[0], doubles), high = __builtin_convertvector(part[1], doubles);
    if (is_first)
        total[0] = low, total[1] = high;
    else
        total[0] += low, total[1] += high;
}

#define ADD(sums, A)                                                                                                   \
    INLINE void add_##sums(A *to, sums x, bool is_first)                                                               \
    {                                                                                                                  \
        if (is_first)                                                                                                  \
            *(sums *)to = x;                                                                                           \
        else                                                                                                           \
            *(sums *)to += x;                                                                                          \
    }
ADD(doubles, double)
ADD(wholes, uint64_t)

/* T in memory, `sums` vectors of what rows are added in, `load` such a one from memory; A beyond, which `member` of a partial
 * has; `of` a number as A. */
#define PC__SUM_COLUMNS(name, T, sums, A, load, of, member)                                                            \
    INLINE void panel_##name(const T *x, int64_t step, int64_t rows, const int vectors, A *to)                         \
    {                                                                                                                  \
        enum { W = sizeof(sums) / sizeof(((sums){0})[0]) };                                                            \
        for (int64_t begin = 0; begin < rows; begin += ROWS) {                                                         \
            sums sum[TOGETHER];                                                                                        \
            UNROLLED for (int v = 0; v < vectors; v++) sum[v] = load(x + begin * step + v * W);                        \
            for (int64_t r = begin + 1; r < PC__MIN(begin + ROWS, rows); r++)                                          \
                UNROLLED for (int v = 0; v < vectors; v++) sum[v] += load(x + r * step + v * W);                       \
            UNROLLED for (int v = 0; v < vectors; v++) add_##sums(to + v * W, sum[v], begin == 0);                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               void *also)                                                                             \
    {                                                                                                                  \
        enum { W = sizeof(sums) / sizeof(((sums){0})[0]) };                                                            \
        const int64_t fold = step == n ? PC__MAX(PC__MIN(FOLDED / n, (reduced + FOLDS - 1) / FOLDS), 1) : 1,           \
                      wide = fold * n;                                                                                 \
        const int64_t rows = reduced / fold, left = reduced % fold * n;                                                \
        const T *x = from, *end = x + rows * fold * step;                                                              \
        A room[FOLDED], *total = fold > 1 ? room : &value->member;                                                     \
        int64_t j = 0;                                                                                                 \
        (void)also;                                                                                                    \
        if (reduced == 0) {                                                                                            \
            memset(value, 0, (size_t)n * sizeof *value);                                                               \
            return;                                                                                                    \
        }                                                                                                              \
        for (; j + TOGETHER * W <= wide; j += TOGETHER * W)                                                            \
            panel_##name(x + j, fold * step, rows, TOGETHER, total + j);                                               \
        for (; j + 2 * W <= wide; j += 2 * W)                                                                          \
            panel_##name(x + j, fold * step, rows, 2, total + j);                                                      \
        for (; wide >= W && j < wide; j += W) /* the last one lies over the one before */                              \
            panel_##name(x + PC__MIN(j, wide - W), fold * step, rows, 1, total + PC__MIN(j, wide - W));                \
        for (; j < wide; j++) {                                                                                        \
            total[j] = 0;                                                                                              \
            for (int64_t r = 0; r < rows; r++)                                                                         \
                total[j] += of(x[r * fold * step + j]);                                                                \
        }                                                                                                              \
        for (j = 0; j < left; j++)                                                                                     \
            total[j] += of(end[j]);                                                                                    \
        for (j = 0; fold > 1 && j < n; j++) {                                                                          \
            A sum = total[j];                                                                                          \
            for (int64_t f = 1; f < fold; f++)                                                                         \
                sum += total[f * n + j];                                                                               \
            (&value->member)[j] = sum;                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, void *also, const pc__partial *more, const void *more_also,            \
                            int64_t first, int64_t rows, int64_t n)                                                    \
    {                                                                                                                  \
        (void)also, (void)more_also, (void)first, (void)rows;                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) += PC__MEMBER(more, j, member);                                               \
    }

#endif

/* reduce_extreme.h: the largest or smallest of numbers and its place: the first of equals; NaN beats everything, and the first NaN
 * counts. A row is read for its extreme, without branches, and from its begin again until that is found. */
#ifndef PC__CPU_REDUCE_EXTREME_H
#define PC__CPU_REDUCE_EXTREME_H

#include "cpu/level/half_vectors.h"
#include "cpu/level/reduce.h"
#include "tensor/half.h"

enum {
    PC__EXTREME_LANES = 32,
    PC__EXTREME_LOOK = 256,   /* numbers looked through together */
    PC__EXTREME_TOGETHER = 2, /* vectors of columns */
};

/* Loops over lanes stay in memory unless the compiler unrolls them, which this file's -O2 does not. */
#if defined(__GNUC__) && !defined(__clang__) && !(defined(__x86_64__) && defined(PC__LEVEL_base))
#define PC__UNROLLED __attribute__((optimize("O3")))
#else
#define PC__UNROLLED
#endif

#define PC__AS_IS(x) (x)
#define PC__NEVER(x) ((void)(x), 0)
#define PC__IS_NAN(x) (-((x) != (x))) /* all bits, as a comparison of vectors gives */

#define PC__LOAD(x) (*(const vector *)(x))
#define PC__LOAD_U8(x) __builtin_convertvector(*(const pc__eight_bits *)(x), vector)
typedef uint8_t pc__eight_bits __attribute__((vector_size(PC__VECTOR_BYTES / 4), aligned(1), may_alias));

/* Columns of whole vectors, whose extremes and places are in registers; the last vector lies over the one before. False: there
 * are fewer columns. `load` gives a vector of C, which I is as wide as; LOSES: a does not beat b, and neither is
 * NaN. */
#define PC__PANELS(name, T, C, I, LOSES, load, member)                                                                 \
    static inline __attribute__((always_inline)) void panel_##name(                                                    \
        const T *x, int64_t step, int64_t reduced, const int vectors, pc__partial *value, int64_t *place)              \
    {                                                                                                                  \
        typedef C vector __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(C)), may_alias));                \
        typedef I places __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(I)), may_alias));                \
        enum { W = PC__VECTOR_BYTES / sizeof(C) };                                                                     \
        vector best[PC__EXTREME_TOGETHER];                                                                             \
        places at[PC__EXTREME_TOGETHER];                                                                               \
        PC__EACH_VECTOR best[v] = load(x + v * W), at[v] = (places){0};                                                \
        for (int64_t r = 1; r < reduced; r++) {                                                                        \
            const T *row = x + r * step;                                                                               \
            PC__EACH_VECTOR                                                                                            \
            {                                                                                                          \
                const vector a = load(row + v * W);                                                                    \
                const places more = ~(LOSES(a, best[v])) & (best[v] == best[v]);                                       \
                best[v] = (vector)((more & (places)a) | (~more & (places)best[v]));                                    \
                at[v] = (more & (I)r) | (~more & at[v]);                                                               \
            }                                                                                                          \
        }                                                                                                              \
        PC__EACH_VECTOR for (int k = 0; k < W; k++) value[v * W + k].member = best[v][k];                              \
        if (place)                                                                                                     \
            PC__EACH_VECTOR for (int k = 0; k < W; k++) place[v * W + k] = at[v][k];                                   \
    }                                                                                                                  \
    static bool panels_##name(const T *x, int64_t step, int64_t reduced, int64_t n, pc__partial *value,                \
                              int64_t *place)                                                                          \
    {                                                                                                                  \
        enum { W = PC__VECTOR_BYTES / sizeof(C) };                                                                     \
        int64_t j = 0;                                                                                                 \
        for (; j + PC__EXTREME_TOGETHER * W <= n; j += PC__EXTREME_TOGETHER * W)                                       \
            panel_##name(x + j, step, reduced, PC__EXTREME_TOGETHER, value + j, place ? place + j : NULL);             \
        for (int64_t last; n >= W && j < n; j += W) {                                                                  \
            last = PC__MIN(j, n - W);                                                                                  \
            panel_##name(x + last, step, reduced, 1, value + last, place ? place + last : NULL);                       \
        }                                                                                                              \
        return n >= W;                                                                                                 \
    }
#define PC__EACH_VECTOR _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)

/* T in memory, C compared by BEATS, which is `member` of a partial; I, as wide, is places in a chunk; `panels` of that name or
 * PC__NO_PANELS. */
#define PC__NO_PANELS(x, step, reduced, n, value, place) false
#define PC__EXTREME(name, T, C, I, BEATS, of, unordered, panels, member)                                               \
    static int64_t first_##name(const T *x, int64_t n, C wanted, bool any_nan)                                         \
    {                                                                                                                  \
        for (int64_t i = 0; any_nan && i < n; i++)                                                                     \
            if (unordered(of(x[i])))                                                                                   \
                return i;                                                                                              \
        for (int64_t begin = 0; begin < n; begin += PC__EXTREME_LOOK) {                                                \
            const int64_t end = PC__MIN(begin + PC__EXTREME_LOOK, n);                                                  \
            I at = PC__EXTREME_LOOK; /* the least of what every lane finds */                                          \
            for (int64_t i = begin; i < end; i++)                                                                      \
                at = PC__MIN(at, of(x[i]) == wanted ? (I)(i - begin) : (I)PC__EXTREME_LOOK);                           \
            if (at < PC__EXTREME_LOOK)                                                                                 \
                return begin + (int64_t)at;                                                                            \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    PC__UNROLLED static void row_##name(const void *from, int64_t n, pc__partial *value, void *also)                   \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        int64_t *place = also;                                                                                         \
        C lane[PC__EXTREME_LANES], best = of(x[0]);                                                                    \
        I nans[PC__EXTREME_LANES] = {0};                                                                               \
        for (int k = 0; k < PC__EXTREME_LANES; k++)                                                                    \
            lane[k] = best;                                                                                            \
        for (int64_t i = 0; i < n; i += PC__EXTREME_LANES) /* numbers at the end are looked at twice */                \
            for (int64_t k = 0, at = PC__MIN(i, n - PC__EXTREME_LANES); at >= 0 && k < PC__EXTREME_LANES; k++) {       \
                const C a = of(x[at + k]);                                                                             \
                lane[k] = BEATS(a, lane[k]) ? a : lane[k];                                                             \
                nans[k] |= unordered(a);                                                                               \
            }                                                                                                          \
        for (int64_t i = 0; n < PC__EXTREME_LANES && i < n; i++) {                                                     \
            lane[i] = of(x[i]);                                                                                        \
            nans[i] |= unordered(lane[i]);                                                                             \
        }                                                                                                              \
        _Pragma("GCC unroll 8") for (int width = PC__EXTREME_LANES / 2; width; width /= 2)                             \
        {                                                                                                              \
            for (int k = 0; k < width; k++) {                                                                          \
                lane[k] = BEATS(lane[k + width], lane[k]) ? lane[k + width] : lane[k];                                 \
                nans[k] |= nans[k + width];                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        best = lane[0];                                                                                                \
        if (nans[0] || place) {                                                                                        \
            const int64_t at = first_##name(x, n, best, nans[0]);                                                      \
            best = of(x[at]);                                                                                          \
            if (place)                                                                                                 \
                *place = at;                                                                                           \
        }                                                                                                              \
        value->member = best;                                                                                          \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               void *also)                                                                             \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        int64_t *place = also;                                                                                         \
        if (panels(x, step, reduced, n, value, place))                                                                 \
            return;                                                                                                    \
        C best[PC__COLUMNS];                                                                                           \
        I at[PC__COLUMNS];                                                                                             \
        enum { W = PC__VECTOR_BYTES / sizeof(C) };                                                                     \
        pc__partial values[W];                                                                                         \
        int64_t places[W], done = n < W && step >= n ? reduced - (W - n + step - 1) / step : 0;                        \
        if (done < 1 ||                                                                                                \
            !panels(x, step, done, W, values, places)) /* with what lies behind each row, and is dropped */            \
            done = 0;                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            best[j] = done ? (C)values[j].member : of(x[j]);                                                           \
            at[j] = done ? (I)places[j] : 0;                                                                           \
        }                                                                                                              \
        for (int64_t r = PC__MAX(done, 1); r < reduced; r++)                                                           \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                const C a = of(x[r * step + j]);                                                                       \
                const bool more = BEATS(a, best[j]) | (unordered(a) & !unordered(best[j]));                            \
                best[j] = more ? a : best[j];                                                                          \
                at[j] = more ? (I)r : at[j];                                                                           \
            }                                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = best[j];                                                                    \
        for (int64_t j = 0; place && j < n; j++)                                                                       \
            place[j] = at[j];                                                                                          \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, void *also, const pc__partial *more, const void *more_also,            \
                            int64_t first, int64_t rows, int64_t n)                                                    \
    {                                                                                                                  \
        int64_t *place = also;                                                                                         \
        (void)rows;                                                                                                    \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const C best = (C)value[j].member, a = (C)more[j].member;                                                  \
            if (!(BEATS(a, best) || (unordered(a) && !unordered(best))))                                               \
                continue;                                                                                              \
            value[j] = more[j];                                                                                        \
            if (place)                                                                                                 \
                place[j] = first + ((const int64_t *)more_also)[j];                                                    \
        }                                                                                                              \
    }

#define PC__EXTREME_STORE(name, T, of, member)                                                                         \
    static void store_##name(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)                            \
    {                                                                                                                  \
        (void)dtype;                                                                                                   \
        for (int64_t j = 0; j < n; j++)                                                                                \
            ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                           \
    }

#define PC__LARGER(a, b) ((a) > (b))
#define PC__SMALLER(a, b) ((a) < (b))
#define PC__AT_MOST(a, b) ((a) <= (b))
#define PC__AT_LEAST(a, b) ((a) >= (b))

#endif

/* reduce_var.c: variances. A block of numbers, which stays in the first-level cache, is read for its mean and again for the
 * squares around it; what is left of the differences corrects both. Blocks are joined by their means in float64, so nothing
 * is a difference of large sums. `also` is the mean, as double. */
#include "cpu/level/halves.h"
#include "cpu/level/reduce.h"

#include <math.h>

enum {
    BLOCK = 1024,
    LANES = 32,
    ROWS = 32, /* of a block of columns */
};

/* Numbers so far: how many, their mean, and the sum of the squares around it. */
typedef struct moments {
    double n, mean, squares;
} moments;

/* The mean of numbers of which `part` have the mean b. Of infinity it is that. */
static inline double between(double a, double b, double part)
{
    return (b - a) - (b - a) == 0 ? a + (b - a) * part : a + b;
}

static inline void join(moments *a, double n, double mean, double squares)
{
    const double all = a->n + n, apart = mean - a->mean, part = n / all;
    a->mean = between(a->mean, mean, part);
    a->squares += squares + a->n * part * apart * apart;
    a->n = all;
}

/* What rounding has left below 0 is 0; NaN stays. */
static inline double not_below_0(double x)
{
    return x < 0 ? 0 : x;
}

/* The mean of numbers that are not all finite stays what it is. */
static inline double if_finite(double x)
{
    return x - x == 0 ? x : 0;
}

/* T in memory, C in loops; `take` gives n numbers as C, in their place or in `room`. */
#define VAR(name, T, C, take)                                                                                          \
    static void block_##name(const C *x, int64_t n, moments *to)                                                       \
    {                                                                                                                  \
        _Alignas(64) C sum[LANES] = {0}, rest[LANES] = {0}, squares[LANES] = {0};                                      \
        double total = 0, more = 0, around = 0;                                                                        \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int k = 0; k < LANES; k++)                                                                            \
                sum[k] += x[i + k];                                                                                    \
        for (; i < n; i++)                                                                                             \
            total += (double)x[i];                                                                                     \
        for (int k = 0; k < LANES; k++)                                                                                \
            total += (double)sum[k];                                                                                   \
        const C mean = (C)(total / (double)n);                                                                         \
        for (i = 0; i + LANES <= n; i += LANES)                                                                        \
            for (int k = 0; k < LANES; k++) {                                                                          \
                const C d = x[i + k] - mean;                                                                           \
                rest[k] += d;                                                                                          \
                squares[k] += d * d;                                                                                   \
            }                                                                                                          \
        for (; i < n; i++) {                                                                                           \
            const double d = (double)(x[i] - mean);                                                                    \
            more += d;                                                                                                 \
            around += d * d;                                                                                           \
        }                                                                                                              \
        for (int k = 0; k < LANES; k++) {                                                                              \
            more += (double)rest[k];                                                                                   \
            around += (double)squares[k];                                                                              \
        }                                                                                                              \
        const double off = if_finite(more) / (double)n;                                                                \
        join(to, (double)n, (double)mean + off, not_below_0(around - more * off));                                     \
    }                                                                                                                  \
    static void row_##name(const void *from, int64_t n, pc__partial *value, void *also)                                \
    {                                                                                                                  \
        moments all = {0, n ? 0 : NAN, 0};                                                                             \
        C room[BLOCK];                                                                                                 \
        (void)room;                                                                                                    \
        for (int64_t begin = 0; begin < n; begin += BLOCK) {                                                           \
            const int64_t count = PC__MIN(BLOCK, n - begin);                                                           \
            block_##name(take(room, (const T *)from + begin, count), count, &all);                                     \
        }                                                                                                              \
        value->d = all.squares;                                                                                        \
        *(double *)also = all.mean;                                                                                    \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               void *also)                                                                             \
    {                                                                                                                  \
        double *mean = also;                                                                                           \
        C sum[PC__COLUMNS], rest[PC__COLUMNS], squares[PC__COLUMNS], room[PC__COLUMNS];                                \
        (void)room;                                                                                                    \
        for (int64_t j = 0; j < n; j++)                                                                                \
            mean[j] = reduced ? 0 : NAN, value[j].d = 0;                                                               \
        for (int64_t begin = 0; begin < reduced; begin += ROWS) {                                                      \
            const int64_t rows = PC__MIN(ROWS, reduced - begin);                                                       \
            const T *block = (const T *)from + begin * step;                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                sum[j] = rest[j] = squares[j] = 0;                                                                     \
            for (int64_t r = 0; r < rows; r++) {                                                                       \
                const C *x = take(room, block + r * step, n);                                                          \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    sum[j] += x[j];                                                                                    \
            }                                                                                                          \
            for (int64_t j = 0; j < n; j++)                                                                            \
                sum[j] /= (C)rows;                                                                                     \
            for (int64_t r = 0; r < rows; r++) {                                                                       \
                const C *x = take(room, block + r * step, n);                                                          \
                for (int64_t j = 0; j < n; j++) {                                                                      \
                    const C d = x[j] - sum[j];                                                                         \
                    rest[j] += d;                                                                                      \
                    squares[j] += d * d;                                                                               \
                }                                                                                                      \
            }                                                                                                          \
            const double part = (double)rows / (double)(begin + rows);                                                 \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                const double more = (double)rest[j], off = if_finite(more) / (double)rows;                             \
                const double now = (double)sum[j] + off, apart = now - mean[j];                                        \
                mean[j] = between(mean[j], now, part);                                                                 \
                value[j].d += not_below_0((double)squares[j] - more * off) + (double)begin * part * apart * apart;     \
            }                                                                                                          \
        }                                                                                                              \
    }
#define IN_PLACE(room, from, n) (from)
#define FROM_HALVES(half)                                                                                              \
    static inline const float *from_##half(float *room, const pc_##half *from, int64_t n)                              \
    {                                                                                                                  \
        pc__load_halves(room, from, n, sizeof(#half) == sizeof("f16"));                                                \
        return room;                                                                                                   \
    }
FROM_HALVES(f16)
FROM_HALVES(bf16)
VAR(f16, pc_f16, float, from_f16)
VAR(bf16, pc_bf16, float, from_bf16)
VAR(f32, float, float, IN_PLACE)
VAR(f64, double, double, IN_PLACE)

static void join_parts(pc__partial *value, void *also, const pc__partial *more, const void *more_also, int64_t first,
                       int64_t rows, int64_t n)
{
    double *mean = also;
    for (int64_t j = 0; j < n; j++) {
        moments a = {(double)first, mean[j], value[j].d};
        join(&a, (double)rows, ((const double *)more_also)[j], more[j].d);
        mean[j] = a.mean, value[j].d = a.squares;
    }
}

#define ROW(name, store)                                                                                               \
    {                                                                                                                  \
        row_##name, columns_##name, join_parts, store                                                                  \
    }
#define KINDS(store)                                                                                                   \
    {                                                                                                                  \
        [PC_F16] = ROW(f16, store), [PC_BF16] = ROW(bf16, store), [PC_F32] = ROW(f32, store),                          \
        [PC_F64] = ROW(f64, store)                                                                                     \
    }

PC__KERNEL(var)
{
    static const pc__reduction kinds[2][PC_DTYPE_COUNT] = {KINDS(pc__reduce_store), KINDS(pc__reduce_store_roots)};
    const pc__reduce_attributes *a = call->attributes;
    (void)stream;
    return pc__reduce(call, &kinds[a->root][call->in[0]->dtype], pc__data(call->out[1]));
}

/* reduce.c: sums and maxima of [outer, reduced, inner]. Sums are added in fixed pieces: the result does not depend on
 * the number of threads. */
#include "ops/reduce.h"

#include "cpu/level/kernels.h"

typedef struct summing {
    const pc__reduce_attributes *a;
    const void *from;
    void *to;
} summing;

#define PIECE 1024
#define LANES 16
#define COLUMNS 64

/* A run of numbers in lanes, so that it becomes vector code; pieces then add up in the wider type. */
#define SUM_RUN(name, T, A)                                                                                            \
    static A run_##name(const T *x, int64_t n)                                                                         \
    {                                                                                                                  \
        A total = 0;                                                                                                   \
        for (int64_t begin = 0; begin < n; begin += PIECE) {                                                           \
            int64_t end = PC__MIN(begin + PIECE, n), i = begin;                                                        \
            T lane[LANES] = {0};                                                                                       \
            for (; i + LANES <= end; i += LANES)                                                                       \
                for (int k = 0; k < LANES; k++)                                                                        \
                    lane[k] = (T)(lane[k] + x[i + k]);                                                                 \
            A sum = 0;                                                                                                 \
            for (int k = 0; k < LANES; k++)                                                                            \
                sum += lane[k];                                                                                        \
            for (; i < end; i++)                                                                                       \
                sum += x[i];                                                                                           \
            total += sum;                                                                                              \
        }                                                                                                              \
        return total;                                                                                                  \
    }                                                                                                                  \
    /* n <= COLUMNS neighbouring columns of a matrix of rows of `inner` */                                             \
    static void columns_##name(const T *x, T *y, int64_t reduced, int64_t inner, int64_t n)                            \
    {                                                                                                                  \
        A total[COLUMNS] = {0};                                                                                        \
        for (int64_t begin = 0; begin < reduced; begin += PIECE / LANES) {                                             \
            int64_t end = PC__MIN(begin + PIECE / LANES, reduced);                                                     \
            T part[COLUMNS] = {0};                                                                                     \
            for (int64_t r = begin; r < end; r++)                                                                      \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    part[j] = (T)(part[j] + x[r * inner + j]);                                                         \
            for (int64_t j = 0; j < n; j++)                                                                            \
                total[j] += part[j];                                                                                   \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++)                                                                                \
            y[j] = (T)total[j];                                                                                        \
    }                                                                                                                  \
    static void rows_##name(const T *x, T *y, int64_t reduced, int64_t inner)                                          \
    {                                                                                                                  \
        for (int64_t j = 0; j < inner; j += COLUMNS)                                                                   \
            columns_##name(x + j, y + j, reduced, inner, PC__MIN(COLUMNS, inner - j));                                 \
    }                                                                                                                  \
    static void sum_##name(void *context, int64_t o)                                                                   \
    {                                                                                                                  \
        const summing *s = context;                                                                                    \
        const pc__reduce_attributes *a = s->a;                                                                         \
        const T *x = s->from;                                                                                          \
        T *y = s->to;                                                                                                  \
        if (a->inner == 1)                                                                                             \
            y[o] = (T)run_##name(x + o * a->reduced, a->reduced);                                                      \
        else                                                                                                           \
            rows_##name(x + o * a->reduced * a->inner, y + o * a->inner, a->reduced, a->inner);                        \
    }
SUM_RUN(i64, uint64_t, uint64_t)
SUM_RUN(f32, float, double)
SUM_RUN(f64, double, double)

PC__KERNEL(sum)
{
    (void)stream;
    const pc__reduce_attributes *a = call->attributes;
    pc_dtype dtype = call->in[0]->dtype;
    pc__part_fn run = dtype == PC_F32 ? sum_f32 : dtype == PC_F64 ? sum_f64 : sum_i64;
    pc__parallel(pc__threads(a->outer * a->reduced * a->inner * 2), a->outer, run,
                 &(summing){a, pc__data(call->in[0]), pc__data(call->out[0])});
    return PC_OK;
}

/* The first of equals; NaN is larger than everything, the first NaN counts. */
#define MAX_RUN(name, T, larger)                                                                                       \
    static void max_##name(const pc__reduce_attributes *s, const void *from, void *to, int64_t *index)                 \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        for (int64_t o = 0; o < s->outer; o++)                                                                         \
            for (int64_t j = 0; j < s->inner; j++) {                                                                   \
                const T *x = (const T *)from + o * s->reduced * s->inner + j;                                          \
                T best = x[0];                                                                                         \
                int64_t place = 0;                                                                                     \
                for (int64_t r = 1; r < s->reduced; r++) {                                                             \
                    T a = x[r * s->inner];                                                                             \
                    if (larger)                                                                                        \
                        best = a, place = r;                                                                           \
                }                                                                                                      \
                y[o * s->inner + j] = best;                                                                            \
                index[o * s->inner + j] = place;                                                                       \
            }                                                                                                          \
    }
MAX_RUN(bool, bool, a && !best)
MAX_RUN(u8, uint8_t, a > best)
MAX_RUN(i32, int32_t, a > best)
MAX_RUN(i64, int64_t, a > best)
MAX_RUN(f32, float, a > best || (a != a && best == best))
MAX_RUN(f64, double, a > best || (a != a && best == best))

PC__KERNEL(max)
{
    (void)stream;
    static void (*const runs[PC_DTYPE_COUNT])(const pc__reduce_attributes *, const void *, void *, int64_t *) = {
        [PC_BOOL] = max_bool, [PC_U8] = max_u8,   [PC_I32] = max_i32,
        [PC_I64] = max_i64,   [PC_F32] = max_f32, [PC_F64] = max_f64};
    runs[call->in[0]->dtype](call->attributes, pc__data(call->in[0]), pc__data(call->out[0]), pc__data(call->out[1]));
    return PC_OK;
}

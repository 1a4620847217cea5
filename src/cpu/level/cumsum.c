/* cumsum.c: running sums along a dimension, [outer, n, inner], in double for fractions; 16-bit numbers come as float32. */
#include "cpu/level/kernels.h"
#include "ops/index.h"

enum {
    COLUMNS = 64, /* of inner, that are added up side by side */
    LISTS = 4,    /* the same where inner is 1: a single sum waits for each addition */
    TASK = 8192,  /* elements at least: short lists are many tasks, whose threads would write side by side */
};

typedef struct summing {
    const void *from;
    void *to;
    int64_t lists, n, inner, parts; /* parts of one of outer */
    int64_t each;                   /* inner 1: lists of a part, in fours */
    bool reversed;
} summing;

#define SUMS(T, S)                                                                                                     \
    static void columns_##T(void *context, int64_t part)                                                               \
    {                                                                                                                  \
        const summing *w = context;                                                                                    \
        const int64_t first = part % w->parts * COLUMNS, columns = PC__MIN(w->inner - first, COLUMNS);                 \
        const int64_t begin = part / w->parts * w->n * w->inner + first, step = w->reversed ? -w->inner : w->inner;    \
        const int64_t at = w->reversed ? begin + (w->n - 1) * w->inner : begin;                                        \
        const T *restrict x = (const T *)w->from + at;                                                                 \
        T *restrict y = (T *)w->to + at;                                                                               \
        S sum[COLUMNS] = {0};                                                                                          \
        for (int64_t i = 0; i < w->n; i++)                                                                             \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                y[i * step + c] = (T)(sum[c] += (S)x[i * step + c]);                                                   \
    }                                                                                                                  \
    static void some_lists_##T(const summing *w, int64_t first, int64_t count)                                         \
    {                                                                                                                  \
        const int64_t step = w->reversed ? -1 : 1, at = first * w->n + (w->reversed ? w->n - 1 : 0);                   \
        const T *restrict x = (const T *)w->from + at;                                                                 \
        T *restrict y = (T *)w->to + at;                                                                               \
        S sum[LISTS] = {0};                                                                                            \
        for (int64_t i = 0; count == LISTS && i < w->n; i++)                                                           \
            for (int64_t k = 0; k < LISTS; k++)                                                                        \
                y[i * step + k * w->n] = (T)(sum[k] += (S)x[i * step + k * w->n]);                                     \
        for (int64_t k = 0; count < LISTS && k < count; k++)                                                           \
            for (int64_t i = 0; i < w->n; i++)                                                                         \
                y[i * step + k * w->n] = (T)(sum[k] += (S)x[i * step + k * w->n]);                                     \
    }                                                                                                                  \
    static void lists_##T(void *context, int64_t part)                                                                 \
    {                                                                                                                  \
        const summing *w = context;                                                                                    \
        const int64_t end = PC__MIN(w->lists, (part + 1) * w->each);                                                   \
        for (int64_t first = part * w->each; first < end; first += LISTS)                                              \
            some_lists_##T(w, first, PC__MIN(end - first, LISTS));                                                     \
    }
SUMS(int64_t, uint64_t)
SUMS(float, double)
SUMS(double, double)

PC__KERNEL(cumsum)
{
    (void)stream;
    const pc__cumsum_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int64_t elements = pc_tensor_count(t);
    if (elements == 0)
        return PC_OK;
    summing w = {.from = pc__data(t),
                 .to = pc__data(call->out[0]),
                 .lists = pc__outer_of(t, a->dim),
                 .n = t->shape[a->dim],
                 .inner = pc__inner_of(t, a->dim),
                 .reversed = a->reversed};
    w.parts = (w.inner + COLUMNS - 1) / COLUMNS;
    w.each = LISTS * PC__MAX(1, TASK / (LISTS * w.n));
    const bool wide = w.inner == 1;
    const int64_t parts = wide ? (w.lists + w.each - 1) / w.each : w.lists * w.parts;
    pc__parallel(pc__threads(elements * 12), parts,
                 t->dtype == PC_F64   ? (wide ? lists_double : columns_double)
                 : t->dtype == PC_F32 ? (wide ? lists_float : columns_float)
                                      : (wide ? lists_int64_t : columns_int64_t),
                 &w);
    return PC_OK;
}

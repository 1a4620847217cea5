/* cumsum.c: running sums along a dimension, [outer, n, inner], in double for fractions; 16-bit numbers come as float32. */
#include "cpu/level/kernels.h"
#include "ops/index.h"

enum { COLUMNS = 64 /* of inner, that are added up side by side */ };

typedef struct summing {
    const void *from;
    void *to;
    int64_t n, inner, parts; /* parts of one of outer */
    bool reversed;
} summing;

#define SUMS(T, S)                                                                                                     \
    static void sums_##T(void *context, int64_t part)                                                                  \
    {                                                                                                                  \
        const summing *w = context;                                                                                    \
        const int64_t first = part % w->parts * COLUMNS, columns = PC__MIN(w->inner - first, COLUMNS);                 \
        const int64_t begin = part / w->parts * w->n * w->inner + first, step = w->reversed ? -w->inner : w->inner;    \
        const int64_t at = w->reversed ? begin + (w->n - 1) * w->inner : begin;                                        \
        const T *x = (const T *)w->from + at;                                                                          \
        T *y = (T *)w->to + at;                                                                                        \
        S sum[COLUMNS] = {0};                                                                                          \
        for (int64_t i = 0; i < w->n; i++)                                                                             \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                y[i * step + c] = (T)(sum[c] += (S)x[i * step + c]);                                                   \
    }
SUMS(int64_t, uint64_t)
SUMS(float, double)
SUMS(double, double)

PC__KERNEL(cumsum)
{
    (void)stream;
    const pc__cumsum_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    summing w = {.from = pc__data(t),
                 .to = pc__data(call->out[0]),
                 .n = t->shape[a->dim],
                 .inner = pc__inner_of(t, a->dim),
                 .reversed = a->reversed};
    w.parts = (w.inner + COLUMNS - 1) / COLUMNS;
    const int64_t elements = pc_tensor_count(t);
    if (elements)
        pc__parallel(pc__threads(elements * 24), pc__outer_of(t, a->dim) * w.parts,
                     t->dtype == PC_F64   ? sums_double
                     : t->dtype == PC_F32 ? sums_float
                                          : sums_int64_t,
                     &w);
    return PC_OK;
}

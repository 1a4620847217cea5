/* dot.c: the product of two vectors: pieces of fixed length, in lanes as sums are, added in order. */
#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"

enum {
    PIECE = 32768, /* numbers that a core takes at a time */
    RUN = 1024,
    LANES = 32,
};

typedef struct work {
    const void *x, *y;
    int64_t n;
    double *sums; /* of each piece */
} work;

/* Four vectors of eight products are added in their own type, then in double: so many equal ones are exact. */
#define RUN_OF(T)                                                                                                      \
    static double run_##T(const T *x, const T *y, int64_t n)                                                           \
    {                                                                                                                  \
        typedef T eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));                    \
        typedef T four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));                     \
        typedef double wide __attribute__((vector_size(4 * sizeof(double))));                                          \
        wide low = {0}, high = {0};                                                                                    \
        double total = 0;                                                                                              \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) {                                                                           \
            const eight *a = (const eight *)(x + i), *b = (const eight *)(y + i);                                      \
            const eight few = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);                               \
            low += __builtin_convertvector(((const four *)&few)[0], wide);                                             \
            high += __builtin_convertvector(((const four *)&few)[1], wide);                                            \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            total += (double)x[i] * (double)y[i];                                                                      \
        low += high;                                                                                                   \
        return total + ((low[0] + low[2]) + (low[1] + low[3]));                                                        \
    }
RUN_OF(float)
RUN_OF(double)

/* 16-bit numbers are converted in registers, in no order that matters: both sides have the same. */
#define RUN_OF_HALVES(half)                                                                                            \
    static double run_pc_##half(const pc_##half *x, const pc_##half *y, int64_t n)                                     \
    {                                                                                                                  \
        enum { VECTORS = 2 * PC__HALVES * 4 / PC__VECTOR_BYTES };                                                      \
        typedef float vector __attribute__((vector_size(PC__VECTOR_BYTES), may_alias));                                \
        vector sum[VECTORS] = {{0}};                                                                                   \
        double total = 0;                                                                                              \
        int64_t i = 0;                                                                                                 \
        for (; i + 2 * PC__HALVES <= n; i += 2 * PC__HALVES)                                                           \
            for (int h = 0; h < 2; h++) {                                                                              \
                _Alignas(PC__VECTOR_BYTES) float a[PC__HALVES], b[PC__HALVES];                                         \
                pc__take_##half(a, x + i + h * PC__HALVES);                                                            \
                pc__take_##half(b, y + i + h * PC__HALVES);                                                            \
                for (int v = 0; v < VECTORS / 2; v++)                                                                  \
                    sum[h * VECTORS / 2 + v] += ((const vector *)a)[v] * ((const vector *)b)[v];                       \
            }                                                                                                          \
        for (; i < n; i++)                                                                                             \
            total += (double)pc__##half##_float(x[i]) * (double)pc__##half##_float(y[i]);                              \
        for (int k = 0; k < 2 * PC__HALVES; k++)                                                                       \
            total += (double)((const float *)sum)[k];                                                                  \
        return total;                                                                                                  \
    }
RUN_OF_HALVES(f16)
RUN_OF_HALVES(bf16)

#define PIECE_OF(T)                                                                                                    \
    static void piece_##T(void *context, int64_t piece)                                                                \
    {                                                                                                                  \
        const work *w = context;                                                                                       \
        const int64_t end = PC__MIN((piece + 1) * PIECE, w->n);                                                        \
        double total = 0;                                                                                              \
        for (int64_t i = piece * PIECE; i < end; i += RUN)                                                             \
            total += run_##T((const T *)w->x + i, (const T *)w->y + i, PC__MIN(RUN, end - i));                         \
        w->sums[piece] = total;                                                                                        \
    }
PIECE_OF(float)
PIECE_OF(double)
PIECE_OF(pc_f16)
PIECE_OF(pc_bf16)

static void store(void *to, pc_dtype dtype, double value)
{
    if (dtype == PC_F64)
        *(double *)to = value;
    else if (dtype == PC_F32)
        *(float *)to = (float)value;
    else if (dtype == PC_F16)
        *(pc_f16 *)to = pc__f16_of((float)value);
    else
        *(pc_bf16 *)to = pc__bf16_of((float)value);
}

PC__KERNEL(dot)
{
    static void (*const kinds[PC_DTYPE_COUNT])(void *context, int64_t piece) = {
        [PC_F16] = piece_pc_f16, [PC_BF16] = piece_pc_bf16, [PC_F32] = piece_float, [PC_F64] = piece_double};
    const pc_dtype dtype = (pc_dtype)call->in[0]->dtype;
    double few[64], total = 0;
    work w = {pc__data(call->in[0]), pc__data(call->in[1]), call->in[0]->shape[0], few};
    const int64_t pieces = (w.n + PIECE - 1) / PIECE;
    (void)stream;
    if (pieces > PC__COUNT(few)) {
        w.sums = pc__alloc_aligned((size_t)pieces * sizeof *w.sums, 64);
        if (!w.sums)
            return PC_ERR_MEMORY;
    }
    pc__parallel(pc__threads(8 * w.n * (int64_t)pc_dtype_size(dtype)), pieces, kinds[dtype], &w);
    for (int64_t i = 0; i < pieces; i++)
        total += w.sums[i];
    store(pc__data(call->out[0]), dtype, total);
    if (w.sums != few)
        pc__free(w.sums);
    return PC_OK;
}

/* reduce_max.c: maxima and their places: the first of equals; NaN is larger than everything, and the first NaN counts.
 * A row is read for its largest number, without branches, and from its begin again until that is found. */
#include "cpu/level/reduce.h"

#include "cpu/cpu.h"
#include "cpu/level/half_vectors.h"

enum {
    LANES = 32,
    LOOK = 256,   /* numbers looked through together */
    TOGETHER = 2, /* vectors of columns */
};

/* Loops over lanes stay in memory unless the compiler unrolls them, which this file's -O2 does not. */
#if defined(__GNUC__) && !defined(__clang__) && !(defined(__x86_64__) && defined(PC__LEVEL_base))
#define UNROLLED __attribute__((optimize("O3")))
#else
#define UNROLLED
#endif

#define AS_IS(x) (x)
#define NEVER(x) ((void)(x), 0)
#define IS_NAN(x) (-((x) != (x))) /* all bits, as a comparison of vectors gives */

#define LOAD(x) (*(const vector *)(x))
#define LOAD_U8(x) __builtin_convertvector(*(const eight_bits *)(x), vector)
typedef uint8_t eight_bits __attribute__((vector_size(PC__VECTOR_BYTES / 4), aligned(1), may_alias));

/* Columns of whole vectors, whose maxima and places are in registers; the last vector lies over the one before. False: there
 * are fewer columns. `load` gives a vector of C, which I is as wide as. */
#define PANELS(name, T, C, I, load, member)                                                                            \
    static inline __attribute__((always_inline)) void panel_##name(                                                    \
        const T *x, int64_t step, int64_t reduced, const int vectors, pc__partial *value, int64_t *place)              \
    {                                                                                                                  \
        typedef C vector __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(C)), may_alias));                \
        typedef I places __attribute__((vector_size(PC__VECTOR_BYTES), aligned(sizeof(I)), may_alias));                \
        enum { W = PC__VECTOR_BYTES / sizeof(C) };                                                                     \
        vector best[TOGETHER];                                                                                         \
        places at[TOGETHER];                                                                                           \
        VECTORS best[v] = load(x + v * W), at[v] = (places){0};                                                        \
        for (int64_t r = 1; r < reduced; r++) {                                                                        \
            const T *row = x + r * step;                                                                               \
            VECTORS                                                                                                    \
            {                                                                                                          \
                const vector a = load(row + v * W);                                                                    \
                const places more = ~(a <= best[v]) & (best[v] == best[v]);                                            \
                best[v] = (vector)((more & (places)a) | (~more & (places)best[v]));                                    \
                at[v] = (more & (I)r) | (~more & at[v]);                                                               \
            }                                                                                                          \
        }                                                                                                              \
        VECTORS for (int k = 0; k < W; k++) value[v * W + k].member = best[v][k];                                      \
        if (place)                                                                                                     \
            VECTORS for (int k = 0; k < W; k++) place[v * W + k] = at[v][k];                                           \
    }                                                                                                                  \
    static bool panels_##name(const T *x, int64_t step, int64_t reduced, int64_t n, pc__partial *value,                \
                              int64_t *place)                                                                          \
    {                                                                                                                  \
        enum { W = PC__VECTOR_BYTES / sizeof(C) };                                                                     \
        int64_t j = 0;                                                                                                 \
        for (; j + TOGETHER * W <= n; j += TOGETHER * W)                                                               \
            panel_##name(x + j, step, reduced, TOGETHER, value + j, place ? place + j : NULL);                         \
        for (int64_t last; n >= W && j < n; j += W) {                                                                  \
            last = PC__MIN(j, n - W);                                                                                  \
            panel_##name(x + last, step, reduced, 1, value + last, place ? place + last : NULL);                       \
        }                                                                                                              \
        return n >= W;                                                                                                 \
    }
#define VECTORS _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
PANELS(u8, uint8_t, int32_t, int32_t, LOAD_U8, i)
PANELS(i32, int32_t, int32_t, int32_t, LOAD, i)
PANELS(i64, int64_t, int64_t, int64_t, LOAD, i)
PANELS(f16, pc_f16, float, int32_t, pc__vector_f16, f)
PANELS(bf16, pc_bf16, float, int32_t, pc__vector_bf16, f)
PANELS(f32, float, float, int32_t, LOAD, f)
PANELS(f64, double, double, int64_t, LOAD, d)

/* T in memory, C compared, which is `member` of a partial; I, as wide, is places in a chunk. */
#define MAX(name, T, C, I, of, unordered, member)                                                                      \
    static int64_t first_##name(const T *x, int64_t n, C wanted, bool any_nan)                                         \
    {                                                                                                                  \
        for (int64_t i = 0; any_nan && i < n; i++)                                                                     \
            if (unordered(of(x[i])))                                                                                   \
                return i;                                                                                              \
        for (int64_t begin = 0; begin < n; begin += LOOK) {                                                            \
            const int64_t end = PC__MIN(begin + LOOK, n);                                                              \
            I found = 0;                                                                                               \
            for (int64_t i = begin; i < end; i++)                                                                      \
                found |= of(x[i]) == wanted;                                                                           \
            for (int64_t i = begin; found && i < end; i++)                                                             \
                if (of(x[i]) == wanted)                                                                                \
                    return i;                                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    UNROLLED static void row_##name(const void *from, int64_t n, pc__partial *value, int64_t *place)                   \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        C lane[LANES], best = of(x[0]);                                                                                \
        I nans[LANES] = {0};                                                                                           \
        for (int k = 0; k < LANES; k++)                                                                                \
            lane[k] = best;                                                                                            \
        for (int64_t i = 0; i < n; i += LANES) /* numbers at the end are looked at twice */                            \
            for (int64_t k = 0, at = PC__MIN(i, n - LANES); at >= 0 && k < LANES; k++) {                               \
                const C a = of(x[at + k]);                                                                             \
                lane[k] = a > lane[k] ? a : lane[k];                                                                   \
                nans[k] |= unordered(a);                                                                               \
            }                                                                                                          \
        for (int64_t i = 0; n < LANES && i < n; i++) {                                                                 \
            lane[i] = of(x[i]);                                                                                        \
            nans[i] |= unordered(lane[i]);                                                                             \
        }                                                                                                              \
        for (int k = 0; k < LANES; k++) {                                                                              \
            best = lane[k] > best ? lane[k] : best;                                                                    \
            nans[0] |= nans[k];                                                                                        \
        }                                                                                                              \
        if (nans[0] || place) {                                                                                        \
            const int64_t at = first_##name(x, n, best, nans[0]);                                                      \
            best = of(x[at]);                                                                                          \
            if (place)                                                                                                 \
                *place = at;                                                                                           \
        }                                                                                                              \
        value->member = best;                                                                                          \
    }                                                                                                                  \
    static void columns_##name(const void *from, int64_t step, int64_t reduced, int64_t n, pc__partial *value,         \
                               int64_t *place)                                                                         \
    {                                                                                                                  \
        if (panels_##name(from, step, reduced, n, value, place))                                                       \
            return;                                                                                                    \
        const T *x = from;                                                                                             \
        C best[PC__COLUMNS];                                                                                           \
        I at[PC__COLUMNS];                                                                                             \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            best[j] = of(x[j]);                                                                                        \
            at[j] = 0;                                                                                                 \
        }                                                                                                              \
        for (int64_t r = 1; r < reduced; r++)                                                                          \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                const C a = of(x[r * step + j]);                                                                       \
                const bool more = (a > best[j]) | (unordered(a) & !unordered(best[j]));                                \
                best[j] = more ? a : best[j];                                                                          \
                at[j] = more ? (I)r : at[j];                                                                           \
            }                                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            PC__MEMBER(value, j, member) = best[j];                                                                    \
        for (int64_t j = 0; place && j < n; j++)                                                                       \
            place[j] = at[j];                                                                                          \
    }                                                                                                                  \
    static void join_##name(pc__partial *value, int64_t *place, const pc__partial *more, const int64_t *where,         \
                            int64_t first, int64_t n)                                                                  \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const C best = (C)value[j].member, a = (C)more[j].member;                                                  \
            if (!(a > best || (unordered(a) && !unordered(best))))                                                     \
                continue;                                                                                              \
            value[j] = more[j];                                                                                        \
            if (place)                                                                                                 \
                place[j] = first + where[j];                                                                           \
        }                                                                                                              \
    }
MAX(u8, uint8_t, uint8_t, int32_t, AS_IS, NEVER, i)
MAX(i32, int32_t, int32_t, int32_t, AS_IS, NEVER, i)
MAX(i64, int64_t, int64_t, int64_t, AS_IS, NEVER, i)
MAX(f16, pc_f16, float, int32_t, pc__f16_float, IS_NAN, f)
MAX(bf16, pc_bf16, float, int32_t, pc__bf16_float, IS_NAN, f)
MAX(f32, float, float, int32_t, AS_IS, IS_NAN, f)
MAX(f64, double, double, int64_t, AS_IS, IS_NAN, d)

#define STORE(name, T, of, member)                                                                                     \
    static void store_##name(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)                            \
    {                                                                                                                  \
        (void)dtype;                                                                                                   \
        for (int64_t j = 0; j < n; j++)                                                                                \
            ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                           \
    }
STORE(u8, uint8_t, (uint8_t), i)
STORE(i32, int32_t, (int32_t), i)
STORE(i64, int64_t, AS_IS, i)
STORE(f16, pc_f16, pc__f16_of, f)
STORE(bf16, pc_bf16, pc__bf16_of, f)
STORE(f32, float, AS_IS, f)
STORE(f64, double, AS_IS, d)

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, store_##name                                                          \
    }

PC__KERNEL(max)
{
    static const pc__reduction maxima[PC_DTYPE_COUNT] = {
        [PC_BOOL] = ROW(u8), [PC_U8] = ROW(u8),     [PC_I32] = ROW(i32), [PC_I64] = ROW(i64),
        [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    const pc__reduce_attributes *a = call->attributes;
    int64_t *index = pc__data(call->out[1]);
    (void)stream;
    const size_t results = (size_t)(a->outer * a->inner);
    if (a->whole || a->reduced == 1) /* nobody is told the places, or there is one */
        memset(index, 0, results * sizeof *index);
    if (a->reduced == 1) {
        memcpy(pc__data(call->out[0]), pc__data(call->in[0]), results * pc_dtype_size(call->in[0]->dtype));
        return PC_OK;
    }
    return pc__reduce(call, &maxima[call->in[0]->dtype], a->whole ? NULL : index);
}

PC__KERNEL(max_backward)
{
    const pc__reduce_attributes *a = call->attributes;
    return a->whole && pc__is_half((pc_dtype)call->in[0]->dtype)
               ? PC__K(in_floats)(stream, call, PC__K(op_max_backward))
               : pc__cpu_max_backward(call);
}

/* random.c: drawing tensors. Element i is word i % 4 of block i / 4 (ops/random.h), whatever the number of threads. */
#include "ops/random.h"

#include "base/normal.h"
#include "base/philox.h"
#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"

#include <math.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

enum {
    TOGETHER = 64,        /* blocks of four words that are made at once, side by side in vectors */
    WORDS = TOGETHER * 4, /* and their words */
    PIECE = 16 * WORDS,   /* numbers that a thread claims: that costs little beside drawing them */
};

typedef struct drawing {
    const pc__random_attributes *a;
    const pc_call *call;
    uint64_t stream;
    int64_t n; /* numbers */
    void (*draw)(const struct drawing *d, int64_t first, int64_t n, const uint32_t *words);
} drawing;

#if defined(PC__LEVEL_v4)
#define PRODUCT(a, b) ((lanes)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#elif defined(PC__LEVEL_v3)
#define PRODUCT(a, b) ((lanes)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#elif defined(__SSE2__)
#define PRODUCT(a, b) ((lanes)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#endif

#ifdef PRODUCT

/* pc__philox of as many blocks as a vector has lanes of 64 bits. PRODUCT is of the lower halves; what is in the upper ones
 * of a block's four words is of no account. */
typedef uint64_t lanes __attribute__((vector_size(PC__VECTOR_BYTES)));
enum { LANES = PC__VECTOR_BYTES / 8 };

static inline void philox_lanes(const drawing *d, uint64_t block, uint64_t *words)
{
    lanes c0, c1, c2 = (lanes){0} + d->stream, c3 = c2 >> 32, low = (lanes){0} + 0xffffffff;
    uint64_t k0 = d->a->seed, k1 = d->a->seed >> 32;
    for (int i = 0; i < LANES; i++)
        c0[i] = block + (uint64_t)i;
    c1 = c0 >> 32;
    for (int round = 0; round < 10; round++) {
        const lanes a = PRODUCT(c0, (lanes){0} + 0xD2511F53u), b = PRODUCT(c2, (lanes){0} + 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ k0;
        c2 = (a >> 32) ^ c3 ^ k1;
        c1 = b;
        c3 = a;
        k0 = (uint32_t)k0 + 0x9E3779B9u;
        k1 = (uint32_t)k1 + 0xBB67AE85u;
    }
    const lanes first = (c0 & low) | c1 << 32, second = (c2 & low) | c3 << 32;
    for (int i = 0; i < LANES; i++) {
        words[2 * i] = first[i];
        words[2 * i + 1] = second[i];
    }
}

#else

enum { LANES = 1 };

static inline void philox_lanes(const drawing *d, uint64_t block, uint64_t *words)
{
    const pc__words four = pc__philox(d->a->seed, d->stream, block);
    memcpy(words, four.w, sizeof four.w);
}

#endif

static void make_words(const drawing *d, int64_t first, uint64_t *words)
{
    for (int i = 0; i < TOGETHER; i += LANES)
        philox_lanes(d, (uint64_t)first / 4 + (uint64_t)i, words + 2 * i);
}

static void draw_piece(void *context, int64_t piece)
{
    const drawing *d = context;
    union {
        uint64_t pairs[WORDS / 2];
        uint32_t words[WORDS];
    } drawn;
    for (int64_t i = piece * PIECE; i < PC__MIN((piece + 1) * PIECE, d->n); i += WORDS) {
        make_words(d, i, drawn.pairs);
        d->draw(d, i, PC__MIN(WORDS, d->n - i), drawn.words);
    }
}

static pc_status draw_all(const pc_call *call, int cost,
                          void (*draw)(const drawing *d, int64_t first, int64_t n, const uint32_t *words))
{
    const pc__random_attributes *a = call->attributes;
    uint64_t base = call->n_in == 2 ? *(const uint64_t *)pc__data(call->in[1]) : 0;
    drawing d = {a, call, a->stream + 4 * base, pc_tensor_count(call->out[0]), draw};
    pc__parallel(pc__threads(d.n * cost), (d.n + PIECE - 1) / PIECE, draw_piece, &d);
    return PC_OK;
}

/* low + factor * value as elements of t from `first` on. */
static void put(pc_tensor *t, int64_t first, int64_t n, double low, double factor, const float *values)
{
    float *floats = pc__data(t), rounded[WORDS];
    double *doubles = pc__data(t);
    if (t->dtype == PC_F64) {
        for (int64_t i = 0; i < n; i++)
            doubles[first + i] = low + factor * (double)values[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        rounded[i] = (float)(low + factor * (double)values[i]);
    if (t->dtype == PC_F32)
        memcpy(floats + first, rounded, (size_t)n * sizeof *rounded);
    else
        pc__store_halves((uint16_t *)pc__data(t) + first, rounded, n, t->dtype == PC_F16);
}

/* In [0, 1). Of the word's 24 bits 16-bit numbers take as many as they hold: rounded, the largest would be 1. */
static void draw_uniform(const drawing *d, int64_t first, int64_t n, const uint32_t *words)
{
    pc_tensor *t = d->call->out[0];
    const uint32_t left_out = t->dtype == PC_F16 ? 1u << 21 : t->dtype == PC_BF16 ? 1u << 24 : 1;
    float unit[WORDS];
    for (int64_t i = 0; i < n; i++)
        unit[i] = (float)(int32_t)((words[i] & ~(left_out - 1)) >> 8) * 0x1p-24f;
    put(t, first, n, d->a->low, d->a->high - d->a->low, unit);
}

PC__KERNEL(uniform)
{
    (void)stream;
    return draw_all(call, 8, draw_uniform);
}

/* Some of them: a number that vectors divide, so that no code is there for what they leave. */
enum { NORMAL = 32 };

static void make_normal(const uint32_t *restrict words, float *restrict z)
{
    for (int i = 0; i < NORMAL; i += 2) {
        float first, second;
        pc__normal_two(words[i], words[i + 1], &first, &second);
        z[i] = first;
        z[i + 1] = second;
    }
}

static void draw_normal(const drawing *d, int64_t first, int64_t n, const uint32_t *words)
{
    float z[WORDS];
    for (int64_t i = 0; i < n; i += NORMAL)
        make_normal(words + i, z + i);
    put(d->call->out[0], first, n, d->a->low, d->a->high, z);
}

PC__KERNEL(normal)
{
    (void)stream;
    return draw_all(call, 20, draw_normal);
}

/* What stays is a word's 24 bits that are no less than p of all of them. */
#define DROP(T)                                                                                                        \
    static void drop_##T(const T *restrict x, T *restrict y, bool *restrict kept, int64_t n, const uint32_t *words,    \
                         int32_t least, double scale)                                                                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const bool stays = (int32_t)(words[i] >> 8) >= least;                                                      \
            const T scaled = (T)((double)x[i] * scale);                                                                \
            kept[i] = stays;                                                                                           \
            y[i] = stays ? scaled : 0;                                                                                 \
        }                                                                                                              \
    }
DROP(float)
DROP(double)

static void draw_dropout(const drawing *d, int64_t first, int64_t n, const uint32_t *words)
{
    const pc_tensor *x = d->call->in[0], *y = d->call->out[0];
    const double p = d->a->low, scale = p < 1 ? 1 / (1 - p) : 0;
    const int32_t least = (int32_t)ceil(p * 0x1p24);
    bool unwanted[WORDS];
    bool *kept = pc_tensor_count(d->call->out[1]) ? (bool *)pc__data(d->call->out[1]) + first : unwanted;
    if (x->dtype == PC_F32)
        drop_float((const float *)pc__data(x) + first, (float *)pc__data(y) + first, kept, n, words, least, scale);
    else
        drop_double((const double *)pc__data(x) + first, (double *)pc__data(y) + first, kept, n, words, least, scale);
}

PC__KERNEL(dropout)
{
    (void)stream;
    return draw_all(call, 8, draw_dropout);
}

/* The gradient and what stayed lie alike. */
static void undrop(void *context, int64_t piece)
{
    const pc_call *call = context;
    const double p = ((const pc__random_attributes *)call->attributes)->low, scale = p < 1 ? 1 / (1 - p) : 0;
    const bool *kept = pc__data(call->in[1]);
    const int64_t end = PC__MIN((piece + 1) * PIECE, pc_tensor_count(call->out[0]));
    if (call->out[0]->dtype == PC_F32) {
        const float *g = pc__data(call->in[0]), factors[] = {0, (float)scale};
        float *dx = pc__data(call->out[0]);
        for (int64_t i = piece * PIECE; i < end; i++)
            dx[i] = g[i] * factors[kept[i]];
    } else {
        const double *g = pc__data(call->in[0]), factors[] = {0, scale};
        double *dx = pc__data(call->out[0]);
        for (int64_t i = piece * PIECE; i < end; i++)
            dx[i] = g[i] * factors[kept[i]];
    }
}

PC__KERNEL(dropout_backward)
{
    (void)stream;
    const int64_t n = pc_tensor_count(call->out[0]);
    pc__parallel(pc__threads(n), (n + PIECE - 1) / PIECE, undrop, (void *)call);
    return PC_OK;
}

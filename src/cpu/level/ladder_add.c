/* ladder_add.c: c = a + b, from a loop to the speed of memory; and multiply-adds alone, the limit of a product. Read it
 * from the top. */
#include "ops/ladder.h"

#include "cpu/level/lessons.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vector __attribute__((vector_size(PC__VECTOR_BYTES)));

#define LANES ((int64_t)(PC__VECTOR_BYTES / sizeof(float)))
#define PIECE ((int64_t)1 << 15) /* elements that a core takes at a time */

typedef struct sum {
    const float *a, *b;
    float *c;
    int64_t n;
} sum;

/* One number an instruction: what is volatile the compiler stores one by one. */
static void one_at_a_time(const sum *s)
{
    volatile float *c = s->c;
    for (int64_t i = 0; i < s->n; i++)
        c[i] = s->a[i] + s->b[i];
}

/* Left to itself, the compiler takes as many as a register holds. */
static void simd(const sum *s)
{
    const float *restrict a = s->a, *restrict b = s->b;
    float *restrict c = s->c;
    for (int64_t i = 0; i < s->n; i++)
        c[i] = a[i] + b[i];
}

static sum piece_of(const sum *s, int64_t piece)
{
    const int64_t from = piece * PIECE;
    return (sum){s->a + from, s->b + from, s->c + from, PC__MIN(PIECE, s->n - from)};
}

static void simd_piece(void *context, int64_t piece)
{
    const sum s = piece_of(context, piece);
    simd(&s);
}

/* A store that does not bring its cache line in first. */
static inline void store_past_caches(float *to, vector value)
{
#if defined(PC__LEVEL_v4)
    _mm512_stream_ps(to, (__m512)value);
#elif defined(PC__LEVEL_v3)
    _mm256_stream_ps(to, (__m256)value);
#elif defined(__x86_64__)
    _mm_stream_ps(to, (__m128)value);
#else
    memcpy(to, &value, sizeof value);
#endif
}

static inline vector load(const float *from)
{
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Such stores want aligned addresses, and a fence before others read what they wrote. */
static void stream_piece(void *context, int64_t piece)
{
    const sum s = piece_of(context, piece);
    int64_t i = 0;
    for (; i < s.n && (uintptr_t)(s.c + i) % PC__VECTOR_BYTES; i++)
        s.c[i] = s.a[i] + s.b[i];
    for (; i + LANES <= s.n; i += LANES)
        store_past_caches(s.c + i, load(s.a + i) + load(s.b + i));
    for (; i < s.n; i++)
        s.c[i] = s.a[i] + s.b[i];
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

PC__LESSON_KERNEL(ladder_add)
{
    const pc__ladder_attributes *attributes = run->attributes;
    sum s = {run->in[0].data, run->in[1].data, run->out[0].data, run->out[0].count};
    const int64_t pieces = (s.n + PIECE - 1) / PIECE;
    if (attributes->rung == PC__CPU_ADD_ONE)
        one_at_a_time(&s);
    else if (attributes->rung == PC__CPU_ADD_SIMD)
        simd(&s);
    else
        pc__parallel(pc__threads(s.n * 12 * 4), pieces,
                     attributes->rung == PC__CPU_ADD_STREAM ? stream_piece : simd_piece, &s);
    return PC_OK;
}

/* --- multiply-adds alone --- */

typedef struct chains {
    float *x;
    int64_t rounds;
} chains;

/* A multiply-add takes four cycles or so and one or two begin in each: so many chains run beside each other. */
#define BESIDE 12

static inline void run_chains(vector *x, int64_t rounds)
{
    for (int64_t r = 0; r < rounds; r++)
        for (int k = 0; k < BESIDE; k++)
            x[k] = x[k] * 0.5f + 0.5f;
}

static void chains_piece(void *context, int64_t piece)
{
    const chains *c = context;
    float *x = c->x + piece * PC__LADDER_CHAINS;
    _Static_assert(PC__LADDER_CHAINS % (BESIDE * PC__VECTOR_BYTES / 4) == 0, "whole chains");
    for (int64_t i = 0; i < PC__LADDER_CHAINS; i += BESIDE * LANES) {
        vector v[BESIDE];
        memcpy(v, x + i, sizeof v);
        run_chains(v, c->rounds);
        memcpy(x + i, v, sizeof v);
    }
}

PC__LESSON_KERNEL(ladder_fma)
{
    const pc__ladder_attributes *attributes = run->attributes;
    chains c = {run->out[0].data, attributes->rounds};
    const int64_t n = run->out[0].count;
    pc__parallel(pc__threads(n * (1 + 2 * c.rounds)), n / PC__LADDER_CHAINS, chains_piece, &c);
    return PC_OK;
}

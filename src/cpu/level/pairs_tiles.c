/* pairs_tiles.c: the product of pairs.h by processors' matrix registers (AMX): 16 rows of 16 sums, to which one instruction adds
 * the products of 16 rows and 16 columns of 16 pairs. */
#include "cpu/level/pairs.h"

/* The address sanitizer sees no access of theirs: there the vectors of pairs.c, which read the same places, are looked at. */
#if defined(PC__LEVEL_v4) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES __attribute__((target("amx-tile,amx-bf16")))

enum { TILE = 16, REQUEST = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool there;

/* The kernel makes room for their contents once a process has asked. */
static void look(void)
{
    unsigned a, b, c, d;
    there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) &&
            syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

bool pair_tiles_there(void)
{
    pthread_once(&once, look);
    return there;
}

/* What ldtilecfg reads. */
typedef struct shapes {
    uint8_t palette, start_row, zeros[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} shapes;

enum {
    A = 4,
    B = 5,
    A_END = 6,
    B_END = 7
}; /* the registers behind the sums: whole steps along k, and what is left of it */

static shapes shapes_of(int64_t rows, int64_t left)
{
    shapes s = {.palette = 1};
    for (int i = 0; i <= B_END; i++) {
        const bool is_b = i == B || i == B_END;
        const int64_t pairs = i >= A_END && left ? left : TILE;
        s.rows[i] = (uint8_t)(is_b ? pairs : rows);
        s.bytes[i] = (uint16_t)(4 * (is_b || i < A ? TILE : pairs));
    }
    return s;
}

/* Register numbers are part of the instructions, which the compiler's functions make statements of. */
#define EACH_VECTOR(DO)                                                                                                \
    {                                                                                                                  \
        DO(0)                                                                                                          \
        if (vectors > 1)                                                                                               \
            DO(1)                                                                                                      \
        if (vectors > 2)                                                                                               \
            DO(2)                                                                                                      \
        if (vectors > 3)                                                                                               \
            DO(3)                                                                                                      \
    }
#define CLEAR(v)                                                                                                       \
    {                                                                                                                  \
        _tile_zero(v);                                                                                                 \
    }
#define ADD(v)                                                                                                         \
    {                                                                                                                  \
        _tile_loadd(5, b + (v)*TILE, t->b_k * 4);                                                                      \
        _tile_dpbf16ps(v, 4, 5);                                                                                       \
    }
#define ADD_LEFT(v)                                                                                                    \
    {                                                                                                                  \
        _tile_loadd(7, b + (v)*TILE, t->b_k * 4);                                                                      \
        _tile_dpbf16ps(v, 6, 7);                                                                                       \
    }
#define STORE_SUMS(v)                                                                                                  \
    {                                                                                                                  \
        _tile_stored(v, t->c + (v)*TILE, t->c_row * 4);                                                                \
    }

/* What is left of k of some rows: half a pair is filled up with 0, as whatever comes behind it may be no number. */
typedef struct ends {
    pc_bf16 row[TILE][2 * TILE];
} ends;

static inline void take_ends(ends *e, const pc_bf16 *a, int64_t a_row, int64_t rows, int64_t left)
{
    const __mmask32 some = ((__mmask32)1 << left) - 1;
    for (int64_t r = 0; r < rows; r++)
        _mm512_store_si512(e->row[r], _mm512_maskz_loadu_epi16(some, a + r * a_row));
}

TILES INLINE void rows_run(const pair_tile *t, int64_t rows, const int vectors)
{
    const int64_t steps = t->k / (2 * TILE), left = t->k % (2 * TILE);
    _Alignas(64) ends last;
    EACH_VECTOR(CLEAR)
    for (int64_t s = 0; s < t->segments; s++) {
        const pc_bf16 *a = t->a + s * t->a_segment;
        const uint32_t *b = t->b + s * t->b_segment;
        for (int64_t i = 0; i < steps; i++, a += 2 * TILE, b += TILE * t->b_k) {
            _tile_loadd(4, a, t->a_row * 2);
            EACH_VECTOR(ADD)
        }
        if (left) {
            const bool whole = left % 2 == 0;
            if (!whole)
                take_ends(&last, a, t->a_row, rows, left);
            __asm__ volatile("" ::"m"(last)); /* which _tile_loadd does not say it reads */
            _tile_loadd(6, whole ? (const void *)a : last.row, whole ? t->a_row * 2 : (int64_t)sizeof *last.row);
            __asm__ volatile("" : "+m"(last)); /* nor is it to be written before that */
            EACH_VECTOR(ADD_LEFT)
        }
    }
    /* What the last vector has beyond the end of a row lies over the next one's first columns. */
    if (vectors > 3)
        STORE_SUMS(3)
    if (vectors > 2)
        STORE_SUMS(2)
    if (vectors > 1)
        STORE_SUMS(1)
    STORE_SUMS(0)
}

/* Blocks of one height, as another one is a configuration of its own: the last one lies over the one before it. */
TILES void pair_tiles_run(pair_tile *t, int64_t rows, int vectors)
{
    const int64_t blocks = (rows + TILE - 1) / TILE, height = (rows + blocks - 1) / blocks;
    const shapes s = shapes_of(height, (t->k % (2 * TILE) + 1) / 2);
    const pc_bf16 *a = t->a;
    float *c = t->c;
    __asm__ volatile("" ::"m"(s)); /* all of it is written: _tile_loadconfig says it reads 8 bytes */
    _tile_loadconfig(&s);
    for (int64_t row = 0; row < rows; row += height) {
        const int64_t at = PC__MIN(row, rows - height);
        t->a = a + at * t->a_row, t->c = c + at * t->c_row;
        if (vectors == 4)
            rows_run(t, height, 4);
        else if (vectors == 3)
            rows_run(t, height, 3);
        else if (vectors == 2)
            rows_run(t, height, 2);
        else
            rows_run(t, height, 1);
    }
    _tile_release();
}

#else

bool pair_tiles_there(void)
{
    return false;
}

void pair_tiles_run(pair_tile *t, int64_t rows, int vectors)
{
    (void)t, (void)rows, (void)vectors;
}

#endif

/* depthwise_turned.c: convolutions of each channel alone of pictures in C order, not of float64, channels side by side: strips of a block of
 * channels are turned on the way in and out of the second-level cache. Places side by side, as planes have them, take twice the
 * multiplications where planes are small, and loads that lie across cache lines. */
#include "cpu/level/depthwise.h"
#include "cpu/level/halves.h"
#include "cpu/level/turn.h"

#include "base/parallel.h"

enum {
    STRIP_BYTES = 96 << 10, /* of a block's rows of x */
    CHANNELS = 64,          /* of a block of float32 */
};

typedef struct turned {
    const pc__grouped *s; /* of all channels; a block's */
    pc__grouped one;
    const char *x;
    char *y;
    const real *packed, *bias;    /* packed[block][..] */
    int64_t size, lanes, weights; /* bytes of a number; channels of a block, and reals that are packed for it */
    int64_t blocks, rows, strips; /* rows of y in a strip; strips of a picture */
    int64_t in, all;              /* bytes of a thread's room for x, and of all */
    char *rooms;
} turned;

/* Rows of x under so many rows of y. */
static int64_t rows_under(const pc__grouped *s, int64_t rows)
{
    return (rows - 1) * s->sh + (s->kh - 1) * s->dh + 1;
}

/* The first channel that a block reads: the last one reads some of those before. */
static int64_t channel_of(const turned *t, int64_t block)
{
    return PC__MIN(block * t->lanes, t->s->c - t->lanes);
}

/* What is turned, x, to y. */
static void block_run(const turned *t, const pc__grouped *part, int64_t block, int64_t c, const char *x, char *y)
{
    const real *packed = t->packed + block * t->weights, *bias = t->bias ? t->bias + c : NULL;
#if DEPTHWISE_HALVES
    if (part->half) {
        PC__R(depthwise_halves_rows)(part, x, packed, y);
        return;
    }
#endif
    PC__R(depthwise_rows)(part, (const real *)(const void *)x, packed, bias, (real *)(void *)y);
}

static void strip_run(void *context, int64_t task)
{
    const turned *t = context;
    const pc__grouped *s = t->s;
    const int64_t strip = task % t->strips, block = task / t->strips % t->blocks, image = task / t->strips / t->blocks;
    const int64_t first = strip * t->rows, rows = PC__MIN(t->rows, s->oh - first);
    const int64_t top = first * s->sh - s->ph, from = PC__MIN(PC__MAX(top, 0), s->h);
    const int64_t end = PC__MAX(PC__MIN(top + rows_under(s, rows), s->h), from);
    const int64_t c = channel_of(t, block), done = block * t->lanes - c, pixel = t->lanes * t->size;
    char *x = t->rooms + pc__thread() * t->all, *y = x + t->in;
    pc__grouped part = t->one;
    part.h = end - from, part.oh = rows, part.ph = from - top;
    pc__turn(x, pixel, t->x + ((image * s->c + c) * s->h + from) * s->w * t->size, s->h * s->w * t->size, t->lanes,
             part.h * s->w, (size_t)t->size);
    block_run(t, &part, block, c, x, y);
    pc__turn(t->y + ((image * s->c + c + done) * s->oh + first) * s->ow * t->size, s->oh * s->ow * t->size,
             y + done * t->size, pixel, rows * s->ow, t->lanes - done, (size_t)t->size);
}

static void pack(const turned *t, const void *weight, bool back, const void *bias, real *to)
{
    const int64_t taps = t->s->kh * t->s->kw;
    for (int64_t b = 0; b < t->blocks; b++, to += t->weights) {
        const int64_t c = channel_of(t, b);
        const char *own = (const char *)weight + c * taps * t->size;
#if DEPTHWISE_HALVES
        if (t->s->half) {
            PC__R(depthwise_halves_pack)(&t->one, own, back, bias ? (const char *)bias + c * t->size : NULL, to);
            continue;
        }
#endif
        (void)bias;
        PC__R(depthwise_pack)(&t->one, (const real *)(const void *)own, back, to);
    }
}

pc_status PC__R(depthwise_turned_run)(const pc__grouped *s, const void *x, const void *weight, bool back,
                                      const void *bias, void *y)
{
    turned t = {.s = s, .one = *s, .x = x, .y = y, .bias = bias, .size = s->half ? 2 : (int64_t)sizeof(real)};
    if (s->n * s->oh * s->ow == 0)
        return PC_OK;
    t.lanes = s->half ? PC__HALVES : PC__MIN(CHANNELS, s->c);
    t.one.n = 1, t.one.c = t.one.o = t.one.groups = t.lanes;
    t.blocks = (s->c + t.lanes - 1) / t.lanes;
#if DEPTHWISE_HALVES
    t.weights = s->half ? PC__R(depthwise_halves_packed)(&t.one) : s->kh * s->kw * t.lanes;
#else
    t.weights = s->kh * s->kw * t.lanes;
#endif
    const int64_t row = PC__MAX(s->w * t.lanes * t.size, 1), fit = (STRIP_BYTES / row - rows_under(s, 1)) / s->sh + 1;
    t.rows = PC__MIN(PC__MAX(fit, (s->kh - 1) * s->dh / s->sh + 1), s->oh);
    t.strips = (s->oh + t.rows - 1) / t.rows;
    t.rows = (s->oh + t.strips - 1) / t.strips;
    t.in = round_up(PC__MIN(rows_under(s, t.rows), s->h) * row, 64);
    t.all = t.in + round_up(t.rows * s->ow * t.lanes * t.size, 64);
    const int threads = pc__threads(8 * s->n * s->oh * s->ow * s->c * (s->kh * s->kw + 8));
    const int64_t packed = round_up(t.blocks * t.weights * (int64_t)sizeof(real), 64);
    char *slab = pc__alloc_aligned((size_t)(packed + threads * t.all), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    pack(&t, weight, back, bias, (real *)(void *)slab);
    t.packed = (const real *)(const void *)slab, t.rooms = slab + packed;
    pc__parallel(threads, s->n * t.blocks * t.strips, strip_run, &t);
    pc__free(slab);
    return PC_OK;
}

bool pc__depthwise_turns(const pc__grouped *s, bool back)
{
    enum { TAPS = 20, SMALL = 100, MORE = 200 }; /* taps, and places of y */
    const int64_t least = s->half ? PC__HALVES : W;
    if (!pc__is_depthwise(s) || s->o != s->c || s->c < least || !s->x_planes || !s->y_planes)
        return false;
    if (s->half && !DEPTHWISE_HALVES)
        return false;
    if (back && (s->sh > 1 || s->sw > 1))
        return false;
    return s->half || s->oh * s->ow <= (s->kh * s->kw >= TAPS ? MORE : SMALL);
}

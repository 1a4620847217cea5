/* conv_order.c: convolutions of pictures, and of gradients, in any order: copies on the way in and out of the channels-last
 * memory that most kernels work on. The places of maxima stay channels last. */
#include "cpu/level/conv.h"
#include "cpu/level/pairs.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"
#include "ops/conv2d.h"

#include <math.h>

enum {
    LINE = 64,    /* bytes of rows that are turned at once: a cache line of each column */
    MASKED = 256, /* columns of a strip that are cut by `saved` at once */
};

/* to[image][column][row] = from[image][row][column], or where `saved` is not NULL, zero where that is <= 0. */
typedef struct turn {
    const char *from;
    const real *saved;
    char *to;
    int64_t rows, columns, size, strip, strips; /* rows of a strip; strips in an image */
} turn;

static void turn_strip(void *context, int64_t task)
{
    const turn *t = context;
    const int64_t image = task / t->strips * t->rows * t->columns, first = task % t->strips * t->strip, size = t->size;
    const int64_t rows = PC__MIN(t->strip, t->rows - first), at = image + first * t->columns;
    char *to = t->to + (image + first) * size;
    if (!t->saved) {
        pc__turn(to, t->rows * size, t->from + at * size, t->columns * size, rows, t->columns, (size_t)size);
        return;
    }
    real cut[LINE / sizeof(real) * MASKED];
    for (int64_t c = 0; c < t->columns; c += MASKED) {
        const int64_t n = PC__MIN(MASKED, t->columns - c);
        for (int64_t r = 0; r < rows; r++) {
            const real *from = (const real *)t->from + at + r * t->columns + c,
                       *saved = t->saved + at + r * t->columns + c;
            for (int64_t i = 0; i < n; i++)
                cut[r * MASKED + i] = saved[i] <= 0 ? 0 : from[i];
        }
        pc__turn(to + c * t->rows * size, t->rows * size, (const char *)cut, MASKED * size, rows, n, sizeof(real));
    }
}

static void turn_all(const geometry *g, const void *from, const void *saved, int64_t rows, int64_t columns, void *to)
{
    turn t = {.from = from, .saved = saved, .to = to, .rows = rows, .columns = columns, .size = g->size};
    t.strip = LINE / g->size;
    t.strips = (rows + t.strip - 1) / t.strip;
    pc__parallel(pc__threads(g->s->n * rows * columns * 8), g->s->n * t.strips, turn_strip, &t);
}

/* Memory for x and, `ys` times, for y in the other order. */
static char *room_for(const geometry *g, bool x, int ys, int64_t *area, int64_t *count)
{
    const pc__conv *s = g->s;
    *area = g->yh * g->yw;
    *count = s->n * *area * s->o;
    return pc__alloc_aligned((size_t)((x ? s->n * s->h * s->w * s->c : 0) + ys * *count + 1) * (size_t)g->size, 64);
}

/* One tap whose outputs fill so much of a vector that to turn pictures into planes and back costs more than the lanes that stay
 * empty, the more so of few channels. Many of 16 bits have to be taken from the pictures anyway. */
static bool is_narrow_product(const pc__conv *s)
{
    enum { FEW = 16, MANY = 32 };
    const bool one = s->kh * s->kw == 1 && !s->x_planes && !s->y_planes;
    return one && (4 * s->o >= 3 * W || (2 * s->o >= W && s->c <= FEW) || (s->half && s->c >= MANY));
}

/* Products of bfloat16 by matrix registers, of whose columns few are no loss where a row of the kernel is long. */
static bool is_by_registers(const pc__conv *s)
{
    enum { LONG = 64, LONG_FOR_SOME = 24, SOME = 3 };
    const int64_t row = s->kw * s->c;
    return s->half && !s->is_f16 && row >= (s->o >= SOME ? LONG_FOR_SOME : LONG) && (s->o >= SOME || !s->x_planes) &&
           pair_tiles_there();
}

pc_status PC__R(conv2d_ordered)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                                uint8_t *argmax)
{
    const geometry g = geometry_of(s);
    int64_t area, count;
    const pc_dtype dtype = s->half && !s->is_f16 ? PC_BF16 : PC_F32;
    const bool product = PC__R(conv2d_is_product)(s);
    const bool last = !s->x_planes && !s->y_planes; /* what one tap needs is turned into planes no slower */
    const bool narrow = (last && PC__R(conv2d_is_narrow)(s)) || (product && (last || s->kh * s->kw > 1));
    if (product && !s->y_planes && PC__R(conv2d_windows_lie)(s))
        return PC__R(conv2d_product)(s, x, weight, bias, y);
    if (!narrow && !is_narrow_product(s) && !is_by_registers(s) &&
        pc__conv2d_is_planar(dtype, s->o, g.yw, s->kw, s->sw, s->pool))
        return PC__R(conv2d_planar)(s, x, weight, bias, y);
    if (last)
        return PC__R(conv2d_last)(s, x, weight, bias, y, argmax);
    char *room = room_for(&g, s->x_planes, s->y_planes, &area, &count);
    if (!room)
        return PC_ERR_MEMORY;
    char *turned = room + (s->y_planes ? count * g.size : 0);
    if (s->x_planes)
        turn_all(&g, x, NULL, s->c, s->h * s->w, turned);
    pc__conv inner = *s;
    inner.x_planes = false;
    const pc_status status =
        PC__R(conv2d_last)(&inner, s->x_planes ? turned : x, weight, bias, s->y_planes ? room : y, argmax);
    if (s->y_planes)
        turn_all(&g, room, NULL, area, s->o, y);
    pc__free(room);
    return status;
}

#ifndef PC__DOUBLE
/* Cycles, about, to turn pictures of `area` places into planes. */
static __attribute__((cold)) int64_t turning(int64_t area, int64_t channels, bool planes)
{
    enum { MANY = 8, FEW_CHANNELS = 3 };
    return area * channels * (planes || channels == 1 || channels >= MANY ? 1 : FEW_CHANNELS) / 2;
}

/* Whether gradients of weights of outputs that fill no vector take longer by tiles than by planes, about, in cycles an image. By
 * tiles each tap of a place is half a multiplication, and a place is spread to a vector, from 16 bits with calls of its own; by planes
 * each tap of an output is a sum over vectors of places, and pictures are turned. */
static __attribute__((cold)) bool weights_are_planar(const pc__conv *s)
{
    enum { SPREAD = 10, TAKE = 40, SUM = 4, ROW = 50, OUTPUT = 60 };
    const int64_t oh = pc__conv_oh(s), ow = pc__conv_ow(s), taps = s->kh * s->kw * s->c;
    const int64_t vectors = (oh * (ow + (s->kw - 1) / s->sw) + W - 1) / W;
    const int64_t takes = !s->half ? 0 : s->activation == PC__ACT_NONE ? 1 : 2;
    const int64_t tiles = oh * ow * (taps / 2 + SPREAD + takes * TAKE);
    const int64_t lots = s->half && s->x_planes ? s->sh * s->sw : 1; /* of which each takes all */
    const int64_t fill = lots * turning(s->h * s->w, s->c, s->x_planes) + turning(oh * ow, s->o, s->y_planes);
    const int64_t planes = taps * s->o * (vectors * 4 / 5 + SUM) + fill + (oh + s->h) * ROW + s->o * OUTPUT;
    return s->pool <= 1 && s->o <= W && taps > 0 && 10 * planes < 9 * tiles;
}

/* By planes zeros at the ends of rows meet pixels that a weight never sees, and are no numbers with infinite ones. */
static __attribute__((cold)) bool has_nan(const pc__conv *s, const void *weights)
{
    const int64_t n = s->o * s->c * s->kh * s->kw;
    const uint16_t infinite = s->is_f16 ? 0x7c00 : 0x7f80;
    const uint16_t *halves = weights;
    const real *reals = weights;
    int64_t found = 0;
    for (int64_t i = 0; i < n && s->half; i++)
        found += (halves[i] & 0x7fff) > infinite;
    for (int64_t i = 0; i < n && !s->half; i++)
        found += isnan(reals[i]);
    return found > 0;
}
#endif

pc_status PC__R(conv2d_backward_ordered)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                         const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias)
{
#ifndef PC__DOUBLE
    if (dweight && weights_are_planar(s)) {
        PC__TRY(PC__R(conv2d_planar_weights)(s, x, y, dy, dweight, dbias));
        if (!has_nan(s, dweight))
            return dx ? PC__R(conv2d_backward_ordered)(s, x, weight, y, argmax, dy, dx, NULL, NULL) : PC_OK;
    }
#endif
    const geometry g = geometry_of(s);
    const bool relu = s->activation == PC__ACT_RELU && !s->half, saved = !relu && s->activation != PC__ACT_NONE;
    const bool turns = s->x_planes && dweight;
    pc__conv inner = *s;
    int64_t area, count;
    if (!turns && !s->y_planes)
        return PC__R(conv2d_backward_last)(s, x, weight, y, argmax, dy, dx, dweight, dbias);
    char *room = room_for(&g, turns, s->y_planes ? 2 : 0, &area, &count), *last = room + count * g.size;
    if (!room)
        return PC_ERR_MEMORY;
    if (s->y_planes) {
        inner.activation = saved ? s->activation : PC__ACT_NONE;
        turn_all(&g, dy, relu ? y : NULL, s->o, area, room);
        dy = room;
        if (saved)
            turn_all(&g, y, NULL, s->o, area, last);
        y = saved ? last : NULL;
        last += count * g.size;
    } else {
        last = room;
    }
    if (turns)
        turn_all(&g, x, NULL, s->c, s->h * s->w, last);
    const pc_status status =
        PC__R(conv2d_backward_last)(&inner, turns ? last : x, weight, y, argmax, dy, dx, dweight, dbias);
    pc__free(room);
    return status;
}

/* conv_order.c: convolutions of pictures, and of gradients, in any order: copies on the way in and out of the channels-last
 * memory that most kernels work on. The places of maxima stay channels last. */
#include "cpu/level/conv.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"
#include "ops/conv2d.h"

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

pc_status PC__R(conv2d_ordered)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                                uint8_t *argmax)
{
    const geometry g = geometry_of(s);
    int64_t area, count;
    const pc_dtype dtype = s->half && !s->is_f16 ? PC_BF16 : PC_F32;
    const bool narrow = !s->x_planes && !s->y_planes && (PC__R(conv2d_is_narrow)(s) || PC__R(conv2d_is_product)(s));
    if (!narrow && !is_narrow_product(s) && pc__conv2d_is_planar(dtype, s->o, g.yw, s->kw, s->sw, s->pool))
        return PC__R(conv2d_planar)(s, x, weight, bias, y);
    if (!s->x_planes && !s->y_planes)
        return PC__R(conv2d_last)(s, x, weight, bias, y, argmax);
    char *room = room_for(&g, s->x_planes, s->y_planes, &area, &count);
    if (!room)
        return PC_ERR_MEMORY;
    char *last = room + (s->y_planes ? count * g.size : 0);
    if (s->x_planes)
        turn_all(&g, x, NULL, s->c, s->h * s->w, last);
    const pc_status status =
        PC__R(conv2d_last)(s, s->x_planes ? last : x, weight, bias, s->y_planes ? room : y, argmax);
    if (s->y_planes)
        turn_all(&g, room, NULL, area, s->o, y);
    pc__free(room);
    return status;
}

pc_status PC__R(conv2d_backward_ordered)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                         const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias)
{
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

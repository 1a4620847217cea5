/* conv_order.c: convolutions whose result, and the gradient at it, lie in C order: a copy on the way out, or in, of the
 * channels-last memory that the kernels work on. The places of maxima stay channels last. */
#include "cpu/level/conv.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

enum {
    STRIP = 64 / sizeof(real), /* rows that are turned at once: a cache line of each column */
    MASKED = 256,              /* columns of a strip that are cut by `saved` at once */
};

/* to[image][column][row] = from[image][row][column], or where `saved` is not NULL, zero where that is <= 0. */
typedef struct turn {
    const real *from, *saved;
    real *to;
    int64_t rows, columns, strips; /* strips of rows in an image */
} turn;

static void turn_strip(void *context, int64_t task)
{
    const turn *t = context;
    const int64_t image = task / t->strips * t->rows * t->columns, first = task % t->strips * STRIP;
    const int64_t rows = PC__MIN(STRIP, t->rows - first), at = image + first * t->columns, size = sizeof(real);
    char *to = (char *)(t->to + image + first);
    if (!t->saved) {
        pc__turn(to, t->rows * size, (const char *)(t->from + at), t->columns * size, rows, t->columns, sizeof(real));
        return;
    }
    real cut[STRIP * MASKED];
    for (int64_t c = 0; c < t->columns; c += MASKED) {
        const int64_t n = PC__MIN(MASKED, t->columns - c);
        for (int64_t r = 0; r < rows; r++) {
            const real *from = t->from + at + r * t->columns + c, *saved = t->saved + at + r * t->columns + c;
            for (int64_t i = 0; i < n; i++)
                cut[r * MASKED + i] = saved[i] <= 0 ? 0 : from[i];
        }
        pc__turn(to + c * t->rows * size, t->rows * size, (const char *)cut, MASKED * size, rows, n, sizeof(real));
    }
}

static void turn_all(turn t, int64_t images)
{
    t.strips = (t.rows + STRIP - 1) / STRIP;
    pc__parallel(pc__threads(images * t.rows * t.columns * 8), images * t.strips, turn_strip, &t);
}

pc_status PC__R(conv2d_to_planes)(const pc__conv *s, const void *x, const void *weight, const void *bias, void *y,
                                  uint8_t *argmax)
{
    const int64_t area = pc__conv_yh(s) * pc__conv_yw(s);
    real *between = pc__alloc_aligned((size_t)(s->n * area * s->o + 1) * sizeof(real), 64);
    if (!between)
        return PC_ERR_MEMORY;
    pc_status status = PC__R(conv2d)(s, x, weight, bias, between, argmax);
    turn_all((turn){.from = between, .to = y, .rows = area, .columns = s->o}, s->n);
    pc__free(between);
    return status;
}

pc_status PC__R(conv2d_backward_from_planes)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                             const uint8_t *argmax, const void *dy, void *dx, void *dweight,
                                             void *dbias)
{
    const int64_t area = pc__conv_yh(s) * pc__conv_yw(s), count = s->n * area * s->o;
    const bool relu = s->activation == PC__ACT_RELU, saved = !relu && s->activation != PC__ACT_NONE;
    pc__conv inner = *s;
    real *between = pc__alloc_aligned((size_t)(count * (saved ? 2 : 1) + 1) * sizeof(real), 64);
    if (!between)
        return PC_ERR_MEMORY;
    inner.activation = saved ? s->activation : PC__ACT_NONE;
    turn_all((turn){.from = dy, .saved = relu ? y : NULL, .to = between, .rows = s->o, .columns = area}, s->n);
    if (saved)
        turn_all((turn){.from = y, .to = between + count, .rows = s->o, .columns = area}, s->n);
    pc_status status =
        PC__R(conv2d_backward)(&inner, x, weight, saved ? between + count : NULL, argmax, between, dx, dweight, dbias);
    pc__free(between);
    return status;
}

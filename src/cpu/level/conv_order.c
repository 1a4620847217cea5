/* conv_order.c: convolutions whose result, and the gradient at it, lie in C order: a copy on the way out, or in, of the
 * channels-last memory that the kernels work on. The places of maxima stay channels last. */
#include "cpu/level/conv.h"
#include "base/parallel.h"

#define SIDE 16 /* elements of a square that is turned at once: a cache line of floats */

/* to[image][column][row] = from[image][row][column], or where `saved` is not NULL, zero where that is <= 0. */
typedef struct turn {
    const real *from, *saved;
    real *to;
    int64_t rows, columns, strips; /* strips of SIDE rows in an image */
} turn;

static void turn_strip(void *context, int64_t task)
{
    const turn *t = context;
    const int64_t at = task / t->strips * t->rows * t->columns, first = task % t->strips * SIDE;
    const int64_t last = PC__MIN(first + SIDE, t->rows);
    for (int64_t square = 0; square < t->columns; square += SIDE) {
        const int64_t end = PC__MIN(square + SIDE, t->columns);
        for (int64_t row = first; row < last; row++) {
            const real *from = t->from + at + row * t->columns;
            const real *saved = t->saved ? t->saved + at + row * t->columns : NULL;
            for (int64_t column = square; column < end; column++)
                t->to[at + column * t->rows + row] = saved && saved[column] <= 0 ? 0 : from[column];
        }
    }
}

static void turn_all(turn t, int64_t images)
{
    t.strips = (t.rows + SIDE - 1) / SIDE;
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

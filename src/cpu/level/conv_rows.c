/* conv_rows.c: rows of pictures, and of gradients at them, on their way into the convolution's kernels. */
#include "cpu/level/conv.h"
#include "cpu/level/halves.h"
#include "base/parallel.h"

enum {
    TOGETHER = 256, /* values of y that are taken at once */
    PIECE = 16384,  /* values that one thread copies at a time: a whole number of the former, and of vectors */
};

void take_reals(const geometry *g, real *restrict to, const void *restrict from, int64_t n)
{
#ifndef PC__DOUBLE
    if (g->s->half) {
        pc__load_halves(to, from, n, g->s->is_f16);
        return;
    }
#endif
    (void)g;
    memcpy(to, from, (size_t)n * sizeof(real));
}

void give_reals(const geometry *g, void *restrict to, const real *restrict from, int64_t n)
{
#ifndef PC__DOUBLE
    if (g->s->half) {
        pc__store_halves(to, from, n, g->s->is_f16);
        return;
    }
#endif
    (void)g;
    memcpy(to, from, (size_t)n * sizeof(real));
}

/* A loop of each, in vectors. */
void before_activation(pc__activation activation, real *restrict values, const real *restrict y, int64_t n)
{
    for (int64_t i = 0; activation == PC__ACT_RELU && i < n; i++)
        values[i] = activation_gradient(PC__ACT_RELU, values[i], y[i]);
    for (int64_t i = 0; activation == PC__ACT_SIGMOID && i < n; i++)
        values[i] = activation_gradient(PC__ACT_SIGMOID, values[i], y[i]);
    for (int64_t i = 0; activation == PC__ACT_TANH && i < n; i++)
        values[i] = activation_gradient(PC__ACT_TANH, values[i], y[i]);
}

void copy_row(const geometry *g, const void *from, pc__activation activation, const void *y, int64_t n, real *out)
{
    real taken[TOGETHER];
    take_reals(g, out, from, n);
    if (activation == PC__ACT_NONE)
        return;
    for (int64_t i = 0; i < n; i += TOGETHER) {
        const int64_t count = PC__MIN(TOGETHER, n - i);
        const void *at = element(g, y, i);
        if (g->s->half)
            take_reals(g, taken, at, count);
        before_activation(activation, out + i, g->s->half ? taken : at, count);
    }
}

typedef struct copying {
    const geometry *g;
    const void *from, *y;
    pc__activation activation;
    int64_t n;
    real *out;
} copying;

static void copy_piece(void *context, int64_t task)
{
    const copying *c = context;
    const int64_t at = task * PIECE;
    copy_row(c->g, element(c->g, c->from, at), c->activation, element(c->g, c->y, at), PC__MIN(PIECE, c->n - at),
             c->out + at);
}

void copy_all(const geometry *g, const void *from, pc__activation activation, const void *y, int64_t n, real *out)
{
    copying c = {.g = g, .from = from, .y = y, .activation = activation, .n = n, .out = out};
    pc__parallel(pc__threads(n * 8), (n + PIECE - 1) / PIECE, copy_piece, &c);
}

void copy_padded(const geometry *g, const void *image, pc__activation activation, const void *y, int64_t first,
                 int64_t rows, real *out)
{
    const pc__conv *s = g->s;
    const int64_t side = s->pw * s->c, inner = s->w * s->c;
    for (int64_t r = 0; r < rows; r++, out += g->row) {
        const int64_t from = first + r - s->ph;
        if (from < 0 || from >= s->h) {
            memset(out, 0, (size_t)g->row * sizeof(real));
            continue;
        }
        memset(out, 0, (size_t)side * sizeof(real));
        copy_row(g, element(g, image, from * inner), activation, element(g, y, from * inner), inner, out + side);
        memset(out + side + inner, 0, (size_t)side * sizeof(real));
    }
}

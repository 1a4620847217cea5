/* norm_lots.c: layer_norm and rms_norm of lots of short rows of float, which are turned, so that rows lie side by side in
 * vectors. */
#include "cpu/level/norm.h"
#include "cpu/level/real.h"
#include "cpu/level/turn.h"

enum { ROWS = PC__NORM_ROWS };

/* Rows of n numbers as to[n][ROWS]; lanes beyond them zero. */
static void turned(float *to, const pc_tensor *from, const pc__norm_lot *l, float *room)
{
    const float *rows = pc__norm_take(from, l->first * l->n, l->rows * l->n, room);
    if (l->rows < ROWS)
        memset(to, 0, (size_t)(ROWS * l->n) * sizeof *to);
    pc__turn((char *)to, ROWS * sizeof *to, (const char *)rows, l->n * (int64_t)sizeof *to, l->rows, l->n, sizeof *to);
}

static void turned_back(const pc_tensor *to, const float *from, const pc__norm_lot *l, float *room)
{
    pc__turn(pc__norm_to(to, l->first * l->n, room), l->n * (int64_t)sizeof *from, (const char *)from,
             ROWS * sizeof *from, l->n, l->rows, sizeof *from);
    pc__norm_put(to, l->first * l->n, l->rows * l->n, room);
}

static int64_t width_of(const pc__norm_lot *l)
{
    return round_up(l->rows, W);
}

void PC__K(norm_forward_lot)(const pc__norm_lot *l, float *mean, float *rstd)
{
    const int64_t n = l->n, width = width_of(l);
    float *x = l->room + ROWS * n, m[ROWS], r[ROWS];
    turned(x, l->call->in[0], l, l->room);
    for (int64_t i = 0; i < width; i += W) {
        vec sum = {0}, squares = {0};
        for (int64_t c = 0; l->centered && c < n; c++)
            sum += LOAD(x + c * ROWS + i);
        AT(m + i) = sum /= SPLAT((float)n);
        for (int64_t c = 0; c < n; c++) {
            const vec off = LOAD(x + c * ROWS + i) - sum;
            squares += off * off;
        }
        AT(r + i) = squares;
    }
    for (int64_t i = 0; i < l->rows; i++)
        r[i] = (float)(1 / sqrt((double)r[i] / (double)n + l->eps));
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < width; i += W)
            AT(x + c * ROWS + i) =
                (LOAD(x + c * ROWS + i) - LOAD(m + i)) * LOAD(r + i) * SPLAT(l->weight[c]) + SPLAT(l->bias[c]);
    turned_back(l->call->out[0], x, l, l->room);
    if (mean)
        memcpy(mean, m, (size_t)l->rows * sizeof *mean);
    if (rstd)
        memcpy(rstd, r, (size_t)l->rows * sizeof *rstd);
}

/* The means of g w and of g w x', for W rows. */
static void means(const pc__norm_lot *l, const float *g, const float *x, vec *first, vec *second)
{
    vec a = {0}, b = {0};
    for (int64_t c = 0; c < l->n; c++) {
        const vec by = LOAD(g + c * ROWS) * SPLAT(l->weight[c]);
        a += by, b += by * LOAD(x + c * ROWS);
    }
    *first = l->centered ? a / SPLAT((float)l->n) : (vec){0};
    *second = b / SPLAT((float)l->n);
}

void PC__K(norm_backward_lot)(const pc__norm_lot *l, const float *mean, const float *rstd, bool dx, double *sums)
{
    const int64_t n = l->n, size = ROWS * n, width = width_of(l);
    float *g = l->room + 2 * size, *x = g + size, m[ROWS] = {0}, r[ROWS] = {0};
    turned(g, l->call->in[0], l, l->room);
    turned(x, l->call->in[1], l, l->room + size);
    memcpy(r, rstd, (size_t)l->rows * sizeof *r);
    if (l->centered)
        memcpy(m, mean, (size_t)l->rows * sizeof *m);
    for (int64_t c = 0; c < n; c++) {
        vec first = {0}, second = {0};
        for (int64_t i = c * ROWS, k = 0; k < width; i += W, k += W) {
            const vec off = (LOAD(x + i) - LOAD(m + k)) * LOAD(r + k);
            AT(x + i) = off;
            first += LOAD(g + i) * off, second += LOAD(g + i);
        }
        if (sums) {
            sums[c] += (double)vector_sum(&first);
            sums[n + c] += (double)vector_sum(&second);
        }
    }
    for (int64_t i = 0; dx && i < width; i += W) {
        vec a, b;
        means(l, g + i, x + i, &a, &b);
        if (n == 1 && l->centered) { /* as lone_dx (norm_rows.inc) */
            AT(g + i) = LOAD(r + i) * ((LOAD(g + i) - LOAD(g + i)) * SPLAT(l->weight[0]) - LOAD(x + i) * b);
            continue;
        }
        for (int64_t c = i; c < size; c += ROWS)
            AT(g + c) = LOAD(r + i) * (LOAD(g + c) * SPLAT(l->weight[c / ROWS]) - a - LOAD(x + c) * b);
    }
    if (dx)
        turned_back(l->call->out[0], g, l, l->room);
}

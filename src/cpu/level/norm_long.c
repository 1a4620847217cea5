/* norm_long.c: layer_norm and rms_norm of few rows, not of float64, that are so long that all threads share each: pieces of them, first what they
 * add to the row's sums, then the results. */
#include "cpu/level/norm.h"
#include "cpu/level/real.h"

#include <math.h>

#define REAL real
#define NAMED(name) name
#include "cpu/level/norm_sums.inc"
#define PRODUCTS(AT) (AT(g) * AT(w))
#define OFF_PRODUCTS(AT) (AT(g) * AT(w) * (AT(x) - mean))
SUM(sum_of_products, (const real *g, const real *w, int64_t n), PRODUCTS)
SUM(sum_off_products, (const real *g, const real *w, const real *x, real mean, int64_t n), OFF_PRODUCTS)

enum {
    PIECE = 8192, /* numbers */
    ROOMS = 6,    /* pieces of each thread, behind two that all share: ones and zeros */
    SHARED = 2,
};

typedef struct part {
    double first, second;
} part;

typedef struct row {
    real mean, rstd, a, b; /* a, b: of the gradient */
} row;

typedef struct work {
    const pc_call *call;
    const pc__layer_norm_attributes *a;
    const pc_tensor *weight, *bias; /* or NULL */
    int64_t rows, pieces;
    part *parts; /* [rows][pieces] */
    row *of;     /* [rows] */
    real *shared, *rooms;
} work;

static int64_t piece_length(const work *w, int64_t piece)
{
    return PC__MIN(PIECE, w->a->n - piece * PIECE);
}

static real *room_of(const work *w)
{
    return w->rooms + pc__thread() * ROOMS * PIECE;
}

/* A piece of weight or bias, or what is in its place. */
static const real *parameters(const pc_tensor *t, int64_t from, int64_t n, const real *instead, real *room)
{
    return t ? pc__norm_take(t, from, n, room) : instead;
}

/* Mean of a piece and squares off it, or off 0. */
static void statistics(void *context, int64_t task)
{
    const work *w = context;
    const int64_t piece = task % w->pieces, n = piece_length(w, piece);
    const real *x = pc__norm_take(w->call->in[0], task / w->pieces * w->a->n + piece * PIECE, n, room_of(w));
    const double mean = w->a->centered ? sum(x, n) / (double)n : 0;
    w->parts[task] = (part){mean, sum_of_squares(x, (real)mean, n)};
}

/* All of a row together (Chan, Golub, LeVeque 1979). */
static void find_row(const work *w, int64_t r)
{
    part all = {0};
    for (int64_t piece = 0; piece < w->pieces; piece++) {
        const part *p = &w->parts[r * w->pieces + piece];
        const double before = (double)piece * PIECE, count = (double)piece_length(w, piece), off = p->first - all.first,
                     share = count / (before + count);
        all.first += off * share;
        all.second += p->second + off * off * before * share;
    }
    w->of[r] = (row){.mean = (real)all.first, .rstd = (real)(1 / sqrt(all.second / (double)w->a->n + w->a->eps))};
}

/* A piece of all rows, so that parameters are taken once. */
static void apply(void *context, int64_t piece)
{
    const work *w = context;
    const int64_t n = piece_length(w, piece), from = piece * PIECE;
    real *room = room_of(w);
    const real *weight = parameters(w->weight, from, n, w->shared, room + PIECE),
               *bias = parameters(w->bias, from, n, w->shared + PIECE, room + 2 * PIECE);
    for (int64_t r = 0; r < w->rows; r++) {
        const int64_t at = r * w->a->n + from;
        const real *x = pc__norm_take(w->call->in[0], at, n, room), m = w->of[r].mean, rstd = w->of[r].rstd;
        real *y = pc__norm_to(w->call->out[0], at, room);
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * rstd * weight[i] + bias[i];
        pc__norm_put(w->call->out[0], at, n, y);
    }
}

/* The sums of g w and of g w (x - mean) over a piece of each row. */
static void gradient_sums(void *context, int64_t piece)
{
    const work *w = context;
    const int64_t n = piece_length(w, piece), from = piece * PIECE;
    real *room = room_of(w);
    const real *weight = parameters(w->weight, from, n, w->shared, room + 2 * PIECE);
    for (int64_t r = 0; r < w->rows; r++) {
        const int64_t at = r * w->a->n + from;
        const real *g = pc__norm_take(w->call->in[0], at, n, room),
                   *x = pc__norm_take(w->call->in[1], at, n, room + PIECE);
        w->parts[r * w->pieces + piece] = (part){w->a->centered ? sum_of_products(g, weight, n) : 0,
                                                 sum_off_products(g, weight, x, w->of[r].mean, n)};
    }
}

static void find_gradient(const work *w, int64_t r)
{
    part all = {0};
    for (int64_t piece = 0; piece < w->pieces; piece++) {
        all.first += w->parts[r * w->pieces + piece].first;
        all.second += w->parts[r * w->pieces + piece].second;
    }
    w->of[r].a = (real)(all.first / (double)w->a->n);
    w->of[r].b = (real)(all.second * (double)w->of[r].rstd / (double)w->a->n);
}

/* Where a piece of a wanted gradient of weight (1) or bias (2) is summed up, zeros at first; pc__norm_put brings it from a room. */
static real *gradient_of(const work *w, int which, int64_t from, int64_t n, real *room)
{
    real *to = w->a->needs[which] ? pc__norm_to(w->call->out[which], from, room) : room;
    memset(to, 0, (size_t)n * sizeof *to);
    return to;
}

/* A piece of all rows, one after another: norm_rows.inc has the formula. */
static void apply_gradient(void *context, int64_t piece)
{
    const work *w = context;
    const int64_t n = piece_length(w, piece), from = piece * PIECE;
    const bool sums = w->a->needs[1] || w->a->needs[2];
    real *room = room_of(w);
    const real *weight = parameters(w->weight, from, n, w->shared, room + 2 * PIECE);
    real *restrict some = gradient_of(w, 1, from, n, room + 3 * PIECE), *restrict bias = gradient_of(w, 2, from, n,
                                                                                                     room + 4 * PIECE);
    for (int64_t r = 0; r < w->rows; r++) {
        const int64_t at = r * w->a->n + from;
        const row of = w->of[r];
        const real *g = pc__norm_take(w->call->in[0], at, n, room),
                   *x = pc__norm_take(w->call->in[1], at, n, room + PIECE);
        real *dx = w->a->needs[0] ? pc__norm_to(w->call->out[0], at, room) : room + 5 * PIECE;
        if (sums)
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
            {
                const real gradient = g[i], off = (x[i] - of.mean) * of.rstd;
                some[i] += gradient * off;
                bias[i] += gradient;
                dx[i] = of.rstd * (gradient * weight[i] - of.a - off * of.b);
            }
        else
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) dx[i] =
                of.rstd * (g[i] * weight[i] - of.a - (x[i] - of.mean) * of.rstd * of.b);
        if (w->a->needs[0])
            pc__norm_put(w->call->out[0], at, n, dx);
    }
    if (w->a->needs[1])
        pc__norm_put(w->call->out[1], from, n, some);
    if (w->a->needs[2])
        pc__norm_put(w->call->out[2], from, n, bias);
}

static pc_status take_room(work *w, int threads)
{
    const int64_t parts = w->rows * w->pieces;
    const size_t first = (size_t)parts * sizeof(part) + (size_t)w->rows * sizeof(row);
    char *room =
        pc__alloc_aligned((first + 63) / 64 * 64 + (size_t)((SHARED + threads * ROOMS) * PIECE) * sizeof(real), 64);
    if (!room)
        return PC_ERR_MEMORY;
    w->parts = (part *)(void *)room;
    w->of = (row *)(void *)(w->parts + parts);
    w->shared = (real *)(void *)(room + (first + 63) / 64 * 64);
    w->rooms = w->shared + SHARED * PIECE;
    for (int64_t i = 0; i < SHARED * PIECE; i++)
        w->shared[i] = i < PIECE;
    return PC_OK;
}

static work work_of(const pc_call *call, const pc_tensor *x, const pc_tensor *weight, const pc_tensor *bias)
{
    const pc__layer_norm_attributes *a = call->attributes;
    return (work){.call = call,
                  .a = a,
                  .weight = weight,
                  .bias = bias,
                  .rows = pc_tensor_count(x) / a->n,
                  .pieces = (a->n + PIECE - 1) / PIECE};
}

pc_status PC__K(norm_long)(const pc_call *call, const pc_tensor *weight, const pc_tensor *bias)
{
    work w = work_of(call, call->in[0], weight, bias);
    const int threads = pc__threads(w.rows * w.a->n * 24);
    const pc_tensor *kept = call->out[1];
    PC__TRY(take_room(&w, threads));
    pc__parallel(threads, w.rows * w.pieces, statistics, &w);
    for (int64_t r = 0; r < w.rows; r++) {
        real *to = pc_tensor_count(kept) ? (real *)pc__data(kept) + r : NULL;
        find_row(&w, r);
        if (to && w.a->centered)
            to[0] = w.of[r].mean;
        if (to)
            to[w.a->centered ? w.rows : 0] = w.of[r].rstd;
    }
    pc__parallel(threads, w.pieces, apply, &w);
    pc__free(w.parts);
    return PC_OK;
}

pc_status PC__K(norm_long_backward)(const pc_call *call, const pc_tensor *weight)
{
    work w = work_of(call, call->in[1], weight, NULL);
    const int threads = pc__threads(w.rows * w.a->n * 40);
    const real *kept = pc__data(call->in[2]);
    PC__TRY(take_room(&w, threads));
    for (int64_t r = 0; r < w.rows; r++)
        w.of[r] =
            (row){.mean = w.a->centered ? kept[r] : 0, .rstd = kept[w.a->centered ? w.rows + r : r], .a = 0, .b = 0};
    if (w.a->needs[0]) {
        pc__parallel(threads, w.pieces, gradient_sums, &w);
        for (int64_t r = 0; r < w.rows; r++)
            find_gradient(&w, r);
    }
    pc__parallel(threads, w.pieces, apply_gradient, &w);
    pc__free(w.parts);
    return PC_OK;
}

/* norm_rows.c: layer_norm and rms_norm: a row at a time, which stays in the first-level cache; short ones by
 * norm_lots.c, few long ones by norm_long.c. One template, compiled for float and double. */
#include "cpu/level/norm.h"

#include <math.h>

enum {
    PART = 8192,          /* numbers that a core takes at a time */
    PARTS = 64,           /* of rows whose sums are added in order */
    SUMS = 1 << 22,       /* numbers that these may take */
    FEWEST = 4,           /* rows of such a part */
    ROWS = PC__NORM_ROWS, /* that are added in their own type */
    SHORT = 64,           /* numbers of a row of a lot, at most, */
    SHORT_BACK = 40,      /* or with its gradient, */
    LEAST = 32,           /* so many rows at least are one */
    CONVERTED = 2048, /* 16-bit numbers that are converted at once: what is read right behind a store waits for it */
};

typedef struct work {
    const pc_call *call;
    const pc__layer_norm_attributes *a;
    int64_t rows, parts, together, at_once; /* at_once: rows that are converted together */
    bool half, turns;                       /* 16-bit numbers; by lots */
    const void *weight, *bias;              /* in the type that is computed in: as they lie, or in parameters[2][n] */
    void *parameters;
    void *room;   /* of each thread: `size` numbers, */
    int64_t size; /* of whole lots two, or backward four; else of what is converted, and backward two sums */
    double *sums; /* backward: [parts][2][n]; NULL: none are wanted */
    bool few;     /* one part of so few rows that its sums, in the type that is computed in, are the result */
} work;

static pc__norm_lot lot_of(const work *w, int64_t first, int64_t end)
{
    return (pc__norm_lot){.call = w->call,
                          .n = w->a->n,
                          .first = first,
                          .rows = PC__MIN(ROWS, end - first),
                          .centered = w->a->centered,
                          .eps = w->a->eps,
                          .weight = w->weight,
                          .bias = w->bias,
                          .room = (float *)w->room + pc__thread() * w->size};
}

#define REAL float
#define NAMED(name) name##_f32
#include "cpu/level/norm_rows.inc"

#define REAL double
#define NAMED(name) name##_f64
#include "cpu/level/norm_rows.inc"

static work work_of(const pc_call *call, const pc_tensor *x, int64_t most)
{
    const pc__layer_norm_attributes *a = call->attributes;
    work w = {
        .call = call, .a = a, .rows = a->n ? pc_tensor_count(x) / a->n : 0, .half = pc__is_half((pc_dtype)x->dtype)};
    w.turns = x->dtype != PC_F64 && a->n <= most && w.rows >= LEAST;
    w.at_once = w.half ? PC__MAX(CONVERTED / PC__MAX(a->n, 1), 1) : PC__MAX(w.rows, 1);
    return w;
}

static int64_t size_of(bool is_f64)
{
    return is_f64 ? sizeof(double) : sizeof(float);
}

/* Memory for parameters and rooms, and `sums` more numbers. */
static pc_status take_room(work *w, int threads, int64_t sums, bool is_f64)
{
    const int64_t first = 2 * w->a->n * size_of(is_f64), room = (threads * w->size * size_of(is_f64) + 7) / 8 * 8;
    if (!(w->parameters = pc__alloc_aligned((size_t)(first + room) + (size_t)sums * sizeof *w->sums, 64)))
        return PC_ERR_MEMORY;
    w->room = (char *)w->parameters + first;
    w->sums = sums ? (double *)(void *)((char *)w->room + room) : NULL;
    return PC_OK;
}

/* One of weight and bias, or in their place so many times `number`. */
static const void *vector(void *to, const pc_tensor *t, int64_t n, double number, bool is_f64)
{
    if (t && !pc__is_half((pc_dtype)t->dtype))
        return pc__data(t);
    if (is_f64)
        pc__norm_vector_f64(to, t, n, number);
    else
        pc__norm_vector_f32(to, t, n, number);
    return to;
}

static void fill(work *w, const pc_tensor *weight, const pc_tensor *bias, bool is_f64)
{
    const int64_t n = w->a->n;
    w->weight = vector(w->parameters, weight, n, 1, is_f64);
    w->bias = vector((char *)w->parameters + n * size_of(is_f64), bias, n, 0, is_f64);
}

static bool is_long(const work *w)
{
    return w->call->in[0]->dtype != PC_F64 && w->a->n >= PC__NORM_LONG && w->rows <= PC__NORM_LONG_ROWS;
}

static pc_status forward(const pc_call *call)
{
    const pc_tensor *x = call->in[0];
    work w = work_of(call, x, SHORT);
    const int64_t n = w.a->n;
    if (w.rows * n == 0)
        return PC_OK;
    const bool is_f64 = x->dtype == PC_F64;
    const pc_tensor *weight = w.a->has_weight ? call->in[1] : NULL,
                    *bias = w.a->has_bias ? call->in[1 + w.a->has_weight] : NULL;
    if (is_long(&w))
        return PC__K(norm_long)(call, weight, bias);
    const int threads = pc__threads(w.rows * n * 24);
    w.together = PC__MAX(PART / n, 1);
    w.at_once = PC__MIN(w.at_once, w.together);
    w.size = n * (w.turns ? 2 * ROWS : w.half ? w.at_once : 0);
    PC__TRY(take_room(&w, threads, 0, is_f64));
    fill(&w, weight, bias, is_f64);
    pc__parallel(threads, (w.rows + w.together - 1) / w.together, is_f64 ? forward_f64 : forward_f32, &w);
    pc__free(w.parameters);
    return PC_OK;
}

PC__KERNEL(layer_norm)
{
    (void)stream;
    return forward(call);
}

PC__KERNEL(rms_norm)
{
    (void)stream;
    return forward(call);
}

static void cut(work *w)
{
    const int64_t most = PC__MAX(PC__MIN(SUMS / PC__MAX(w->a->n, 1), PARTS), 1);
    w->together = PC__MAX((w->rows + most - 1) / most, w->turns ? ROWS : FEWEST);
    w->parts = (w->rows + w->together - 1) / w->together;
}

PC__KERNEL(layer_norm_backward)
{
    (void)stream;
    const pc_tensor *x = call->in[1];
    work w = work_of(call, x, SHORT_BACK);
    const int64_t n = w.a->n;
    const bool is_f64 = x->dtype == PC_F64, sums = w.a->needs[1] || w.a->needs[2];
    const int threads = pc__threads(w.rows * n * 40);
    const pc_tensor *weight = w.a->has_weight ? call->in[3] : NULL;
    if (is_long(&w) && w.rows > 0)
        return PC__K(norm_long_backward)(call, weight);
    cut(&w);
    w.at_once = PC__MIN(w.at_once, w.together);
    w.size = n * (w.turns ? 4 * ROWS : 2 * (w.half ? w.at_once : 0) + 2);
    if (n == 0)
        return PC_OK;
    w.few = w.parts == 1 && w.rows <= ROWS && !w.turns;
    PC__TRY(take_room(&w, threads, sums ? 2 * w.parts * n : 0, is_f64));
    if (w.sums && !w.few)
        memset(w.sums, 0, (size_t)(2 * w.parts * n) * sizeof *w.sums);
    fill(&w, weight, NULL, is_f64);
    pc__parallel(threads, w.parts, is_f64 ? backward_f64 : backward_f32, &w);
    for (int i = 1; i < 3; i++)
        if (w.a->needs[i])
            is_f64 ? finish_f64(&w, call->out[i], i - 1) : finish_f32(&w, call->out[i], i - 1);
    pc__free(w.parameters);
    return PC_OK;
}

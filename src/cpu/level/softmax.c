/* softmax.c: softmax along a dimension, and the losses. One template, compiled for float and double. */
#include "cpu/level/functions.h"
#include "cpu/level/halves.h"
#include "cpu/level/softmax_work.h"
#include "cpu/level/turn.h"
#include "ops/loss.h"
#include "tensor/floats.h"

enum {
    LANES = 64 / sizeof(float),
    SOME = 256, /* numbers of a row at once */
    RUN = 64,   /* rows that are added in their own type */
};

static char *element(const pc_tensor *t, int64_t i)
{
    return (char *)pc__data(t) + (size_t)i * pc_dtype_size(t->dtype);
}

/* Numbers of t as they are computed with: 16-bit ones in `room`. */
static const void *taken(const pc_tensor *t, int64_t first, int64_t n, float *room)
{
    if (!pc__is_half((pc_dtype)t->dtype))
        return element(t, first);
    pc__load_halves(room, element(t, first), n, t->dtype == PC_F16);
    return room;
}

/* Rows with labels, some of them a part; the sums of the parts are added in order. */
typedef struct labelled {
    const pc_call *call;
    int64_t rows, n, together, parts, ignored;
    double *sums;
    float *room; /* of each thread, for a row in and one out, where there are 16-bit numbers; else NULL */
} labelled;

static float *room_of(const labelled *w)
{
    return w->room ? w->room + pc__thread() * 2 * w->n : NULL;
}

#define UNROLLED _Pragma("GCC unroll 16")
#define REAL float
#define LANE_INT int32_t
#define NAMED(name) name##_f32
#include "cpu/level/softmax.inc"
#undef REAL
#undef LANE_INT
#undef NAMED

#define REAL double
#define LANE_INT int64_t
#define NAMED(name) name##_f64
#include "cpu/level/softmax.inc"

#define ALONG(name, cost)                                                                                              \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        (void)stream;                                                                                                  \
        return pc__softmax_run(call, (pc__along){name##_f32, name##_columns_f32},                                      \
                               (pc__along){name##_f64, name##_columns_f64}, cost);                                     \
    }
ALONG(softmax, 112)
ALONG(softmax_backward, 48)
ALONG(log_softmax, 112)
ALONG(log_softmax_backward, 112)

enum {
    PIECE = 4096,
    FEW = 16, /* sums that need no memory */
};

typedef double (*piece_fn)(const void *x, const void *y, void *dx, int64_t n, int64_t all);

/* A loss that is a mean: pieces give sums, which are added in order. */
typedef struct mean_loss {
    const pc_call *call;
    piece_fn piece;
    bool wanted; /* the gradient at x */
    int64_t n;
    double *sums; /* of the pieces */
} mean_loss;

/* The gradient goes into its tensor, or by way of `room` where that has 16 bits; rounded, to the third output. */
static void run_piece(void *context, int64_t piece)
{
    const mean_loss *loss = context;
    const pc_call *call = loss->call;
    const int64_t first = piece * PIECE, n = PC__MIN(PIECE, loss->n - first);
    float x[PIECE], y[PIECE], room[PIECE];
    pc_tensor *to = call->out[loss->wanted ? 1 : 0];
    const bool direct = !pc__is_half((pc_dtype)to->dtype);
    void *dx = !loss->wanted ? NULL : direct ? (void *)element(to, first) : room;
    loss->sums[piece] = loss->piece(taken(call->in[0], first, n, x), taken(call->in[1], first, n, y), dx, n, loss->n);
    if (dx && !direct)
        pc__store_halves(element(to, first), dx, n, to->dtype == PC_F16);
    to = call->out[2 < call->n_out ? 2 : 0];
    if (dx && call->n_out > 2 && pc_tensor_count(to))
        pc__store_halves(element(to, first), dx, n, to->dtype == PC_F16);
}

static void store(pc_tensor *t, double value)
{
    const float rounded = (float)value;
    if (t->dtype == PC_F64)
        *(double *)pc__data(t) = value;
    else if (t->dtype == PC_F32)
        *(float *)pc__data(t) = rounded;
    else
        pc__store_halves(pc__data(t), &rounded, 1, t->dtype == PC_F16);
}

/* Behind the norms of the rows. */
static void store_behind(const labelled *w, double divisor)
{
    const pc_tensor *norms = w->call->out[1];
    if (norms->dtype == PC_F64)
        ((double *)pc__data(norms))[2 * w->rows] = divisor;
    else
        ((float *)pc__data(norms))[2 * w->rows] = (float)divisor;
}

static pc_status mean_of_pieces(const pc_call *call, bool wanted, piece_fn f32, piece_fn f64, int cost)
{
    const pc_tensor *x = call->in[0];
    const int64_t n = pc_tensor_count(x), pieces = (n + PIECE - 1) / PIECE;
    double few[FEW], *sums = pieces > FEW ? pc__alloc_aligned((size_t)pieces * sizeof *sums, 64) : few, sum = 0;
    if (!sums)
        return PC_ERR_MEMORY;
    mean_loss loss = {call, x->dtype == PC_F64 ? f64 : f32, wanted, n, sums};
    pc__parallel(pc__threads(n * cost), pieces, run_piece, &loss);
    for (int64_t i = 0; i < pieces; i++)
        sum += sums[i];
    store(call->out[0], sum / (double)n);
    if (sums != few)
        pc__free(sums);
    return PC_OK;
}

PC__KERNEL(bce_with_logits)
{
    (void)stream;
    return mean_of_pieces(call, pc_tensor_count(call->out[1]), bce_f32, bce_f64, 48);
}

PC__KERNEL(mse)
{
    (void)stream;
    return mean_of_pieces(call, false, mse_f32, mse_f64, 8);
}

static labelled labelled_of(const pc_call *call, double *sums)
{
    const pc_tensor *x = call->in[0];
    const pc__loss_attributes *a = call->attributes;
    labelled w = {.call = call, .rows = x->shape[0], .n = x->shape[1], .ignored = a->ignored, .sums = sums};
    w.together = PC__MAX(PIECE / PC__MAX(w.n, 1), 1);
    w.parts = (w.rows + w.together - 1) / w.together;
    return w;
}

static pc_status run_labelled(labelled *w, pc__part_fn f32, pc__part_fn f64, int cost)
{
    const int threads = pc__threads(w->rows * w->n * cost);
    if (pc__has_halves(w->call) && !(w->room = pc__alloc_aligned((size_t)(threads * 2 * w->n) * sizeof(float), 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, w->parts, w->call->in[0]->dtype == PC_F64 ? f64 : f32, w);
    pc__free(w->room);
    return PC_OK;
}

/* How many rows count. */
static pc_status count_rows(const labelled *w, double *counted)
{
    const int64_t *labels = pc__data(w->call->in[1]);
    int64_t count = 0;
    for (int64_t i = 0; i < w->rows; i++) {
        if (labels[i] == w->ignored)
            continue;
        if (labels[i] < 0 || labels[i] >= w->n)
            return pc__fail(PC_ERR_RANGE, "cross_entropy: the label of row %lld is %lld; it must be 0 to %lld",
                            (long long)i, (long long)labels[i], (long long)w->n - 1);
        count++;
    }
    *counted = (double)count;
    return PC_OK;
}

PC__KERNEL(cross_entropy)
{
    (void)stream;
    const pc__loss_attributes *a = call->attributes;
    double few[FEW], sum = 0, divisor = 1;
    labelled w = labelled_of(call, few);
    PC__TRY(count_rows(&w, &divisor));
    divisor = a->is_sum || (a->none_is_0 && divisor == 0) ? 1 : divisor;
    if (w.parts > FEW && !(w.sums = pc__alloc_aligned((size_t)w.parts * sizeof *w.sums, 64)))
        return PC_ERR_MEMORY;
    const pc_status status = run_labelled(&w, cross_entropy_f32, cross_entropy_f64, 64);
    for (int64_t i = 0; status == PC_OK && i < w.parts; i++)
        sum += w.sums[i];
    if (status == PC_OK) {
        store(call->out[0], sum / divisor);
        store_behind(&w, divisor);
    }
    if (w.sums != few)
        pc__free(w.sums);
    return status;
}

PC__KERNEL(cross_entropy_backward)
{
    (void)stream;
    labelled w = labelled_of(call, NULL);
    return run_labelled(&w, cross_entropy_backward_f32, cross_entropy_backward_f64, 64);
}

/* softmax.c: softmax over the last dimension, and the losses. One template, compiled for float and double. */
#include "cpu/level/functions.h"
#include "cpu/level/kernels.h"

/* A row of n numbers from one row or two. */
typedef void (*row_fn)(const void *x, const void *y, void *out, int64_t n);

typedef struct row_work {
    row_fn row;
    const char *in[2];
    char *out;
    int64_t n, count, together; /* rows, and how many of them are a part */
    size_t bytes;               /* of a row */
} row_work;

static void run_part(void *context, int64_t part)
{
    const row_work *r = context;
    for (int64_t i = part * r->together; i < PC__MIN(r->count, (part + 1) * r->together); i++)
        r->row(r->in[0] + (size_t)i * r->bytes, r->in[1] + (size_t)i * r->bytes, r->out + (size_t)i * r->bytes, r->n);
}

/* The function for each row along the last dimension; `cost` of an element, in additions. */
static pc_status each_row(const pc_call *call, row_fn f32, row_fn f64, int cost)
{
    const pc_tensor *x = call->in[0];
    const int64_t n = x->ndim ? x->shape[x->ndim - 1] : 1, all = pc_tensor_count(x);
    if (all == 0)
        return PC_OK;
    row_work r = {.row = x->dtype == PC_F32 ? f32 : f64,
                  .in = {pc__data(call->in[0]), pc__data(call->in[call->n_in - 1])},
                  .out = pc__data(call->out[0]),
                  .n = n,
                  .count = all / n,
                  .together = PC__MAX(1, 4096 / n),
                  .bytes = (size_t)n * pc_dtype_size(x->dtype)};
    pc__parallel(pc__threads(all * cost), (r.count + r.together - 1) / r.together, run_part, &r);
    return PC_OK;
}

enum { LANES = 64 / sizeof(float) };

#define REAL float
#define NAMED(name) name##_f32
#define LOG1P(x) log1pf(x)
#include "cpu/level/softmax.inc"
#undef REAL
#undef NAMED
#undef LOG1P

#define REAL double
#define NAMED(name) name##_f64
#define LOG1P(x) log1p(x)
#include "cpu/level/softmax.inc"

#define BY_DTYPE(name, t, ...) ((t)->dtype == PC_F32 ? name##_f32(__VA_ARGS__) : name##_f64(__VA_ARGS__))

PC__KERNEL(softmax)
{
    (void)stream;
    return each_row(call, softmax_f32, softmax_f64, 24);
}

PC__KERNEL(softmax_backward)
{
    (void)stream;
    return each_row(call, softmax_backward_f32, softmax_backward_f64, 4);
}

PC__KERNEL(log_softmax)
{
    (void)stream;
    return each_row(call, log_softmax_f32, log_softmax_f64, 24);
}

PC__KERNEL(log_softmax_backward)
{
    (void)stream;
    return each_row(call, log_softmax_backward_f32, log_softmax_backward_f64, 20);
}

PC__KERNEL(bce_with_logits)
{
    (void)stream;
    BY_DTYPE(bce, call->in[0], call);
    return PC_OK;
}

PC__KERNEL(mse)
{
    (void)stream;
    BY_DTYPE(mse, call->in[0], call);
    return PC_OK;
}

PC__KERNEL(cross_entropy)
{
    (void)stream;
    const pc_tensor *x = call->in[0];
    const int64_t *labels = pc__data(call->in[1]);
    for (int64_t i = 0; i < x->shape[0]; i++)
        if (labels[i] < 0 || labels[i] >= x->shape[1])
            return pc__fail(PC_ERR_RANGE, "cross_entropy: the label of row %lld is %lld; it must be 0 to %lld",
                            (long long)i, (long long)labels[i], (long long)x->shape[1] - 1);
    BY_DTYPE(cross_entropy, x, call);
    return PC_OK;
}

PC__KERNEL(cross_entropy_backward)
{
    (void)stream;
    BY_DTYPE(cross_entropy_backward, call->in[0], call);
    return PC_OK;
}

/* softmax.c: softmax along a dimension, and the losses. One template, compiled for float and double. */
#include "cpu/level/functions.h"
#include "cpu/level/softmax_work.h"

enum {
    LANES = 64 / sizeof(float),
    SOME = 256, /* numbers of a row at once */
    RUN = 64,   /* rows that are added in their own type */
};

/* A loss that is a mean over n numbers: pieces give sums, which are added in order. */
typedef struct mean_loss {
    const void *x, *y;
    void *dx; /* its gradient at x, or NULL */
    int64_t n;
    double *sums; /* of the pieces */
} mean_loss;

enum { PIECE = 4096 };

#define REAL float
#define NAMED(name) name##_f32
#include "cpu/level/softmax.inc"
#undef REAL
#undef NAMED

#define REAL double
#define NAMED(name) name##_f64
#include "cpu/level/softmax.inc"

#define BY_DTYPE(name, t, ...) ((t)->dtype == PC_F32 ? name##_f32(__VA_ARGS__) : name##_f64(__VA_ARGS__))

#define ALONG(name, cost)                                                                                              \
    PC__KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        (void)stream;                                                                                                  \
        return pc__softmax_run(call, (pc__along){name##_f32, name##_columns_f32},                                      \
                               (pc__along){name##_f64, name##_columns_f64}, cost);                                     \
    }
ALONG(softmax, 24)
ALONG(softmax_backward, 12)
ALONG(log_softmax, 24)
ALONG(log_softmax_backward, 20)

static pc_status mean_of_pieces(const pc_call *call, void *dx, pc__part_fn f32, pc__part_fn f64, int cost)
{
    const pc_tensor *x = call->in[0];
    const int64_t n = pc_tensor_count(x), pieces = (n + PIECE - 1) / PIECE;
    double few[16], *sums = pieces > 16 ? pc__alloc_aligned((size_t)pieces * sizeof *sums, 64) : few, sum = 0;
    if (!sums)
        return PC_ERR_MEMORY;
    mean_loss loss = {pc__data(x), pc__data(call->in[1]), dx, n, sums};
    pc__parallel(pc__threads(n * cost), pieces, x->dtype == PC_F32 ? f32 : f64, &loss);
    for (int64_t i = 0; i < pieces; i++)
        sum += sums[i];
    if (x->dtype == PC_F32)
        *(float *)pc__data(call->out[0]) = (float)(sum / (double)n);
    else
        *(double *)pc__data(call->out[0]) = sum / (double)n;
    if (sums != few)
        pc__free(sums);
    return PC_OK;
}

PC__KERNEL(bce_with_logits)
{
    (void)stream;
    void *dx = pc_tensor_count(call->out[1]) ? pc__data(call->out[1]) : NULL;
    PC__TRY(mean_of_pieces(call, dx, bce_f32, bce_f64, 48));
    const size_t rounded = (size_t)pc_tensor_count(call->out[2]);
    if (rounded) /* on the way back from here */
        memcpy(pc__data(call->out[2]), dx, rounded * pc_dtype_size(call->out[2]->dtype));
    return PC_OK;
}

PC__KERNEL(mse)
{
    (void)stream;
    return mean_of_pieces(call, NULL, mse_f32, mse_f64, 8);
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

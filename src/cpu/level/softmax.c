/* softmax.c: softmax along a dimension, and the losses. One template, compiled for float and double. */
#include "cpu/level/functions.h"
#include "cpu/level/softmax_work.h"

enum {
    LANES = 64 / sizeof(float),
    SOME = 256, /* numbers of a row at once */
    RUN = 64,   /* rows that are added in their own type */
};

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

/* resample.c: pictures of another size. Kernels see [outer, rows, columns, inner], which planes and channels-last pictures both
 * are; the gradient gathers, too. */
#include "ops/resampled.h"

#include "ops/table.h"

/* x [n, c, h, w] as kernels see it, and back. */
static pc_tensor *seen(pc_tensor *x, bool by_channels)
{
    return by_channels ? pc_contiguous(pc_permute(x, PC_SHAPE(0, 2, 3, 1)))
                       : pc_reshape(pc_contiguous(x), PC_SHAPE(x->shape[0] * x->shape[1], x->shape[2], x->shape[3], 1));
}

static pc_tensor *unseen(pc_tensor *y, bool by_channels, const pc_tensor *x)
{
    if (!y || by_channels)
        return pc_permute(y, PC_SHAPE(0, 3, 1, 2));
    return pc_reshape(y, PC_SHAPE(x->shape[0], x->shape[1], y->shape[1], y->shape[2]));
}

pc_tensor *pc__resampled(pc_tensor *x, const pc__resample_attributes *attributes)
{
    const bool by_channels = pc__is_channels_last(x) && !pc__is_contiguous(x);
    pc_tensor *in = seen(x, by_channels);
    return in ? unseen(PC__CALL(resample, attributes, in), by_channels, x) : NULL;
}

static pc_status shaped(const pc_call *call, pc__meta *out, int64_t rows, int64_t columns)
{
    const pc_tensor *x = call->in[0];
    const int64_t shape[4] = {x->shape[0], rows, columns, x->shape[3]};
    pc__meta_contiguous(&out[0], x->dtype, 4, shape);
    return PC_OK;
}

pc_status pc__infer_resample(pc_call *call, pc__meta *out)
{
    const pc__resample_attributes *a = call->attributes;
    return shaped(call, out, a->axis[0].out, a->axis[1].out);
}

pc_status pc__infer_resample_backward(pc_call *call, pc__meta *out)
{
    const pc__resample_attributes *a = call->attributes;
    return shaped(call, out, a->axis[0].in, a->axis[1].in);
}

pc_status pc__grad_resample(pc__grad *grad)
{
    const pc__resample_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(resample_backward, a, pc_contiguous(grad->out_grad[0])));
}

/* convolve.c: convolutions whose taps lie apart or whose channels are in groups, and what leads back. Each of the three
 * ops is linear in both its tensors, and the other two are its gradients, so that these have gradients, too. */
#include "ops/convolve.h"

#include "ops/activation.h"
#include "ops/table.h"

pc_status pc__convolve_check(const char *name, int64_t in, int64_t out, int dilation[2], int *groups)
{
    *groups = *groups ? *groups : 1;
    for (int i = 0; i < 2; i++) {
        dilation[i] = dilation[i] ? dilation[i] : 1;
        if (dilation[i] < 1)
            return pc__fail(PC_ERR_ARGUMENT, "%s: dilation %d must be at least 1", name, dilation[i]);
    }
    if (*groups < 1 || in % *groups || out % *groups)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d groups do not divide %lld channels in and %lld out", name, *groups,
                        (long long)in, (long long)out);
    return PC_OK;
}

static void meta_of_pictures(pc__meta *out, const pc__convolve_attributes *a, uint8_t dtype, const int64_t shape[4])
{
    if (a->planes)
        pc__meta_contiguous(out, (pc_dtype)dtype, 4, shape);
    else
        pc__meta_channels_last(out, (pc_dtype)dtype, shape);
}

pc_status pc__infer_convolve(pc_call *call, pc__meta *out)
{
    const pc__convolve_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const int64_t shape[4] = {x->shape[0], w->shape[0], pc__convolve_out(a, 0), pc__convolve_out(a, 1)};
    meta_of_pictures(&out[0], a, x->dtype, shape);
    return PC_OK;
}

pc_status pc__infer_convolve_input(pc_call *call, pc__meta *out)
{
    const pc__convolve_attributes *a = call->attributes;
    const pc_tensor *y = call->in[0], *w = call->in[1];
    const int64_t shape[4] = {y->shape[0], w->shape[1] * a->groups, a->size[0], a->size[1]};
    meta_of_pictures(&out[0], a, y->dtype, shape);
    return PC_OK;
}

pc_status pc__infer_convolve_weight(pc_call *call, pc__meta *out)
{
    const pc__convolve_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *y = call->in[1];
    const int64_t shape[4] = {y->shape[1], x->shape[1] / a->groups, a->kernel[0], a->kernel[1]};
    pc__meta_contiguous(&out[0], x->dtype, 4, shape);
    return PC_OK;
}

/* Pictures as kernels read them. NULL flows. */
static pc_tensor *ordered(pc_tensor *t, const pc__convolve_attributes *a)
{
    return !t || !a->planes ? pc__channels_last(t) : pc_contiguous(t);
}

/* Where windows have more, CUDA leaves them to libraries, which want channels last. */
enum { TAPS_MOST = 196 };

bool pc__convolve_in_planes(const pc_tensor *t, const pc__convolve_attributes *a, int64_t c, int64_t o)
{
    if (!pc__is_contiguous(t))
        return false;
    return t->storage->device.type == PC_CUDA
               ? a->groups > 1 && c == 1 && o == 1 && a->kernel[0] * a->kernel[1] <= TAPS_MOST
               : pc__convolve_is_planar(a, c, o, true);
}

/* NULL flows through all three. */
static pc_tensor *call(int op, pc_tensor *first, pc_tensor *second, pc_tensor *bias, const pc__convolve_attributes *a)
{
    pc_tensor *in[3] = {first, second, bias}, *result = NULL;
    PC_SCOPE {
        if (first && second) {
            in[0] = ordered(first, a);
            in[1] = op == PC__OP_convolve_weight ? ordered(second, a) : pc_contiguous(second);
            in[2] = bias ? pc_contiguous(bias) : NULL;
        }
        result = pc_keep(pc__call(op, in, bias ? 3 : 2, a, sizeof *a));
    }
    return result;
}

pc_tensor *pc__convolve(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, const pc__convolve_attributes *a)
{
    return call(PC__OP_convolve, x, weight, bias, a);
}

pc_tensor *pc__convolve_input(pc_tensor *y, pc_tensor *weight, const pc__convolve_attributes *a)
{
    return call(PC__OP_convolve_input, y, weight, NULL, a);
}

pc_tensor *pc__convolve_weight(pc_tensor *x, pc_tensor *y, const pc__convolve_attributes *a)
{
    return call(PC__OP_convolve_weight, x, y, NULL, a);
}

/* y = conv(x, w) + b */
pc_status pc__grad_convolve(pc__grad *grad)
{
    const pc__convolve_attributes *a = grad->attributes;
    pc_tensor *dy = ordered(grad->out_grad[0], a); /* once for both */
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, pc__convolve_input(dy, grad->in[1], a)));
    if (grad->needs[1])
        PC__TRY(pc__set_grad(grad, 1, pc__convolve_weight(grad->in[0], dy, a)));
    if (grad->n_in > 2 && grad->needs[2])
        PC__TRY(pc__set_grad(grad, 2, pc_sum_dims(dy, PC_SHAPE(0, 2, 3), false)));
    return PC_OK;
}

/* x = back(y, w) */
pc_status pc__grad_convolve_input(pc__grad *grad)
{
    const pc__convolve_attributes *a = grad->attributes;
    pc_tensor *dx = ordered(grad->out_grad[0], a);
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, pc__convolve(dx, grad->in[1], NULL, a)));
    if (grad->needs[1])
        PC__TRY(pc__set_grad(grad, 1, pc__convolve_weight(dx, grad->in[0], a)));
    return PC_OK;
}

/* w = between(x, y) */
pc_status pc__grad_convolve_weight(pc__grad *grad)
{
    const pc__convolve_attributes *a = grad->attributes;
    pc_tensor *dw = grad->out_grad[0];
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, pc__convolve_input(grad->in[1], dw, a)));
    if (grad->needs[1])
        PC__TRY(pc__set_grad(grad, 1, pc__convolve(grad->in[0], dw, NULL, a)));
    return PC_OK;
}

/* What follows is calls of its own, which plans make one with their neighbours. */
pc_tensor *pc__convolve_spec(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, const pc_fn_conv2d_options *spec,
                             bool planes)
{
    pc__convolve_attributes a = {.stride = {spec->stride[0], spec->stride[1]},
                                 .padding = {spec->padding[0], spec->padding[1]},
                                 .dilation = {spec->dilation[0], spec->dilation[1]},
                                 .groups = spec->groups,
                                 .size = {x->shape[2], x->shape[3]},
                                 .kernel = {weight->shape[2], weight->shape[3]}};
    a.planes = planes && pc__convolve_in_planes(x, &a, weight->shape[1], weight->shape[0] / spec->groups);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *y = pc__activated(spec->activation, pc__convolve(x, weight, bias, &a));
        if (y && spec->pool > 1)
            y = pc_fn_max_pool2d(y, (pc_fn_pool2d_options){.kernel = {spec->pool, spec->pool}});
        result = pc_keep(y && planes ? pc_contiguous(y) : y);
    }
    return result;
}

/* conv_transpose2d.c: convolutions led back (convolve.h), as PyTorch has them. */
#include "ops/autocast.h"
#include "ops/convolve.h"
#include "ops/table.h"

#include <limits.h>

typedef pc_fn_conv_transpose2d_options options_of;

static pc_status check_options(options_of *o)
{
    for (int i = 0; i < 2; i++) {
        o->stride[i] = o->stride[i] ? o->stride[i] : 1;
        const int dilation = o->dilation[i] ? o->dilation[i] : 1;
        if (o->stride[i] < 1 || o->padding[i] < 0)
            return pc__fail(PC_ERR_ARGUMENT,
                            "conv_transpose2d: stride %d and padding %d: the stride must be at least 1, the padding "
                            "at least 0",
                            o->stride[i], o->padding[i]);
        if (o->output_padding[i] < 0 || o->output_padding[i] >= PC__MAX(o->stride[i], dilation))
            return pc__fail(
                PC_ERR_ARGUMENT,
                "conv_transpose2d: an output padding of %d must be at least 0, and below the stride, %d, or "
                "the dilation, %d",
                o->output_padding[i], o->stride[i], dilation);
    }
    return PC_OK;
}

static pc_status check(const pc_tensor *x, const pc_tensor *w, const pc_tensor *bias, options_of *o)
{
    PC__TRY(check_options(o));
    if (x->ndim != 4 || w->ndim != 4 || x->shape[1] != w->shape[0])
        return pc__fail(PC_ERR_SHAPE,
                        "conv_transpose2d: an input of shape %s ([n, c, h, w]) does not fit a weight of shape %s ([c, "
                        "out / groups, kh, kw])",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(w));
    PC__TRY(pc__convolve_check("conv_transpose2d", x->shape[1], w->shape[1] * PC__MAX(o->groups, 1), o->dilation,
                               &o->groups));
    if (bias && (bias->ndim != 1 || bias->shape[0] != w->shape[1] * o->groups))
        return pc__fail(PC_ERR_SHAPE, "conv_transpose2d: a bias of shape %s does not fit a weight of shape %s",
                        PC__SHAPE_OF(bias), PC__SHAPE_OF(w));
    if (x->dtype != w->dtype || !pc__is_float(x->dtype) || (bias && bias->dtype != w->dtype))
        return pc__fail(PC_ERR_DTYPE,
                        "conv_transpose2d: input %s, weight %s, bias %s: all must be of one floating dtype (pc_cast)",
                        pc_dtype_name(x->dtype), pc_dtype_name(w->dtype), pc_dtype_name(bias ? bias->dtype : w->dtype));
    if (w->shape[2] < 1 || w->shape[3] < 1)
        return pc__fail(PC_ERR_SHAPE, "conv_transpose2d: a weight of shape %s has no taps", PC__SHAPE_OF(w));
    return PC_OK;
}

/* Whole strides of output padding are rows of zeros behind x, which add nothing; then the convolution has just x's rows. */
static pc_status size_of(const pc_tensor *x, const pc_tensor *w, options_of *o, pc__convolve_attributes *a,
                         int64_t more[2])
{
    *a = (pc__convolve_attributes){.groups = o->groups};
    for (int i = 0; i < 2; i++) {
        more[i] = o->output_padding[i] / o->stride[i];
        a->stride[i] = o->stride[i], a->padding[i] = o->padding[i], a->dilation[i] = o->dilation[i];
        a->kernel[i] = w->shape[2 + i];
        const int64_t rows = x->shape[2 + i] + more[i];
        a->size[i] = (rows - 1) * o->stride[i] - 2 * (int64_t)o->padding[i] + o->dilation[i] * (a->kernel[i] - 1) +
                     o->output_padding[i] % o->stride[i] + 1;
        if (a->size[i] < 1 || x->shape[2 + i] < 1 || x->shape[2 + i] > INT_MAX)
            return pc__fail(PC_ERR_SHAPE, "conv_transpose2d: an input of shape %s becomes one of %lld rows or columns",
                            PC__SHAPE_OF(x), (long long)a->size[i]);
    }
    return PC_OK;
}

/* In the memory order of x. */
static pc_tensor *transposed(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, options_of o)
{
    pc__convolve_attributes a = {.groups = 1};
    int64_t more[2];
    if (!x || !weight)
        return pc__convolve_input(x, weight, &a);
    if (check(x, weight, bias, &o) != PC_OK || size_of(x, weight, &o, &a, more) != PC_OK)
        return NULL;
    const bool last = pc__is_channels_last(x);
    a.planes = !last && pc__convolve_in_planes(x, &a, weight->shape[1], weight->shape[0] / a.groups);
    pc_tensor *result = NULL;
    PC_SCOPE {
        if (more[0] || more[1])
            x = pc_pad(x, PC_SHAPE(0, 0), PC_SHAPE(more[0], more[1]), PC_PAD_CONSTANT, 0);
        pc_tensor *y = pc__convolve_input(x, weight, &a);
        y = bias ? pc_add(y, pc_reshape(bias, PC_SHAPE(bias->shape[0], 1, 1))) : y;
        result = pc_keep(y && !last ? pc_contiguous(y) : y);
    }
    return result;
}

pc_tensor *pc_fn_conv_transpose2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                                  pc_fn_conv_transpose2d_options options)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, weight);
    if (!pc__autocasting())
        return transposed(x, weight, bias, options);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *b = pc__autocast_down(bias);
        if (b || !bias)
            result = pc_keep(transposed(pc__autocast_down(x), pc__autocast_down(weight), b, options));
    }
    return result;
}

/* pool2d.c: maxima and averages over windows. Kernels work on channels-last memory. */
#include "ops/pool2d.h"

#include "ops/table.h"

int64_t pc__pool2d_windows(const pc_fn_pool2d_options *spec, int i, int64_t size)
{
    const int64_t padding = spec->padding[i], stride = spec->stride[i];
    const int64_t room = size + 2 * padding - spec->kernel[i] + (spec->ceil_mode ? stride - 1 : 0);
    const int64_t windows = room < 0 ? 0 : room / stride + 1;
    return spec->ceil_mode && (windows - 1) * stride >= size + padding ? windows - 1 : windows;
}

/* What makes no difference is left out, so that no plan and no kernel has to ask for it. */
static void simplify(pc_fn_pool2d_options *spec, const pc_tensor *x)
{
    pc_fn_pool2d_options plain = *spec;
    plain.ceil_mode = false;
    spec->exclude_padding = spec->exclude_padding && (spec->padding[0] || spec->padding[1]);
    if (pc__pool2d_windows(&plain, 0, x->shape[2]) == pc__pool2d_windows(spec, 0, x->shape[2]) &&
        pc__pool2d_windows(&plain, 1, x->shape[3]) == pc__pool2d_windows(spec, 1, x->shape[3]))
        spec->ceil_mode = false;
}

static pc_status check(const char *who, const pc_tensor *x, pc_fn_pool2d_options *spec)
{
    if (x->ndim != 4 || !pc__is_float(x->dtype))
        return pc__fail(x->ndim != 4 ? PC_ERR_SHAPE : PC_ERR_DTYPE,
                        "%s: the input is %s %s; it must be floating [n, c, h, w]", who, pc_dtype_name(x->dtype),
                        PC__SHAPE_OF(x));
    for (int i = 0; i < 2; i++) {
        spec->stride[i] = spec->stride[i] ? spec->stride[i] : spec->kernel[i];
        if (spec->kernel[i] < 1 || spec->stride[i] < 1 || spec->padding[i] < 0 ||
            spec->padding[i] > spec->kernel[i] / 2)
            return pc__fail(PC_ERR_ARGUMENT,
                            "%s: kernel %d, stride %d, padding %d: kernel and stride must be at least 1, "
                            "the padding 0 to half the kernel",
                            who, spec->kernel[i], spec->stride[i], spec->padding[i]);
        if (x->shape[2 + i] < 1) /* windows would lie in the padding alone: the largest of no numbers is none */
            return pc__fail(PC_ERR_SHAPE, "%s: an input of shape %s has no places to pool", who, PC__SHAPE_OF(x));
        if (pc__pool2d_windows(spec, i, x->shape[2 + i]) < 1)
            return pc__fail(PC_ERR_SHAPE, "%s: an input of shape %s is too small for a window of %d x %d", who,
                            PC__SHAPE_OF(x), spec->kernel[0], spec->kernel[1]);
    }
    if (x->shape[2] > INT32_MAX / x->shape[3]) /* places in a plane are counted by 32 bits */
        return pc__fail(PC_ERR_SHAPE,
                        "%s: an input of shape %s has planes of 2^31 elements or more: pool parts of them", who,
                        PC__SHAPE_OF(x));
    return PC_OK;
}

/* Planes are pictures of one channel, which need no other order on a GPU, where threads go side by side in a plane as well
 * as over channels. With large windows they would be far apart. */
static bool by_planes(const pc_tensor *x, const pc_fn_pool2d_options *spec)
{
    return x->storage->device.type == PC_CUDA && pc__is_contiguous(x) && !pc__is_nhwc(x) &&
           (int64_t)spec->kernel[0] * spec->kernel[1] <= 64;
}

static pc_tensor *pool(int op, const char *who, pc_tensor *x, pc_fn_pool2d_options spec)
{
    if (check(who, x, &spec) != PC_OK)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        const bool planes = by_planes(x, &spec);
        pc_tensor *in = planes ? pc_reshape(x, PC_SHAPE(x->shape[0] * x->shape[1], 1, x->shape[2], x->shape[3]))
                               : pc__channels_last(x);
        simplify(&spec, x);
        pc__pool2d_attributes attributes = {.spec = spec};
        for (int i = 0; i < 2; i++)
            attributes.windows[i] = pc__pool2d_windows(&spec, i, x->shape[2 + i]);
        if (in)
            memcpy(attributes.in_shape, in->shape, sizeof attributes.in_shape);
        pc_call probe = {.op = &pc__ops[op], .in = &in, .n_in = 1};
        attributes.wants_places = in && op == PC__OP_max_pool2d && pc__tape_wants(&probe);
        pc_tensor *y = pc__call(op, &in, 1, &attributes, sizeof attributes);
        if (y && planes)
            y = pc_reshape(y, PC_SHAPE(x->shape[0], x->shape[1], y->shape[2], y->shape[3]));
        else if (y && !pc__is_channels_last(x) && !pc__is_contiguous(y))
            y = pc_contiguous(y);
        result = pc_keep(y);
    }
    return result;
}

pc_tensor *pc_fn_max_pool2d(pc_tensor *x, pc_fn_pool2d_options options)
{
    PC__NEED_OR(NULL, x);
    return pool(PC__OP_max_pool2d, "max_pool2d", x, options);
}

pc_tensor *pc_fn_avg_pool2d(pc_tensor *x, pc_fn_pool2d_options options)
{
    PC__NEED_OR(NULL, x);
    return pool(PC__OP_avg_pool2d, "avg_pool2d", x, options);
}

pc_status pc__infer_avg_pool2d(pc_call *call, pc__meta *out)
{
    const pc__pool2d_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    const int64_t shape[4] = {x->shape[0], x->shape[1], a->windows[0], a->windows[1]};
    pc__meta_channels_last(&out[0], x->dtype, shape);
    return PC_OK;
}

pc_status pc__infer_max_pool2d(pc_call *call, pc__meta *out)
{
    const pc__pool2d_attributes *a = call->attributes;
    PC__TRY(pc__infer_avg_pool2d(call, out));
    const int64_t none[4] = {0, out[0].shape[1], out[0].shape[2], out[0].shape[3]};
    pc__meta_channels_last(&out[1], PC_I32, a->wants_places ? out[0].shape : none);
    return PC_OK;
}

pc_status pc__infer_pool2d_backward(pc_call *call, pc__meta *out)
{
    const pc__pool2d_attributes *a = call->attributes;
    pc__meta_channels_last(&out[0], call->in[0]->dtype, a->in_shape);
    return PC_OK;
}

pc_status pc__grad_max_pool2d(pc__grad *grad)
{
    const pc__pool2d_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(max_pool2d_backward, a, pc__channels_last(grad->out_grad[0]), grad->out[1]));
}

pc_status pc__grad_avg_pool2d(pc__grad *grad)
{
    const pc__pool2d_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(avg_pool2d_backward, a, pc__channels_last(grad->out_grad[0])));
}

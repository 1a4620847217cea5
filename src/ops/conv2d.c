/* conv2d.c: pool(activation(conv(x) + bias)) as one op. Kernels read channels-last memory; other inputs are rearranged
 * on the way in, unless the backend reads them as they lie. The result is written in the order that is wanted. */
#include "ops/conv2d.h"

#include "ops/activation.h"
#include "ops/autocast.h"
#include "ops/convolve.h"
#include "ops/table.h"
#include "tensor/read.h"

#include <limits.h>

static int64_t out_size(int64_t n, int64_t kernel, int64_t stride, int64_t padding)
{
    return n + 2 * padding < kernel ? 0 : (n + 2 * padding - kernel) / stride + 1;
}

/* Rows and columns from the first tap of the kernel to the last. */
static int64_t reach(const pc_tensor *w, const pc_fn_conv2d_options *spec, int i)
{
    return w->shape[2 + i] > 0 ? spec->dilation[i] * (w->shape[2 + i] - 1) + 1 : 0;
}

/* Kernels count a picture with what is around it, and copies of its rows for each thread, in 64 bits. */
static bool is_countable(const pc_tensor *x, const pc_fn_conv2d_options *spec)
{
    const int64_t most = (int64_t)1 << 48;
    int64_t numbers = x->shape[1];
    for (int i = 0; i < 2; i++)
        if (__builtin_mul_overflow(numbers, x->shape[2 + i] + 2 * (int64_t)spec->padding[i], &numbers) ||
            numbers > most)
            return false;
    return true;
}

static pc_status check(const pc_tensor *x, const pc_tensor *w, const pc_tensor *bias, pc_fn_conv2d_options *spec)
{
    for (int i = 0; i < 2; i++) {
        spec->stride[i] = spec->stride[i] ? spec->stride[i] : 1;
        if (spec->stride[i] < 1 || spec->padding[i] < 0)
            return pc__fail(PC_ERR_ARGUMENT,
                            "conv2d: stride %d and padding %d: the stride must be at least 1, the "
                            "padding at least 0",
                            spec->stride[i], spec->padding[i]);
    }
    if (spec->pool < 0 || spec->pool > 16 || !pc__activation_row_of(spec->activation))
        return pc__fail(PC_ERR_ARGUMENT, "conv2d: pool %d must be 0 to 16 and activation %d one of pc_activation_kind",
                        spec->pool, (int)spec->activation);
    spec->pool = PC__MAX(spec->pool, 1);
    const int groups = PC__MAX(spec->groups, 1);
    if (x->ndim != 4 || w->ndim != 4 || x->shape[1] != w->shape[1] * groups)
        return pc__fail(PC_ERR_SHAPE,
                        "conv2d: an input of shape %s ([n, c, h, w]) does not fit a weight of shape %s "
                        "([out, c%s, kh, kw])",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(w), groups > 1 ? " / groups" : "");
    PC__TRY(pc__convolve_check("conv2d", x->shape[1], w->shape[0], spec->dilation, &spec->groups));
    if (bias && (bias->ndim != 1 || bias->shape[0] != w->shape[0]))
        return pc__fail(PC_ERR_SHAPE, "conv2d: a bias of shape %s does not fit a weight of shape %s",
                        PC__SHAPE_OF(bias), PC__SHAPE_OF(w));
    if (x->dtype != w->dtype || !pc__is_float(x->dtype) || (bias && bias->dtype != w->dtype))
        return pc__fail(PC_ERR_DTYPE,
                        "conv2d: input %s, weight %s, bias %s: all must be of one floating dtype (pc_cast)",
                        pc_dtype_name(x->dtype), pc_dtype_name(w->dtype), pc_dtype_name(bias ? bias->dtype : w->dtype));
    for (int i = 0; i < 2; i++)
        if (out_size(x->shape[2 + i], reach(w, spec, i), spec->stride[i], spec->padding[i]) < spec->pool)
            return pc__fail(PC_ERR_SHAPE, "conv2d: an input of shape %s is too small for a kernel of %lld x %lld%s%s",
                            PC__SHAPE_OF(x), (long long)w->shape[2], (long long)w->shape[3],
                            spec->dilation[0] > 1 || spec->dilation[1] > 1 ? " with its dilation" : "",
                            spec->pool > 1 ? " and pooling" : "");
    if (!is_countable(x, spec))
        return pc__fail(PC_ERR_MEMORY,
                        "conv2d: an input of shape %s with a padding of %d and %d has more elements than any memory",
                        PC__SHAPE_OF(x), spec->padding[0], spec->padding[1]);
    return PC_OK;
}

static pc_tensor *conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool planes);

/* In C order or channels last, as is their gradient. */
static pc_tensor *ordered(pc_tensor *weight)
{
    return pc__is_channels_last(weight) ? weight : pc_contiguous(weight);
}

/* Pooling as an op of its own, and the activation too where kernels do not know it. `apart`: none but ReLU they do, nor
 * another memory order. ReLU they do behind a bias: without one it is done on the way to that order, which reads all anyway. */
static pc_tensor *then(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool apart,
                       bool planes)
{
    const int pool = spec.pool;
    const bool turns = planes && pool == 1 && !bias;
    const bool fused =
        apart ? spec.activation == PC_ACTIVATION_RELU && !turns : pc__activation_row_of(spec.activation)->fused;
    const pc_activation_kind activation = fused ? PC_ACTIVATION_NONE : spec.activation;
    pc_tensor *result = NULL;
    spec.activation = fused ? spec.activation : PC_ACTIVATION_NONE;
    spec.pool = 1;
    PC_SCOPE {
        pc_tensor *y = pc__activated(activation, conv2d(x, weight, bias, spec, planes && pool == 1 && !apart));
        y = y && pool > 1 ? pc_fn_max_pool2d(y, (pc_fn_pool2d_options){.kernel = {pool, pool}}) : y;
        result = pc_keep(y && planes ? pc_contiguous(y) : y);
    }
    return result;
}

/* What the backend says of the call: `ask` is one of its functions, or NULL, which says no. */
static bool says(bool (*ask)(const pc_call *), pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                 const pc_fn_conv2d_options *spec, bool planes)
{
    const pc__conv2d_attributes attributes = {.spec = *spec, .planes = planes};
    const pc_call call = {.op = &pc__ops[PC__OP_conv2d],
                          .in = (pc_tensor *[]){x, weight, bias},
                          .n_in = bias ? 3 : 2,
                          .attributes = &attributes,
                          .attribute_bytes = sizeof attributes};
    return ask && ask(&call);
}

/* The backend has no kernel that does all of it and is as fast as one that does less. */
static bool is_faster_apart(pc_tensor *x, pc_tensor *weight, const pc_fn_conv2d_options *spec, bool planes)
{
    return says(pc__backend_of(x->storage->device.type)->is_faster_apart, x, weight, NULL, spec, planes);
}

/* Channels last, but where kernels read planes. */
static pc_tensor *arranged(pc_tensor *x, pc_tensor *w, const pc_fn_conv2d_options *spec, bool planes)
{
    const pc_device_type type = x->storage->device.type;
    const int64_t width = out_size(x->shape[3], w->shape[3], spec->stride[1], spec->padding[1]);
    if (pc__is_contiguous(x) && (type == PC_CUDA ? says(pc__backend_of(type)->reads_planes, x, w, NULL, spec, planes)
                                                 : pc__conv2d_is_planar(x->dtype, w->shape[0], width, w->shape[3],
                                                                        spec->stride[1], spec->pool)))
        return x;
    return pc__channels_last(x);
}

static bool has_windows_of_one(const pc_tensor *w, const pc_fn_conv2d_options *spec)
{
    return w->shape[2] * w->shape[3] == 1 && spec->padding[0] + spec->padding[1] == 0;
}

/* Windows of one place over pictures in C order are a product of matrices for each picture, [o][c] x [c][h * w], that
 * reads and writes them where they lie. Its gradient makes one [o][c] for each picture: they must be small beside it. */
static bool is_product(const pc_tensor *x, const pc_tensor *w, const pc_fn_conv2d_options *spec)
{
    const int64_t places = x->shape[2] * x->shape[3], channels = w->shape[0] + w->shape[1];
    return has_windows_of_one(w, spec) && spec->stride[0] * spec->stride[1] == 1 && spec->pool == 1 && places > 1 &&
           4 * w->shape[0] * w->shape[1] <= places * channels;
}

static pc_tensor *product(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_activation_kind activation)
{
    const int64_t n = x->shape[0], c = x->shape[1], o = weight->shape[0], h = x->shape[2], w = x->shape[3];
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *y = pc_matmul(pc_reshape(weight, PC_SHAPE(o, c)), pc_reshape(x, PC_SHAPE(n, c, h * w)));
        y = bias ? pc_add(y, pc_reshape(bias, PC_SHAPE(o, 1))) : y;
        result = pc_keep(pc_reshape(pc__activated(activation, y), PC_SHAPE(n, o, h, w)));
    }
    return result;
}

/* The sum of pictures in C order, where the backend is fastest in that order. What follows it is told, but calls of its own. */
static bool stays_in_planes(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, const pc_fn_conv2d_options *spec)
{
    return spec->pool == 1 && pc__is_contiguous(x) &&
           says(pc__backend_of(x->storage->device.type)->keeps_planes, x, weight, bias, spec, true);
}

static pc_tensor *in_planes(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec)
{
    const pc_activation_kind activation = spec.activation;
    pc_tensor *result = NULL;
    spec.activation = PC_ACTIVATION_NONE;
    PC_SCOPE {
        const pc__conv2d_attributes attributes = {.spec = spec, .planes = true};
        pc_tensor *in[2] = {x, ordered(weight)};
        pc_tensor *y = pc__call(PC__OP_conv2d, in, 2, &attributes, sizeof attributes);
        y = bias ? pc_add(y, pc_reshape(bias, PC_SHAPE(weight->shape[0], 1, 1))) : y;
        result = pc_keep(pc__activated(activation, y));
    }
    return result;
}

/* Windows of one place with a stride see every so-manyth place: those are gathered, and only they change their order. */
static pc_tensor *gathered(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        for (int i = 0; i < 2; i++) {
            x = spec.stride[i] > 1 && x ? pc_slice(x, 2 + i, 0, x->shape[2 + i], spec.stride[i]) : x;
            spec.stride[i] = 1;
        }
        x = x && is_product(x, weight, &spec) ? pc_contiguous(x) : x;
        result = pc_keep(conv2d(x, weight, bias, spec, true));
    }
    return result;
}

/* The odd row or column of padding is behind. */
static pc_tensor *same(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool planes)
{
    pc_tensor *result = NULL;
    int behind[2] = {0, 0};
    for (int i = 0; i < 2 && x->ndim == 4 && weight->ndim == 4; i++) {
        if (spec.stride[i] > 1 || spec.padding[i])
            return pc__null(PC_ERR_ARGUMENT,
                            "conv2d: same padding needs stride 1 and padding 0, not stride %d and padding %d",
                            spec.stride[i], spec.padding[i]);
        const int64_t taps = weight->shape[2 + i], more = PC__MAX(spec.dilation[i], 1) * PC__MAX(taps - 1, 0);
        if (more > INT_MAX)
            return pc__null(PC_ERR_SHAPE, "conv2d: a kernel of %lld rows with dilation %d is too large",
                            (long long)taps, spec.dilation[i]);
        spec.padding[i] = (int)(more / 2);
        behind[i] = (int)(more % 2);
    }
    spec.same = false;
    PC_SCOPE {
        if (behind[0] || behind[1])
            x = pc_pad(x, PC_SHAPE(0, 0), PC_SHAPE(behind[0], behind[1]), PC_PAD_CONSTANT, 0);
        result = pc_keep(conv2d(x, weight, bias, spec, planes));
    }
    return result;
}

static bool is_plain(const pc_tensor *w, const pc_fn_conv2d_options *spec)
{
    return spec->groups == 1 && (spec->dilation[0] == 1 || w->shape[2] == 1) &&
           (spec->dilation[1] == 1 || w->shape[3] == 1);
}

static pc_tensor *conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool planes)
{
    if (!x || !weight)
        return PC__CALL_PLAIN(conv2d, x, weight);
    if (spec.same)
        return same(x, weight, bias, spec, planes);
    if (check(x, weight, bias, &spec) != PC_OK)
        return NULL;
    if (!is_plain(weight, &spec))
        return pc__convolve_spec(x, weight, bias, &spec, planes);
    spec.dilation[0] = spec.dilation[1] = 1;
    if (planes && has_windows_of_one(weight, &spec) && spec.stride[0] * spec.stride[1] > 1)
        return gathered(x, weight, bias, spec);
    if (planes && pc__is_contiguous(x) && is_product(x, weight, &spec))
        return product(x, weight, bias, spec.activation);
    if (planes && stays_in_planes(x, weight, bias, &spec))
        return in_planes(x, weight, bias, spec);
    const bool apart = is_faster_apart(x, weight, &spec, planes);
    /* In its own order the backend may do the pooling as well. */
    if (apart && planes && spec.pool > 1 && !is_faster_apart(x, weight, &spec, false)) {
        pc_tensor *result = NULL;
        PC_SCOPE {
            pc_tensor *y = conv2d(x, weight, bias, spec, false);
            result = pc_keep(y ? pc_contiguous(y) : NULL);
        }
        return result;
    }
    if (apart || !pc__activation_row_of(spec.activation)->fused)
        return then(x, weight, bias, spec, apart, planes);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[3] = {arranged(x, weight, &spec, planes), ordered(weight), bias ? pc_contiguous(bias) : NULL};
        pc__conv2d_attributes attributes = {.spec = spec, .planes = planes};
        pc_call probe = {.op = &pc__ops[PC__OP_conv2d], .in = in, .n_in = bias ? 3 : 2};
        attributes.wants_argmax = in[0] && in[1] && pc__tape_wants(&probe);
        result = pc_keep(pc__call(PC__OP_conv2d, in, bias ? 3 : 2, &attributes, sizeof attributes));
    }
    return result;
}

pc_tensor *pc__conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options spec, bool planes)
{
    if (!pc__autocasting())
        return conv2d(x, weight, bias, spec, planes);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *b = pc__autocast_down(bias);
        if (b || !bias)
            result = pc_keep(conv2d(pc__autocast_down(x), pc__autocast_down(weight), b, spec, planes));
    }
    return result;
}

/* Pictures of one channel lie in both orders: the channel's stride says which is meant, as PyTorch reads it too. */
static bool lies_channels_last(const pc_tensor *x)
{
    const bool one = x->ndim == 4 && x->shape[1] == 1 && x->shape[2] * x->shape[3] > 1;
    return pc__is_channels_last(x) || (one && x->strides[1] == 1 && pc__is_contiguous(x));
}

pc_tensor *pc_fn_conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_fn_conv2d_options options)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, weight);
    return pc__conv2d(x, weight, bias, options, !lies_channels_last(x));
}

pc_status pc__infer_conv2d(pc_call *call, pc__meta *out)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    int64_t shape[4] = {x->shape[0], w->shape[0]};
    for (int i = 0; i < 2; i++)
        shape[2 + i] = out_size(x->shape[2 + i], w->shape[2 + i], a->spec.stride[i], a->spec.padding[i]) / a->spec.pool;
    if (a->planes)
        pc__meta_contiguous(&out[0], x->dtype, 4, shape);
    else
        pc__meta_channels_last(&out[0], x->dtype, shape);
    int64_t places = a->spec.pool > 1 && a->wants_argmax ? pc__count(4, shape) : 0;
    pc__meta_contiguous(&out[1], PC_U8, 1, &places);
    return PC_OK;
}

pc_status pc__infer_conv2d_backward(pc_call *call, pc__meta *out)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const int64_t none[4] = {0};
    pc__meta_channels_last(&out[0], x->dtype, a->needs[0] ? x->shape : none);
    if (a->needs[1])
        pc__meta_like(&out[1], w, w->dtype);
    else
        pc__meta_contiguous(&out[1], w->dtype, 4, none);
    pc__meta_contiguous(&out[2], w->dtype, 1, a->needs[2] ? w->shape : none);
    return PC_OK;
}

pc_status pc__grad_conv2d(pc__grad *grad)
{
    pc__conv2d_attributes a = *(const pc__conv2d_attributes *)grad->attributes;
    pc_tensor *x = grad->in[0], *y = grad->out[0], *dy = grad->out_grad[0];
    if (a.planes && grad->n_in < 3 && a.spec.activation == PC_ACTIVATION_NONE &&
        stays_in_planes(x, grad->in[1], NULL, &a.spec)) { /* which is for the way there */
        a.planes = false;
        x = pc__channels_last(x);
        y = dy = pc__channels_last(dy); /* y is not read without an activation */
    }
    pc_tensor *in[5] = {x, grad->in[1], y, grad->out[1], a.planes ? pc_contiguous(dy) : pc__channels_last(dy)};
    pc_tensor *out[PC__OUT_MAX];
    for (int i = 0; i < 3; i++)
        a.needs[i] = i < grad->n_in && grad->needs[i];
    PC__TRY(pc__call_all(PC__OP_conv2d_backward, in, 5, &a, sizeof a, out));
    for (int i = 0; i < grad->n_in; i++)
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, out[i]));
    return PC_OK;
}

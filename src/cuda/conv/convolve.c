/* convolve.c: the three ops of convolutions with taps apart or channels in groups: by the kernels for those of each channel
 * alone, a result a thread where they are little work, by tiles or products of windows where these are faster than cuDNN, by
 * that or tiles, by products of windows, else by the kernels for any; and where there are neither gaps nor groups, as conv2d
 * and its gradients. */
#include "cuda/conv/groups.h"
#include "cuda/conv/convolve.h"
#include "cuda/pointwise/each.h"

/* Kernels count rows, columns and channels in 32 bits, one picture's elements too, and tiles across in 16. */
static pc_status geometry(const pc_stream *stream, const pc__convolution *v, pc__cuda_groups *s)
{
    const pc__convolve_attributes *a = v->attributes;
    const double oh = (double)pc__convolve_out(a, 0), ow = (double)pc__convolve_out(a, 1);
    const double x = (double)v->c * (double)a->size[0] * (double)a->size[1], y = (double)v->o * oh * ow;
    const double kernel = (double)(v->c / a->groups) * (double)a->kernel[0] * (double)a->kernel[1];
    if (x > INT32_MAX || y > INT32_MAX || kernel * (double)v->o > INT32_MAX || kernel > 32.0 * UINT16_MAX)
        return pc__fail(PC_ERR_SHAPE,
                        "conv2d: pictures of %lld x %lld and %lld to %lld channels are too large for cuda",
                        (long long)a->size[0], (long long)a->size[1], (long long)v->c, (long long)v->o);
    *s = (pc__cuda_groups){.dtype = v->dtype,
                           .early = pc__cuda_early(stream),
                           .n = v->n,
                           .h = (int)a->size[0],
                           .w = (int)a->size[1],
                           .c = (int)v->c,
                           .o = (int)v->o,
                           .kh = (int)a->kernel[0],
                           .kw = (int)a->kernel[1],
                           .oh = (int)oh,
                           .ow = (int)ow,
                           .sh = a->stride[0],
                           .sw = a->stride[1],
                           .ph = a->padding[0],
                           .pw = a->padding[1],
                           .dh = a->dilation[0],
                           .dw = a->dilation[1],
                           .groups = (int)a->groups,
                           .planes = a->planes != 0};
    return PC_OK;
}

/* A sum of nothing. */
static bool is_empty(const pc__cuda_groups *s)
{
    return s->n == 0 || s->c == 0 || s->h == 0 || s->w == 0 || s->kh == 0 || s->kw == 0 || s->oh == 0 || s->ow == 0;
}

/* Zeros. */
static pc_status of_nothing(pc_stream *stream, const pc_call *call, const pc__convolution *v, pc__cuda_groups *s)
{
    s->queue = pc__cuda_queue(stream);
    pc__cuda_groups_add(s, NULL, 0, pc__count(call->out[0]->ndim, call->out[0]->shape), v->result);
    return pc__cuda_launched(call);
}

static pc_status by_own(pc_stream *stream, const pc_call *call, const pc__convolution *v, pc__cuda_groups *s)
{
    const bool alone = pc__cuda_depthwise_fits(s);
    const bool weight = v->direction == PC__CONV_WEIGHTS;
    const size_t bytes = !weight ? 0 : alone ? pc__cuda_depthwise_scratch(s) : pc__cuda_groups_scratch(s);
    void *scratch = weight ? pc__cuda_scratch(stream, bytes) : NULL;
    if (weight && !scratch)
        return PC_ERR_MEMORY;
    s->queue = pc__cuda_queue(stream);
    pc__rows_say(stream, alone ? "by channels" : "by groups");
    if (v->direction == PC__CONV_FORWARD)
        (alone ? pc__cuda_depthwise_forward : pc__cuda_groups_forward)(s, v->x, v->weight, v->bias, v->result);
    else if (v->direction == PC__CONV_INPUT)
        (alone ? pc__cuda_depthwise_input : pc__cuda_groups_input)(s, v->weight, v->y, v->result);
    else
        (alone ? pc__cuda_depthwise_weight : pc__cuda_groups_weight)(s, v->x, v->y, v->result, scratch);
    return pc__cuda_launched(call);
}

/* Of several channels together, by whoever is faster than the kernels for any. */
static pc_status by_others(pc_stream *stream, const pc_call *call, const pc__convolution *v, const pc__cuda_groups *s,
                           bool *done)
{
    *done = pc__convolution_by_plain(stream, v);
    if (*done)
        return pc__cuda_launched(call);
    if (pc__convolution_is_for_tiles(stream, v))
        PC__TRY(pc__convolution_by_tiles(stream, call, v, done));
    if (!*done && pc__convolution_is_for_windows(stream, v, s))
        PC__TRY(pc__convolution_by_windows(stream, call, v, s, done));
    if (!*done)
        PC__TRY(pc__convolution_by_pieces(stream, call, v, done));
    return *done ? PC_OK : pc__convolution_by_windows(stream, call, v, s, done);
}

static pc_status run(pc_stream *stream, const pc_call *call, const pc__convolution *v)
{
    pc__cuda_groups s;
    bool done = false;
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    if (pc__convolution_is_plain(v))
        return pc__convolution_plain(stream, call, v, false);
    PC__TRY(geometry(stream, v, &s));
    if (is_empty(&s) && v->direction != PC__CONV_FORWARD)
        return of_nothing(stream, call, v, &s);
    if (!is_empty(&s) && !pc__cuda_depthwise_fits(&s))
        PC__TRY(by_others(stream, call, v, &s, &done));
    return done ? PC_OK : by_own(stream, call, v, &s);
}

PC__CUDA_KERNEL(convolve)
{
    const pc__convolution v = pc__convolution_of(call);
    return run(stream, call, &v);
}

PC__CUDA_KERNEL(convolve_input)
{
    const pc__convolution v = pc__convolution_of(call);
    return run(stream, call, &v);
}

PC__CUDA_KERNEL(convolve_weight)
{
    const pc__convolution v = pc__convolution_of(call);
    return run(stream, call, &v);
}

pc_status pc__convolution_prepare(pc_stream *stream, const pc_call *call)
{
    const pc__convolution v = pc__convolution_of(call);
    pc__cuda_groups s;
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    if (pc__convolution_is_plain(&v))
        return pc__convolution_plain(stream, call, &v, true);
    PC__TRY(geometry(stream, &v, &s));
    const bool ours = is_empty(&s) || pc__cuda_depthwise_fits(&s) || pc__convolution_is_for_tiles(stream, &v) ||
                      pc__convolution_is_for_windows(stream, &v, &s);
    return ours ? PC_OK : pc__convolution_choose(stream, call, &v);
}

/* pool.c: maximum and average pooling, forward and backward. */
#include "cuda/pool/pool.h"

#include "cuda/runtime/cuda.h"
#include "ops/pool2d.h"

static pc__cuda_pool windows(const pc_stream *stream, const pc_call *call)
{
    const pc__pool2d_attributes *a = call->attributes;
    const pc_fn_pool2d_options *spec = &a->spec;
    const int64_t *x = a->in_shape;
    return (pc__cuda_pool){.dtype = call->in[0]->dtype,
                           .early = pc__cuda_early(stream),
                           .n = x[0],
                           .h = x[2],
                           .w = x[3],
                           .c = x[1],
                           .oh = a->windows[0],
                           .ow = a->windows[1],
                           .kh = spec->kernel[0],
                           .kw = spec->kernel[1],
                           .sh = spec->stride[0],
                           .sw = spec->stride[1],
                           .ph = spec->padding[0],
                           .pw = spec->padding[1],
                           .uneven = spec->ceil_mode || spec->exclude_padding,
                           .exclude_padding = spec->exclude_padding};
}

pc_status pc__cuda_op_max_pool2d(pc_stream *stream, const pc_call *call)
{
    const pc__pool2d_attributes *a = call->attributes;
    const pc__cuda_pool s = windows(stream, call);
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    pc__cuda_max_pool(pc__cuda_queue(stream), &s, pc__data(call->in[0]), pc__data(call->out[0]),
                      a->wants_places ? pc__data(call->out[1]) : NULL);
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_max_pool2d_backward(pc_stream *stream, const pc_call *call)
{
    const pc__cuda_pool s = windows(stream, call);
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    pc__cuda_max_pool_backward(pc__cuda_queue(stream), &s, pc__data(call->in[0]), pc__data(call->in[1]),
                               pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_avg_pool2d(pc_stream *stream, const pc_call *call)
{
    const pc__cuda_pool s = windows(stream, call);
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    pc__cuda_avg_pool(pc__cuda_queue(stream), &s, pc__data(call->in[0]), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_avg_pool2d_backward(pc_stream *stream, const pc_call *call)
{
    const pc__cuda_pool s = windows(stream, call);
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    pc__cuda_avg_pool_backward(pc__cuda_queue(stream), &s, pc__data(call->in[0]), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

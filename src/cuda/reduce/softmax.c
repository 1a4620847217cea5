/* softmax.c: softmax over a dimension, its logarithm, and their gradients. */
#include "cuda/reduce/softmax.h"

#include "cuda/runtime/cuda.h"
#include "ops/softmax.h"

static pc_status run(pc_stream *stream, const pc_call *call, enum pc__cuda_softmax_op op)
{
    const pc__view a = pc__cuda_view(call->in[0]), out = pc__cuda_view(call->out[0]);
    if (a.count == 0)
        return PC_OK;
    const pc__view b = call->n_in > 1 ? pc__cuda_view(call->in[1]) : a;
    const pc__softmax_attributes *along = call->attributes;
    if (along->inner > 1) {
        pc__cuda_softmax_down(&(pc__cuda_softmax_columns){.dtype = a.dtype,
                                                          .early = pc__cuda_early(stream),
                                                          .outer = a.count / along->n / along->inner,
                                                          .n = along->n,
                                                          .inner = along->inner,
                                                          .a = a.data,
                                                          .b = b.data,
                                                          .out = out.data,
                                                          .queue = pc__cuda_queue(stream)},
                              op);
        return pc__cuda_launched(call);
    }
    pc__cuda_softmax(pc__cuda_queue(stream), op, &a, call->n_in > 1 ? &b : NULL, &out);
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_softmax(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__SOFTMAX);
}

pc_status pc__cuda_op_softmax_backward(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__SOFTMAX_BACKWARD);
}

pc_status pc__cuda_op_log_softmax(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__LOG_SOFTMAX);
}

pc_status pc__cuda_op_log_softmax_backward(pc_stream *stream, const pc_call *call)
{
    return run(stream, call, PC__LOG_SOFTMAX_BACKWARD);
}

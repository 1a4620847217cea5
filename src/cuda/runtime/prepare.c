/* prepare.c: what must be known of a call before it is captured: who is to do it, where that is planned or measured. */
#include "cuda/conv/convolve.h"

#include "ops/table.h"

#include <paracord/ops.h>

/* The op itself, which then only makes its choice. */
static pc_status choose(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    pc__cuda_stream *face = stream->implementation;
    face->prepares = true;
    const pc_status status = kernel(stream, call);
    face->prepares = false;
    return status;
}

pc_status pc__cuda_prepare(pc_stream *stream, const pc_call *call)
{
    const bool measured = pc_choice_get() == PC_CHOICE_MEASURED;
    PC__TRY(pc__cuda_enter(stream->device.index));
    switch (call->op->index) {
    case PC__OP_conv2d:
    case PC__OP_conv2d_backward:
        return pc__conv_prepare(stream, call);
    case PC__OP_convolve:
    case PC__OP_convolve_input:
    case PC__OP_convolve_weight:
        return pc__convolution_prepare(stream, call);
    case PC__OP_matmul:
        return measured ? choose(stream, call, pc__cuda_op_matmul) : PC_OK;
    case PC__OP_linear:
        return measured ? choose(stream, call, pc__cuda_op_linear) : PC_OK;
    case PC__OP_attention:
        return choose(stream, call, pc__cuda_op_attention);
    case PC__OP_attention_backward:
        return choose(stream, call, pc__cuda_op_attention_backward);
    default:
        return PC_OK;
    }
}

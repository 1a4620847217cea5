/* loss.c: losses, and their gradients. */
#include "cuda/loss/loss.h"

#include "cuda/runtime/cuda.h"
#include "cuda/loss/head.h"
#include "ops/loss.h"

static pc_status pair(pc_stream *stream, const pc_call *call, enum pc__cuda_pair_loss kind, void *dx, void *rounded)
{
    const pc__view x = pc__cuda_view(call->in[0]), y = pc__cuda_view(call->in[1]);
    double *scratch = pc__cuda_scratch(stream, PC__LOSS_SCRATCH);
    if (!scratch)
        return PC_ERR_MEMORY;
    pc__cuda_pair_loss(pc__cuda_queue(stream), pc__cuda_early(stream), kind, &x, &y, pc__data(call->out[0]), dx,
                       rounded, scratch);
    return pc__cuda_launched(call);
}

static void *data_or_null(const pc_tensor *t)
{
    return pc_tensor_count(t) ? pc__data(t) : NULL;
}

pc_status pc__cuda_op_bce_with_logits(pc_stream *stream, const pc_call *call)
{
    if (pc__cuda_head_loss(stream, call))
        return PC_OK;
    return pair(stream, call, PC__LOSS_BCE, data_or_null(call->out[1]), data_or_null(call->out[2]));
}

pc_status pc__cuda_op_mse(pc_stream *stream, const pc_call *call)
{
    return pair(stream, call, PC__LOSS_MSE, NULL, NULL);
}

static pc__cuda_targets targets_of(const pc_call *call, const pc_tensor *labels)
{
    const pc__loss_attributes *a = call->attributes;
    return (pc__cuda_targets){pc__data(labels), a->ignored, a->is_sum, a->none_is_0};
}

/* Of a call with the loss's gradient (plan/losses.c). Where rows are not taken, one after the other. */
static pc_status with_gradient(pc_stream *stream, const pc_call *call)
{
    const pc__view x = pc__cuda_view(call->in[0]);
    const pc__cuda_targets to = targets_of(call, call->in[1]);
    const int early = pc__cuda_early(stream), dtype = call->out[0]->dtype;
    const cudaStream_t queue = pc__cuda_queue(stream);
    void *loss = pc__data(call->out[0]), *dx = pc__data(call->out[1]), *g = pc__data(call->in[2]);
    const int64_t pitch = call->out[1]->strides[0];
    const size_t norms = (size_t)(x.shape[0] + 1) * 2 * sizeof(double);
    char *scratch = pc__cuda_scratch(stream, PC__LOSS_SCRATCH_BOTH + norms);
    if (!scratch)
        return PC_ERR_MEMORY;
    if (!pc__cuda_cross_entropy_both(queue, early, &x, to, g, loss, dtype, dx, pitch, scratch,
                                     pc__cuda_fault_of(stream))) {
        void *kept = scratch + PC__LOSS_SCRATCH_BOTH;
        pc__cuda_cross_entropy(queue, early, &x, to, loss, dtype, kept, scratch, pc__cuda_fault_of(stream));
        pc__cuda_cross_entropy_backward(queue, early, &x, kept, to, g, dtype, dx, pitch);
    }
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_cross_entropy(pc_stream *stream, const pc_call *call)
{
    if (call->n_in == 3)
        return with_gradient(stream, call);
    const pc__view x = pc__cuda_view(call->in[0]);
    double *scratch = pc__cuda_scratch(stream, PC__LOSS_SCRATCH);
    if (!scratch)
        return PC_ERR_MEMORY;
    pc__cuda_cross_entropy(pc__cuda_queue(stream), pc__cuda_early(stream), &x, targets_of(call, call->in[1]),
                           pc__data(call->out[0]), call->out[0]->dtype, pc__data(call->out[1]), scratch,
                           pc__cuda_fault_of(stream));
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_cross_entropy_backward(pc_stream *stream, const pc_call *call)
{
    const pc__view x = pc__cuda_view(call->in[0]);
    if (x.count == 0)
        return PC_OK;
    const pc_tensor *g = call->in[3];
    pc__cuda_cross_entropy_backward(pc__cuda_queue(stream), pc__cuda_early(stream), &x, pc__data(call->in[1]),
                                    targets_of(call, call->in[2]), pc__data(g), g->dtype, pc__data(call->out[0]),
                                    call->out[0]->strides[0]);
    return pc__cuda_launched(call);
}

/* resample.c: pictures of another size, and their gradient. */
#include "cuda/pool/resample.h"

#include "cuda/pointwise/each.h"

static pc_status resample(pc_stream *stream, const pc_call *call, int backward)
{
    const pc_tensor *x = call->in[0], *y = call->out[0];
    PC__TRY(pc__cuda_takes(call, PC__BIT(PC_F32) | PC__BIT(PC_F64)));
    const pc__cuda_resample s = {.spec = *(const pc__resample_attributes *)call->attributes,
                                 .count = pc_tensor_count(y),
                                 .inner = x->shape[3],
                                 .dtype = x->dtype,
                                 .early = pc__cuda_early(stream),
                                 .backward = backward};
    if (s.count == 0)
        return PC_OK;
    pc__cuda_resample_all(pc__cuda_queue(stream), &s, pc__data(x), pc__data(y));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(resample)
{
    return resample(stream, call, 0);
}

PC__CUDA_KERNEL(resample_backward)
{
    return resample(stream, call, 1);
}

/* max_backward.c: the gradient of maxima. */
#include "cuda/reduce/max_backward.h"

#include "cuda/pointwise/each.h"
#include "ops/reduce.h"

static pc_status share(pc_stream *stream, const pc_call *call, int64_t count)
{
    const int64_t least = PC__MAX(4096, (count + PC__SHARE_BLOCKS - 1) / PC__SHARE_BLOCKS);
    pc__cuda_max_shares b = {.count = count,
                             .piece = least,
                             .parts = count > PC__SHARES_AT_ONCE ? (int)((count + least - 1) / least) : 0,
                             .g = pc__data(call->in[0]),
                             .x = pc__data(call->in[1]),
                             .most = pc__data(call->in[2]),
                             .dx = pc__data(call->out[0]),
                             .dtype = call->in[0]->dtype,
                             .early = pc__cuda_early(stream),
                             .queue = pc__cuda_queue(stream)};
    b.counts = b.parts ? pc__cuda_scratch(stream, (size_t)b.parts * sizeof *b.counts) : NULL;
    if (b.parts && !b.counts)
        return PC_ERR_MEMORY;
    pc__cuda_max_to_shares(&b);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(max_backward)
{
    const pc__reduce_attributes *a = call->attributes;
    const int64_t count = a->outer * a->reduced * a->inner;
    if (count == 0)
        return PC_OK;
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    if (a->whole)
        return share(stream, call, count);
    const pc__cuda_max_places b = {.count = count,
                                   .reduced = a->reduced,
                                   .inner = a->inner,
                                   .g = pc__data(call->in[0]),
                                   .places = pc__data(call->in[1]),
                                   .dx = pc__data(call->out[0]),
                                   .bytes = (int)pc_dtype_size(call->in[0]->dtype),
                                   .early = pc__cuda_early(stream),
                                   .queue = pc__cuda_queue(stream)};
    pc__cuda_max_to_places(&b);
    return pc__cuda_launched(call);
}

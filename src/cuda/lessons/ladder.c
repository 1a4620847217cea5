/* ladder.c: the lessons' kernels. */
#include "cuda/lessons/ladder.h"

#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(ladder_add)
{
    const pc__ladder_attributes *a = call->attributes;
    const pc_tensor *c = call->out[0];
    pc__cuda_ladder_add(a->rung, pc__data(call->in[0]), pc__data(call->in[1]), pc__data(c),
                        pc__count(c->ndim, c->shape), pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(ladder_matmul)
{
    const pc__ladder_attributes *a = call->attributes;
    const pc_tensor *c = call->out[0];
    if (c->shape[0] > 65536)
        return pc__fail(PC_ERR_UNSUPPORTED, "ladder_matmul: a side of %lld; on CUDA it is 65536 at most",
                        (long long)c->shape[0]);
    pc__cuda_ladder_matmul(a->rung, pc__data(call->in[0]), pc__data(call->in[1]), pc__data(c), (int)c->shape[0],
                           pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(ladder_fma)
{
    const pc__ladder_attributes *a = call->attributes;
    const pc_tensor *x = call->out[0];
    pc__cuda_ladder_fma(pc__data(x), pc__count(x->ndim, x->shape), a->rounds, pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

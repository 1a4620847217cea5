/* random.c: drawing tensors. */
#include "cuda/data/random.h"

#include "cuda/pointwise/each.h"
#include "ops/random.h"

static pc__cuda_draw drawing(pc_stream *stream, const pc_call *call)
{
    const pc__random_attributes *a = call->attributes;
    const pc_tensor *t = call->out[0];
    return (pc__cuda_draw){.seed = a->seed,
                           .stream = a->stream,
                           .base = call->n_in == 2 ? pc__data(call->in[1]) : NULL,
                           .low = a->low,
                           .high = a->high,
                           .n = pc__count(t->ndim, t->shape),
                           .dtype = t->dtype,
                           .multiprocessors = pc__cuda_multiprocessors(stream),
                           .early = pc__cuda_early(stream),
                           .queue = pc__cuda_queue(stream)};
}

PC__CUDA_KERNEL(uniform)
{
    const pc__cuda_draw d = drawing(stream, call);
    if (d.n == 0)
        return PC_OK;
    pc__cuda_uniform(&d, pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(normal)
{
    const pc__cuda_draw d = drawing(stream, call);
    if (d.n == 0)
        return PC_OK;
    pc__cuda_normal(&d, pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(dropout)
{
    const pc__cuda_draw d = drawing(stream, call);
    if (d.n == 0)
        return PC_OK;
    const pc_tensor *kept = call->out[1];
    const pc__view in = pc__cuda_view(call->in[0]);
    pc__cuda_dropout(&d, &in, !pc__is_dense(call->in[0]), pc__data(call->out[0]),
                     pc_tensor_count(kept) ? pc__data(kept) : NULL);
    return pc__cuda_launched(call);
}

static void launch_undrop(const pc__cuda_launch *launch, const void *context)
{
    const pc_call *call = context;
    const double p = ((const pc__random_attributes *)call->attributes)->low;
    pc__cuda_undrop(launch, call->out[0]->dtype, p < 1 ? 1 / (1 - p) : 0);
}

PC__CUDA_KERNEL(dropout_backward)
{
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    return pc__cuda_each(stream, call, 3, (pc_tensor *[]){call->out[0], call->in[0], call->in[1]}, launch_undrop, call);
}

/* region.c: several element-by-element calls as one kernel. */
#include "cuda/pointwise/region.h"

#include "cuda/runtime/cuda.h"
#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(region)
{
    pc__cuda_region r = {.region = *(const pc__region *)call->attributes,
                         .early = pc__cuda_early(stream),
                         .multiprocessors = pc__cuda_multiprocessors(stream)};
    for (int i = 0; i < call->n_in; i++) {
        r.in[i] = pc__data(call->in[i]);
        r.in_dtype[i] = call->in[i]->dtype;
    }
    for (int i = 0; i < call->n_out; i++) {
        r.out[i] = pc__data(call->out[i]);
        r.out_dtype[i] = call->out[i]->dtype;
    }
    r.queue = pc__cuda_queue(stream);
    pc__cuda_region_run(&r);
    return pc__cuda_launched(call);
}

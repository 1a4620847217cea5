/* region.c: several element-by-element calls as one kernel, and where that is slower than theirs. */
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

static bool has_one_dtype(const pc_call *call)
{
    const pc__region *r = call->attributes;
    const int dtype = call->out[0]->dtype;
    bool one = true;
    for (int i = 0; i < call->n_in; i++)
        one = one && call->in[i]->dtype == dtype;
    for (int i = 0; i < r->steps; i++)
        one = one && r->step[i].dtype == dtype;
    return one;
}

/* Two calls have kernels of their own that read no steps: where tensors fit into the caches, and in 16 bits wherever the calls only
 * read the same, that is faster than what a region saves (H200: up to 1.8 times). */
bool pc__cuda_region_is_faster_apart(const pc_call *call)
{
    enum { CACHED = 1 << 22, FEW = 1 << 16 /* elements */ };
    const pc__region *r = call->attributes;
    if (r->steps != 2 || pc__cuda_region_is_clamp(r) || !has_one_dtype(call))
        return false;
    const bool half = call->out[0]->dtype != PC_F32, chain = r->step[1].a == r->ins || r->step[1].b == r->ins;
    return half ? !chain || r->count < CACHED : r->count < (chain ? FEW : CACHED);
}

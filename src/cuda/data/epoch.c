/* epoch.c: what an epoch does with pictures that stay on the device. */
#include "cuda/data/epoch.h"

#include "cuda/pointwise/each.h"
#include "ops/epoch.h"

PC__CUDA_KERNEL(epoch)
{
    const pc__epoch_attributes *a = call->attributes;
    const int64_t n = call->out[0]->shape[0];
    int64_t *order = pc__data(call->out[0]);
    if (n == 0)
        return PC_OK;
    if (a->shuffle)
        pc__cuda_shuffle(a->plan.seed, a->plan.epoch, n, order, pc__data(call->out[1]), pc__cuda_queue(stream));
    pc__cuda_epoch_table(&a->plan, a->shuffle, n, order, pc__data(call->out[2]), pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

/* bce.c: binary cross-entropy of probabilities. */
#include "cuda/loss/bce.h"

#include "cuda/pointwise/each.h"

static void launch(const pc__cuda_launch *launch, const void *dtype)
{
    pc__cuda_bce(launch, *(const int *)dtype);
}

PC__CUDA_KERNEL(bce)
{
    PC__TRY(pc__cuda_takes(call, PC__BIT(PC_F32) | PC__BIT(PC_F64)));
    const int dtype = call->in[0]->dtype;
    return pc__cuda_each(stream, call, 3, (pc_tensor *[]){call->out[0], call->in[0], call->in[1]}, launch, &dtype);
}

/* score.c: a batch's loss and right answers, added to sums. */
#include "cuda/pointwise/each.h"
#include "cuda/loss/head.h"
#include "ops/loss.h"

PC__CUDA_KERNEL(score_step)
{
    const pc_tensor *logits = call->in[0], *labels = call->in[1];
    const pc__cuda_score score = {.dtype = logits->dtype,
                                  .logits = pc__data(logits),
                                  .labels = pc__data(labels),
                                  .loss = pc__data(call->in[2]),
                                  .sums = pc__data(call->out[0]),
                                  .n = logits->shape[0],
                                  .width = logits->shape[1],
                                  .ignored = PC__IGNORED,
                                  .floats = labels->dtype == PC_F32};
    if (score.n == 0)
        return PC_OK;
    if (pc__cuda_head_score(stream, &score))
        return PC_OK;
    pc__cuda_score_add(&score, pc__cuda_queue(stream), pc__cuda_early(stream));
    return pc__cuda_launched(call);
}

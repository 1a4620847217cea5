/* score.c: a batch's loss and right answers, added to sums. */
#include "ops/loss.h"
#include "ops/score.h"

#include "cpu/level/kernels.h"

PC__KERNEL(score_step)
{
    const pc_tensor *logits = call->in[0], *labels = call->in[1];
    const int64_t n = logits->shape[0], width = logits->shape[1];
    const float *rows = pc__data(logits);
    const void *y = pc__data(labels);
    double *sums = pc__data(call->out[0]);
    int64_t right = 0, ignored = 0;
    (void)stream;
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = labels->dtype == PC_F32 ? (int64_t)((const float *)y)[i] : ((const int64_t *)y)[i];
        right += pc__row_names(rows + i * width, width) == label;
        ignored += labels->dtype == PC_I64 && label == PC__IGNORED;
    }
    sums[0] +=
        (double)*(const float *)pc__data(call->in[2]) * (double)(n - ignored); /* exact: 24 bits times the bits of n */
    sums[1] += (double)right;
    sums[2] += (double)ignored;
    return PC_OK;
}

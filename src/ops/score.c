/* score.c: the op that adds a batch's loss and right answers to sums. No gradient. */
#include "ops/score.h"

#include "ops/table.h"

pc_status pc__score_step(pc_tensor *sums, pc_tensor *logits, pc_tensor *labels, pc_tensor *loss)
{
    return pc__call_in_place(PC__OP_score_step, sums, (pc_tensor *[]){logits, labels, loss}, 3, NULL, 0);
}

pc_status pc__infer_score_step(pc_call *call, pc__meta *unused)
{
    const pc_tensor *logits = call->in[0], *labels = call->in[1], *loss = call->in[2], *sums = call->out[0];
    (void)unused;
    if ((logits->dtype != PC_F32 && !pc__is_half((pc_dtype)logits->dtype)) || loss->dtype != PC_F32 ||
        sums->dtype != PC_F64 || (labels->dtype != PC_F32 && labels->dtype != PC_I64))
        return pc__fail(PC_ERR_DTYPE,
                        "score_step: logits %s, labels %s, loss %s, sums %s; it takes float32 or 16 bits, "
                        "float32 or int64, float32, float64",
                        pc_dtype_name(logits->dtype), pc_dtype_name(labels->dtype), pc_dtype_name(loss->dtype),
                        pc_dtype_name(sums->dtype));
    if (logits->ndim != 2 || pc_tensor_count(labels) != logits->shape[0] || pc_tensor_count(loss) != 1 ||
        pc_tensor_count(sums) != 3 || !pc__is_contiguous(logits) || !pc__is_contiguous(labels) ||
        !pc__is_contiguous(sums))
        return pc__fail(PC_ERR_SHAPE,
                        "score_step: logits %s, labels %s, loss %s, sums %s; they are [n, width], n labels, one number "
                        "and three, without gaps",
                        PC__SHAPE_OF(logits), PC__SHAPE_OF(labels), PC__SHAPE_OF(loss), PC__SHAPE_OF(sums));
    return PC_OK;
}

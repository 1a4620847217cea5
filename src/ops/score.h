/* score.h: adding a batch's results up where they are. */
#ifndef PC__OP_SCORE_H
#define PC__OP_SCORE_H

#include "tensor/tensor.h"

/* In place on sums, float64 [3]: the loss times the rows that count, how many rows of logits name their label, and how many
 * have the label PC__IGNORED (ops/loss.h), which count for nothing.
 *   logits  float32, float16 or bfloat16 [n, width]; with one column 0 or more names class 1, else the largest, the
 *           first of equals
 *   labels  float32 [n, 1] or int64 [n]
 *   loss    float32, one element: the mean over the rows that count  */
pc_status pc__score_step(pc_tensor *sums, pc_tensor *logits, pc_tensor *labels, pc_tensor *loss);

/* The class that a row of logits names. */
static inline int64_t pc__row_names(const float *row, int64_t width)
{
    if (width == 1)
        return row[0] >= 0;
    int64_t best = 0;
    for (int64_t i = 1; i < width; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

#endif

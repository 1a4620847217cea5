/* by_columns.c: columns first, then the product over them, each in its part of the workspace. */
#include "cuda/conv/by_columns.h"

#include "cuda/conv/columns.h"
#include "cuda/conv/half.h"

bool pc__conv_columns_fits(const pc__conv_piece *p)
{
    if (!pc__cuda_conv_columns_fits(&p->s))
        return false;
    return p->direction == PC__CONV_FORWARD || (p->result && pc__cuda_conv_half_input_fits(&p->s, p->dy));
}

size_t pc__conv_columns_workspace(const pc__conv_piece *p)
{
    const pc__cuda_conv over = pc__cuda_conv_columns_shape(&p->s);
    return pc__cuda_conv_columns_bytes(&p->s) + pc__cuda_conv_columns_weight_bytes(&p->s) +
           (p->direction == PC__CONV_FORWARD ? pc__cuda_conv_half_scratch(&over)
                                             : pc__cuda_conv_half_weights_scratch(&over, false));
}

void pc__conv_columns_run(cudaStream_t queue, const pc__conv_piece *p, void *workspace)
{
    const pc__cuda_conv over = pc__cuda_conv_columns_shape(&p->s);
    const size_t padding = pc__cuda_conv_columns_weight_bytes(&p->s);
    const bool forward = p->direction == PC__CONV_FORWARD;
    char *const columns = workspace, *const padded = columns + pc__cuda_conv_columns_bytes(&p->s);
    char *const scratch = padded + padding;
    pc__cuda_conv_columns(queue, &p->s, p->x, forward && padding ? p->weight : NULL, columns, padded);
    if (forward) {
        pc__cuda_conv_half_forward(queue, &over, columns, padding ? padded : p->weight, p->bias, p->result, p->places,
                                   false, scratch);
        return;
    }
    pc__cuda_conv_half_weights(queue, &over, columns, p->y, p->argmax, p->dy, padding ? padded : p->result, p->dbias,
                               false, scratch);
    if (padding)
        pc__cuda_conv_columns_strip(queue, &p->s, padded, p->result);
}

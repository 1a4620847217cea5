/* rows_half.c: rows of kernels for 16-bit numbers on matrix units: `half`, of channels in eights, and `patches`, of 32 or 64 channels
 * at stride 1. */
#include "cuda/conv/rows_of.h"

#include "cuda/conv/half.h"
#include "cuda/conv/patch.h"

bool pc__conv_half_forward_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__conv_is_half(p) && pc__cuda_conv_half_fits(&p->s, p->x) && pc__conv_has_matrix_units(stream);
}

bool pc__conv_half_input_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__conv_is_half(p) && pc__cuda_conv_half_input_fits(&p->s, p->dy) && pc__conv_has_matrix_units(stream);
}

bool pc__conv_half_weights_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__conv_half_input_supports(stream, problem) && pc__cuda_conv_half_fits(&p->s, p->x);
}

bool pc__conv_patches_forward_supports(const pc_stream *stream, const void *problem)
{
    return pc__conv_half_forward_supports(stream, problem) &&
           pc__cuda_conv_patch_fits(&((const pc__conv_piece *)problem)->s);
}

bool pc__conv_patches_input_supports(const pc_stream *stream, const void *problem)
{
    return pc__conv_half_input_supports(stream, problem) &&
           pc__cuda_conv_patch_input_fits(&((const pc__conv_piece *)problem)->s);
}

bool pc__conv_patches_weights_supports(const pc_stream *stream, const void *problem)
{
    return pc__conv_half_weights_supports(stream, problem) &&
           pc__cuda_conv_patch_weights_fits(&((const pc__conv_piece *)problem)->s);
}

size_t pc__conv_half_forward_workspace(const void *problem)
{
    return pc__cuda_conv_half_scratch(&((const pc__conv_piece *)problem)->s, false);
}

size_t pc__conv_patches_forward_workspace(const void *problem)
{
    return pc__cuda_conv_half_scratch(&((const pc__conv_piece *)problem)->s, true);
}

size_t pc__conv_half_input_workspace(const void *problem)
{
    return pc__cuda_conv_half_input_scratch(&((const pc__conv_piece *)problem)->s, false);
}

size_t pc__conv_patches_input_workspace(const void *problem)
{
    return pc__cuda_conv_half_input_scratch(&((const pc__conv_piece *)problem)->s, true);
}

size_t pc__conv_half_weights_workspace(const void *problem)
{
    return pc__cuda_conv_half_weights_scratch(&((const pc__conv_piece *)problem)->s, false);
}

size_t pc__conv_patches_weights_workspace(const void *problem)
{
    return pc__cuda_conv_half_weights_scratch(&((const pc__conv_piece *)problem)->s, true);
}

static pc_status by_half(pc_stream *stream, const pc__conv_piece *p, void *workspace, bool patches)
{
    const cudaStream_t queue = pc__cuda_queue(stream);
    unsigned *counters = pc__cuda_counters(stream);
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_half_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, p->places, patches, workspace,
                                   counters);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_half_input(queue, &p->s, p->weight, p->packed, p->y, p->argmax, p->dy, p->result, patches,
                                 workspace, counters);
    else
        pc__cuda_conv_half_weights(queue, &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias, patches, workspace);
    return PC_OK;
}

pc_status pc__conv_half_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)done;
    return by_half(stream, problem, workspace, false);
}

pc_status pc__conv_patches_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)done;
    return by_half(stream, problem, workspace, true);
}

/* rows_of.h: the rows of the tables (rows.c), which other files have: whether each supports a piece, the workspace it takes, and what
 * it runs. As pc__row (runtime/rows.h) says; a problem is a pc__conv_piece. */
#ifndef PC__CUDA_CONV_ROWS_OF_H
#define PC__CUDA_CONV_ROWS_OF_H

#include "cuda/conv/rows.h"

static inline bool pc__conv_is_half(const pc__conv_piece *p)
{
    return pc__is_half((pc_dtype)p->s.dtype);
}

/* The row of a table that runs so, unless PARACORD_ONLY leaves it out. */
const pc__row *pc__conv_row_by(const pc__rows *rows,
                               pc_status (*run)(pc_stream *stream, const pc_call *call, const void *problem,
                                                void *workspace, bool *done));

/* rows_little.c */
bool pc__conv_colours_forward_supports(const pc_stream *stream, const void *problem);
pc_status pc__conv_colours_forward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                   bool *done);
bool pc__conv_colours_weights_supports(const pc_stream *stream, const void *problem);
size_t pc__conv_colours_weights_workspace(const void *problem);
pc_status pc__conv_colours_weights(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                   bool *done);
bool pc__conv_direct_supports(const pc_stream *stream, const void *problem);
size_t pc__conv_direct_workspace(const void *problem);
pc_status pc__conv_direct_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);
bool pc__conv_single_supports(const pc_stream *stream, const void *problem);
pc_status pc__conv_single_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);
bool pc__conv_plain_supports(const pc_stream *stream, const void *problem);
pc_status pc__conv_plain_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);
bool pc__conv_shallow_supports(const pc_stream *stream, const void *problem);
size_t pc__conv_shallow_workspace(const void *problem);
pc_status pc__conv_shallow_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                               bool *done);
bool pc__conv_split_supports(const pc_stream *stream, const void *problem);
size_t pc__conv_split_workspace(const void *problem);
pc_status pc__conv_split_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);

/* rows_half.c */
bool pc__conv_half_forward_supports(const pc_stream *stream, const void *problem);
bool pc__conv_half_input_supports(const pc_stream *stream, const void *problem);
bool pc__conv_half_weights_supports(const pc_stream *stream, const void *problem);
bool pc__conv_patches_forward_supports(const pc_stream *stream, const void *problem);
bool pc__conv_patches_input_supports(const pc_stream *stream, const void *problem);
bool pc__conv_patches_weights_supports(const pc_stream *stream, const void *problem);
size_t pc__conv_half_forward_workspace(const void *problem);
size_t pc__conv_patches_forward_workspace(const void *problem);
size_t pc__conv_half_input_workspace(const void *problem);
size_t pc__conv_patches_input_workspace(const void *problem);
size_t pc__conv_half_weights_workspace(const void *problem);
size_t pc__conv_patches_weights_workspace(const void *problem);
pc_status pc__conv_half_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done);
pc_status pc__conv_patches_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                               bool *done);

#endif

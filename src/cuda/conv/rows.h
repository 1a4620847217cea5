/* rows.h: who can do a product of a convolution: a table for each direction. A problem is a pc__conv_piece. */
#ifndef PC__CUDA_CONV_ROWS_H
#define PC__CUDA_CONV_ROWS_H

#include "cuda/conv/way.h"
#include "cuda/runtime/rows.h"

extern pc__rows pc__conv_rows[PC__CONV_DIRECTIONS];

/* The rows that are not kernels for the piece as it is: cuDNN, and a detour through float32. */
bool pc__conv_is_cudnn(const pc__row *row);
bool pc__conv_is_detour(const pc__row *row);
const pc__row *pc__conv_detour(int direction);

/* Whether it is so little work that no way is faster than the rows for little, one of which takes it. */
bool pc__conv_is_small(const pc_stream *stream, const pc__conv_piece *piece);

/* The row of our kernels that takes the piece as it is, or NULL. */
const pc__row *pc__conv_own_row(const pc_stream *stream, const pc__conv_piece *piece);

/* Whether matrix units multiply 16-bit numbers, and floats as TF32: from compute capability 8.0 on. */
bool pc__conv_has_matrix_units(const pc_stream *stream);

/* The row that takes a piece with taps apart or groups, or NULL; and whether it is to, whatever else could. */
const pc__row *pc__conv_gaps_row(const pc__conv_piece *piece);
bool pc__conv_is_forced_to_tiles(const pc__conv_piece *piece);

/* Whether a piece with groups or taps apart is so little that the row `plain` does it, in front of cuDNN. */
bool pc__conv_is_plain_grouped(const pc__conv_piece *piece);

/* The row that reads x in C order as it lies, where it takes the piece so, or NULL. */
const pc__row *pc__conv_planes_row(const pc_stream *stream, const pc__conv_piece *piece);

/* Whether the row's gradient is best made of y, argmax and dy as they lie, in planes too. With floats any row can. */
bool pc__conv_reads_planes(const pc__row *row, const pc__conv_piece *piece);

/* notes.c: how the gradients are made, by direction; NULL: that one is not. NULL where there are none. */
const char *pc__conv_backward_note(const pc__row *const *by);

#endif

/* by_columns.h: the row `columns`: 16-bit pictures of few channels by the kernels of half.h over columns.h. */
#ifndef PC__CUDA_CONV_BY_COLUMNS_H
#define PC__CUDA_CONV_BY_COLUMNS_H

#include "cuda/conv/way.h"

/* Of 16-bit numbers: the forward product and the gradient of the weights. Matrix units are the caller's to look for. */
bool pc__conv_columns_fits(const pc__conv_piece *piece);
size_t pc__conv_columns_workspace(const pc__conv_piece *piece);
void pc__conv_columns_run(cudaStream_t queue, const pc__conv_piece *piece, void *workspace);

#endif

/* pad.h: matrices copied to where their rows begin on 16 bytes, zeros behind them, and cut back. */
#ifndef PC__CUDA_PAD_H
#define PC__CUDA_PAD_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A batch of matrices, to[batch][to_rows][to_columns] = from, with zeros where from has nothing. Sizes in elements of
 * 2 or 4 bytes; `to` begins on 16 bytes, and to_columns are whole packs of them. */
typedef struct pc__cuda_pad {
    const void *from;
    void *to;
    int64_t batch, rows, columns;                    /* of from */
    int64_t batch_stride, row_stride, column_stride; /* likewise; any */
    int64_t to_rows, to_columns;
} pc__cuda_pad;

#define PC__CUDA_PADS 3

/* Up to PC__CUDA_PADS copies in a launch, of elements of `size` bytes. */
void pc__cuda_pad_all(cudaStream_t queue, const pc__cuda_pad *pads, int count, int size, int early);

/* to[batch][rows][columns], dense, out of from[batch][from_rows][from_columns]. */
typedef struct pc__cuda_cut {
    const void *from;
    void *to;
    int64_t batch, rows, columns, from_rows, from_columns;
} pc__cuda_cut;

void pc__cuda_cut_back(cudaStream_t queue, const pc__cuda_cut *cut, int size, int early);

#ifdef __cplusplus
}
#endif
#endif

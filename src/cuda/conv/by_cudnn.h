/* by_cudnn.h: what the files about convolutions by cuDNN share. */
#ifndef PC__CUDA_CONV_CUDNN_H
#define PC__CUDA_CONV_CUDNN_H

#include "cuda/conv/way.h"
#include "cuda/conv/cudnn.h"

#if PC__HAVE_CUDNN

struct pc__conv_way {
    int device; /* -1: the place is free */
    bool measured;
    atomic_bool refused;  /* our kernels do it */
    pc__conv_shape shape; /* of the piece; in the format that was asked for */
    pc__conv_shape made;  /* that the plan is for */
    pc__cudnn_plan plan;
};

/* cuDNN's handle of a device, made when first asked for; NULL where that fails. */
cudnnHandle_t pc__conv_handle(int device);

/* measure.c: the fastest, 0 for our kernels or k for ways[k - 1], which must be faster than ours by a margin; -1
 * where nothing could be measured. Writes nothing that the piece names. `told`, of PC__CONV_WAYS + 1: microseconds. */
pc_status pc__conv_measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_way *ways,
                           int count, int *best, double *told);

/* Bytes of what a piece makes, but for the bias's gradient. */
size_t pc__conv_result_bytes(const pc__conv_piece *piece);

#endif
#endif

/* layer.h: a linear layer's call in numbers, forward and backward. */
#ifndef PC__CUDA_MATMUL_LAYER_H
#define PC__CUDA_MATMUL_LAYER_H

#include "cuda/matmul/linear.h"
#include "cuda/runtime/cuda.h"

/* From x [m, k], and y or its gradient [m, n]. The queue is asked for where it is known what goes there. */
static inline pc__cuda_linear pc__layer_of(pc_stream *stream, const pc_tensor *x, const pc_tensor *y)
{
    return (pc__cuda_linear){.dtype = y->dtype,
                             .m = (int)x->shape[0],
                             .n = (int)y->shape[1],
                             .k = (int)x->shape[1],
                             .x_row = x->strides[0],
                             .x = pc__data(x),
                             .counters = pc__cuda_counters(stream),
                             .multiprocessors = pc__cuda_multiprocessors(stream),
                             .early = pc__cuda_early(stream),
                             .ready_x = pc__cuda_ready(stream, x)};
}

/* As it is launched. */
static inline pc__cuda_linear pc__layer_queued(pc_stream *stream, const pc__cuda_linear *l, void *workspace)
{
    pc__cuda_linear all = *l;
    all.queue = pc__cuda_queue(stream);
    all.scratch = workspace;
    return all;
}

#endif

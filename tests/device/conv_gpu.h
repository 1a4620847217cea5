/* conv_gpu.h: the GPU whose convolutions are played (conv_play.h): an H200's multiprocessors and shared memory. */
#ifndef PC_TEST_CONV_GPU_H
#define PC_TEST_CONV_GPU_H

#include "cuda/runtime/cuda.h"

int pc__cuda_multiprocessors(const pc_stream *stream)
{
    (void)stream;
    return 132;
}

int pc__cuda_block_room_of(const pc_stream *stream)
{
    (void)stream;
    return 227 << 10;
}

#endif

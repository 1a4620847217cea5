/* single.h: the gradient of pictures of one channel, through windows of few taps to more than a few outputs. */
#ifndef PC__CUDA_CONV_SINGLE_H
#define PC__CUDA_CONV_SINGLE_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where it does it: one channel, up to 49 taps, no pooling, no doubles, and what a block has fits into
 * shared memory of the current device. */
bool pc__cuda_conv_single_fits(const pc__cuda_conv *s);

/* As pc__cuda_conv_input, without scratch memory. */
void pc__cuda_conv_single_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const void *dy, void *dx);

#ifdef __cplusplus
}
#endif
#endif

/* split.h: small convolutions and the gradients of their inputs, the sums cut into parts (split-K). */
#ifndef PC__CUDA_CONV_SPLIT_H
#define PC__CUDA_CONV_SPLIT_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Without pooling, floats or 16-bit numbers, sizes that are counted in 32 bits. */
bool pc__cuda_conv_split_fits(const pc__cuda_conv *s);

/* Bytes of scratch memory that the call needs. */
size_t pc__cuda_conv_split_scratch(const pc__cuda_conv *s, bool input);

/* As those of conv.h, in a launch each. `counters`: as there. */
void pc__cuda_conv_split_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y, void *scratch, unsigned *counters);
void pc__cuda_conv_split_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx, void *scratch, unsigned *counters);

#ifdef __cplusplus
}
#endif
#endif

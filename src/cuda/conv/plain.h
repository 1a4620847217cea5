/* plain.h: convolutions of very little work, and their gradients, in one launch each without scratch memory. */
#ifndef PC__CUDA_CONV_PLAIN_H
#define PC__CUDA_CONV_PLAIN_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Without pooling, sizes that are counted in 32 bits. */
bool pc__cuda_conv_plain_fits(const pc__cuda_conv *s);

/* As those of conv.h. */
void pc__cuda_conv_plain_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *bias, void *y);
void pc__cuda_conv_plain_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                               const void *dy, void *dx);
void pc__cuda_conv_plain_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                 const void *dy, void *dweight, void *dbias);

#ifdef __cplusplus
}
#endif
#endif

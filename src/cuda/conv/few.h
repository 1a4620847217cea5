/* few.h: convolutions of pictures with three channels by a 3 x 3 kernel: the first layer of most networks. */
#ifndef PC__CUDA_CONV_FEW_H
#define PC__CUDA_CONV_FEW_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do the convolution (all but doubles, stride 1 to 3, pooling by two or none). */
bool pc__cuda_conv_few_fits(const pc__cuda_conv *s, const void *x);

/* As pc__cuda_conv_forward, without scratch memory. */
void pc__cuda_conv_few_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                               const void *bias, void *y, uint8_t *argmax);

/* As pc__cuda_conv_weights; sums: scratch memory. */
void pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                               const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums);
size_t pc__cuda_conv_few_scratch(const pc__cuda_conv *s); /* bytes of sums; 0 where the kernels do not fit */

#ifdef __cplusplus
}
#endif
#endif

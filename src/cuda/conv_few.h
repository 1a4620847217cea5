/* conv_few.h: convolutions of pictures with three channels by a 3 x 3 kernel: the first layer of most networks. */
#ifndef PC__CUDA_CONV_FEW_H
#define PC__CUDA_CONV_FEW_H

#include "cuda/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do the convolution (float, stride 1 to 3, pooling by two or none). */
bool pc__cuda_conv_few_fits(const pc__cuda_conv *s, const void *x);

/* As pc__cuda_conv_forward, without scratch memory. */
void pc__cuda_conv_few_forward(cudaStream_t queue, const pc__cuda_conv *s, const float *x, const float *weight,
                               const float *bias, float *y, uint8_t *argmax);

/* Sums of pieces of the pictures, sums[piece][28][o]: the gradients of the weights, [kh][kw][c], and of the bias. The
 * number of pieces. */
int pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const float *x, const float *y,
                              const uint8_t *argmax, const float *dy, float *sums);
size_t pc__cuda_conv_few_scratch(const pc__cuda_conv *s); /* bytes of sums; 0 where the kernels do not fit */

#ifdef __cplusplus
}
#endif
#endif

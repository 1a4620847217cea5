/* few_half.h: convolutions of pictures with three channels of 16-bit numbers, 3 x 3, pooled by two. */
#ifndef PC__CUDA_CONV_FEW_HALF_H
#define PC__CUDA_CONV_FEW_HALF_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do it, given that those of few.h would. */
bool pc__cuda_conv_few_half_fits(const pc__cuda_conv *s);

void pc__cuda_conv_few_half_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                    const void *bias, void *y, uint8_t *argmax);

/* Channels last only; the pieces' sums, [piece][28][o] as in conv.h. */
int pc__cuda_conv_few_half_pieces(const pc__cuda_conv *s);
void pc__cuda_conv_few_half_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                    const uint8_t *argmax, const void *dy, float *sums);

#ifdef __cplusplus
}
#endif
#endif

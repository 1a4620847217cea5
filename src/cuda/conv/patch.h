/* patch.h: convolutions of 16-bit numbers, stride 1 and few channels. */
#ifndef PC__CUDA_CONV_PATCH_H
#define PC__CUDA_CONV_PATCH_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do it, given that those of half.h would. */
bool pc__cuda_conv_patch_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_patch_input_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_patch_weights_fits(const pc__cuda_conv *s);

/* packed: weights as half.cuh packs them, [output][tap][inner]. */
void pc__cuda_conv_patch_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *packed,
                                 const void *bias, void *y, uint8_t *argmax);

/* The rest wants y, argmax and dy channels last. */
void pc__cuda_conv_patch_input(cudaStream_t queue, const pc__cuda_conv *s, const void *packed, const void *y,
                               const uint8_t *argmax, const void *dy, void *dx);

/* The pieces' sums, [piece][depth + 1][o] as in conv.h. */
int pc__cuda_conv_patch_pieces(const pc__cuda_conv *s);
void pc__cuda_conv_patch_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                 const uint8_t *argmax, const void *dy, float *sums);

#ifdef __cplusplus
}
#endif
#endif

/* shallow.h: convolutions of 16-bit pictures of up to eight channels by matrix units. Such pictures are small: a tile of
 * one is brought into shared memory with zeros for the channels that fill four or eight, and what the matrix units want
 * under each tap is read from there. */
#ifndef PC__CUDA_CONV_SHALLOW_H
#define PC__CUDA_CONV_SHALLOW_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Up to eight channels of x, for the gradient of the input of y and stride 1; pooling by two or none. */
bool pc__cuda_conv_shallow_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_shallow_input_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_shallow_weights_fits(const pc__cuda_conv *s);

/* As the functions without `shallow` in conv.h; behind the forward one y, argmax and dy are channels last. */
void pc__cuda_conv_shallow_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                   const void *bias, void *y, uint8_t *argmax);
void pc__cuda_conv_shallow_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx);
size_t pc__cuda_conv_shallow_scratch(const pc__cuda_conv *s);
void pc__cuda_conv_shallow_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                   const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch);

#ifdef __cplusplus
}
#endif
#endif

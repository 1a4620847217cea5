/* direct.h: convolutions of few channels to few, added up pixel by pixel in registers: what matrix units and blocks of
 * 32 outputs would fill with zeros. Any kernel, stride and padding. */
#ifndef PC__CUDA_CONV_DIRECT_H
#define PC__CUDA_CONV_DIRECT_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do it: all but doubles, as long as its weights and a piece of its pictures fit into shared
 * memory; forward pooling by two or none. */
bool pc__cuda_conv_direct_forward_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_direct_input_fits(const pc__cuda_conv *s);
bool pc__cuda_conv_direct_weights_fits(const pc__cuda_conv *s);

/* As the functions without `direct` in conv.h. */
void pc__cuda_conv_direct_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                  const void *bias, void *y, uint8_t *argmax);
void pc__cuda_conv_direct_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const uint8_t *argmax, const void *dy, void *dx);

/* sums: scratch memory, so many bytes. */
size_t pc__cuda_conv_direct_scratch(const pc__cuda_conv *s);
void pc__cuda_conv_direct_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                  const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums);

#ifdef __cplusplus
}
#endif
#endif

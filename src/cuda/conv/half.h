/* half.h: convolutions of 16-bit numbers by matrix units. */
#ifndef PC__CUDA_CONV_HALF_H
#define PC__CUDA_CONV_HALF_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where these kernels do it: channels of x (and for the input's gradient, of y) in eights on 16 bytes. */
bool pc__cuda_conv_half_fits(const pc__cuda_conv *s, const void *x);
bool pc__cuda_conv_half_input_fits(const pc__cuda_conv *s, const void *dy);

/* As the functions without `half` in conv.h; `packed`, or NULL: the weights are there already, as pack.cuh orders
 * them. */
size_t pc__cuda_conv_half_scratch(const pc__cuda_conv *s);
size_t pc__cuda_conv_half_input_scratch(const pc__cuda_conv *s);
size_t pc__cuda_conv_half_weights_scratch(const pc__cuda_conv *s);
void pc__cuda_conv_half_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                const void *bias, void *y, uint8_t *argmax, void *scratch);
void pc__cuda_conv_half_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, void *packed,
                              const void *y, const uint8_t *argmax, const void *dy, void *dx, void *scratch);
void pc__cuda_conv_half_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch);

/* dx, dweight and dbias, each of which may be NULL, from y, argmax and dy in either order. The others want dy, argmax
 * and y channels last. */
size_t pc__cuda_conv_half_backward_scratch(const pc__cuda_conv *s, bool input, bool weights);
void pc__cuda_conv_half_backward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                 const void *y, const uint8_t *argmax, const void *dy, void *dx, void *dweight,
                                 void *dbias, void *scratch);

#ifdef __cplusplus
}
#endif
#endif

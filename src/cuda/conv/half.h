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

/* As the functions without `half` in conv.h, y, argmax and dy channels last; with `patches` by the kernels of patch.h,
 * which must fit. `packed`, or NULL: the weights are there already, as pack.cuh orders them. */
size_t pc__cuda_conv_half_scratch(const pc__cuda_conv *s, bool patches);
size_t pc__cuda_conv_half_input_scratch(const pc__cuda_conv *s, bool patches);
size_t pc__cuda_conv_half_weights_scratch(const pc__cuda_conv *s, bool patches);
void pc__cuda_conv_half_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                const void *bias, void *y, uint8_t *argmax, bool patches, void *scratch,
                                unsigned *counters);
void pc__cuda_conv_half_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, void *packed,
                              const void *y, const uint8_t *argmax, const void *dy, void *dx, bool patches,
                              void *scratch, unsigned *counters);
void pc__cuda_conv_half_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                const uint8_t *argmax, const void *dy, void *dweight, void *dbias, bool patches,
                                void *scratch);

/* y, argmax and dy, which lie in planes, channels last in the scratch memory; so many bytes of it, in whole 256. With
 * weights they are packed there, too, for the gradient of x; NULL: they are not. */
size_t pc__cuda_conv_turn_scratch(const pc__cuda_conv *s, bool pack);
void pc__cuda_conv_turn(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void **y,
                        const uint8_t **argmax, const void **dy, void **packed, void *scratch);

#ifdef __cplusplus
}
#endif
#endif

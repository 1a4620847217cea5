/* pooled.h: the way from a convolution in memory to its pooled result, and back, for products that do not pool on the
 * way (cuDNN's, and ours of large windows). */
#ifndef PC__CUDA_CONV_POOLED_H
#define PC__CUDA_CONV_POOLED_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y and argmax (or NULL), as conv.h has them, from conv[n][h][w][o], which lacks the activation and, unless that is NULL,
 * the bias: h and w are at least the windows'. ReLU may be there already. */
void pc__cuda_conv_pool(cudaStream_t queue, const pc__cuda_conv *s, const void *conv, int h, int w, const void *bias,
                        void *y, uint8_t *argmax);

/* dz[n][oh][ow][o], the gradient in front of the pooling and the activation, whole, from dy, channels last, and the
 * forward call's y (NULL where there is no activation but a ReLU) and argmax; with it dbias, its sum over all pixels, or
 * NULL. Work is cut by sizes alone, and parts are added in a fixed order. scratch: for dbias, of so many bytes. */
size_t pc__cuda_conv_unpool_scratch(const pc__cuda_conv *s);
void pc__cuda_conv_unpool(cudaStream_t queue, const pc__cuda_conv *s, const void *dy, const void *y,
                          const uint8_t *argmax, void *dz, void *dbias, void *scratch);

#ifdef __cplusplus
}
#endif
#endif

/* columns.h: a convolution of 16-bit pictures of few channels as one of a single tap: what each window reads becomes the
 * channels of a pixel (Chellapilla, Puri and Simard, High performance convolutional neural networks for document
 * processing, 2006), in eights, with zeros behind. */
#ifndef PC__CUDA_CONV_COLUMNS_H
#define PC__CUDA_CONV_COLUMNS_H

#include "cuda/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Up to four channels, in which whole eights would be mostly zeros, and columns that are not too large a memory. */
bool pc__cuda_conv_columns_fits(const pc__cuda_conv *s);

/* The convolution of the columns: the same y, pooling and activation; dweight and weights [o][channels of it]. */
pc__cuda_conv pc__cuda_conv_columns_shape(const pc__cuda_conv *s);

/* Bytes of x as columns, and of the weights where zeros are between them (else 0), each in whole 256. */
size_t pc__cuda_conv_columns_bytes(const pc__cuda_conv *s);
size_t pc__cuda_conv_columns_weight_bytes(const pc__cuda_conv *s);

/* x, channels last, and with weight != NULL the weights, with zeros behind each output's. */
void pc__cuda_conv_columns(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, void *columns,
                           void *padded);

/* dweight without the zeros' gradients. */
void pc__cuda_conv_columns_strip(cudaStream_t queue, const pc__cuda_conv *s, const void *padded, void *dweight);

#ifdef __cplusplus
}
#endif
#endif

/* unrelu.h: on the way back through a ReLU that follows a convolution's bias: the gradient in front of it, and the
 * bias's, which is its sum over all pixels, in one pass over dy and y. */
#ifndef PC__CUDA_CONV_UNRELU_H
#define PC__CUDA_CONV_UNRELU_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows are pixels, columns channels, dense. All of dtype, on 16 bytes. */
typedef struct pc__cuda_unrelu {
    const void *dy, *y;
    void *dz;    /* y > 0 or not a number: dy; else 0 */
    void *dbias; /* sums of dz's columns */
    int64_t rows;
    int columns; /* whole accesses of 16 bytes */
    int dtype, early;
    cudaStream_t queue;
} pc__cuda_unrelu;

/* Whether there is a kernel for so many columns of a dtype. */
bool pc__cuda_has_unrelu(int64_t columns, int dtype);

/* Bytes of scratch memory, on 16 bytes. */
size_t pc__cuda_unrelu_scratch(int64_t rows, int64_t columns);

/* Rows are cut by sizes alone, and parts are added in a fixed order: the same bits each time. An error is CUDA's last. */
void pc__cuda_unrelu_and_sum(const pc__cuda_unrelu *u, void *scratch);

#ifdef __cplusplus
}
#endif
#endif

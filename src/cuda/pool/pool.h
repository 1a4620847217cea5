/* pool.h: maximum and average pooling over channels-last pictures x[n][h][w][c], y[n][oh][ow][c]. */
#ifndef PC__CUDA_POOL_H
#define PC__CUDA_POOL_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_pool {
    int dtype, early; /* shared/dependent_launch.cuh */
    int64_t n, h, w, c, oh, ow;
    int kh, kw, sh, sw, ph, pw;
    int uneven;          /* averages: windows count different numbers of places, */
    int exclude_padding; /* of the picture's own; else with the padding, but not what is beyond */
} pc__cuda_pool;

/* argmax, or NULL: row * w + column of each maximum in its plane of x, the first of equals; NaN counts as largest. */
void pc__cuda_max_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y, int32_t *argmax);
void pc__cuda_max_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                                void *dx);

/* The same of windows that lie apart, a number an access; false, and nothing is done, of others and of float64. */
bool pc__cuda_max_pool_lines(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, const int32_t *argmax,
                             void *dx);

void pc__cuda_avg_pool(cudaStream_t queue, const pc__cuda_pool *s, const void *x, void *y);
void pc__cuda_avg_pool_backward(cudaStream_t queue, const pc__cuda_pool *s, const void *dy, void *dx);

#ifdef __cplusplus
}
#endif
#endif

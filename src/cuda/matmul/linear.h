/* linear.h: linear layers of floats or 16-bit numbers in a launch each way. */
#ifndef PC__CUDA_LINEAR_H
#define PC__CUDA_LINEAR_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y[m][n] = activation(x[m][k] weight[n][k]^T + bias[n]); rows of x are x_row elements apart, everything else is dense.
 */
typedef struct pc__cuda_linear {
    int dtype;      /* PC__CUDA_F32, F16 or BF16: of all but dweight and db, which are floats unless they are narrow */
    int activation; /* as pc_activation_kind */
    int m, n, k;
    int64_t x_row;
    const void *x, *weight, *bias; /* bias: NULL for none */
    void *y;
    const void *dy; /* backward: the gradient at y; then y is read */
    void *dx;       /* NULL where it is not wanted, as the next two */
    void *dweight, *db;
    bool narrow;        /* dweight and db are of the dtype too: not by kernels of columns and of the head */
    float *scratch;     /* as many bytes as the call below says */
    unsigned *counters; /* PC__CUDA_LINEAR_TILES zeros, which are left as they were */
    int multiprocessors, early;
    bool ready_x, ready_weight; /* before the kernel in front is done (shared/dependent_launch.cuh) */
    cudaStream_t queue;
} pc__cuda_linear;

#define PC__CUDA_LINEAR_TILES 4096

/* Counters that the forward call takes. */
int64_t pc__cuda_linear_tiles(int64_t m, int64_t n);

size_t pc__cuda_linear_small_scratch(const pc__cuda_linear *l);
cudaError_t pc__cuda_linear_small_forward(const pc__cuda_linear *l);

/* dx = g weight, dweight = g^T x, db = column sums of g, where g = dy through the activation. */
size_t pc__cuda_linear_small_backward_scratch(const pc__cuda_linear *l);
cudaError_t pc__cuda_linear_small_backward(const pc__cuda_linear *l);

/* linear.c: forward by the kernel of few outputs where it suits, else by the one above. */
cudaError_t pc__cuda_linear_forward(const pc__cuda_linear *l);

/* Backward for few rows and many inputs, linear_columns.cu: whether a layer is one, and the launch; with `head`, unless
 * NULL, whose x is y, in front of it: that is launched too, and dy need not be there. */
struct pc__cuda_head;
int pc__cuda_linear_has_columns(const pc__cuda_linear *l);
cudaError_t pc__cuda_linear_columns(const pc__cuda_linear *l, const struct pc__cuda_head *head);

#ifdef __cplusplus
}
#endif
#endif

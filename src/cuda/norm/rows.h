/* rows.h: layer_norm, rms_norm and their gradients over rows side by side. */
#ifndef PC__CUDA_NORM_ROWS_H
#define PC__CUDA_NORM_ROWS_H

#include <stdbool.h>

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters of the tensors' dtype, or where these have 16 bits of float32. */
typedef struct pc__cuda_vector {
    const void *at; /* NULL: there is none */
    int wide;       /* float32 beside 16 bits */
} pc__cuda_vector;

/* Those of one's gradient: likewise. */
typedef struct pc__cuda_vector_gradient {
    void *at; /* NULL: it is not wanted */
    int wide;
} pc__cuda_vector_gradient;

/* y = (x - mean) rstd weight + bias of each row. `mean` is NULL for rms_norm, and where no statistics are kept `rstd` too. */
typedef struct pc__cuda_norm_rows {
    int dtype, early;
    int dtype_y; /* of y and dy: dtype, or 16 bits beside float32 */
    bool centered;
    bool whole; /* rows and parameters lie on 16 bytes, */
    bool pairs; /* or rows of an even number of 16-bit elements on 4, and parameters on 16 */
    int64_t rows, n;
    double eps;
    const void *x;
    pc__cuda_vector weight, bias;
    void *y, *mean, *rstd; /* statistics: float64 where x is, else float32 */
    const void *dy;        /* backward: these too; NULL is not wanted */
    void *dx;
    pc__cuda_vector_gradient dweight, dbias;
    const void *added; /* to x, in y's dtype; backward to dx, float32; NULL: nothing */
    void *sum;         /* of x and that, float32 */
    void *rounded;     /* backward: what is in dx, in dy's 16 bits, or NULL */
    int64_t blocks;    /* that add rows up, */
    void *sums;        /* [blocks][2][n]; one block's are the gradients themselves where the kernels hold rows */
    cudaStream_t queue;
} pc__cuda_norm_rows;

void pc__cuda_norm_forward(const pc__cuda_norm_rows *r);

/* Of output i of a backward call, a parameter's gradient. */
struct pc_call;
pc__cuda_vector_gradient pc__cuda_gradient_of(const struct pc_call *call, int i, const bool *needs);

/* How many blocks' sums there will be. */
int64_t pc__cuda_norm_blocks(const pc__cuda_norm_rows *r);
void pc__cuda_norm_backward(const pc__cuda_norm_rows *r);

/* What the kernels that hold rows do: true; false, and nothing is launched, where these are too long. */
bool pc__cuda_norm_held(const pc__cuda_norm_rows *r);
bool pc__cuda_norm_held_backward(const pc__cuda_norm_rows *r);
int64_t pc__cuda_norm_held_blocks(const pc__cuda_norm_rows *r); /* 0: too long */

/* Likewise, of whole rows of float32, by a warp each. */
bool pc__cuda_norm_warps_backward(const pc__cuda_norm_rows *r);
int64_t pc__cuda_norm_warps_blocks(const pc__cuda_norm_rows *r);

#ifdef __cplusplus
}
#endif
#endif

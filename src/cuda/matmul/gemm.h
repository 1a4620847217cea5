/* gemm.h: matrix products: what a product is, our own kernel for it, and what may have to follow one. */
#ifndef PC__CUDA_GEMM_H
#define PC__CUDA_GEMM_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Behind the last row and column of an operand there are zeros, up to whole packs of 16 bytes of each. */
enum { PC__CUDA_GEMM_ZEROS_A = 1, PC__CUDA_GEMM_ZEROS_B = 2 };

/* c[batch][m][n] = activation(sum over k of a[m][k] b[k][n] (+ bias[n])); c is dense, or, where its batch is one, has
 * rows of a pitch. Element (i, j) of a matrix is at pointer[i * rs + j * cs], matrix l of a batch at
 * pointer[l * batch stride]; strides are in elements and may be 0. */
typedef struct pc__cuda_gemm {
    int dtype, activation; /* as pc_activation_kind */
    int advice;            /* which of the ways that cuBLASLt advises, from 0 */
    int wide;              /* c is float32, a and b have 16 bits; without bias and activation */
    int64_t m, n, k, batch;
    const void *a, *b, *bias; /* bias: NULL for none */
    void *c;
    int64_t a_rs, a_cs, a_batch, b_rs, b_cs, b_batch;
    int64_t pitch; /* of c: whole packs of 16 bytes, what lies behind n is anybody's to write; 0: n */
    int zeros;     /* PC__CUDA_GEMM_ZEROS_... */
} pc__cuda_gemm;

/* From a row of c to the next. */
static inline int64_t pc__cuda_gemm_row(const pc__cuda_gemm *g)
{
    return g->pitch ? g->pitch : g->n;
}

/* Our own kernel: any sizes and strides, the same bits every time. */
void pc__cuda_gemm_plain(cudaStream_t queue, const pc__cuda_gemm *g);

/* c = activation(c + bias) for a product that could not do that itself. */
void pc__cuda_gemm_finish(cudaStream_t queue, const pc__cuda_gemm *g);

#ifdef __cplusplus
}
#endif
#endif

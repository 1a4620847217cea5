/* attention.h: scaled dot-product attention (ops/attention.h) as kernels see it, and their launchers. */
#ifndef PC__CUDA_ATTENTION_H
#define PC__CUDA_ATTENTION_H

#include "cuda/runtime/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__ATTENTION_DIMS = PC__VIEW_DIMS - 2 };

/* A matrix for each member of the batch: strides in elements. */
typedef struct pc__cuda_matrices {
    void *data;
    int64_t row, column;
    int64_t batch[PC__ATTENTION_DIMS];
} pc__cuda_matrices;

typedef struct pc__cuda_attention {
    int dtype, early; /* shared/dependent_launch.cuh */
    int dims;         /* of the batch */
    int64_t shape[PC__ATTENTION_DIMS], batches;
    int l, s, e, ev;
    bool causal, mask_is_bool;
    pc__cuda_matrices q, k, v, y;
    pc__cuda_matrices mask; /* data NULL for none; else bool, or of the dtype of norms */
    double scale, p;        /* p: of a dropout, 0 for none */
    uint64_t seed, stream;  /* of its draw, to which 4 times *base is added where that is not NULL */
    const uint64_t *base;
    void *norms; /* [batches][l], float32 or float64, or NULL */
    /* Of the backward pass: the gradient of y, its products with y, and where the gradients of q, k and v go. */
    pc__cuda_matrices g;
    void *means; /* [batches][l], as norms */
    pc__cuda_matrices dq, dk, dv;
    cudaStream_t queue;
} pc__cuda_attention;

/* Any size, in any dtype but those of 16 bits: products one by one. */
void pc__cuda_attention_plain(const pc__cuda_attention *a);
void pc__cuda_attention_plain_backward(const pc__cuda_attention *a);

/* 16-bit numbers by matrix units: what they take, and both passes. */
bool pc__cuda_attention_has_units(const pc__cuda_attention *a);
void pc__cuda_attention_units(const pc__cuda_attention *a);
void pc__cuda_attention_units_backward(const pc__cuda_attention *a);

/* Few queries and keys of any dtype: what they take, and both passes. */
bool pc__cuda_attention_is_short(const pc__cuda_attention *a);
void pc__cuda_attention_short(const pc__cuda_attention *a, bool backward);

/* Up to four queries of rows of whole 16 bytes: what it takes, and both passes. */
bool pc__cuda_attention_has_few_queries(const pc__cuda_attention *a, bool backward);
void pc__cuda_attention_queries(const pc__cuda_attention *a);
void pc__cuda_attention_queries_backward(const pc__cuda_attention *a);

/* means[batches][l] of any dtype: for each row the sum of g y. */
void pc__cuda_attention_means(const pc__cuda_attention *a);

#ifdef __cplusplus
}
#endif
#endif

/* cast_many.h: conversion of many tensors in one launch. */
#ifndef PC__CUDA_CAST_MANY_H
#define PC__CUDA_CAST_MANY_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__CAST_MOST 140   /* tensors of a launch: what fits the 4 KB of a kernel's arguments */
#define PC__CAST_PIECE 1024 /* elements of a block, four a thread */

/* `count` elements, dense on both sides. */
typedef struct pc__cuda_conversion {
    void *to;
    const void *from;
    int64_t count;
} pc__cuda_conversion;

typedef struct pc__cuda_conversions {
    int from, to; /* dtypes: float32 and one of 16 bits */
    int count, early;
    pc__cuda_conversion of[PC__CAST_MOST];
} pc__cuda_conversions;

void pc__cuda_convert_all(cudaStream_t queue, const pc__cuda_conversions *all);

#ifdef __cplusplus
}
#endif
#endif

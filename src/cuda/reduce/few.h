/* few.h: launchers of sums and extremes of rows that are few and short. */
#ifndef PC__CUDA_REDUCE_FEW_H
#define PC__CUDA_REDUCE_FEW_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC__FEW_ELEMENTS = 512, PC__FEW_ROWS = 4096 };

/* in[rows][n], no more than that, and at least one of each. */
typedef struct pc__cuda_few {
    unsigned rows, n;
    const void *in;
    void *out;
    int from, to;    /* dtypes */
    int64_t *places; /* of extremes */
    double divisor;  /* of sums; 1: none */
    int least;       /* minima instead of maxima */
    int early;
    cudaStream_t queue;
} pc__cuda_few;

/* Added as pc__cuda_sum does, of the dtypes that it has. */
void pc__cuda_few_sum(const pc__cuda_few *few);

/* Of a dtype to itself; the first of equals, NaN beats everything. */
void pc__cuda_few_max(const pc__cuda_few *few);

#ifdef __cplusplus
}
#endif
#endif

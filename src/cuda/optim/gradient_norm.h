/* gradient_norm.h: launcher of the norm of all gradients together. */
#ifndef PC__CUDA_GRADIENT_NORM_H
#define PC__CUDA_GRADIENT_NORM_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__NORM_MOST 190 /* gradients of a launch: what fits the 4 KB of a kernel's arguments */
/* Elements of a block: few for blocks to fill a device with small networks, many where all blocks' sums take as long as
 * their elements. */
#define PC__NORM_FEW 8192
#define PC__NORM_MANY 32768
#define PC__NORM_SMALL (8 << 20) /* elements of all gradients: up to here a block has few */

typedef struct pc__cuda_norm {
    int dtype, count, early;
    const void *data[PC__NORM_MOST];
    int64_t n[PC__NORM_MOST];
    int piece;                      /* elements of a block */
    unsigned starts[PC__NORM_MOST]; /* the block where each one's begin */
    double *sums;                   /* of all blocks of all launches */
    int64_t first;                  /* blocks of the launches before */
    unsigned *counter;              /* a zero, in the last launch, which makes the result; else NULL */
    double *clip;                   /* norm, factor */
    double most;
} pc__cuda_norm;

void pc__cuda_gradient_norm(cudaStream_t queue, const pc__cuda_norm *norm, unsigned blocks);

#ifdef __cplusplus
}
#endif
#endif

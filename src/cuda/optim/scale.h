/* scale.h: launchers of what a loss scaler does; numbers as in ops/scale.h. */
#ifndef PC__CUDA_SCALE_H
#define PC__CUDA_SCALE_H

#include "cuda/runtime/view.h"
#include "ops/scale_next.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__UNSCALE_MOST 180   /* gradients of a launch: what fits the 4 KB of a kernel's arguments */
#define PC__UNSCALE_PIECE 4096 /* elements of a block */

typedef struct pc__cuda_gradients {
    int count;
    void *data[PC__UNSCALE_MOST];
    int64_t n[PC__UNSCALE_MOST];
    unsigned starts[PC__UNSCALE_MOST]; /* the block where each one's begin */
    float *numbers;
} pc__cuda_gradients;

/* All of one dtype, in `blocks` blocks. early: see shared/dependent_launch.cuh. */
void pc__cuda_unscale(cudaStream_t queue, int early, const pc__cuda_gradients *gradients, int dtype, unsigned blocks);
void pc__cuda_scale_update(cudaStream_t queue, int early, float *numbers, const pc__scale_attributes *rules);

#ifdef __cplusplus
}
#endif
#endif

/* step.h: an optimiser's update of many parameters in one launch. */
#ifndef PC__CUDA_STEP_H
#define PC__CUDA_STEP_H

#include "cuda/runtime/view.h"
#include "ops/step_attributes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC__STEP_MOST 68 /* parameters of a launch: what fits the 4 KB of a kernel's arguments */
#define PC__STEP_WORDS ((PC__STEP_MOST + 31) / 32)
#define PC__STEP_PIECE 1024 /* one pack of 16 bytes a thread: 401 blocks for the 410,753 floats of `article` */

/* Parameter, gradient, slots (ops/step.h) or NULL and, or NULL, what the parameter becomes in 16 bits; `count` elements
 * each. */
typedef struct pc__cuda_parameter {
    void *p;
    const void *g;
    void *s1, *s2;
    void *copy;
    int64_t count;
} pc__cuda_parameter;

typedef struct pc__cuda_step {
    int dtype, count, early;
    int copies;         /* their dtype */
    int64_t number;     /* of this step, from 1, where there is no counter */
    int64_t *counter;   /* of the steps made before */
    const double *rate; /* NULL: lr */
    int ready_numbers; /* the kernel finds counter and rate before the one in front is done (shared/dependent_launch.cuh) */
    unsigned *readers;    /* a zero in device memory, in the launch that raises the counter; else NULL */
    const float *guard;   /* not NULL: while this is not 0 nothing is done */
    const double *factor; /* of gradients; NULL: 1 */
    uint32_t ready[PC__STEP_WORDS], ready_g[PC__STEP_WORDS]; /* bits: what the kernel finds in p, s1 and s2, and in g,
                                                                before the one in front is done (shared/dependent_launch.cuh) */
    const pc__step_attributes *a;
    uint8_t group[PC__STEP_MOST];
    pc__cuda_parameter of[PC__STEP_MOST];
} pc__cuda_step;

/* Without parameters a launch still raises the counter. */
void pc__cuda_sgd(cudaStream_t queue, const pc__cuda_step *step);
void pc__cuda_adam(cudaStream_t queue, const pc__cuda_step *step);
void pc__cuda_rmsprop(cudaStream_t queue, const pc__cuda_step *step);
void pc__cuda_lion(cudaStream_t queue, const pc__cuda_step *step);

#ifdef __cplusplus
}
#endif
#endif

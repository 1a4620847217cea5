/* region.h: the launcher of a region (ops/region.h). */
#ifndef PC__CUDA_REGION_H
#define PC__CUDA_REGION_H

#include "cuda/runtime/view.h"
#include "ops/region.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_region {
    pc__region region;
    const void *in[PC__REGION_IN];
    void *out[PC__REGION_OUT];
    uint8_t in_dtype[PC__REGION_IN], out_dtype[PC__REGION_OUT];
    uint8_t slot[PC__REGION_STEPS]; /* by pc__cuda_region_run: where in shared memory a step's value is, or no place */
    int early, multiprocessors;
    cudaStream_t queue;
} pc__cuda_region;

/* An error is CUDA's last. */
void pc__cuda_region_run(const pc__cuda_region *region);

/* Whether it is a lower and then an upper bound of an input as it is: of dtypes and places nothing is said. */
static inline bool pc__cuda_region_is_clamp(const pc__region *r)
{
    const pc__region_step *low = &r->step[0], *high = &r->step[1];
    return r->ins == 1 && r->steps == 2 && r->outs == 1 && !r->in[0].n && r->out[0] == 2 &&
           low->function == PC__POINTWISE_maximum && low->a == 0 && low->b == PC__REGION_NUMBER &&
           high->function == PC__POINTWISE_minimum && high->a == 1 && high->b == PC__REGION_NUMBER;
}

/* region_bounds.cu: the same for a clamp: true where it was one. */
bool pc__cuda_region_bounds(const pc__cuda_region *region);

#ifdef __cplusplus
}
#endif
#endif

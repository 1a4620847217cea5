/* resample.h: launcher of pictures of another size. */
#ifndef PC__CUDA_RESAMPLE_H
#define PC__CUDA_RESAMPLE_H

#include "cuda/runtime/view.h"
#include "ops/resample.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_resample {
    pc__resample_attributes spec;
    int64_t count, inner; /* elements of the result, and neighbours of a place in both */
    int dtype, early;     /* float32 or float64 */
    int backward;         /* from [outer][out][out][inner] to [outer][in][in][inner]; else the other way */
} pc__cuda_resample;

void pc__cuda_resample_all(cudaStream_t queue, const pc__cuda_resample *s, const void *from, void *to);

#ifdef __cplusplus
}
#endif
#endif

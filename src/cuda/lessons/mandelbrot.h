/* mandelbrot.h: launcher of the Mandelbrot set. */
#ifndef PC__CUDA_MANDELBROT_H
#define PC__CUDA_MANDELBROT_H

#include "cuda/runtime/view.h"
#include "ops/mandelbrot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_mandelbrot {
    pc__mandelbrot_attributes a;
    void *counts; /* [height, width] */
    int height, width, dtype;
    int early; /* as pc__cuda_early */
} pc__cuda_mandelbrot;

cudaError_t pc__cuda_mandelbrot_run(const pc__cuda_mandelbrot *picture, cudaStream_t queue);

#ifdef __cplusplus
}
#endif
#endif

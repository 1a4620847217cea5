/* mandelbrot.c: counts of steps under z = z * z + c. */
#include "cuda/mandelbrot.h"

#include "cuda/each.h"

PC__CUDA_KERNEL(mandelbrot)
{
    const pc_tensor *out = call->out[0];
    const pc__cuda_mandelbrot picture = {.a = *(const pc__mandelbrot_attributes *)call->attributes,
                                         .counts = pc__data(out),
                                         .height = out->shape[0],
                                         .width = out->shape[1],
                                         .dtype = out->dtype};
    pc__cuda_mandelbrot_run(&picture, pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

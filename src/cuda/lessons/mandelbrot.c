/* mandelbrot.c: counts of steps under z = z * z + c. */
#include "cuda/lessons/mandelbrot.h"

#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(mandelbrot)
{
    const pc_tensor *out = call->out[0];
    if (out->shape[0] > INT32_MAX / 2 || out->shape[1] > INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "mandelbrot: counts of shape %s; on CUDA sides are %d at most",
                        PC__SHAPE_OF(out), INT32_MAX / 2);
    const pc__cuda_mandelbrot picture = {.a = *(const pc__mandelbrot_attributes *)call->attributes,
                                         .counts = pc__data(out),
                                         .height = (int)out->shape[0],
                                         .width = (int)out->shape[1],
                                         .dtype = out->dtype,
                                         .early = pc__cuda_early(stream)};
    return pc__cuda_check(pc__cuda_mandelbrot_run(&picture, pc__cuda_queue(stream)), call->op->name);
}

/* mandelbrot.c: counts of steps under z = z * z + c. */
#include "cuda/lessons/mandelbrot.h"

#include "cuda/lessons/lessons.h"

pc_status pc__cuda_lesson_mandelbrot(const pc_op_run *run)
{
    const pc_op_view *out = run->out;
    if (out->shape[0] > INT32_MAX / 2 || out->shape[1] > INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "counts of %lld by %lld; on CUDA sides are %d at most",
                        (long long)out->shape[0], (long long)out->shape[1], INT32_MAX / 2);
    const pc__cuda_mandelbrot picture = {.a = *(const pc__mandelbrot_attributes *)run->attributes,
                                         .counts = out->data,
                                         .height = (int)out->shape[0],
                                         .width = (int)out->shape[1],
                                         .dtype = (int)out->dtype,
                                         .early = pc__cuda_lesson_early()};
    return pc__cuda_check(pc__cuda_mandelbrot_run(&picture, run->stream), "its launch");
}

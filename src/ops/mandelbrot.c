/* mandelbrot.c: how long the points of a region of the plane stay near 0 under z = z * z + c. */
#include "ops/mandelbrot.h"

#include "ops/lessons.h"
#include "ops/table.h"

#include <math.h>

static pc_status check_region(const pc_mandelbrot_options *spec)
{
    const bool finite = isfinite(spec->x_max - spec->x_min) && isfinite(spec->y_max - spec->y_min);
    if (!finite || !(spec->x_min < spec->x_max) || !(spec->y_min < spec->y_max))
        return pc__fail(PC_ERR_ARGUMENT,
                        "mandelbrot: a region of x from %g to %g, y from %g to %g; both must be finite and ascend",
                        spec->x_min, spec->x_max, spec->y_min, spec->y_max);
    if (spec->iterations < 1)
        return pc__fail(PC_ERR_ARGUMENT, "mandelbrot: %d iterations; it takes 1 to %d", spec->iterations, INT32_MAX);
    return PC_OK;
}

static pc_status check_target(const pc_tensor *counts, int iterations)
{
    if (counts->ndim != 2 || !pc__is_contiguous(counts))
        return pc__fail(PC_ERR_SHAPE, "mandelbrot: counts of shape %s; they must be [height, width], contiguous",
                        PC__SHAPE_OF(counts));
    if (counts->dtype != PC_U8 && counts->dtype != PC_I32 && counts->dtype != PC_F32)
        return pc__fail(PC_ERR_DTYPE, "mandelbrot: counts of %s; it has uint8, int32 and float32",
                        pc_dtype_name(counts->dtype));
    if (counts->dtype == PC_U8 && iterations > UINT8_MAX)
        return pc__fail(PC_ERR_DTYPE, "mandelbrot: uint8 cannot count %d iterations; use int32", iterations);
    return PC_OK;
}

pc_status pc_mandelbrot(pc_tensor *counts, pc_mandelbrot_options options)
{
    PC__NEED(counts);
    if (options.x_min == 0 && options.x_max == 0 && options.y_min == 0 && options.y_max == 0)
        options =
            (pc_mandelbrot_options){.x_min = -2, .x_max = 1, .y_min = -1, .y_max = 1, .iterations = options.iterations};
    options.iterations = options.iterations ? options.iterations : 20;
    PC__TRY(check_region(&options));
    PC__TRY(check_target(counts, options.iterations));
    if (pc_tensor_count(counts) == 0)
        return PC_OK;
    const pc__mandelbrot_attributes attributes = {.x_min = options.x_min,
                                                  .y_min = options.y_min,
                                                  .dx = (options.x_max - options.x_min) / (double)counts->shape[1],
                                                  .dy = (options.y_max - options.y_min) / (double)counts->shape[0],
                                                  .iterations = options.iterations};
    return pc__lesson_call(PC__LESSON_MANDELBROT, NULL, 0, &attributes, counts);
}

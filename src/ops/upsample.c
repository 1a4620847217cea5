/* upsample.c: pictures of another size, nearest or bilinear. */
#include "ops/resampled.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/sample.h>

static const char who[] = "upsample";

static pc_status check(const pc_tensor *x, const pc_fn_upsample_options *o)
{
    if (x->ndim != 4 || !pc__is_float(x->dtype))
        return pc__fail(x->ndim != 4 ? PC_ERR_SHAPE : PC_ERR_DTYPE,
                        "%s: the input is %s %s; it must be floating [n, c, h, w]", who, pc_dtype_name(x->dtype),
                        PC__SHAPE_OF(x));
    if (x->shape[2] < 1 || x->shape[3] < 1)
        return pc__fail(PC_ERR_SHAPE, "%s: an input of shape %s has no places", who, PC__SHAPE_OF(x));
    if (o->mode != PC_UPSAMPLE_NEAREST && o->mode != PC_UPSAMPLE_BILINEAR)
        return pc__fail(PC_ERR_ARGUMENT, "%s: there is no mode %d; they are nearest and bilinear", who, (int)o->mode);
    if (o->align_corners && o->mode == PC_UPSAMPLE_NEAREST)
        return pc__fail(PC_ERR_ARGUMENT, "%s: nearest has no corners to align; leave align_corners out", who);
    const bool sized = o->size[0] != 0, scaled = o->scale[0] != 0;
    if (sized == scaled || (sized ? o->scale[1] != 0 : o->size[1] != 0))
        return pc__fail(PC_ERR_ARGUMENT, "%s: it wants a size or a scale, one of the two", who);
    return PC_OK;
}

static double given(const double v[2], int i)
{
    return i && v[1] != 0 ? v[1] : v[0];
}

/* Places along axis i of the result: -1 and the error where there are none, or too many to count. */
static int64_t places(const pc_tensor *x, const pc_fn_upsample_options *o, int i)
{
    const double size[2] = {(double)o->size[0], (double)o->size[1]};
    const double wanted = o->size[0] ? given(size, i) : floor((double)x->shape[2 + i] * given(o->scale, i));
    if (wanted >= 1 && wanted <= INT32_MAX)
        return (int64_t)wanted;
    (void)pc__fail(PC_ERR_ARGUMENT, "%s: a result of %g %s; there must be 1 to 2^31 - 1", who, wanted,
                   i ? "columns" : "rows");
    return -1;
}

/* Input places for one of the result. A scale is not looked at where it leaves as many places, which then stay as they are,
 * nor, of the nearest, where it leaves twice as many: as in PyTorch. */
static double step_of(int64_t in, int64_t out, double scale, bool nearest)
{
    return scale > 0 && out != in && !(nearest && out == 2 * in) ? 1 / scale : (double)in / (double)out;
}

static pc__axis axis_of(int64_t in, int64_t out, double scale, const pc_fn_upsample_options *o)
{
    const bool corners = o->align_corners;
    const double step = step_of(in, out, scale, o->mode == PC_UPSAMPLE_NEAREST);
    return (pc__axis){.in = in,
                      .out = out,
                      .step = !corners  ? step
                              : out > 1 ? (double)(in - 1) / (double)(out - 1)
                                        : 0,
                      .kind = o->mode == PC_UPSAMPLE_NEAREST ? PC__NEAREST
                              : corners                      ? PC__BILINEAR_CORNERS
                                                             : PC__BILINEAR};
}

pc_tensor *pc_fn_upsample(pc_tensor *x, pc_fn_upsample_options options)
{
    pc__resample_attributes a;
    PC__NEED_OR(NULL, x);
    if (check(x, &options) != PC_OK)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const int64_t out = places(x, &options, i);
        if (out < 0)
            return NULL;
        a.axis[i] = axis_of(x->shape[2 + i], out, given(options.scale, i), &options);
    }
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__resampled(x, &a));
    }
    return result;
}

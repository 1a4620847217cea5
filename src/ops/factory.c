/* factory.c: new tensors on any device. */
#include "ops/factory.h"

#include "ops/copy.h"
#include "ops/random.h"
#include "ops/table.h"
#include "tensor/read.h"

#include <math.h>

static pc_tensor *make(const char *who, pc_shape shape, pc_dtype dtype, pc_device device)
{
    if (pc__device_check(device, who) != PC_OK || pc__shape_check(who, shape, dtype) != PC_OK)
        return NULL;
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    return pc__tensor_for(&meta, device, who);
}

/* t when the status is fine; otherwise it goes. */
static pc_tensor *finish(pc_tensor *t, pc_status status)
{
    return status == PC_OK ? t : pc__tensor_discard(t);
}

static pc_tensor *filled(const char *who, pc_shape shape, double value, pc_dtype dtype, pc_device device)
{
    if ((unsigned)dtype < PC_DTYPE_COUNT && pc__number_check(who, value, dtype) != PC_OK)
        return NULL;
    pc_tensor *t = make(who, shape, dtype, device);
    return t ? finish(t, pc_fill(t, value)) : NULL;
}

pc_tensor *pc_empty(pc_shape shape, pc_dtype dtype, pc_device device)
{
    return make("pc_empty", shape, dtype, device);
}

pc_tensor *pc_zeros(pc_shape shape, pc_dtype dtype, pc_device device)
{
    return filled("pc_zeros", shape, 0, dtype, device);
}

pc_tensor *pc_ones(pc_shape shape, pc_dtype dtype, pc_device device)
{
    return filled("pc_ones", shape, 1, dtype, device);
}

pc_tensor *pc_full(pc_shape shape, double value, pc_dtype dtype, pc_device device)
{
    return filled("pc_full", shape, value, dtype, device);
}

pc_tensor *pc_scalar(double value, pc_dtype dtype, pc_device device)
{
    return filled("pc_scalar", PC_SHAPE_SCALAR, value, dtype, device);
}

pc_tensor *pc_arange(double start, double end, double step, pc_dtype dtype, pc_device device)
{
    double n = ceil((end - start) / step);
    bool fits = pc__is_float(dtype) || (fabs(start) < 0x1p63 && fabs(end) < 0x1p63);
    if (!pc__is_float(dtype) && isfinite(n) && (start != trunc(start) || step != trunc(step)))
        return pc__null(PC_ERR_ARGUMENT,
                        "pc_arange: %s counts in whole numbers, not from %g in steps of %g; use a floating dtype",
                        pc_dtype_name(dtype), start, step);
    if (!(step != 0) || !isfinite(n) || n < 0 || n > 1e15 || dtype == PC_BOOL || !fits)
        return pc__null(PC_ERR_ARGUMENT, "pc_arange: %g to %g in steps of %g gives no list of numbers in %s", start,
                        end, step, pc_dtype_name(dtype));
    pc_tensor *t = make("pc_arange", PC_SHAPE((int64_t)n), dtype, device);
    pc__arange_attributes attributes = {start, step};
    return t ? finish(t, pc__call_in_place(PC__OP_arange, t, NULL, 0, &attributes, sizeof attributes)) : NULL;
}

pc_status pc__fill_uniform(pc_tensor *t, double low, double high)
{
    pc__random_attributes attributes = pc__draw(PC__PURPOSE_UNIFORM, low, high);
    return pc__call_in_place(PC__OP_uniform, t, NULL, 0, &attributes, sizeof attributes);
}

pc_status pc__fill_normal(pc_tensor *t, double mean, double deviation)
{
    pc__random_attributes attributes = pc__draw(PC__PURPOSE_NORMAL, mean, deviation);
    return pc__call_in_place(PC__OP_normal, t, NULL, 0, &attributes, sizeof attributes);
}

static pc_tensor *drawn(const char *who, pc_shape shape, pc_dtype dtype, pc_device device,
                        pc_status (*fill)(pc_tensor *, double, double))
{
    if (!pc__is_float(dtype))
        return pc__null(PC_ERR_DTYPE, "%s: %s cannot hold random fractions; use a floating dtype such as float32", who,
                        pc_dtype_name(dtype));
    pc_tensor *t = make(who, shape, dtype, device);
    return t ? finish(t, fill(t, 0, 1)) : NULL;
}

pc_tensor *pc_rand(pc_shape shape, pc_dtype dtype, pc_device device)
{
    return drawn("pc_rand", shape, dtype, device, pc__fill_uniform);
}

pc_tensor *pc_randn(pc_shape shape, pc_dtype dtype, pc_device device)
{
    return drawn("pc_randn", shape, dtype, device, pc__fill_normal);
}

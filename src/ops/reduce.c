/* reduce.c: sums and means over dimensions. The wrapper goes by memory order, one run of reduced dimensions after the other,
 * the longest first. */
#include "ops/autocast.h"
#include "ops/matmul.h"
#include "ops/reduce_call.h"

static bool in_order(const pc_shape *order)
{
    for (int i = 0; i < order->ndim; i++)
        if (order->dim[i] != i)
            return false;
    return true;
}

/* Over one run, whose dimensions stay as 1 unless the result's shape is given. */
static pc_tensor *sum_run(pc_tensor *t, unsigned run, pc_dtype to, double divisor, const pc__reduce_attributes *shape)
{
    pc__reduce_attributes a;
    pc__reduce_describe(t, run, true, &a);
    a.divisor = divisor;
    if (shape) {
        a.ndim = shape->ndim;
        memcpy(a.shape, shape->shape, sizeof a.shape);
    }
    a.to = (uint8_t)to;
    return PC__CALL(sum, &a, t);
}

/* `wide`: of 16-bit numbers in float32. It is divided before it is rounded. */
static pc_tensor *sum_as(pc_tensor *t, unsigned mask, bool keepdim, bool wide, double divisor)
{
    const bool half = pc__is_half((pc_dtype)t->dtype);
    pc__reduce_attributes want;
    pc__reduce_describe(t, mask, keepdim, &want);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_shape order;
        unsigned left = mask, run = 0;
        wide = wide || pc__autocasting();
        pc_tensor *now = pc__reduce_in_memory_order(pc__is_float(t->dtype) ? t : pc__as_dtype(t, PC_I64), &left,
                                                    PC__GAPS_SUMS, &order);
        const pc_dtype to = half && wide ? PC_F32 : now ? (pc_dtype)now->dtype : PC_F32;
        const bool turned = !in_order(&order);
        do {
            run = now ? pc__reduce_gapped_run(now, left) : 0;
            run = now && !run ? pc__reduce_longest_run(now, left) : run;
            left &= ~run;
            now = now ? sum_run(now, run, half && left ? PC_F32 : to, left ? 1 : divisor, left || turned ? NULL : &want)
                      : NULL;
        } while (now && left);
        if (turned)
            now = pc_reshape(pc__reduce_in_own_order(now, 0, true, &order), pc_shape_of(want.ndim, want.shape));
        result = pc_keep(now);
    }
    return result;
}

/* Integers are added in int64, which narrower ones become in front of that: large tensors of them part by part, or this
 * would take eight times their memory. Parts are ranges of the dimension that is outermost in memory. */
enum { PART = 1 << 24 /* elements, at least */, PARTS_MOST = 64 };

static bool has_parts(const pc_tensor *t)
{
    return !pc__is_float(t->dtype) && t->dtype != PC_I64 && pc_tensor_count(t) >= 2 * PART;
}

static int outermost(const pc_tensor *t)
{
    int most = 0;
    for (int d = 1; d < t->ndim; d++)
        if (t->shape[most] == 1 || (t->shape[d] > 1 && t->strides[d] > t->strides[most]))
            most = d;
    return most;
}

static pc_tensor *sum(pc_tensor *t, unsigned mask, bool keepdim);

/* Dimensions stay as 1. */
static pc_tensor *sum_of_parts(pc_tensor *t, unsigned mask)
{
    const int dim = outermost(t);
    const int64_t size = t->shape[dim], beside = pc_tensor_count(t) / size;
    const int64_t each = PC__MAX((size + PARTS_MOST - 1) / PARTS_MOST, PC__MAX(1, PART / beside));
    pc_tensor *parts[PARTS_MOST];
    int count = 0;
    for (int64_t from = 0; from < size; from += each, count++) {
        bool there = false;
        PC_SCOPE {
            pc_tensor *part = sum(pc_slice(t, dim, from, PC__MIN(from + each, size), 1), mask, true);
            if (part && count > 0 && mask >> dim & 1)
                there = pc_saxpy(parts[0], 1, part) == PC_OK;
            else
                there = (parts[count] = pc_keep(part)) != NULL;
        }
        if (!there)
            return NULL;
    }
    return mask >> dim & 1 ? parts[0] : pc_cat(parts, count, dim);
}

static pc_tensor *sum(pc_tensor *t, unsigned mask, bool keepdim)
{
    if (!has_parts(t))
        return sum_as(t, mask, keepdim, false, 1);
    pc__reduce_attributes want;
    pc__reduce_describe(t, mask, keepdim, &want);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *all = sum_of_parts(t, mask);
        result = pc_keep(all ? pc_reshape(all, pc_shape_of(want.ndim, want.shape)) : NULL);
    }
    return result;
}

pc_status pc__infer_sum(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], (pc_dtype)a->to, a->ndim, a->shape);
    return PC_OK;
}

pc_status pc__grad_sum(pc__grad *grad)
{
    const pc__reduce_attributes *a = grad->attributes;
    pc_tensor *g = grad->out_grad[0];
    return pc__set_grad(grad, 0,
                        pc__reduce_spread(a->divisor == 1 ? g : pc_div_scalar(g, a->divisor), a, &grad->in_meta[0]));
}

pc_tensor *pc_sum(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return sum(a, pc__reduce_all_of(a), false);
}

pc_tensor *pc_sum_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("sum", a, dims, &mask) ? sum(a, mask, keepdim) : NULL;
}

pc_tensor *pc__sum_wide(pc_tensor *a, pc_shape dims)
{
    unsigned mask;
    return a && pc__reduce_mask("sum", a, dims, &mask) ? sum_as(a, mask, false, true, 1) : NULL;
}

static pc_tensor *mean(pc_tensor *t, unsigned mask, bool keepdim)
{
    if (!pc__is_float(t->dtype))
        return pc__null(PC_ERR_DTYPE, "mean: a %s tensor has no mean in its own dtype; use pc_cast to PC_F32 first",
                        pc_dtype_name(t->dtype));
    pc__reduce_attributes a;
    pc__reduce_describe(t, mask, keepdim, &a);
    return sum_as(t, mask, keepdim, false, (double)a.reduced);
}

pc_tensor *pc_mean(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return mean(a, pc__reduce_all_of(a), false);
}

pc_tensor *pc_mean_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return pc__reduce_mask("mean", a, dims, &mask) ? mean(a, mask, keepdim) : NULL;
}

pc_tensor *pc__sum_to(pc_tensor *t, int ndim, const int64_t *shape)
{
    if (!t)
        return NULL;
    int lead = t->ndim - ndim;
    unsigned mask = 0;
    for (int i = 0; i < t->ndim; i++)
        if (i < lead || (shape[i - lead] == 1 && t->shape[i] != 1))
            mask |= 1u << i;
    return mask ? pc_reshape(sum(t, mask, true), pc_shape_of(ndim, shape)) : t;
}

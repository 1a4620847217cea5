/* reduce.c: sums, means and maxima over dimensions. The wrapper goes by memory order, one run of reduced dimensions after
 * the other, the longest first; the op sees [outer, reduced, inner]. */
#include "ops/reduce.h"

#include "ops/autocast.h"
#include "ops/matmul.h"
#include "ops/reduce_order.h"
#include "ops/table.h"
#include "ops/view.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>

static unsigned all_of(const pc_tensor *t)
{
    return (1u << t->ndim) - 1;
}

/* Which dimensions a list names, as bits (an empty one all, as in PyTorch); false when one is out of range or named
 * twice. */
static bool mask_of(const char *who, const pc_tensor *t, pc_shape dims, unsigned *mask)
{
    unsigned named = 0;
    if (pc__ndim_check(who, dims.ndim) != PC_OK)
        return false;
    for (int i = 0; i < dims.ndim; i++) {
        int d = pc__dim(who, dims.dim[i], t->ndim);
        if (d < 0)
            return false;
        if (named >> d & 1) {
            (void)pc__fail(PC_ERR_ARGUMENT, "%s: dimension %d is named twice", who, d);
            return false;
        }
        named |= 1u << d;
    }
    *mask = dims.ndim ? named & all_of(t) : all_of(t);
    return true;
}

static void describe(const pc_tensor *t, unsigned mask, bool keepdim, pc__reduce_attributes *a)
{
    *a = (pc__reduce_attributes){.outer = 1, .reduced = 1, .inner = 1, .divisor = 1};
    const unsigned longer = mask & ~pc__reduce_ones_of(t),
                   ends = longer ? longer : mask & -mask; /* of ones any will do */
    int first = ends ? __builtin_ctz(ends) : t->ndim, last = ends ? 31 - __builtin_clz(ends) : t->ndim;
    for (int i = 0; i < t->ndim; i++) {
        bool gone = mask >> i & 1;
        a->kept_shape[i] = gone ? 1 : t->shape[i];
        if (gone)
            a->reduced *= t->shape[i];
        else if (i < first)
            a->outer *= t->shape[i];
        else if (i > last)
            a->inner *= t->shape[i];
        if (!gone || keepdim)
            a->shape[a->ndim++] = gone ? 1 : t->shape[i];
    }
}

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
    describe(t, run, true, &a);
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
    describe(t, mask, keepdim, &want);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_shape order;
        unsigned left = mask, run = 0;
        wide = wide || pc__autocasting();
        pc_tensor *now =
            pc__reduce_in_memory_order(pc__is_float(t->dtype) ? t : pc__as_dtype(t, PC_I64), &left, true, &order);
        const pc_dtype to = half && wide ? PC_F32 : now ? (pc_dtype)now->dtype : PC_F32;
        const bool turned = !in_order(&order);
        do {
            run = now ? pc__reduce_longest_run(now, left) : 0;
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

static pc_tensor *sum(pc_tensor *t, unsigned mask, bool keepdim)
{
    return sum_as(t, mask, keepdim, false, 1);
}

pc_status pc__infer_sum(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], (pc_dtype)a->to, a->ndim, a->shape);
    return PC_OK;
}

static pc_tensor *spread(pc_tensor *g, const pc__reduce_attributes *a, const pc__meta *in)
{
    pc_tensor *kept = pc_reshape(pc__as_dtype(g, in->dtype), pc_shape_of(in->ndim, a->kept_shape));
    return pc_expand(kept, pc_shape_of(in->ndim, in->shape));
}

pc_status pc__grad_sum(pc__grad *grad)
{
    const pc__reduce_attributes *a = grad->attributes;
    pc_tensor *g = grad->out_grad[0];
    return pc__set_grad(grad, 0, spread(a->divisor == 1 ? g : pc_div_scalar(g, a->divisor), a, &grad->in_meta[0]));
}

pc_tensor *pc_sum(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return sum(a, all_of(a), false);
}

pc_tensor *pc_sum_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return mask_of("sum", a, dims, &mask) ? sum(a, mask, keepdim) : NULL;
}

pc_tensor *pc__sum_wide(pc_tensor *a, pc_shape dims)
{
    unsigned mask;
    return a && mask_of("sum", a, dims, &mask) ? sum_as(a, mask, false, true, 1) : NULL;
}

static pc_tensor *mean(pc_tensor *t, unsigned mask, bool keepdim)
{
    if (!pc__is_float(t->dtype))
        return pc__null(PC_ERR_DTYPE, "mean: a %s tensor has no mean in its own dtype; use pc_cast to PC_F32 first",
                        pc_dtype_name(t->dtype));
    pc__reduce_attributes a;
    describe(t, mask, keepdim, &a);
    return sum_as(t, mask, keepdim, false, (double)a.reduced);
}

pc_tensor *pc_mean(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return mean(a, all_of(a), false);
}

pc_tensor *pc_mean_dims(pc_tensor *a, pc_shape dims, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    unsigned mask;
    return mask_of("mean", a, dims, &mask) ? mean(a, mask, keepdim) : NULL;
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

/* Values in *value and positions among the reduced elements in *index, for one dimension or all; NULL: nobody wants them. */
static pc_status maximum(pc_tensor *t, unsigned mask, bool keepdim, bool whole, pc_tensor **value, pc_tensor **index)
{
    pc__reduce_attributes a;
    describe(t, mask, keepdim, &a);
    if (a.reduced == 0)
        return pc__fail(PC_ERR_SHAPE, "max: a tensor of shape %s has no elements to compare", PC__SHAPE_OF(t));
    pc_tensor *out[PC__OUT_MAX] = {NULL}, **result[] = {value, index};
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_shape order;
        pc_tensor *ready = pc__reduce_in_memory_order(t, &mask, false, &order);
        if (!ready)
            break;
        describe(ready, mask, keepdim, &a);
        a.whole = whole;
        status = pc__call_all(PC__OP_max, &ready, 1, &a, sizeof a, out);
        for (int i = 0; i < 2 && status == PC_OK; i++) {
            if (!result[i])
                continue;
            *result[i] = pc_keep(pc__reduce_in_own_order(out[i], mask, keepdim, &order));
            if (!*result[i])
                status = PC_ERR_MEMORY;
        }
    }
    for (int i = 0; i < 2 && status != PC_OK; i++)
        if (result[i])
            *result[i] = pc__tensor_discard(*result[i]);
    return status == PC_ERR_MEMORY && pc_failed() ? pc_error_last()->status : status;
}

pc_status pc__infer_max(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], call->in[0]->dtype, a->ndim, a->shape);
    pc__meta_contiguous(&out[1], PC_I64, a->ndim, a->shape);
    return PC_OK;
}

pc_tensor *pc_max(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    pc_tensor *value = NULL;
    return maximum(a, all_of(a), false, true, &value, NULL) == PC_OK ? value : NULL;
}

pc_tensor *pc_max_dim(pc_tensor *a, int dim, bool keepdim, pc_tensor **indices)
{
    PC__NEED_OR(NULL, a);
    pc_tensor *value = NULL;
    if (indices)
        *indices = NULL;
    const bool placed = indices || (a->requires_grad && pc_grad_enabled()); /* the gradient goes by places */
    int d = pc__dim("max", dim, a->ndim);
    return d >= 0 && maximum(a, a->ndim ? 1u << d : 0, keepdim, !placed, &value, indices) == PC_OK ? value : NULL;
}

pc_tensor *pc_argmax(pc_tensor *a, int dim, bool keepdim)
{
    PC__NEED_OR(NULL, a);
    pc_tensor *index = NULL;
    int d = pc__dim("argmax", dim, a->ndim);
    return d >= 0 && maximum(a, a->ndim ? 1u << d : 0, keepdim, false, NULL, &index) == PC_OK ? index : NULL;
}

pc_status pc__infer_max_backward(pc_call *call, pc__meta *out)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__meta_contiguous(&out[0], call->in[0]->dtype, a->ndim, a->shape);
    return PC_OK;
}

/* Over everything, elements equal to the maximum share the gradient; along a dimension the chosen one gets it all. */
pc_status pc__grad_max(pc__grad *grad)
{
    const pc__meta *in = &grad->in_meta[0];
    pc__reduce_attributes a = *(const pc__reduce_attributes *)grad->attributes;
    pc_tensor *g = pc_contiguous(pc__as_dtype(grad->out_grad[0], in->dtype));
    a.ndim = in->ndim;
    memcpy(a.shape, in->shape, sizeof a.shape);
    return pc__set_grad(grad, 0,
                        a.whole ? PC__CALL(max_backward, &a, g, pc_contiguous(grad->in[0]), grad->out[0])
                                : PC__CALL(max_backward, &a, g, grad->out[1]));
}

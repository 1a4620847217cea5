/* reduce.c: sums, means and maxima over dimensions. The wrapper goes by memory order, one run of reduced dimensions after
 * the other, the longest first; the op sees [outer, reduced, inner]. */
#include "ops/reduce.h"

#include "ops/autocast.h"
#include "ops/matmul.h"
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

/* Those of one element, which are in nobody's way. */
static unsigned ones_of(const pc_tensor *t)
{
    unsigned ones = 0;
    for (int i = 0; i < t->ndim && i < PC_MAX_DIMS; i++)
        ones |= (unsigned)(t->shape[i] == 1) << i;
    return ones;
}

static void describe(const pc_tensor *t, unsigned mask, bool keepdim, pc__reduce_attributes *a)
{
    *a = (pc__reduce_attributes){.outer = 1, .reduced = 1, .inner = 1, .divisor = 1};
    const unsigned longer = mask & ~ones_of(t), ends = longer ? longer : mask & -mask; /* of ones any will do */
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

/* Of the runs of dimensions in the mask the one with the most elements; dimensions of 1 part none, and go with any. */
static unsigned longest_run(const pc_tensor *t, unsigned mask)
{
    unsigned best = 0, run = 0;
    int64_t most = -1, count = 1;
    for (int i = 0; i <= t->ndim; i++) {
        if (i < t->ndim && (mask >> i & 1 || t->shape[i] == 1)) {
            run |= 1u << i;
            count *= t->shape[i];
            continue;
        }
        if (run & mask && count > most)
            best = run, most = count;
        run = 0, count = 1;
    }
    return best | (mask & ones_of(t));
}

/* How the dimensions that are reduced, and those that are kept, lie in memory. */
typedef struct lie {
    int64_t reduced, results; /* elements of each */
    int runs;                 /* reduced dimensions, those that are one to memory counted once */
    int64_t step;             /* of the last one */
    int64_t least, beside;    /* strides of what is kept: the smallest, and that of the last one */
} lie;

static lie lie_of(const pc_tensor *t, unsigned mask)
{
    lie l = {.reduced = 1, .results = 1, .least = INT64_MAX};
    int64_t next = 0; /* the stride of a dimension that goes on with this run */
    for (int d = t->ndim - 1; d >= 0; d--) {
        const int64_t stride = t->strides[d];
        if (t->shape[d] == 1)
            continue;
        if (mask >> d & 1) {
            l.runs += !l.runs || stride != next;
            l.step = l.reduced == 1 ? stride : l.step;
            next = stride * t->shape[d];
            l.reduced *= t->shape[d];
        } else {
            l.beside = l.least == INT64_MAX ? stride : l.beside;
            l.least = PC__MIN(l.least, stride);
            l.results *= t->shape[d];
        }
    }
    return l;
}

/* Whether CUDA finds maxima of t with its gaps: what is reduced is one dimension to memory, and is long and alone, or
 * short and not side by side, in no case where that would be slow. */
static bool takes_gaps(const pc_tensor *t, unsigned mask)
{
    enum { LONG = 4096, FEW = 1 << 18, MANY = 65536 };
    if (t->storage->device.type != PC_CUDA || (longest_run(t, mask) & mask) != mask)
        return false;
    const lie l = lie_of(t, mask);
    if (l.runs > 1 || l.results > INT32_MAX / 32 || l.reduced > INT32_MAX / 512)
        return false;
    return l.step <= l.least ? l.reduced <= LONG || l.results >= LONG
                             : l.results >= MANY || l.reduced * l.results <= FEW;
}

/* Whether CUDA sums a view, what is reduced last, with its gaps: neighbours in memory are of one result, or are those of
 * neighbouring results, or all is so little that the order is as good as any. Results that are few it has in parts. */
static bool sums_gaps(const pc_tensor *t, unsigned mask)
{
    enum { RUNS = 3, LONG = 4096, FEW = 1 << 16 };
    const lie l = lie_of(t, mask);
    if (l.runs > RUNS || l.results > INT32_MAX / 32 || l.reduced > INT32_MAX / (l.results < LONG ? 2 : 512))
        return false;
    return l.reduced * l.results <= FEW || l.step <= l.least || l.beside == l.least;
}

/* What is reduced behind what is kept, the largest steps first: then it may be one dimension to memory. */
static pc_tensor *reduced_last(pc_tensor *t, unsigned *mask)
{
    pc_shape by = {.ndim = t->ndim};
    int kept = 0, all;
    for (int d = 0; d < t->ndim; d++)
        if (!(*mask >> d & 1))
            by.dim[kept++] = d;
    all = kept;
    for (int d = 0; d < t->ndim; d++) {
        if (!(*mask >> d & 1))
            continue;
        int at = all++;
        for (; at > kept && t->strides[by.dim[at - 1]] < t->strides[d]; at--)
            by.dim[at] = by.dim[at - 1];
        by.dim[at] = d;
    }
    *mask = ((1u << all) - 1) & ~((1u << kept) - 1);
    return pc_permute(t, by);
}

/* A sum that CUDA makes of t where it lies: with gaps, or of so few numbers that any order is as good. NULL: it is not. */
static pc_tensor *where_it_lies(pc_tensor *t, unsigned *mask)
{
    enum { FEW = 65536 };
    const bool run = (longest_run(t, *mask) & *mask) == *mask;
    if (t->storage->device.type != PC_CUDA || (run && pc__is_contiguous(t)) ||
        (pc__is_dense(t) && pc__count(t->ndim, t->shape) > FEW))
        return NULL;
    unsigned gone = *mask;
    pc_tensor *view = reduced_last(t, &gone);
    if (!view || !sums_gaps(view, gone))
        return NULL;
    *mask = gone;
    return view;
}

/* t as kernels take it: without gaps in C order, its dimensions turned for that rather than copied where they can be; `order`
 * says which dimension each is, and the mask follows. */
static pc_tensor *in_memory_order(pc_tensor *t, unsigned *mask, bool sums, pc_shape *order)
{
    *order = (pc_shape){.ndim = t ? t->ndim : 0};
    for (int i = 0; i < order->ndim; i++)
        order->dim[i] = i;
    pc_tensor *lies = t && sums ? where_it_lies(t, mask) : NULL;
    if (lies)
        return lies;
    if (t && !sums && !pc__is_dense(t) && takes_gaps(t, *mask))
        return t;
    if (!t || pc__is_contiguous(t) || !pc__is_dense(t))
        return pc_contiguous(t);
    for (int i = 1; i < t->ndim; i++)
        for (int j = i; j > 0 && t->strides[order->dim[j]] > t->strides[order->dim[j - 1]]; j--) {
            const int64_t d = order->dim[j];
            order->dim[j] = order->dim[j - 1];
            order->dim[j - 1] = d;
        }
    unsigned turned = 0;
    for (int i = 0; i < t->ndim; i++)
        turned |= (*mask >> order->dim[i] & 1) << i;
    *mask = turned;
    return pc_contiguous(pc_permute(t, *order));
}

static bool in_order(const pc_shape *order)
{
    for (int i = 0; i < order->ndim; i++)
        if (order->dim[i] != i)
            return false;
    return true;
}

/* What is left, its dimensions (all but those in the mask, or those as 1) in the order that they had. */
static pc_tensor *in_own_order(pc_tensor *t, unsigned mask, bool keepdim, const pc_shape *order)
{
    pc_shape back = {0};
    bool same = true;
    for (int d = 0; d < order->ndim && t; d++)
        for (int i = 0, at = 0; i < order->ndim; i++) {
            const bool there = keepdim || !(mask >> i & 1);
            if (there && order->dim[i] == d) {
                same = same && at == back.ndim;
                back.dim[back.ndim++] = at;
            }
            at += there;
        }
    return !t || same ? t : pc_contiguous(pc_permute(t, back));
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
        pc_tensor *now = in_memory_order(pc__is_float(t->dtype) ? t : pc__as_dtype(t, PC_I64), &left, true, &order);
        const pc_dtype to = half && wide ? PC_F32 : now ? (pc_dtype)now->dtype : PC_F32;
        const bool turned = !in_order(&order);
        do {
            run = now ? longest_run(now, left) : 0;
            left &= ~run;
            now = now ? sum_run(now, run, half && left ? PC_F32 : to, left ? 1 : divisor, left || turned ? NULL : &want)
                      : NULL;
        } while (now && left);
        if (turned)
            now = pc_reshape(in_own_order(now, 0, true, &order), pc_shape_of(want.ndim, want.shape));
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
        pc_tensor *ready = in_memory_order(t, &mask, false, &order);
        if (!ready)
            break;
        describe(ready, mask, keepdim, &a);
        a.whole = whole;
        status = pc__call_all(PC__OP_max, &ready, 1, &a, sizeof a, out);
        for (int i = 0; i < 2 && status == PC_OK; i++) {
            if (!result[i])
                continue;
            *result[i] = pc_keep(in_own_order(out[i], mask, keepdim, &order));
            if (!*result[i])
                status = PC_ERR_MEMORY;
        }
    }
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

/* reduce_call.c: from dimensions to [outer, reduced, inner], and the calls of a reduction. */
#include "ops/reduce_call.h"

#include "ops/autocast.h"
#include "ops/view.h"
#include "tensor/read.h"

bool pc__reduce_mask(const char *who, const pc_tensor *t, pc_shape dims, unsigned *mask)
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
    *mask = dims.ndim ? named & pc__reduce_all_of(t) : pc__reduce_all_of(t);
    return true;
}

bool pc__reduce_mask_of_one(const char *who, const pc_tensor *t, int dim, unsigned *mask)
{
    const int d = pc__dim(who, dim, t->ndim);
    *mask = d >= 0 && t->ndim ? 1u << d : 0;
    return d >= 0;
}

void pc__reduce_describe(const pc_tensor *t, unsigned mask, bool keepdim, pc__reduce_attributes *a)
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

pc_tensor *pc__reduce_spread(pc_tensor *g, const pc__reduce_attributes *a, const pc__meta *in)
{
    pc_tensor *kept = pc_reshape(pc__as_dtype(g, in->dtype), pc_shape_of(in->ndim, a->kept_shape));
    return pc_expand(kept, pc_shape_of(in->ndim, in->shape));
}

static void describe_kind(const pc_tensor *t, unsigned mask, bool keepdim, const pc__reduce_attributes *kind,
                          pc__reduce_attributes *a)
{
    pc__reduce_describe(t, mask, keepdim, a);
    a->whole = kind->whole;
    a->places = kind->places;
    a->root = kind->root;
    a->norm = kind->norm;
    a->to = kind->to;
    a->divisor = kind->divisor;
}

pc_status pc__reduce_once(int op, pc_tensor *t, unsigned mask, bool keepdim, pc__gaps gaps, pc__reduce_attributes kind,
                          pc_tensor **result[2])
{
    pc_tensor *out[PC__OUT_MAX] = {NULL};
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_shape order;
        pc__reduce_attributes a;
        pc_tensor *ready = pc__reduce_as_run(t, &mask, gaps, &order);
        if (!ready)
            break;
        describe_kind(ready, mask, keepdim, &kind, &a);
        status = pc__call_all(op, &ready, 1, &a, sizeof a, out);
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

pc_tensor *pc__reduce_to_one(int op, pc_tensor *t, unsigned mask, bool keepdim, const pc__reduce_attributes *a)
{
    pc_tensor *value = NULL;
    return pc__reduce_once(op, t, mask, keepdim, PC__GAPS_STATES, *a, (pc_tensor * *[]){&value, NULL}) == PC_OK ? value
                                                                                                                : NULL;
}

pc_tensor *pc__reduce_by_runs(int op, pc_tensor *t, unsigned mask, bool keepdim, const pc__reduce_attributes *a)
{
    if (pc__reduce_is_run(t, mask))
        return pc__reduce_to_one(op, t, mask, keepdim, a);
    pc_tensor *result = NULL;
    pc__reduce_attributes want;
    pc__reduce_describe(t, mask, keepdim, &want);
    PC_SCOPE {
        pc_tensor *now = t;
        for (unsigned left = mask, run; now && left; left &= ~run) {
            run = pc__reduce_longest_run(now, left) & left;
            now = pc__reduce_to_one(op, now, run, true, a);
        }
        result = pc_keep(pc_reshape(now, pc_shape_of(want.ndim, want.shape)));
    }
    return result;
}

pc_dtype pc__reduce_dtype(const pc_tensor *t)
{
    return pc__is_half((pc_dtype)t->dtype) && pc__autocasting() ? PC_F32 : (pc_dtype)t->dtype;
}

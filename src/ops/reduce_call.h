/* reduce_call.h: from a reduction over any dimensions to calls of its op, which sees [outer, reduced, inner]. A mask has a
 * bit for each dimension that is reduced. */
#ifndef PC__OP_REDUCE_CALL_H
#define PC__OP_REDUCE_CALL_H

#include "ops/reduce.h"
#include "ops/reduce_order.h"

static inline unsigned pc__reduce_all_of(const pc_tensor *t)
{
    return (1u << t->ndim) - 1;
}

/* Which dimensions a list names (an empty one all, as in PyTorch); false when one is out of range or named twice. */
bool pc__reduce_mask(const char *who, const pc_tensor *t, pc_shape dims, unsigned *mask);

/* Which one a number names, from the end when it is below 0; false when it is out of range. */
bool pc__reduce_mask_of_one(const char *who, const pc_tensor *t, int dim, unsigned *mask);

/* What is in the mask is one run of t's dimensions, or the attributes are used for shapes and counts alone. */
void pc__reduce_describe(const pc_tensor *t, unsigned mask, bool keepdim, pc__reduce_attributes *a);

/* A gradient of the result, in the input's shape and dtype: a view where the dtype is that. */
pc_tensor *pc__reduce_spread(pc_tensor *g, const pc__reduce_attributes *a, const pc__meta *in);

/* One call of `op` over all of the mask; of `a` kind, root, divisor and dtype are used. Where what is reduced is not one run
 * of memory, it is copied so. `out` are those of the op's outputs that are wanted, one or two, whose addresses are not NULL. */
pc_status pc__reduce_once(int op, pc_tensor *t, unsigned mask, bool keepdim, pc__gaps gaps, pc__reduce_attributes a,
                          pc_tensor **out[2]);

/* The first output of that, or NULL. */
pc_tensor *pc__reduce_to_one(int op, pc_tensor *t, unsigned mask, bool keepdim, const pc__reduce_attributes *a);

/* The same for ops of which it makes no difference whether they go over a part first and over its results next: a call for
 * each run, the longest first, which copies nothing. */
pc_tensor *pc__reduce_by_runs(int op, pc_tensor *t, unsigned mask, bool keepdim, const pc__reduce_attributes *a);

/* The dtype of a result that is computed in float32 or wider: the own one, but float32 of 16 bits in autocast. */
pc_dtype pc__reduce_dtype(const pc_tensor *t);

#endif

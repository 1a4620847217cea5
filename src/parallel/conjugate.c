/* conjugate.c: collectives with gradients, each other's. A call in place has none; what it wrote is given out as a view of
 * it with a gradient rule, which is a call again. */
#include "ops/table.h"

#include "dist/group.h"
#include "parallel/cut.h"

#include <paracord/no_grad.h>
#include <paracord/tensor_parallel.h>

typedef struct across {
    pc_group *group;
    int dim;
} across;

static pc_status infer(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[0]);
    return PC_OK;
}

pc_tensor *pc__sum_over(pc_group *group, pc_tensor *x)
{
    pc_tensor *sum = NULL;
    PC_SCOPE {
        pc_tensor *own = pc_clone(x);
        sum = own && pc_group_all_reduce(group, own, PC_GROUP_SUM) == PC_OK ? pc_keep(own) : NULL;
    }
    return sum;
}

/* With all that is in front of dim, and behind it, as one dimension each. */
static pc_tensor *gather(pc_group *group, pc_tensor *x, int dim)
{
    const int64_t before = pc__count(dim, x->shape), after = pc__count(x->ndim - dim, x->shape + dim);
    pc_shape shape = pc_shape_of(x->ndim, x->shape);
    shape.dim[dim] *= group->size;
    pc_tensor *all = pc_empty(PC_SHAPE(group->size, before, after), (pc_dtype)x->dtype, pc_tensor_device(x));
    pc_tensor *own = pc_contiguous(x);
    if (!all || !own || pc_group_all_gather(group, all, own) != PC_OK)
        return NULL;
    return pc_reshape(pc_transpose(all, 0, 1), shape);
}

pc_tensor *pc__gather_over(pc_group *group, pc_tensor *x, int dim)
{
    pc_tensor *all = NULL;
    PC_SCOPE {
        all = pc_keep(gather(group, x, dim));
    }
    return all;
}

pc_tensor *pc__own_part(pc_group *group, pc_tensor *x, int dim)
{
    const int64_t part = x->shape[dim] / group->size;
    return pc_slice(x, dim, group->rank * part, (group->rank + 1) * part, 1);
}

/* --- gradients: of the last input --- */

static pc_status gradient_sum(pc__grad *grad)
{
    const across *a = grad->attributes;
    return pc__set_grad(grad, grad->n_in - 1, pc__sum_over(a->group, grad->out_grad[0]));
}

static pc_status gradient_same(pc__grad *grad)
{
    return pc__set_grad(grad, grad->n_in - 1, pc__share(grad->out_grad[0]));
}

static pc_status gradient_part(pc__grad *grad)
{
    const across *a = grad->attributes;
    return pc__set_grad(grad, grad->n_in - 1, pc__own_part(a->group, grad->out_grad[0], a->dim));
}

static pc_status gradient_all(pc__grad *grad)
{
    const across *a = grad->attributes;
    return pc__set_grad(grad, grad->n_in - 1, pc__gather_over(a->group, grad->out_grad[0], a->dim));
}

static const pc__op copy_op = {"copy_to_group", PC__OP_view, 1, PC__VIEW, infer, gradient_sum},
                    reduce_op = {"reduce_from_group", PC__OP_view, 1, PC__VIEW, infer, gradient_same},
                    gather_op = {"gather_from_group", PC__OP_view, 1, PC__VIEW, infer, gradient_part},
                    split_op = {"split_to_group", PC__OP_view, 1, PC__VIEW, infer, gradient_all};

/* in[0] as a result of the last input. */
static pc_tensor *result(const pc__op *op, pc_tensor **in, int n, pc_group *group, int dim)
{
    const across a = {group, dim};
    pc_call call = {.op = op, .in = in, .n_in = n, .n_out = 1, .attributes = &a, .attribute_bytes = sizeof a};
    return pc_dispatch(&call) == PC_OK ? call.out[0] : NULL;
}

static bool records(pc_tensor *x)
{
    return pc__tape_wants(&(pc_call){.in = &x, .n_in = 1});
}

typedef pc_tensor *(*make_fn)(pc_group *group, pc_tensor *x, int dim);

/* What `make` gives, with a record of its own. */
static pc_tensor *call(const pc__op *op, make_fn make, pc_tensor *x, pc_group *group, int dim)
{
    if (group->size == 1)
        return pc__share(x);
    pc_tensor *y = NULL;
    PC_SCOPE {
        PC_NO_GRAD {
            y = make(group, x, dim);
        }
        y = pc_keep(y && records(x) ? result(op, (pc_tensor *[]){y, x}, 2, group, dim) : y);
    }
    return y;
}

pc_tensor *pc_copy_to_group(pc_tensor *x, pc_group *group)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, group);
    return group->size > 1 && records(x) ? result(&copy_op, &x, 1, group, 0) : pc__share(x);
}

static pc_tensor *make_sum(pc_group *group, pc_tensor *x, int dim)
{
    (void)dim;
    return pc__sum_over(group, x);
}

pc_tensor *pc_reduce_from_group(pc_tensor *x, pc_group *group)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, group);
    return call(&reduce_op, make_sum, x, group, 0);
}

pc_tensor *pc_gather_from_group(pc_tensor *x, pc_group *group, int dim)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, group);
    const int d = pc__dim("gather_from_group", dim, x->ndim);
    return d < 0 ? NULL : call(&gather_op, pc__gather_over, x, group, d);
}

pc_tensor *pc_split_to_group(pc_tensor *x, pc_group *group, int dim)
{
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, group);
    const int d = pc__dim("split_to_group", dim, x->ndim);
    if (d < 0)
        return NULL;
    if (x->shape[d] % group->size)
        return pc__null(PC_ERR_SHAPE,
                        "split_to_group: %d ranks cannot share dimension %d of %s equally; its size must be a multiple "
                        "of their number",
                        group->size, d, PC__SHAPE_OF(x));
    return call(&split_op, pc__own_part, x, group, d);
}

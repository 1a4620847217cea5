/* grid_sample.c: pictures read at places of one's own. */
#include "ops/grid_sample.h"

#include "ops/table.h"

#include <paracord/sample.h>

static const char who[] = "grid_sample";

_Static_assert(PC__GRID_ZEROS == (int)PC_GRID_ZEROS && PC__GRID_BORDER == (int)PC_GRID_BORDER &&
                   PC__GRID_REFLECTION == (int)PC_GRID_REFLECTION,
               "kernels know paddings by these numbers");

/* x [n, c, h, w] as kernels see it, and the result back. */
static pc_tensor *seen(pc_tensor *x, bool by_channels)
{
    const int64_t *s = x->shape;
    return by_channels
               ? pc_reshape(pc_contiguous(pc_permute(x, PC_SHAPE(0, 2, 3, 1))), PC_SHAPE(s[0], 1, s[2], s[3], s[1]))
               : pc_reshape(pc_contiguous(x), PC_SHAPE(s[0], s[1], s[2], s[3], 1));
}

static pc_tensor *unseen(pc_tensor *y, bool by_channels)
{
    if (!y)
        return NULL;
    const int64_t *s = y->shape;
    return by_channels ? pc_permute(pc_reshape(y, PC_SHAPE(s[0], s[2], s[3], s[4])), PC_SHAPE(0, 3, 1, 2))
                       : pc_reshape(y, PC_SHAPE(s[0], s[1], s[2], s[3]));
}

/* The same numbers, from which no gradient is asked for. */
static pc_tensor *alone(pc_tensor *t)
{
    pc__meta meta;
    pc__meta_of(&meta, t);
    return pc__tensor_new(&meta, t->storage->device);
}

static pc_tensor *sampled(pc_tensor *x, pc_tensor *grid, const pc_fn_grid_sample_options *o)
{
    const pc_dtype dtype = pc__promote(x, grid);
    const bool by_channels = pc__is_channels_last(x) && !pc__is_contiguous(x);
    const pc__grid_attributes attributes = {.nearest = o->nearest,
                                            .padding = (int32_t)o->padding,
                                            .corners = o->align_corners,
                                            .size = {x->shape[2], x->shape[3]}};
    pc_tensor *in = pc__as_dtype(x, dtype), *places = o->nearest ? alone(grid) : grid;
    in = in ? seen(in, by_channels) : NULL;
    places = pc_contiguous(pc__as_dtype(places, dtype));
    return in && places ? unseen(PC__CALL(grid_sample, &attributes, in, places), by_channels) : NULL;
}

pc_tensor *pc_fn_grid_sample(pc_tensor *x, pc_tensor *grid, pc_fn_grid_sample_options options)
{
    enum { MOST = 1 << 24 };
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, grid);
    if (x->ndim != 4 || grid->ndim != 4 || grid->shape[3] != 2 || x->shape[0] != grid->shape[0] || x->shape[2] < 1 ||
        x->shape[3] < 1)
        return pc__null(PC_ERR_SHAPE,
                        "%s: the input has shape %s and the grid %s; they must be [n, c, h, w], with places, and "
                        "[n, h', w', 2]",
                        who, PC__SHAPE_OF(x), PC__SHAPE_OF(grid));
    if (!pc__is_float(x->dtype) || !pc__is_float(grid->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: the input is %s and the grid %s; both must be floating", who,
                        pc_dtype_name(x->dtype), pc_dtype_name(grid->dtype));
    if (PC__MAX(x->shape[2], x->shape[3]) > MOST && pc__promote(x, grid) != PC_F64)
        return pc__null(PC_ERR_SHAPE,
                        "%s: an input of shape %s has more than %d rows or columns, which float32 does not count", who,
                        PC__SHAPE_OF(x), MOST);
    if ((int)options.padding < PC_GRID_ZEROS || (int)options.padding > PC_GRID_REFLECTION)
        return pc__null(PC_ERR_ARGUMENT, "%s: there is no padding %d; they are zeros, border and reflection", who,
                        (int)options.padding);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(sampled(x, grid, &options));
    }
    return result;
}

pc_status pc__infer_grid_sample(pc_call *call, pc__meta *out)
{
    const int64_t *x = call->in[0]->shape, *grid = call->in[1]->shape;
    pc__meta_contiguous(&out[0], call->in[0]->dtype, 5, (int64_t[]){x[0], x[1], grid[1], grid[2], x[4]});
    return PC_OK;
}

pc_status pc__infer_grid_sample_backward(pc_call *call, pc__meta *out)
{
    const pc__grid_attributes *a = call->attributes;
    const pc_tensor *dy = call->in[0], *grid = call->in[1];
    const int64_t *s = dy->shape, x[] = {s[0], s[1], a->size[0], a->size[1], s[4]}, none[5] = {0};
    pc__meta_contiguous(&out[0], dy->dtype, 5, a->wants_x ? x : none);
    pc__meta_contiguous(&out[1], dy->dtype, 4, call->n_in > 2 ? grid->shape : none);
    return PC_OK;
}

pc_status pc__grad_grid_sample(pc__grad *grad)
{
    pc__grid_attributes a = *(const pc__grid_attributes *)grad->attributes;
    pc_tensor *in[] = {pc_contiguous(grad->out_grad[0]), grad->in[1], grad->in[0]}, *out[PC__OUT_MAX];
    a.wants_x = grad->needs[0];
    PC__TRY(pc__call_all(PC__OP_grid_sample_backward, in, grad->needs[1] ? 3 : 2, &a, sizeof a, out));
    for (int i = 0; i < 2; i++)
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, out[i]));
    return PC_OK;
}

/* grid_sample.c: the kernels of pictures read at places of one's own. */
#include "cpu/level/grid_sample.h"

#include "cpu/level/kernels.h"

/* Few neighbouring channels are read one by one, by vectors over places; many by vectors over them. */
static pc_status run(const pc__grid_call *g, pc_dtype dtype)
{
    enum { FEW = 8 };
    const bool is_double = dtype == PC_F64;
    if (g->inner < FEW && (is_double || g->h * g->inner <= INT32_MAX / g->w))
        return is_double ? pc__grid_planes_f64(g) : pc__grid_planes_f32(g);
    return is_double ? pc__grid_rows_f64(g) : pc__grid_rows_f32(g);
}

/* Of the call, whose first input has the planes and channels of x and of the result. */
static pc__grid_call call_of(const pc_call *call)
{
    const pc__grid_attributes *a = call->attributes;
    const pc_tensor *first = call->in[0], *grid = call->in[1];
    return (pc__grid_call){.spec = *a,
                           .n = first->shape[0],
                           .planes = first->shape[1],
                           .h = a->size[0],
                           .w = a->size[1],
                           .inner = first->shape[4],
                           .places = grid->shape[1] * grid->shape[2],
                           .grid = pc__data(grid)};
}

PC__KERNEL(grid_sample)
{
    (void)stream;
    pc__grid_call g = call_of(call);
    g.x = pc__data(call->in[0]);
    g.y = pc__data(call->out[0]);
    return pc_tensor_count(call->out[0]) > 0 ? run(&g, (pc_dtype)call->in[0]->dtype) : PC_OK;
}

PC__KERNEL(grid_sample_backward)
{
    (void)stream;
    pc__grid_call g = call_of(call);
    g.dy = pc__data(call->in[0]);
    if (call->n_in > 2 && pc_tensor_count(call->out[1]) > 0) {
        g.x = pc__data(call->in[2]);
        g.dgrid = pc__data(call->out[1]);
    }
    if (pc_tensor_count(call->out[0]) > 0)
        g.dx = pc__data(call->out[0]);
    return g.dx || g.dgrid ? run(&g, (pc_dtype)call->in[0]->dtype) : PC_OK;
}

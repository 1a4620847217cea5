/* grid_sample.c: pictures read at places of one's own, and the gradients. */
#include "cuda/pool/grid_sample.h"

#include "cuda/index/lists.h"
#include "cuda/pointwise/each.h"

/* Of the call, whose first input has the planes and channels of x and of the result. */
static pc__cuda_grid grid_of(pc_stream *stream, const pc_call *call)
{
    const pc_tensor *first = call->in[0], *grid = call->in[1];
    return (pc__cuda_grid){.spec = *(const pc__grid_attributes *)call->attributes,
                           .n = first->shape[0],
                           .planes = first->shape[1],
                           .inner = first->shape[4],
                           .places = grid->shape[1] * grid->shape[2],
                           .grid = pc__data(grid),
                           .dtype = first->dtype,
                           .early = pc__cuda_early(stream),
                           .queue = pc__cuda_queue(stream)};
}

PC__CUDA_KERNEL(grid_sample)
{
    PC__TRY(pc__cuda_takes(call, PC__BIT(PC_F32) | PC__BIT(PC_F64)));
    const pc__cuda_grid g = grid_of(stream, call);
    if (pc_tensor_count(call->out[0]) == 0)
        return PC_OK;
    pc__cuda_grid_read(&g, pc__data(call->in[0]), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

/* The entries in memory of this call, the sort and its own one level deeper. */
static pc_status add_sorted(pc_stream *stream, const pc_call *call, const pc__cuda_grid *g)
{
    const pc_tensor *dy = call->in[0], *dx = call->out[0];
    const int kinds = g->spec.nearest ? 1 : 4;
    const int64_t entries = g->n * g->places * kinds, size = g->spec.size[0] * g->spec.size[1];
    const size_t numbers = pc__cuda_whole((size_t)entries * sizeof(int64_t));
    char *room = pc__cuda_scratch(stream, numbers + (size_t)entries * pc_dtype_size((pc_dtype)dy->dtype));
    if (!room)
        return PC_ERR_MEMORY;
    int64_t *index = (int64_t *)(void *)room;
    pc__cuda_lists lists = {
        .index = index, .lists = g->n, .inner = 1, .count = g->places * kinds, .n = size + 1, .skip = size};
    pc__cuda_grid_list(g, kinds, index, room + numbers);
    pc__cuda_deeper(stream, 1);
    const pc_status status = pc__cuda_sort(stream, call, &lists);
    pc__cuda_deeper(stream, -1);
    PC__TRY(status);
    pc__cuda_grid_add(g, kinds, lists.start, lists.order, room + numbers, pc__data(dy), pc__data(dx));
    return pc__cuda_launched(call);
}

/* Nothing was read, or nothing is to be found. */
static pc_status clear(pc_stream *stream, const pc_call *call, const pc_tensor *t)
{
    const size_t bytes = (size_t)pc_tensor_count(t) * pc_dtype_size((pc_dtype)t->dtype);
    return pc__cuda_check(cudaMemsetAsync(pc__data(t), 0, bytes, pc__cuda_queue(stream)), call->op->name);
}

PC__CUDA_KERNEL(grid_sample_backward)
{
    PC__TRY(pc__cuda_takes(call, PC__BIT(PC_F32) | PC__BIT(PC_F64)));
    const pc__cuda_grid g = grid_of(stream, call);
    const pc_tensor *dy = call->in[0], *dx = call->out[0], *dgrid = call->out[1];
    if (call->n_in > 2 && pc_tensor_count(dgrid) > 0)
        pc__cuda_grid_slopes(&g, pc__data(call->in[2]), pc__data(dy), pc__data(dgrid));
    PC__TRY(pc__cuda_launched(call));
    if (pc_tensor_count(dx) == 0)
        return PC_OK;
    return g.places ? add_sorted(stream, call, &g) : clear(stream, call, dx);
}

/* rank.c: sorts along a dimension, and searches in what is sorted. */
#include "cuda/index/rank.h"

#include "cuda/pointwise/each.h"
#include "ops/index.h"

PC__CUDA_KERNEL(sort)
{
    const pc__sort_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    pc__cuda_ranking r = {.inner = pc__inner_of(t, a->dim),
                          .n = t->shape[a->dim],
                          .count = a->count,
                          .descending = a->descending != 0,
                          .dtype = t->dtype,
                          .tile = 2,
                          .multiprocessors = pc__cuda_multiprocessors(stream),
                          .early = pc__cuda_early(stream),
                          .queue = pc__cuda_queue(stream)};
    r.lists = pc__outer_of(t, a->dim) * r.inner;
    if (r.lists * r.n == 0 || r.count == 0)
        return PC_OK;
    while (r.tile < r.n && r.tile < PC__CUDA_TILE)
        r.tile *= 2;
    r.tiles = (r.n + r.tile - 1) / r.tile;
    if (r.n > INT32_MAX || r.lists * r.tiles > INT32_MAX)
        return pc__fail(PC_ERR_SHAPE, "sort: a tensor of shape %s along dimension %lld is too large on CUDA",
                        PC__SHAPE_OF(t), (long long)a->dim);
    if (r.tiles > 1) {
        const size_t bytes = pc__cuda_whole((size_t)pc__cuda_rank_bytes(&r));
        r.room[0] = pc__cuda_scratch(stream, 2 * bytes);
        if (!r.room[0])
            return PC_ERR_MEMORY;
        r.room[1] = (char *)r.room[0] + bytes;
    }
    pc__cuda_rank(&r, pc__data(t), pc__data(call->out[0]), pc__data(call->out[1]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(searchsorted)
{
    const pc_tensor *sorted = call->in[0], *values = call->in[1];
    const int64_t rows = pc__count(sorted->ndim - 1, sorted->shape);
    pc__cuda_search s = {.n = sorted->shape[sorted->ndim - 1],
                         .count = pc_tensor_count(values),
                         .right = ((const pc__search_attributes *)call->attributes)->right != 0,
                         .dtype = sorted->dtype,
                         .multiprocessors = pc__cuda_multiprocessors(stream),
                         .early = pc__cuda_early(stream),
                         .queue = pc__cuda_queue(stream)};
    if (s.count == 0)
        return PC_OK;
    s.each = s.count / rows;
    pc__cuda_search_sorted(&s, pc__data(sorted), pc__data(values), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

/* line.c: running sums along a dimension, and turned dimensions. */
#include "cuda/index/line.h"

#include "cuda/pointwise/each.h"
#include "ops/index.h"

enum {
    LISTS = 4096,  /* that keep a GPU busy without being cut; four times as many where each has one thread */
    ROW = 1024,    /* elements of a chunk that a warp or a block adds up, */
    COLUMN = 128,  /* and of one that a thread adds up, */
    CHUNKS = 1024, /* of which a list has at most so many */
};

static int64_t chunk_of(const pc__cuda_line *line)
{
    const bool wide = line->inner == 1;
    if (line->lists >= (wide ? LISTS : 4 * LISTS))
        return line->n;
    const int64_t least = (line->n + CHUNKS - 1) / CHUNKS;
    return PC__MAX(least, wide ? ROW : COLUMN);
}

PC__CUDA_KERNEL(cumsum)
{
    const pc__cumsum_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    pc__cuda_line line = {.inner = pc__inner_of(t, a->dim),
                          .n = t->shape[a->dim],
                          .reversed = a->reversed != 0,
                          .dtype = t->dtype,
                          .multiprocessors = pc__cuda_multiprocessors(stream),
                          .early = pc__cuda_early(stream),
                          .queue = pc__cuda_queue(stream)};
    line.lists = pc__outer_of(t, a->dim) * line.inner;
    if (line.lists * line.n == 0)
        return PC_OK;
    line.chunk = chunk_of(&line);
    line.chunks = (line.n + line.chunk - 1) / line.chunk;
    if (line.chunks > 1 && !(line.sums = pc__cuda_scratch(stream, (size_t)(line.lists * line.chunks) * sizeof(double))))
        return PC_ERR_MEMORY;
    pc__cuda_cumsum(&line, pc__data(t), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(flip)
{
    const pc_tensor *t = call->in[0];
    pc__cuda_flip f = {.count = pc_tensor_count(t),
                       .ndim = t->ndim,
                       .dims = (unsigned)((const pc__flip_attributes *)call->attributes)->dims,
                       .multiprocessors = pc__cuda_multiprocessors(stream),
                       .early = pc__cuda_early(stream),
                       .queue = pc__cuda_queue(stream)};
    memcpy(f.shape, t->shape, sizeof f.shape);
    if (f.count == 0)
        return PC_OK;
    pc__cuda_flip_all(&f, (int)pc_dtype_size(t->dtype), pc__data(t), pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

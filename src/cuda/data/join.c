/* join.c: cat, index_select and its gradient. */
#include "cuda/data/join.h"

#include "cuda/pointwise/each.h"
#include "ops/join.h"

PC__CUDA_KERNEL(cat)
{
    const pc__dim_attributes *a = call->attributes;
    pc_tensor *out = call->out[0];
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        pc_tensor part = *out; /* the place of input i in the output, as a view without an owner */
        part.shape[a->dim] = call->in[i]->shape[a->dim];
        part.offset = out->offset + at * out->strides[a->dim];
        at += part.shape[a->dim];
        PC__TRY(pc__cuda_copy_tensor(stream, call, &part, call->in[i]));
    }
    return PC_OK;
}

/* The picking of a call: `whole` has all entries along the dimension. */
static pc__cuda_picking picking_of(pc_stream *stream, const pc_call *call, const pc_tensor *whole)
{
    const int dim = ((const pc__dim_attributes *)call->attributes)->dim;
    return (pc__cuda_picking){.index = pc__data(call->in[1]),
                              .outer = pc__count(dim, whole->shape),
                              .n = whole->shape[dim],
                              .count = call->in[1]->shape[0],
                              .row = pc__count(whole->ndim - dim - 1, whole->shape + dim + 1),
                              .multiprocessors = pc__cuda_multiprocessors(stream),
                              .fault = pc__cuda_fault_of(stream),
                              .queue = pc__cuda_queue(stream)};
}

PC__CUDA_KERNEL(index_select)
{
    const pc_tensor *whole = call->in[0];
    pc_tensor *picked = call->out[0];
    pc__cuda_picking p = picking_of(stream, call, whole);
    if (p.outer * p.count * p.row == 0)
        return PC_OK;
    const int64_t bytes = p.row * (int64_t)pc_dtype_size(whole->dtype);
    const uintptr_t together = (uintptr_t)bytes | (uintptr_t)pc__data(whole) | (uintptr_t)pc__data(picked);
    const int unit = together % 16 == 0  ? 16
                     : together % 8 == 0 ? 8
                     : together % 4 == 0 ? 4
                     : together % 2 == 0 ? 2
                                         : 1;
    p.row = bytes / unit;
    pc__cuda_select(&p, unit, pc__data(whole), pc__data(picked));
    return pc__cuda_launched(call);
}

/* out[..., index[i], ...] += in[0][..., i, ...] */
PC__CUDA_KERNEL(index_add)
{
    pc_tensor *whole = call->out[0];
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    const pc__cuda_picking p = picking_of(stream, call, whole);
    if (p.count == 0)
        return PC_OK;
    pc__cuda_add_rows(&p, whole->dtype, pc__data(whole), pc__data(call->in[0]));
    return pc__cuda_launched(call);
}

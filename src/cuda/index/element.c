/* element.c: single elements by indices along a dimension. */
#include "cuda/index/element.h"

#include "cuda/index/lists.h"
#include "cuda/index/pick.h"
#include "cuda/index/rows.h"
#include "cuda/pointwise/each.h"
#include "ops/index.h"

/* Entries of a list up to which each may look at all the others: sorting has two kernels, and a number for each element. */
enum { FEW = 64 };

/* `whole` has all places along the dimension. */
static pc__cuda_lists lists_of(pc_stream *stream, const pc_call *call, const pc_tensor *whole)
{
    const int64_t dim = ((const pc__index_attributes *)call->attributes)->dim;
    const pc_tensor *index = call->in[1];
    const int64_t inner = pc__inner_of(index, dim);
    return (pc__cuda_lists){.index = pc__data(index),
                            .lists = pc__outer_of(index, dim) * inner,
                            .inner = inner,
                            .count = index->shape[dim],
                            .n = whole->shape[dim],
                            .skip = -1,
                            .multiprocessors = pc__cuda_multiprocessors(stream),
                            .early = pc__cuda_early(stream),
                            .fault = pc__cuda_fault_of(stream),
                            .queue = pc__cuda_queue(stream)};
}

/* The next dimension outwards; one with the last where both go on as that does. */
static void add_dimension(pc__cuda_picks *p, int64_t size, int64_t from, int64_t at)
{
    if (size == 1)
        return;
    const int last = p->dims - 1;
    if (last >= 0 && from == p->from[last] * p->size[last] && at == p->at[last] * p->size[last]) {
        p->size[last] *= size;
        return;
    }
    p->size[p->dims] = size;
    p->from[p->dims] = from;
    p->at[p->dims++] = at;
}

pc_status pc__cuda_pick(pc_stream *stream, const pc_call *call, bool is_list)
{
    const int64_t dim = ((const pc__index_attributes *)call->attributes)->dim;
    const pc_tensor *whole = call->in[0], *picked = call->out[0];
    pc__cuda_picks p = {.index = pc__data(call->in[1]),
                        .total = pc_tensor_count(picked),
                        .n = whole->shape[dim],
                        .along = whole->strides[dim],
                        .is_list = is_list,
                        .multiprocessors = pc__cuda_multiprocessors(stream),
                        .early = pc__cuda_early(stream),
                        .fault = pc__cuda_fault_of(stream),
                        .queue = pc__cuda_queue(stream)};
    if (p.total == 0)
        return PC_OK;
    for (int d = picked->ndim - 1; d >= 0; d--)
        add_dimension(&p, picked->shape[d], d == dim ? 0 : whole->strides[d], is_list ? d == dim : picked->strides[d]);
    if (!p.dims)
        p.size[p.dims++] = 1;
    for (int d = 0; d < p.dims && p.total < (int64_t)1 << 30; d++)
        p.over[d] = pc__cuda_divisor_of(p.size[d]);
    pc__cuda_gather(&p, (int)pc_dtype_size(whole->dtype), pc__data(whole), pc__data(picked));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(gather)
{
    return pc__cuda_pick(stream, call, false);
}

/* All of whole = base, or 0. */
static pc_status begin(pc_stream *stream, const pc_call *call, pc_tensor *whole, pc_tensor *base)
{
    if (base)
        return pc__cuda_copy_tensor(stream, call, whole, base);
    const size_t bytes = (size_t)pc_tensor_count(whole) * pc_dtype_size(whole->dtype);
    return pc__cuda_check(cudaMemsetAsync(pc__data(whole), 0, bytes, pc__cuda_queue(stream)), call->op->name);
}

/* Of one list, as rows of one element. */
static pc_status add_few(const pc_call *call, const pc__cuda_lists *lists, const pc_tensor *base, const pc_tensor *part)
{
    const pc_tensor *whole = call->out[0];
    const pc__cuda_picking p = {.index = lists->index,
                                .outer = 1,
                                .n = lists->n,
                                .count = lists->count,
                                .row = 1,
                                .multiprocessors = lists->multiprocessors,
                                .early = lists->early,
                                .fault = lists->fault,
                                .queue = lists->queue};
    pc__cuda_add_few_rows(&p, whole->dtype, false, lists->skip, base ? pc__data(base) : NULL, pc__data(part),
                          pc__data(whole));
    return pc__cuda_launched(call);
}

static pc_status scatter(pc_stream *stream, const pc_call *call, pc_tensor *base, const pc_tensor *part)
{
    pc_tensor *whole = call->out[0];
    pc__cuda_lists lists = lists_of(stream, call, whole);
    const int64_t elements = pc_tensor_count(whole);
    if (lists.lists == 0 || (elements == 0 && lists.count == 0))
        return PC_OK;
    if (lists.lists == 1 && elements && pc__cuda_are_few_rows(whole->dtype, lists.count, 1, elements))
        return add_few(call, &lists, base, part);
    if (pc__cuda_scatter_short(&lists, whole->dtype, base ? pc__data(base) : NULL, pc__data(part), pc__data(whole)))
        return pc__cuda_launched(call);
    if (lists.count <= FEW) {
        if (elements)
            PC__TRY(begin(stream, call, whole, base));
        lists.early = 0; /* what is in front may be no kernel */
        if (lists.count)
            pc__cuda_scatter_few(&lists, whole->dtype, base ? pc__data(base) : NULL, pc__data(part), pc__data(whole));
        return pc__cuda_launched(call);
    }
    PC__TRY(pc__cuda_sort(stream, call, &lists));
    if (elements)
        pc__cuda_scatter(&lists, whole->dtype, base ? pc__data(base) : NULL, pc__data(part), pc__data(whole));
    return pc__cuda_launched(call);
}

/* What is named once needs no sums. */
static pc_status scatter_apart(pc_stream *stream, const pc_call *call, const pc_tensor *part)
{
    pc_tensor *whole = call->out[0];
    pc__cuda_lists lists = lists_of(stream, call, whole);
    if (lists.count < lists.n) {
        PC__TRY(begin(stream, call, whole, NULL));
        lists.early = 0; /* what is in front may be no kernel */
    }
    if (pc_tensor_count(part) > 0)
        pc__cuda_scatter_apart(&lists, (int)pc_dtype_size(whole->dtype), pc__data(part), pc__data(whole));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(gather_backward)
{
    if (((const pc__index_attributes *)call->attributes)->apart)
        return scatter_apart(stream, call, call->in[0]);
    return scatter(stream, call, NULL, call->in[0]);
}

PC__CUDA_KERNEL(scatter_add)
{
    return scatter(stream, call, call->in[0], call->in[2]);
}

PC__CUDA_KERNEL(one_hot)
{
    const pc__cuda_lists lists = {.index = pc__data(call->in[0]),
                                  .lists = 1,
                                  .inner = 1,
                                  .count = pc_tensor_count(call->in[0]),
                                  .n = ((const pc__index_attributes *)call->attributes)->size,
                                  .skip = -1,
                                  .multiprocessors = pc__cuda_multiprocessors(stream),
                                  .early = pc__cuda_early(stream),
                                  .fault = pc__cuda_fault_of(stream),
                                  .queue = pc__cuda_queue(stream)};
    if (lists.count == 0)
        return PC_OK;
    pc__cuda_one_hot(&lists, pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

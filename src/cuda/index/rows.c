/* rows.c: rows by an index along a dimension. */
#include "cuda/index/rows.h"

#include "cuda/index/element.h"
#include "cuda/index/lists.h"
#include "cuda/index/pick.h"
#include "cuda/pointwise/each.h"
#include "ops/index.h"

/* The picking of a call: `whole` has all places along the dimension. */
static pc__cuda_picking picking_of(pc_stream *stream, const pc_call *call, const pc_tensor *whole)
{
    const pc__index_attributes *a = call->attributes;
    return (pc__cuda_picking){.index = pc__data(call->in[1]),
                              .outer = pc__outer_of(whole, a->dim),
                              .n = whole->shape[a->dim],
                              .count = call->in[1]->shape[0],
                              .row = pc__inner_of(whole, a->dim),
                              .multiprocessors = pc__cuda_multiprocessors(stream),
                              .early = pc__cuda_early(stream),
                              .fault = pc__cuda_fault_of(stream),
                              .queue = pc__cuda_queue(stream)};
}

static uintptr_t place_of(const pc_tensor *t)
{
    return t ? (uintptr_t)pc__data(t) : 0;
}

/* The most bytes, up to 16, of which rows and all tensors are whole. */
static int unit_of(const pc__cuda_picking *p, const pc_tensor *a, const pc_tensor *b, const pc_tensor *c)
{
    const uintptr_t row = (uintptr_t)p->row * pc_dtype_size(a->dtype);
    const uintptr_t together = row | place_of(a) | place_of(b) | place_of(c) | 16;
    return (int)(together & -together);
}

static pc_status pick(pc_stream *stream, const pc_call *call)
{
    const pc_tensor *whole = call->in[0], *picked = call->out[0];
    if (!pc__is_contiguous(whole))
        return pc__cuda_pick(stream, call, true);
    pc__cuda_picking p = picking_of(stream, call, whole);
    if (p.outer * p.count * p.row == 0)
        return PC_OK;
    const int unit = unit_of(&p, whole, picked, NULL);
    p.row = p.row * (int64_t)pc_dtype_size(whole->dtype) / unit;
    pc__cuda_select(&p, unit, pc__data(whole), pc__data(picked));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(index_select)
{
    return pick(stream, call);
}

PC__CUDA_KERNEL(embedding)
{
    return pick(stream, call);
}

enum { NARROW = 32 /* bytes of a row, below which neighbours in memory are of other rows: elements go one by one */ };

bool pc__cuda_are_few_rows(int dtype, int64_t count, int64_t outer, int64_t slice)
{
    enum { CHEAP = 64, LONG = 4096 };
    const bool has_kernel = dtype == PC_F32 || pc__is_half((pc_dtype)dtype);
    const bool in_32_bits = outer == 1 || slice <= UINT32_MAX; /* places, where a block may have some of two slices */
    return has_kernel && in_32_bits && count <= (outer == 1 || slice >= LONG ? PC__CUDA_FEW_ROWS : CHEAP);
}

/* Entries of a chunk, where the sums of places are made of those of chunks (few_places.cu); 0: they are not. Chunks have more entries
 * than there are places, so that what is made of them is less than they are. */
static int64_t chunk_of(const pc__cuda_picking *p, int dtype)
{
    enum { LEAST = 2048, SOME = 64, MANY = 512 /* blocks */, MOST = 65535 };
    const int64_t slabs = (p->outer * p->row + PC__CUDA_CHUNK_LANES - 1) / PC__CUDA_CHUNK_LANES;
    const int64_t blocks = (p->count + PC__CUDA_LONG_CHUNK - 1) / PC__CUDA_LONG_CHUNK * slabs;
    if ((dtype != PC_F32 && !pc__is_half((pc_dtype)dtype)) || p->n > PC__CUDA_FEW_PLACES || p->count < LEAST ||
        p->count < 4 * p->n || p->count > INT32_MAX || slabs > MOST)
        return 0;
    if (p->n <= PC__CUDA_CHUNK / 2)
        return blocks >= MANY ? PC__CUDA_LONG_CHUNK : PC__CUDA_CHUNK;
    return blocks >= SOME ? PC__CUDA_LONG_CHUNK : 0;
}

/* The sums of few places. */
static pc_status add_chunks(pc_stream *stream, const pc_call *call, pc__cuda_picking *p, int64_t chunk, bool packed,
                            const void *before, const pc_tensor *picked)
{
    const pc_tensor *whole = call->out[0];
    const size_t sum = pc__is_half(whole->dtype) ? sizeof(float) : pc_dtype_size(whole->dtype);
    const int64_t chunks = (p->count + chunk - 1) / chunk,
                  skip = ((const pc__index_attributes *)call->attributes)->skip;
    p->parts = pc__cuda_scratch(stream, (size_t)(chunks * pc_tensor_count(whole)) * sum);
    if (!p->parts)
        return PC_ERR_MEMORY;
    pc__cuda_add_few_places(p, whole->dtype, packed, skip, chunk, before, pc__data(picked), pc__data(whole));
    return pc__cuda_launched(call);
}

/* whole = base (NULL: zeros) with what was picked added, or put in its place. */
static pc_status put(pc_stream *stream, const pc_call *call, const pc_tensor *base, const pc_tensor *picked, bool add)
{
    const pc_tensor *whole = call->out[0];
    pc__cuda_picking p = picking_of(stream, call, whole);
    pc__cuda_lists lists = {.index = p.index,
                            .lists = 1,
                            .inner = 1,
                            .count = p.count,
                            .n = p.n,
                            .skip = ((const pc__index_attributes *)call->attributes)->skip};
    if (p.outer * p.row == 0 || (p.n == 0 && p.count == 0))
        return PC_OK;
    const int unit = unit_of(&p, whole, picked, base);
    const int64_t bytes = (int64_t)pc_dtype_size(whole->dtype);
    const void *before = base ? pc__data(base) : NULL;
    const int64_t units = unit == 16 ? p.row * bytes / unit : p.row;
    if (add && p.n > 0 && pc__cuda_are_few_rows(whole->dtype, p.count, p.outer, p.n * units)) {
        p.row = units;
        pc__cuda_add_few_rows(&p, whole->dtype, unit == 16, lists.skip, before, pc__data(picked), pc__data(whole));
        return pc__cuda_launched(call);
    }
    const bool by_element = p.outer > 1 && p.row * bytes < NARROW;
    if (add && p.n > 0 && !by_element) {
        pc__cuda_picking by_units = p;
        by_units.row = units;
        const int64_t chunk = chunk_of(&by_units, whole->dtype);
        if (chunk > 0)
            return add_chunks(stream, call, &by_units, chunk, unit == 16, before, picked);
    }
    const bool has_windows = add && !by_element && p.count > PC__CUDA_LONG_ROW;
    if (has_windows) /* sums of 16-bit numbers are floats */
        lists.beside_bytes = (size_t)((p.count - 1) / PC__CUDA_WINDOW + 1) * 2 * (size_t)(p.outer * p.row * bytes) *
                             (pc__is_half(whole->dtype) ? 2 : 1);
    PC__TRY(pc__cuda_sort(stream, call, &lists));
    p.start = lists.start;
    p.order = lists.order;
    p.parts = lists.beside;
    if (p.n > 0 && add && by_element) {
        lists.lists = p.outer * p.row;
        lists.inner = p.row;
        lists.shared = 1;
        pc__cuda_scatter(&lists, whole->dtype, before, pc__data(picked), pc__data(whole));
    } else if (p.n > 0 && add) {
        p.row = units;
        if (has_windows)
            pc__cuda_add_windows(&p, whole->dtype, unit == 16, pc__data(picked));
        pc__cuda_sum_rows(&p, whole->dtype, unit == 16, before, pc__data(picked), pc__data(whole));
    } else if (p.n > 0) {
        p.row = p.row * bytes / unit;
        pc__cuda_put_rows(&p, unit, before, pc__data(picked), pc__data(whole));
    }
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(index_select_backward)
{
    return put(stream, call, NULL, call->in[0], true);
}

PC__CUDA_KERNEL(index_add)
{
    return put(stream, call, call->in[0], call->in[2], true);
}

PC__CUDA_KERNEL(index_copy)
{
    return put(stream, call, call->in[0], call->in[2], false);
}

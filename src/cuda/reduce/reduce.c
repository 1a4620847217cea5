/* reduce.c: sums, maxima and minima of [outer, reduced, inner], in one pass or two; of few short rows by few.cu, of
 * few rows over each other by slabs.cu, and of inputs with gaps by short.c. */
#include "cuda/reduce/few.h"
#include "cuda/reduce/plan.h"
#include "cuda/reduce/slabs.h"

/* Rows of some length that begin, or end, inside of an access. */
static bool begins_anywhere(const pc__reduce_attributes *a, const pc_tensor *t)
{
    const int pack = pc__cuda_vector_of(t->dtype);
    return a->inner == 1 && a->reduced >= 8 * pack && (a->reduced % pack != 0 || (uintptr_t)pc__data(t) % 16 != 0);
}

/* What the second pass sees. */
static pc__reduce_attributes rest_of(const pc__cuda_reduction *first)
{
    return (pc__reduce_attributes){.outer = first->outer, .reduced = first->parts, .inner = first->inner};
}

/* NULL: nobody wants them. */
static void *values_of(const pc_call *call)
{
    return ((const pc__reduce_attributes *)call->attributes)->places ? NULL : pc__data(call->out[0]);
}

/* Rows of at least so many elements, where a warp for each is fastest. */
static bool is_few(pc_stream *stream, const pc_call *call, int64_t least, pc__cuda_few *few)
{
    enum { ROWS = PC__FEW_ROWS / 2 /* more of them fill the device otherwise */ };
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    if (a->inner > 1 || a->outer > ROWS || a->reduced < least || a->reduced > PC__FEW_ELEMENTS || !pc__is_contiguous(t))
        return false;
    *few = (pc__cuda_few){.rows = (unsigned)a->outer,
                          .n = (unsigned)a->reduced,
                          .in = pc__data(t),
                          .out = values_of(call),
                          .from = t->dtype,
                          .to = call->out[0]->dtype,
                          .divisor = a->divisor,
                          .early = pc__cuda_early(stream),
                          .queue = pc__cuda_queue(stream)};
    return true;
}

static bool on_16_bytes(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

/* Up to eight rows over each other, or an input whose elements are the results. `pack`: neighbours of a thread where these are
 * many. */
static bool is_slabs(pc_stream *stream, const pc_call *call, int pack, pc__cuda_slabs *s)
{
    enum { MANY = 65536 /* results: one each fills the chip */, EXACT = 1 << 24 /* divisors that float32 has */ };
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int64_t across = a->reduced > 1 ? a->inner : a->outer * a->inner, results = a->outer * a->inner;
    if (a->reduced < 1 || a->reduced > PC__SLABS_ROWS || across == 1 || results > INT32_MAX || a->divisor > EXACT ||
        !pc__is_contiguous(t))
        return false;
    *s = (pc__cuda_slabs){.in = pc__data(t),
                          .out = values_of(call),
                          .places = call->n_out > 1 ? pc__data(call->out[1]) : NULL,
                          .rows = (int)a->reduced,
                          .from = t->dtype,
                          .to = call->out[0]->dtype,
                          .divisor = a->divisor,
                          .early = pc__cuda_early(stream),
                          .queue = pc__cuda_queue(stream)};
    const bool packs =
        results > MANY && across % pack == 0 && on_16_bytes(s->in) && on_16_bytes(s->out) && on_16_bytes(s->places);
    s->pack = packs ? pack : 1;
    s->count = (unsigned)(results / s->pack);
    s->across = pc__cuda_divisor_of(across / s->pack);
    return true;
}

/* Rows beside each other as one, where that makes accesses whole; *fold: how many. Columns of a whole row are then `fold` sums,
 * parts of which a second pass adds up. */
static pc__reduce_attributes with_rows_together(const pc__reduce_attributes *a, const pc_tensor *t, int64_t *fold)
{
    enum { LARGE = 1 << 20 /* elements, for a second pass to pay */, ROWS = 1024, WIDE = 2048 };
    const int64_t pack = pc__cuda_vector_of(t->dtype), lowest = a->inner & -a->inner, common = PC__MIN(lowest, pack);
    pc__reduce_attributes together = *a;
    *fold = 1;
    if (a->inner == 1 || common == pack || a->outer * a->reduced * a->inner < LARGE || a->reduced < ROWS ||
        a->inner * (pack / common) > WIDE || a->reduced % (pack / common) || (uintptr_t)pc__data(t) % 16)
        return together;
    *fold = pack / common;
    together.inner *= *fold;
    together.reduced /= *fold;
    return together;
}

/* The second pass of a sum. */
static pc_status add_parts(pc_stream *stream, const pc_call *call, const pc__reduce_attributes *rest, const void *sums,
                           int between)
{
    pc__cuda_reduction second = pc__cuda_plan(stream, rest, sums, sizeof(double), 2, false, false);
    second.divisor = ((const pc__reduce_attributes *)call->attributes)->divisor;
    pc__cuda_sum(&second, sums, between, pc__data(call->out[0]), call->out[0]->dtype);
    return pc__cuda_launched(call);
}

static pc_status sum_short(pc_stream *stream, const pc_call *call, pc__cuda_short *s, int between)
{
    const pc_tensor *t = call->in[0];
    const pc__reduce_attributes *a = call->attributes;
    if (!pc__is_contiguous(t))
        pc__cuda_cut_short(s, a->reduced);
    if (s->parts == 1) {
        s->divisor = a->divisor;
        pc__cuda_short_sum(s, pc__data(t), t->dtype, pc__data(call->out[0]), call->out[0]->dtype);
        return pc__cuda_launched(call);
    }
    void *sums = pc__cuda_scratch(stream, s->results * sizeof(double));
    if (!sums)
        return PC_ERR_MEMORY;
    pc__cuda_short_sum(s, pc__data(t), t->dtype, sums, between);
    PC__TRY(pc__cuda_launched(call));
    const int64_t kept = s->results / s->parts;
    const pc__reduce_attributes rest = {
        .outer = s->across ? 1 : kept, .reduced = s->parts, .inner = s->across ? kept : 1};
    return add_parts(stream, call, &rest, sums, between);
}

PC__CUDA_KERNEL(sum)
{
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int dtype = t->dtype, between = dtype == PC_I64 ? PC_I64 : PC_F64;
    PC__TRY(pc__cuda_takes(call, PC__FLOATS | PC__BIT(PC_I64)));
    if (a->outer * a->inner == 0)
        return PC_OK;
    pc__cuda_few few;
    if (is_few(stream, call, 1, &few)) {
        pc__cuda_few_sum(&few);
        return pc__cuda_launched(call);
    }
    pc__cuda_slabs slabs;
    if (is_slabs(stream, call, PC__SLABS_SUM_PACK(pc_dtype_size(t->dtype)), &slabs)) {
        pc__cuda_slabs_sum(&slabs);
        return pc__cuda_launched(call);
    }
    const bool anywhere = begins_anywhere(a, t);
    pc__cuda_short some;
    if (pc__cuda_plan_short(stream, a, t, pc__cuda_pack_at(a, pc__data(t), pc__cuda_vector_of(dtype)), PC__SHORT_SUMS,
                            &some))
        return sum_short(stream, call, &some, between);
    int64_t fold;
    const pc__reduce_attributes rows = with_rows_together(a, t, &fold);
    pc__cuda_reduction first =
        pc__cuda_plan(stream, &rows, pc__data(t), pc_dtype_size(t->dtype), pc__cuda_vector_of(dtype), true, anywhere);
    first.layout = anywhere ? PC__REDUCE_ANYWHERE : first.layout;
    if (first.parts * fold == 1) {
        first.divisor = a->divisor;
        pc__cuda_sum(&first, pc__data(t), dtype, pc__data(call->out[0]), call->out[0]->dtype);
        return pc__cuda_launched(call);
    }
    void *sums = pc__cuda_scratch(stream, (size_t)(first.outer * first.parts * first.inner) * sizeof(double));
    if (!sums)
        return PC_ERR_MEMORY;
    const pc__reduce_attributes rest = {.outer = a->outer, .reduced = first.parts * fold, .inner = a->inner};
    pc__cuda_sum(&first, pc__data(t), dtype, sums, between);
    PC__TRY(pc__cuda_launched(call));
    return add_parts(stream, call, &rest, sums, between);
}

/* The extremes of rows that begin anywhere, whose places are of no account. */
static pc_status best_of_rows(pc_stream *stream, const pc_call *call, int dtype, int least)
{
    const pc_tensor *t = call->in[0];
    const size_t size = pc_dtype_size(t->dtype);
    pc__cuda_reduction first =
        pc__cuda_plan(stream, call->attributes, pc__data(t), size, pc__cuda_vector_of(dtype), true, true);
    first.least = least;
    if (first.parts == 1) {
        pc__cuda_most(&first, pc__data(t), dtype, pc__data(call->out[0]));
        return pc__cuda_launched(call);
    }
    void *between = pc__cuda_scratch(stream, (size_t)(first.outer * first.parts) * size);
    if (!between)
        return PC_ERR_MEMORY;
    const pc__reduce_attributes rest = rest_of(&first);
    pc__cuda_reduction second = pc__cuda_plan(stream, &rest, between, size, pc__cuda_vector_of(dtype), false, true);
    second.least = least;
    pc__cuda_most(&first, pc__data(t), dtype, between);
    PC__TRY(pc__cuda_launched(call));
    pc__cuda_most(&second, between, dtype, pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

static pc_status extreme(pc_stream *stream, const pc_call *call, int least)
{
    enum { LEAST = 16 /* elements of a row for a warp */ };
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int dtype = t->dtype == PC_BOOL ? PC_U8 : t->dtype;
    const size_t size = pc_dtype_size(t->dtype);
    if (a->outer * a->inner == 0)
        return PC_OK;
    const bool rows = a->inner == 1;
    pc__cuda_few few;
    if (rows && a->whole && pc__is_contiguous(t))
        return best_of_rows(stream, call, dtype, least);
    if (is_few(stream, call, LEAST, &few)) {
        few.least = least;
        few.places = pc__data(call->out[1]);
        pc__cuda_few_max(&few);
        return pc__cuda_launched(call);
    }
    pc__cuda_slabs slabs;
    if (is_slabs(stream, call, PC__SLABS_MAX_PACK(size), &slabs)) {
        slabs.least = least;
        pc__cuda_slabs_max(&slabs);
        return pc__cuda_launched(call);
    }
    pc__cuda_short some;
    if (pc__cuda_plan_short(stream, a, t, 1, PC__SHORT_EXTREMES, &some)) {
        some.least = least;
        pc__cuda_short_max(&some, pc__data(t), dtype, values_of(call), pc__data(call->out[1]));
        return pc__cuda_launched(call);
    }
    pc__cuda_reduction first =
        pc__cuda_plan(stream, a, pc__data(t), size, rows ? pc__cuda_vector_of(dtype) : 1, true, rows);
    first.least = least;
    if (first.parts == 1) {
        pc__cuda_max(&first, pc__data(t), dtype, NULL, values_of(call), pc__data(call->out[1]));
        return pc__cuda_launched(call);
    }
    const size_t n = (size_t)(first.outer * first.parts * first.inner);
    int64_t *places = pc__cuda_scratch(stream, n * (sizeof *places + size));
    if (!places)
        return PC_ERR_MEMORY;
    void *values = places + n;
    const pc__reduce_attributes rest = rest_of(&first);
    pc__cuda_reduction second = pc__cuda_plan(stream, &rest, values, size, 1, false, false);
    second.least = least;
    pc__cuda_max(&first, pc__data(t), dtype, NULL, values, places);
    PC__TRY(pc__cuda_launched(call));
    pc__cuda_max(&second, values, dtype, places, values_of(call), pc__data(call->out[1]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(max)
{
    return extreme(stream, call, false);
}

PC__CUDA_KERNEL(min)
{
    return extreme(stream, call, true);
}

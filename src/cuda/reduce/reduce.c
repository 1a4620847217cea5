/* reduce.c: sums and maxima of [outer, reduced, inner], in one pass or two; of inputs with gaps by short.c. */
#include "cuda/reduce/reduce.h"
#include "cuda/reduce/short.h"

#include "cuda/pointwise/each.h"
#include "ops/reduce.h"

enum { WARP = 32, THREADS = 256, IN_FLIGHT = 4, ROW_BLOCKS = 4096, COLUMN_PARTS = 256 };

/* At most `most` parts whose pieces are whole multiples of `least`. */
static void cut(pc__cuda_reduction *r, int64_t most, int64_t least)
{
    const int64_t parts = PC__MAX(1, PC__MIN(most, pc__cuda_pieces(r->reduced, least)));
    r->piece = PC__MAX(1, pc__cuda_pieces(pc__cuda_pieces(r->reduced, parts), least)) * least;
    r->parts = PC__MAX(1, pc__cuda_pieces(r->reduced, r->piece));
}

/* A block's turn is 4 accesses of each thread. Rows shorter than that go to a warp or a quarter of one. */
static void plan_rows(pc__cuda_reduction *r, bool two_passes)
{
    enum { FEW = 64 };
    const int64_t turn = (int64_t)IN_FLIGHT * r->pack;
    r->layout = PC__REDUCE_ROWS;
    r->lanes = r->reduced <= 8 * turn ? 8 : r->reduced <= 32 * turn * 2 ? 32 : THREADS;
    if (r->lanes == 32 && r->outer < FEW && r->reduced > 32 * turn)
        r->lanes = THREADS;
    if (r->lanes == THREADS && r->outer < FEW && r->reduced > THREADS * turn && r->reduced <= PC__WIDE_THREADS * turn) {
        r->lanes = PC__WIDE_THREADS; /* one turn, where pieces would take a second launch */
        cut(r, 1, 1);
        return;
    }
    cut(r, two_passes && r->lanes == THREADS ? ROW_BLOCKS / r->outer : 1, THREADS * turn);
}

/* Rows of many turns of large blocks: a piece is 4 turns or more, so that its end, where a block waits for its last
 * threads, is little of it. Fewer pieces than half of a large GPU's multiprocessors would leave it idle: those are cut
 * finer. */
static bool plan_long(pc__cuda_reduction *r)
{
    enum { TURNS = 4, PIECES = 64 };
    const int64_t turn = (int64_t)PC__LONG_THREADS * PC__LONG_AT_ONCE * r->pack;
    if (r->reduced < 8 * TURNS * turn || r->outer * (r->reduced / (TURNS * turn)) < PIECES)
        return false;
    r->layout = PC__REDUCE_LONG;
    r->lanes = PC__LONG_THREADS;
    cut(r, ROW_BLOCKS / r->outer, TURNS * turn);
    return true;
}

static int64_t column_blocks(const pc__cuda_reduction *r)
{
    return r->outer * pc__cuda_pieces(r->inner / r->pack, r->lanes);
}

/* Rows that a block of columns reads at once. */
static int64_t column_turn(const pc__cuda_reduction *r)
{
    return (int64_t)r->threads / r->lanes * 8;
}

/* Blocks that are few are made narrower, down to a sector of memory, and higher: what counts is how many turns each has. */
static void raise_columns(pc__cuda_reduction *r, int64_t access)
{
    enum { SECTOR = 32, FEW = 64, FULL = 32768 /* threads */ };
    const int most = r->pack == 8 ? PC__WIDE_PACK_THREADS : PC__WIDE_THREADS;
    while (column_blocks(r) < FEW && r->lanes * access > SECTOR && r->reduced > column_turn(r))
        r->lanes /= 2;
    while (r->threads < most && column_blocks(r) * r->threads < FULL && r->reduced > column_turn(r))
        r->threads *= 2;
}

/* Where rows are too few for the threads of a column, blocks are made wider, or smaller: the less there is to add up at their
 * end. */
static void widen_columns(pc__cuda_reduction *r)
{
    enum { MANY = 264 /* blocks: two for each multiprocessor of a large GPU */, SMALL = 64 };
    while (r->lanes < WARP && column_turn(r) >= 2 * r->reduced && column_blocks(r) >= MANY)
        r->lanes *= 2;
    while (r->threads > SMALL && column_turn(r) >= 2 * r->reduced)
        r->threads /= 2;
}

/* Accesses side by side are 128 bytes, which is a whole cache line; the other threads take other rows. A second pass costs
 * what a block needs for some 1000 rows, or 64 KB. */
static void plan_columns(pc__cuda_reduction *r, size_t element_bytes, bool two_passes)
{
    enum { FEW = 16, SHORT = 256, MANY = 16384, BLOCKS = 2048, LINE = 128, ROWS = 1024, STRIP = 65536 };
    const int64_t columns = r->inner / r->pack, access = r->pack * (int64_t)element_bytes;
    if (r->reduced <= FEW || (r->outer * columns >= MANY && r->reduced <= SHORT)) {
        r->layout = PC__REDUCE_SINGLES;
        r->threads = r->outer * columns < MANY ? THREADS / 4 : THREADS;
        cut(r, 1, 1);
        return;
    }
    r->layout = PC__REDUCE_COLUMNS;
    r->threads = THREADS;
    r->lanes = 1;
    while (r->lanes < columns && r->lanes < WARP && r->lanes * access < LINE)
        r->lanes *= 2;
    widen_columns(r);
    pc__cuda_reduction high = *r;
    raise_columns(&high, access);
    if (two_passes && r->reduced > ROWS && r->reduced * high.lanes * access > STRIP) {
        cut(r, PC__MIN(COLUMN_PARTS, BLOCKS / column_blocks(r)), column_turn(r));
    } else {
        *r = high;
        cut(r, 1, 1);
    }
}

/* `pack`, or 1 where not every access would be a whole one. */
static int pack_at(const pc__reduce_attributes *a, const void *in, int pack)
{
    return (uintptr_t)in % 16 == 0 && (a->inner == 1 ? a->reduced : a->inner) % pack == 0 ? pack : 1;
}

/* How to go over [outer, reduced, inner] at `in`; `two_passes` allows several parts. With `anywhere` rows have packs
 * wherever they begin. */
static pc__cuda_reduction plan(pc_stream *stream, const pc__reduce_attributes *a, const void *in, size_t element_bytes,
                               int pack, bool two_passes, bool anywhere)
{
    pc__cuda_reduction r = {.outer = a->outer, .reduced = a->reduced, .inner = a->inner, .lanes = 1, .divisor = 1};
    r.pack = anywhere ? pack : pack_at(a, in, pack);
    r.queue = pc__cuda_queue(stream);
    r.early = pc__cuda_early(stream);
    if (a->inner == 1 && r.pack > 1 && two_passes && !anywhere && plan_long(&r))
        return r;
    if (a->inner == 1)
        plan_rows(&r, two_passes);
    else
        plan_columns(&r, element_bytes, two_passes);
    return r;
}

static int vector_of(int dtype)
{
    return 16 / (int)pc_dtype_size((pc_dtype)dtype);
}

/* Rows of some length that begin, or end, inside of an access. */
static bool begins_anywhere(const pc__reduce_attributes *a, const pc_tensor *t)
{
    const int pack = vector_of(t->dtype);
    return a->inner == 1 && a->reduced >= 8 * pack && (a->reduced % pack != 0 || (uintptr_t)pc__data(t) % 16 != 0);
}

/* What the second pass sees. */
static pc__reduce_attributes rest_of(const pc__cuda_reduction *first)
{
    return (pc__reduce_attributes){.outer = first->outer, .reduced = first->parts, .inner = first->inner};
}

/* The second pass of a sum. */
static pc_status add_parts(pc_stream *stream, const pc_call *call, const pc__reduce_attributes *rest, const void *sums,
                           int between)
{
    pc__cuda_reduction second = plan(stream, rest, sums, sizeof(double), 2, false, false);
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
    const bool anywhere = begins_anywhere(a, t);
    pc__cuda_short few;
    if (pc__cuda_plan_short(stream, a, t, pack_at(a, pc__data(t), vector_of(dtype)), true, &few))
        return sum_short(stream, call, &few, between);
    pc__cuda_reduction first = plan(stream, a, pc__data(t), pc_dtype_size(t->dtype), vector_of(dtype), true, anywhere);
    first.layout = anywhere ? PC__REDUCE_ANYWHERE : first.layout;
    if (first.parts == 1) {
        first.divisor = a->divisor;
        pc__cuda_sum(&first, pc__data(t), dtype, pc__data(call->out[0]), call->out[0]->dtype);
        return pc__cuda_launched(call);
    }
    void *sums = pc__cuda_scratch(stream, (size_t)(first.outer * first.parts * first.inner) * sizeof(double));
    if (!sums)
        return PC_ERR_MEMORY;
    const pc__reduce_attributes rest = rest_of(&first);
    pc__cuda_sum(&first, pc__data(t), dtype, sums, between);
    PC__TRY(pc__cuda_launched(call));
    return add_parts(stream, call, &rest, sums, between);
}

/* The largest of rows that begin anywhere, whose places are of no account. */
static pc_status most_of_rows(pc_stream *stream, const pc_call *call, int dtype)
{
    const pc_tensor *t = call->in[0];
    const size_t size = pc_dtype_size(t->dtype);
    const pc__cuda_reduction first = plan(stream, call->attributes, pc__data(t), size, vector_of(dtype), true, true);
    if (first.parts == 1) {
        pc__cuda_most(&first, pc__data(t), dtype, pc__data(call->out[0]));
        return pc__cuda_launched(call);
    }
    void *between = pc__cuda_scratch(stream, (size_t)(first.outer * first.parts) * size);
    if (!between)
        return PC_ERR_MEMORY;
    const pc__reduce_attributes rest = rest_of(&first);
    const pc__cuda_reduction second = plan(stream, &rest, between, size, vector_of(dtype), false, true);
    pc__cuda_most(&first, pc__data(t), dtype, between);
    PC__TRY(pc__cuda_launched(call));
    pc__cuda_most(&second, between, dtype, pc__data(call->out[0]));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(max)
{
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int dtype = t->dtype == PC_BOOL ? PC_U8 : t->dtype;
    const size_t size = pc_dtype_size(t->dtype);
    if (a->outer * a->inner == 0)
        return PC_OK;
    const bool rows = a->inner == 1;
    pc__cuda_short few;
    if (pc__cuda_plan_short(stream, a, t, 1, false, &few)) {
        pc__cuda_short_max(&few, pc__data(t), dtype, pc__data(call->out[0]), pc__data(call->out[1]));
        return pc__cuda_launched(call);
    }
    if (rows && a->whole)
        return most_of_rows(stream, call, dtype);
    const pc__cuda_reduction first = plan(stream, a, pc__data(t), size, rows ? vector_of(dtype) : 1, true, rows);
    if (first.parts == 1) {
        pc__cuda_max(&first, pc__data(t), dtype, NULL, pc__data(call->out[0]), pc__data(call->out[1]));
        return pc__cuda_launched(call);
    }
    const size_t n = (size_t)(first.outer * first.parts * first.inner);
    int64_t *places = pc__cuda_scratch(stream, n * (sizeof *places + size));
    if (!places)
        return PC_ERR_MEMORY;
    void *values = places + n;
    const pc__reduce_attributes rest = rest_of(&first);
    const pc__cuda_reduction second = plan(stream, &rest, values, size, 1, false, false);
    pc__cuda_max(&first, pc__data(t), dtype, NULL, values, places);
    PC__TRY(pc__cuda_launched(call));
    pc__cuda_max(&second, values, dtype, places, pc__data(call->out[0]), pc__data(call->out[1]));
    return pc__cuda_launched(call);
}

/* plan.c: how reductions of [outer, reduced, inner] are cut into blocks and passes. */
#include "cuda/reduce/plan.h"

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
    enum { FEW = 64, MANY = 512 /* elements, which a warp asks one behind the other */ };
    const int64_t turn = (int64_t)IN_FLIGHT * r->pack;
    r->layout = PC__REDUCE_ROWS;
    r->lanes = r->reduced <= 8 * turn ? 8 : r->reduced <= 32 * turn * 2 ? 32 : THREADS;
    if (r->lanes == 8 && r->outer < FEW && r->reduced > 8 * r->pack)
        r->lanes = 32; /* fewer accesses one behind the other */
    if (r->lanes == 32 && r->outer < FEW && r->reduced > PC__MIN(32 * turn, MANY))
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

enum { ROWS = 1024 /* what a second pass costs a block */ };

/* Blocks that are few are made narrower, down to a sector of memory, or less where all there is is little, and higher: what
 * counts is how many turns each has. */
static void raise_columns(pc__cuda_reduction *r, int64_t access)
{
    enum { SECTOR = 32, LITTLE = 1 << 17 /* bytes */, PART = 8, FEW = 64, FULL = 32768 /* threads */ };
    const int64_t bytes = r->outer * r->reduced * (r->inner / r->pack) * access;
    const int64_t least = bytes <= LITTLE && r->reduced <= ROWS ? PART : SECTOR;
    const int most = r->pack == 8 ? PC__WIDE_PACK_THREADS : PC__WIDE_THREADS;
    while (column_blocks(r) < FEW && r->lanes > 1 && r->lanes * access > least && r->reduced > column_turn(r))
        r->lanes /= 2;
    while (r->threads < most && column_blocks(r) * r->threads < FULL && r->reduced > column_turn(r))
        r->threads *= 2;
}

/* Where rows are too few for the threads of a column, blocks are made wider, or smaller: the less there is to add up at their
 * end. */
static void widen_columns(pc__cuda_reduction *r)
{
    enum { MANY = 264 /* blocks: two for each multiprocessor of a large GPU */, SMALL = 64 };
    while (r->lanes < WARP && r->lanes < r->inner / r->pack && column_turn(r) >= 2 * r->reduced &&
           column_blocks(r) >= MANY)
        r->lanes *= 2;
    while (r->threads > SMALL && column_turn(r) >= 2 * r->reduced)
        r->threads /= 2;
}

/* Where there is much to read, and a second pass anyway: warps side by side along rows, and one round of blocks, each of
 * which goes on for several turns. */
static bool plan_large_columns(pc__cuda_reduction *r)
{
    enum { LARGE = 1 << 23 /* elements */, ROUND = 384 /* blocks: three for each multiprocessor of a large GPU */ };
    const int64_t columns = r->inner / r->pack, waste = (WARP - columns % WARP) % WARP;
    if (r->pack == 1 || r->outer * r->reduced * r->inner < LARGE || waste * 4 > columns)
        return false;
    pc__cuda_reduction wide = *r;
    wide.lanes = WARP;
    if (column_blocks(&wide) * 2 > ROUND || wide.reduced < 4 * column_turn(&wide))
        return false;
    cut(&wide, PC__MIN(COLUMN_PARTS, ROUND / column_blocks(&wide)), column_turn(&wide));
    *r = wide;
    return true;
}

/* Accesses side by side are 128 bytes, which is a whole cache line; the other threads take other rows. A second pass costs
 * what a block needs for some 1000 rows, or 64 KB. */
static void plan_columns(pc__cuda_reduction *r, size_t element_bytes, bool two_passes)
{
    enum { FEW = 16, SHORT = 256, MANY = 16384, BLOCKS = 2048, LINE = 128, STRIP = 65536 };
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
        if (!plan_large_columns(r))
            cut(r, PC__MIN(COLUMN_PARTS, BLOCKS / column_blocks(r)), column_turn(r));
    } else {
        *r = high;
        cut(r, 1, 1);
    }
}

int pc__cuda_pack_at(const pc__reduce_attributes *a, const void *in, int pack)
{
    return (uintptr_t)in % 16 == 0 && (a->inner == 1 ? a->reduced : a->inner) % pack == 0 ? pack : 1;
}

pc__cuda_reduction pc__cuda_plan(pc_stream *stream, const pc__reduce_attributes *a, const void *in,
                                 size_t element_bytes, int pack, bool two_passes, bool anywhere)
{
    pc__cuda_reduction r = {.outer = a->outer, .reduced = a->reduced, .inner = a->inner, .lanes = 1, .divisor = 1};
    r.pack = anywhere ? pack : pc__cuda_pack_at(a, in, pack);
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

/* rank.c: sorts along a dimension, and searches in what is sorted. */
#include "cuda/index/rank.h"

#include "cuda/pointwise/each.h"
#include "ops/index.h"

#include <math.h>

static bool is_wide(const pc__cuda_ranking *r)
{
    return r->dtype == PC_I64 || r->dtype == PC_F64;
}

/* Estimates in microseconds, fitted to nothing: a launch, then memory (most of it second-level) and instructions. */
static double merge_time(const pc__cuda_ranking *r)
{
    const double items = (double)(r->lists * r->n), weight = is_wide(r) ? 1.5 : 1;
    double time = 6 + 2e-5 * items * weight;
    for (int64_t length = PC__CUDA_TILE; length < r->n; length *= 2) {
        const double kept = (double)PC__MIN(length, r->count) / (double)length, steps = log2((double)length);
        time += 2.5 + 0.3 * steps + (8e-7 * steps + 6e-6 * weight) * items * kept;
    }
    return time + 8e-6 * (double)(r->lists * r->count);
}

static double digits_time(const pc__cuda_ranking *r, int64_t n)
{
    const int64_t tile = is_wide(r) ? PC__CUDA_RADIX_TILE_WIDE : PC__CUDA_RADIX_TILE, tiles = (n + tile - 1) / tile;
    const double launches = tiles == 1 ? 3.5 : tiles <= 32 ? 6 : 8, items = (double)(r->lists * tiles * tile);
    return (double)pc_dtype_size(r->dtype) * (launches + (is_wide(r) ? 1.8e-5 : 1e-5) * items);
}

/* Of few in tiles of PC__CUDA_RADIX_TILE, whose first ones are a list again. */
static double few_time(const pc__cuda_ranking *r)
{
    return 12 + 8e-6 * (double)(r->lists * r->n);
}

/* Passes over the list to find what comes first, and a sort of that. */
static double select_time(const pc__cuda_ranking *r)
{
    const double passes = pc_dtype_size(r->dtype) == 4 ? 3 : pc_dtype_size(r->dtype);
    return 3 + 4 * (passes + 2) + 1.1e-6 * (passes + 1.5) * (double)(r->lists * r->n) + digits_time(r, r->count);
}

/* Cuts lists of more than a tile, by digits where that is faster, else to be merged; memory of the call for it. */
static pc_status cut_lists(pc_stream *stream, pc__cuda_ranking *r, bool *by_digits)
{
    *by_digits = digits_time(r, r->n) < merge_time(r);
    r->tile = *by_digits && !is_wide(r) ? PC__CUDA_RADIX_TILE : PC__CUDA_TILE;
    r->tiles = (r->n + r->tile - 1) / r->tile;
    const size_t item = is_wide(r) ? 16 : 8, counts = PC__CUDA_RADIX_DIGITS * sizeof *r->digits;
    const size_t bytes = pc__cuda_whole(*by_digits ? (size_t)(r->lists * r->n) * item : (size_t)pc__cuda_rank_bytes(r));
    char *room = pc__cuda_scratch(stream, 2 * bytes + (*by_digits ? (size_t)(r->lists * (r->tiles + 1)) * counts : 0));
    if (!room)
        return PC_ERR_MEMORY;
    r->room[0] = room;
    r->room[1] = room + bytes;
    r->digits = (unsigned *)(void *)(room + 2 * bytes);
    return PC_OK;
}

/* Lists that a block sorts by digits, where it reads and writes memory as it lies. Below SHORT it compares, several lists at
 * a time. */
static bool fits_block(const pc__cuda_ranking *r)
{
    enum { SHORT = 512 };
    return !is_wide(r) && r->inner == 1 && r->n > SHORT && r->n <= PC__CUDA_RADIX_TILE;
}

/* Few of such a list, or of a longer one: what lies behind them needs no order. */
static bool are_few(const pc__cuda_ranking *r)
{
    return !is_wide(r) && r->inner == 1 && r->count <= PC__CUDA_SELECT_LEFT / 2 && r->count <= r->n / 4;
}

/* Tiles of which the first few are found, and memory of the call for these. */
static pc_status cut_for_few(pc_stream *stream, pc__cuda_ranking *r)
{
    r->tiles = (r->n + PC__CUDA_RADIX_TILE - 1) / PC__CUDA_RADIX_TILE;
    const size_t bytes = pc__cuda_whole((size_t)(r->lists * r->tiles * r->count) * 8);
    char *room = pc__cuda_scratch(stream, 2 * bytes);
    if (!room)
        return PC_ERR_MEMORY;
    r->room[0] = room;
    r->room[1] = room + bytes;
    return PC_OK;
}

/* Tiles whose blocks are all there at once, and memory of the call. */
static pc_status cut_for_many(pc_stream *stream, pc__cuda_ranking *r)
{
    const int64_t unit = PC__CUDA_SELECT_TILE, blocks = (int64_t)r->multiprocessors * PC__CUDA_SELECT_BLOCKS;
    const int64_t each = PC__MAX(1, blocks / r->lists), passes = PC__CUDA_SELECT_PASSES;
    r->tile = ((r->n + each - 1) / each + unit - 1) / unit * unit;
    r->tiles = (r->n + r->tile - 1) / r->tile;
    const int64_t sorted = (r->count + PC__CUDA_RADIX_TILE - 1) / PC__CUDA_RADIX_TILE + 1;
    const size_t items = pc__cuda_whole((size_t)(r->lists * r->count) * 8), word = sizeof *r->bins;
    const size_t digits = pc__cuda_whole((size_t)(r->lists * sorted) * PC__CUDA_RADIX_DIGITS * word);
    const int64_t words = passes * PC__CUDA_SELECT_BINS + 2 * (passes + 1 + r->tiles);
    char *room = pc__cuda_scratch(stream, 2 * items + digits + (size_t)(r->lists * words) * word);
    if (!room)
        return PC_ERR_MEMORY;
    r->room[0] = room;
    r->room[1] = room + items;
    r->digits = (unsigned *)(void *)(room + 2 * items);
    r->bins = (unsigned *)(void *)(room + 2 * items + digits);
    return PC_OK;
}

/* As many short lists in a block as leave four blocks a multiprocessor, and of neighbours in memory at least eight. */
static void pack_lists(pc__cuda_ranking *r)
{
    while (r->tile < r->n)
        r->tile *= 2;
    const int64_t least = r->inner > 1 ? 8 : 1, blocks = (int64_t)r->multiprocessors * 4;
    while (2 * r->packed * r->tile <= PC__CUDA_TILE && (r->packed < least || r->lists > r->packed * blocks))
        r->packed *= 2;
}

typedef void ranker(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* The way of lists that no block sorts. */
static pc_status prepare_long(pc_stream *stream, pc__cuda_ranking *r, ranker **way)
{
    const bool few = are_few(r) && r->n > PC__CUDA_RADIX_TILE;
    const double time = few ? few_time(r) : PC__MIN(digits_time(r, r->n), merge_time(r));
    if (!is_wide(r) && r->inner == 1 && select_time(r) < time) {
        *way = pc__cuda_select_digits;
        return cut_for_many(stream, r);
    }
    if (few) {
        *way = pc__cuda_select_lists;
        return cut_for_few(stream, r);
    }
    bool by_digits;
    PC__TRY(cut_lists(stream, r, &by_digits));
    *way = by_digits ? pc__cuda_rank_digits : pc__cuda_rank_long;
    return PC_OK;
}

static pc_status prepare(pc_stream *stream, pc__cuda_ranking *r, ranker **way)
{
    if (!fits_block(r) && r->n > PC__CUDA_TILE)
        return prepare_long(stream, r, way);
    *way = !fits_block(r) ? pc__cuda_rank_short : are_few(r) ? pc__cuda_select_lists : pc__cuda_rank_lists;
    if (!fits_block(r))
        pack_lists(r);
    return PC_OK;
}

PC__CUDA_KERNEL(sort)
{
    const pc__sort_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    pc__cuda_ranking r = {.inner = pc__inner_of(t, a->dim),
                          .n = t->shape[a->dim],
                          .count = a->count,
                          .descending = a->descending != 0,
                          .dtype = t->dtype,
                          .tile = 1,
                          .tiles = 1,
                          .packed = 1,
                          .multiprocessors = pc__cuda_multiprocessors(stream),
                          .early = pc__cuda_early(stream),
                          .queue = pc__cuda_queue(stream)};
    r.lists = pc__outer_of(t, a->dim) * r.inner;
    if (r.lists * r.n == 0 || r.count == 0)
        return PC_OK;
    if (r.n > INT32_MAX || r.lists > INT32_MAX / ((r.n - 1) / PC__CUDA_TILE + 1))
        return pc__fail(PC_ERR_SHAPE, "sort: a tensor of shape %s along dimension %lld is too large on CUDA",
                        PC__SHAPE_OF(t), (long long)a->dim);
    ranker *rank;
    PC__TRY(prepare(stream, &r, &rank));
    rank(&r, pc__data(t), pc__data(call->out[0]), pc__data(call->out[1]));
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

/* lists.c: from calls to lists of indices. */
#include "cuda/index/lists.h"

#include "cuda/index/rank.h"

static int64_t tiles_of(const pc__cuda_lists *l)
{
    return (l->count + PC__CUDA_RADIX_TILE - 1) / PC__CUDA_RADIX_TILE;
}

/* Estimates in microseconds of one launch whose blocks read the list twice each, and of passes over it and a search for each
 * place. */
static bool is_by_digits(const pc__cuda_lists *l)
{
    const double entries = (double)(l->lists * l->count), read = entries * (double)pc__cuda_sort_blocks(l);
    const double whole = 4 + PC__MAX(8.5e-6 * read, 8e-4 * (double)l->count);
    const int64_t tiles = tiles_of(l);
    double digits = 5;
    for (int64_t rest = l->n; rest > 0; rest /= PC__CUDA_RADIX_DIGITS)
        digits += (tiles == 1 ? 3.5 : tiles <= 32 ? 6 : 8) + 1e-5 * (double)(l->lists * tiles * PC__CUDA_RADIX_TILE);
    return l->n > 0 && l->n < UINT32_MAX && l->lists * tiles <= INT32_MAX && digits < whole;
}

/* So many bytes from where `*room` is, which goes on behind them. */
static void *take(char **room, size_t bytes)
{
    void *taken = *room;
    *room += pc__cuda_whole(bytes);
    return taken;
}

pc_status pc__cuda_sort(pc_stream *stream, const pc_call *call, pc__cuda_lists *l)
{
    if (l->count > UINT32_MAX / 2)
        return pc__fail(PC_ERR_SHAPE, "%s: %lld indices along a dimension; there can be %u on CUDA", call->op->name,
                        (long long)l->count, UINT32_MAX / 2);
    l->multiprocessors = pc__cuda_multiprocessors(stream);
    l->early = pc__cuda_early(stream);
    l->fault = pc__cuda_fault_of(stream);
    l->queue = pc__cuda_queue(stream);
    const bool by_digits = is_by_digits(l);
    const size_t entries = (size_t)(l->lists * l->count), starts = (size_t)(l->lists * (l->n + 1)) * sizeof *l->start;
    const size_t digits = (size_t)(l->lists * (tiles_of(l) + 1)) * PC__CUDA_RADIX_DIGITS * sizeof *l->digits;
    const size_t order = entries * sizeof *l->order, words = entries * sizeof(uint64_t);
    size_t bytes = pc__cuda_whole(starts) + pc__cuda_whole(order) + pc__cuda_whole(l->beside_bytes);
    if (by_digits)
        bytes += 2 * pc__cuda_whole(words) + pc__cuda_whole(digits) + pc__cuda_whole(order);
    char *room = pc__cuda_scratch(stream, bytes);
    if (!room)
        return PC_ERR_MEMORY;
    l->start = take(&room, starts);
    l->order = take(&room, order);
    l->beside = take(&room, l->beside_bytes);
    if (!by_digits) {
        pc__cuda_sort_places(l);
        return PC_OK;
    }
    l->room[0] = take(&room, words);
    l->room[1] = take(&room, words);
    l->places = take(&room, order);
    l->digits = take(&room, digits);
    pc__cuda_sort_places_by_digits(l);
    return PC_OK;
}

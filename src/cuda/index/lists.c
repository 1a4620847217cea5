/* lists.c: from calls to lists of indices. */
#include "cuda/index/lists.h"

pc_status pc__cuda_sort(pc_stream *stream, const pc_call *call, pc__cuda_lists *l)
{
    if (l->count > UINT32_MAX / 2)
        return pc__fail(PC_ERR_SHAPE, "%s: %lld indices along a dimension; there can be %u on CUDA", call->op->name,
                        (long long)l->count, UINT32_MAX / 2);
    const size_t starts = pc__cuda_whole((size_t)(l->lists * (l->n + 1)) * sizeof *l->start);
    char *room = pc__cuda_scratch(stream, starts + (size_t)(l->lists * l->count) * sizeof *l->order);
    if (!room)
        return PC_ERR_MEMORY;
    l->start = (unsigned *)(void *)room;
    l->order = (unsigned *)(void *)(room + starts);
    l->multiprocessors = pc__cuda_multiprocessors(stream);
    l->early = pc__cuda_early(stream);
    l->fault = pc__cuda_fault_of(stream);
    l->queue = pc__cuda_queue(stream);
    pc__cuda_sort_places(l);
    return PC_OK;
}

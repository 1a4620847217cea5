/* gather.c: batches that a training step makes itself. */
#include "data/gather.h"

#include "data/loader_state.h"
#include "data/resident.h"
#include "device/recorder.h"

pc_device pc__loader_device(const pc_loader *loader)
{
    return loader->source.device;
}

int64_t pc__loader_batch(const pc_loader *loader)
{
    return loader->source.batch;
}

bool pc__loader_shuffles(const pc_loader *loader, uint64_t *seed)
{
    *seed = loader->source.seed;
    return loader->source.shuffle;
}

int64_t pc__loader_given(const pc_loader *loader)
{
    return pc__source_given(&loader->source);
}

void pc__loader_shared(const pc_loader *loader, int *rank, int *size)
{
    *rank = loader->source.rank;
    *size = loader->source.ranks;
}

bool pc__loader_gathers(const pc_loader *loader)
{
    return loader->source.resident;
}

static pc_status pass(pc_loader *loader, pc_batch *batch)
{
    pc__source *s = &loader->source;
    s->next = loader->next;
    PC__TRY(pc__resident_prepare(s->resident, s));
    const pc__rank_part p = pc__source_part(s, s->next.batch);
    batch->first = s->next.batch * s->batch;
    batch->n = p.n;
    batch->whole = p.whole;
    batch->part = p.part;
    loader->next.batch++;
    pc__source_step(s);
    return PC_OK;
}

bool pc__loader_pass(pc_loader *loader, pc_batch *batch)
{
    *batch = (pc_batch){0};
    pc__made_drop(&loader->current);
    if (loader->next.batch == loader->source.batches) {
        loader->next = (pc__position){loader->next.epoch + 1, 0};
        return false;
    }
    if (pass(loader, batch) == PC_OK)
        return true;
    *batch = (pc_batch){0};
    return false;
}

bool pc__loader_has_next(const pc_loader *loader)
{
    const pc__source *s = &loader->source;
    return (loader->next.batch + 1) * s->batch <= s->count;
}

pc_status pc__loader_room(const pc_loader *loader, int64_t n, pc_tensor **x, pc_tensor **y)
{
    return pc__resident_room(&loader->source, n, x, y);
}

pc_status pc__loader_gather(pc_loader *loader, pc_tensor *x, pc_tensor *y)
{
    const pc__source *s = &loader->source;
    return pc__resident_make(s->resident, s, loader->next.batch - 1, x, y);
}

pc_status pc__loader_gather_next(pc_loader *loader, pc_tensor *x, pc_tensor *y)
{
    const pc__source *s = &loader->source;
    pc_stream *stream = pc_stream_current(s->device);
    if (!stream)
        return PC_ERR_DEVICE;
    if (pc__graph_of(stream))
        return pc__resident_record(s->resident, s, stream, x, y);
    return pc__loader_has_next(loader) ? pc__resident_make(s->resident, s, loader->next.batch, x, y) : PC_OK;
}

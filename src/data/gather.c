/* gather.c: batches that a recorded step makes itself. */
#include "data/gather.h"

#include "data/loader_state.h"
#include "data/resident.h"

pc_device pc__loader_device(const pc_loader *loader)
{
    return loader->source.device;
}

static pc_status pass(pc_loader *loader, pc_batch *batch)
{
    pc__source *s = &loader->source;
    s->next = loader->next;
    PC__TRY(pc__resident_prepare(s->resident, s));
    batch->first = s->next.batch * s->batch;
    batch->n = PC__MIN(s->batch, s->pictures.folder.count - batch->first);
    PC__TRY(pc__resident_place(s->resident, batch->first, batch->first + batch->n));
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
    pc__resident_lose(loader->source.resident);
    *batch = (pc_batch){0};
    return false;
}

pc_status pc__loader_room(const pc_loader *loader, int64_t n, pc_tensor **x, pc_tensor **y)
{
    return pc__resident_room(&loader->source, n, x, y);
}

pc_status pc__loader_gather(pc_loader *loader, pc_tensor *x, pc_tensor *y)
{
    const pc__source *s = &loader->source;
    const pc_stream *stream = pc_stream_current(s->device);
    if (!stream)
        return PC_ERR_DEVICE;
    return stream->recording ? pc__resident_record(s->resident, s, x, y)
                             : pc__resident_make(s->resident, s, (loader->next.batch - 1) * s->batch, x, y);
}

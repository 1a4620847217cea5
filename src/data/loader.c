/* loader.c: the walk through the epochs, whatever batches are made of. */
#include "data/device_batch.h"
#include "data/loader_state.h"
#include "device/graph.h"

pc_status pc__walk_check(const char *things, int batch, int prefetch, pc_residence resident, pc_split split,
                         double validation_share)
{
    if (batch < 0)
        return pc__fail(PC_ERR_ARGUMENT, "batches of %d %s: give 1 or more", batch, things);
    if (prefetch < -1 || prefetch > PC__PREFETCH_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%d batches made ahead: give 1 to %d, or -1 for none", prefetch,
                        PC__PREFETCH_MAX);
    if ((unsigned)split > PC_SPLIT_VALIDATION)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no part: use PC_SPLIT_ALL, _TRAINING or _VALIDATION", split);
    if ((unsigned)resident > PC_RESIDENCE_NO)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no place for %s: use PC_RESIDENCE_AUTO or _NO", resident, things);
    if (split != PC_SPLIT_ALL && !(validation_share >= 0 && validation_share < 1))
        return pc__fail(PC_ERR_ARGUMENT, "a validation share of %g: give 0 or above, below 1", validation_share);
    return PC_OK;
}

pc_loader *pc__loader_begin(void)
{
    return pc__calloc(1, sizeof(pc_loader));
}

pc_loader *pc__loader_ready(pc_loader *loader, pc_status status, int prefetch)
{
    const pc__source *s = &loader->source;
    if (status == PC_OK && pc__made_open(&loader->current, s) == PC_OK &&
        pc__prefetch_open(&loader->prefetch, &loader->source, s->resident || s->kept ? 0 : prefetch) == PC_OK)
        return loader;
    pc_loader_free(loader);
    return NULL;
}

void pc_loader_free(pc_loader *loader)
{
    if (!loader)
        return;
    pc__prefetch_close(&loader->prefetch);
    pc__made_close(&loader->current);
    pc__source_close(&loader->source);
    for (int i = 0; loader->class_names && i < loader->class_count; i++)
        pc__free(loader->class_names[i]);
    pc__free(loader->class_names);
    pc__free(loader);
}

static void go_to(pc_loader *loader, pc__position position)
{
    loader->next = position;
    if (position.batch == loader->source.batches)
        position = (pc__position){position.epoch + 1, 0};
    pc__prefetch_seek(&loader->prefetch, position);
}

bool pc_loader_next(pc_loader *loader, pc_batch *batch)
{
    PC__NEED_OR(false, batch);
    *batch = (pc_batch){0};
    PC__NEED_OR(false, loader);
    if (pc__graph_allows_host("pc_loader_next", "the next batch of a loader") != PC_OK)
        return false;
    pc__made_drop(&loader->current);
    if (loader->next.batch == loader->source.batches) {
        loader->next = (pc__position){loader->next.epoch + 1, 0};
        return false;
    }
    if (pc__prefetch_take(&loader->prefetch, &loader->current) != PC_OK)
        return false;
    if (pc__device_batch_finish(&loader->source, &loader->current) != PC_OK) {
        pc__made_drop(&loader->current);
        go_to(loader, loader->next);
        return false;
    }
    loader->next.batch++;
    const pc__made *made = &loader->current;
    *batch = (pc_batch){.x = made->tensor[0],
                        .y = made->tensor[1],
                        .n = made->n,
                        .first = made->before,
                        .sample = made->samples,
                        .tensors = loader->source.tensors,
                        .epoch = made->epoch,
                        .whole = made->whole,
                        .part = made->counted};
    memcpy(batch->tensor, made->tensor, sizeof batch->tensor);
    return true;
}

pc_status pc_loader_seek(pc_loader *loader, int64_t epoch, int64_t batch)
{
    PC__NEED(loader);
    if (epoch < 0 || epoch == INT64_MAX || batch < 0 || batch > loader->source.batches)
        return pc__fail(PC_ERR_RANGE, "pc_loader_seek: there is no batch %lld of epoch %lld; an epoch has %lld",
                        (long long)batch, (long long)epoch, (long long)loader->source.batches);
    pc__made_drop(&loader->current);
    go_to(loader, (pc__position){epoch, batch});
    return PC_OK;
}

pc_status pc_loader_share(pc_loader *loader, int rank, int size)
{
    PC__NEED(loader);
    if (size < 1 || rank < 0 || rank >= size)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_share: rank %d of %d ranks; ranks are 0 to size - 1", rank, size);
    pc__made_drop(&loader->current);
    go_to(loader, loader->next); /* who makes batches ahead rests until the next one is asked for */
    loader->source.rank = rank;
    loader->source.ranks = size;
    return PC_OK;
}

/* batch.c: the order of an epoch, and one batch of it after the other. */
#include "data/batch.h"

#include "data/device_batch.h"
#include "ops/epoch.h"

pc_status pc__source_open(pc__source *s, const pc__walk *walk)
{
    s->seed = walk->seed;
    s->shuffle = walk->shuffle;
    s->batch = PC__MIN(walk->batch, s->count);
    s->batches = (s->count + (walk->drop_last ? 0 : s->batch - 1)) / s->batch;
    s->order_epoch = -1;
    s->ranks = 1;
    s->order = pc__alloc((size_t)s->count * sizeof *s->order);
    s->keys = s->order ? pc__alloc((size_t)s->count * sizeof *s->keys) : NULL;
    return s->keys ? PC_OK : PC_ERR_MEMORY;
}

void pc__source_close(pc__source *s)
{
    pc__crossing_free(s->crossing);
    s->crossing = NULL;
    if (s->kind)
        s->kind->close(s);
    pc__free(s->order);
    pc__free(s->keys);
}

static void set_order(pc__source *s)
{
    const int64_t epoch = s->next.epoch;
    if (s->order_epoch == epoch)
        return;
    if (s->shuffle)
        pc__epoch_order(s->seed, (uint64_t)epoch, s->count, s->order, s->keys);
    else
        for (int64_t i = 0; s->order_epoch < 0 && i < s->count; i++)
            s->order[i] = i;
    s->order_epoch = epoch;
}

static pc_status make(const pc__source *s, int threads, pc__made *made)
{
    if (s->resident || s->kept)
        return s->kind->make_there(s, made);
    return s->crossing ? pc__device_batch_make(s, threads, made) : s->kind->here(s, threads, made);
}

void pc__source_step(pc__source *s)
{
    if (++s->next.batch == s->batches)
        s->next = (pc__position){s->next.epoch + 1, 0};
}

int64_t pc__source_given(const pc__source *s)
{
    return PC__MIN(s->count, s->batches * s->batch);
}

/* Who has none gets the first sample in its place: networks take no empty batches. */
pc__rank_part pc__source_part(const pc__source *s, int64_t batch)
{
    const int64_t first = batch * s->batch, whole = PC__MIN(s->batch, s->count - first);
    const int64_t each = whole / s->ranks, larger = whole % s->ranks;
    const int64_t part = each + (s->rank < larger), at = s->rank * each + PC__MIN(s->rank, larger);
    return (pc__rank_part){.first = part ? first + at : first, .n = PC__MAX(part, 1), .part = part, .whole = whole};
}

pc_status pc__source_make(pc__source *s, int threads, pc__made *made)
{
    set_order(s);
    made->epoch = s->next.epoch;
    const pc__rank_part p = pc__source_part(s, s->next.batch);
    made->before = s->next.batch * s->batch;
    made->first = p.first;
    made->n = p.n;
    made->counted = p.part;
    made->whole = p.whole;
    memcpy(made->samples, s->order + made->first, (size_t)made->n * sizeof *made->samples);
    const pc_status status = make(s, threads, made);
    if (status != PC_OK) {
        pc__made_drop(made);
        return status;
    }
    pc__source_step(s);
    return PC_OK;
}

pc_status pc__made_open(pc__made *made, const pc__source *source)
{
    *made = (pc__made){.samples = pc__alloc((size_t)source->batch * sizeof(int64_t))};
    return made->samples ? PC_OK : PC_ERR_MEMORY;
}

void pc__made_drop(pc__made *made)
{
    for (int i = 0; i < PC_FIELDS_MAX; i++) {
        pc_tensor_free(made->tensor[i]);
        pc_tensor_free(made->part[i]);
        made->tensor[i] = made->part[i] = NULL;
    }
}

void pc__made_close(pc__made *made)
{
    pc__made_drop(made);
    pc__free(made->samples);
    made->samples = NULL;
}

/* scorer.c: batches' results from a device that works later: their way to the host, and adding them up in order. */
#include "train/scorer.h"

#include "tensor/tensor.h"

#include <paracord/ops.h>

/* All elements of a small tensor on the host; from pc__alloc. */
static void *on_host(const pc_tensor *t)
{
    size_t bytes = (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
    void *copy = pc__alloc(bytes);
    if (copy && pc_read(t, copy, bytes) == PC_OK)
        return copy;
    pc__free(copy);
    return NULL;
}

/* Add the batch and show it to `each`. */
static pc_status take(pc__scorer *s, const pc__scored *batch)
{
    float *rows = on_host(batch->logits);
    void *labels = rows ? on_host(batch->seen.y) : NULL;
    float loss = 0;
    pc_status status = labels ? pc_read(batch->loss, &loss, sizeof loss) : pc_error_last()->status;
    if (status == PC_OK) {
        int64_t width = batch->logits->shape[1];
        pc__score_add(s->score, rows, width, labels, pc__is_float(batch->seen.y->dtype), batch->seen.n, (double)loss);
        if (!s->each(s->context, &batch->seen, rows, width))
            status = PC_ERR_INTERRUPTED;
    }
    pc__free(rows);
    pc__free(labels);
    return status;
}

static void drop_oldest(pc__scorer *s)
{
    pc__scored *oldest = &s->ahead[s->first];
    pc_tensor_free(oldest->logits);
    pc_tensor_free(oldest->loss);
    pc_tensor_free(oldest->seen.y);
    pc__free((void *)oldest->seen.sample);
    *oldest = (pc__scored){.arrived = oldest->arrived};
    s->first = (s->first + 1) % PC__AHEAD;
    s->count--;
}

static pc_status take_oldest(pc__scorer *s)
{
    pc_status status = take(s, &s->ahead[s->first]);
    drop_oldest(s);
    return status;
}

/* Waits by the mark, which says so, and not in reading, which the program may have forbidden (pc_sync_policy_set). */
static pc_status wait_for_oldest(pc__scorer *s)
{
    PC__TRY(pc_event_synchronize(s->ahead[s->first].arrived));
    return take_oldest(s);
}

/* A copy that is on its way to the host, into memory that the device writes by itself. */
static pc_tensor *sent(pc_tensor *t)
{
    pc_tensor *copy = NULL;
    PC_SCOPE {
        pc_tensor *room = pc_empty_pinned(pc_tensor_shape(t), pc_tensor_dtype(t), pc_tensor_device(t));
        if (room && pc_copy(room, t) == PC_OK)
            copy = pc_tensor_retain(room);
    }
    return copy;
}

static pc_status send(pc__scored *to, const pc_batch *batch, pc_tensor *logits, pc_tensor *loss)
{
    pc_device device = pc_tensor_device(loss);
    to->seen = (pc_batch){.n = batch->n, .first = batch->first};
    to->logits = sent(logits);
    to->seen.y = to->logits ? sent(batch->y) : NULL;
    to->loss = to->seen.y ? sent(loss) : NULL;
    to->arrived = to->arrived || !to->loss ? to->arrived : pc_event_new(device);
    if (!to->loss || !to->arrived)
        return pc_error_last()->status;
    size_t bytes = (size_t)batch->n * sizeof *batch->sample;
    int64_t *samples = pc__alloc(bytes);
    if (!samples)
        return PC_ERR_MEMORY;
    to->seen.sample = memcpy(samples, batch->sample, bytes);
    return pc_event_record(to->arrived, NULL);
}

/* Take what has arrived, without waiting. */
static pc_status take_arrived(pc__scorer *s)
{
    for (bool done = true; s->count;) {
        PC__TRY(pc_event_query(s->ahead[s->first].arrived, &done));
        if (!done)
            break;
        PC__TRY(take_oldest(s));
    }
    return PC_OK;
}

pc_status pc__scorer_add(pc__scorer *s, const pc_batch *batch, pc_tensor *logits, pc_tensor *loss)
{
    if (pc_tensor_device(loss).type == PC_CPU) {
        pc__scored now = {.seen = *batch, .logits = logits, .loss = loss};
        return take(s, &now);
    }
    PC__TRY(s->count == PC__AHEAD ? wait_for_oldest(s) : PC_OK);
    pc__scored *next = &s->ahead[(s->first + s->count++) % PC__AHEAD];
    PC__TRY(send(next, batch, logits, loss));
    return take_arrived(s);
}

pc_status pc__scorer_settle(pc__scorer *s)
{
    while (s->count)
        PC__TRY(wait_for_oldest(s));
    return PC_OK;
}

void pc__scorer_close(pc__scorer *s)
{
    while (s->count)
        drop_oldest(s);
    for (int i = 0; i < PC__AHEAD; i++)
        pc_event_free(s->ahead[i].arrived);
    *s = (pc__scorer){0};
}

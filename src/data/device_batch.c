/* device_batch.c: a batch crosses as its parts (pictures as bytes, a quarter of what their floats would be) while the one
 * before is being trained on. Whoever makes batches ahead fills one of a few pinned places and enqueues the copies on a stream of the
 * loader's; the program's own stream finishes it when it is taken, and waits for those copies by the order of the
 * data. The maker waits where the device has not yet copied what a place held before: so much memory is pinned and no
 * more, however far the program is ahead of the device.
 *
 * A stream tells a failure once, to whoever asks next. Where that is the maker, the batches that it has sent before may
 * never have arrived; the program hears of it before it gets one of them. */
#include "data/device_batch.h"

#include "device/order.h"

#include <pthread.h>

enum { PLACES = 3 }; /* one being filled, one being copied, one for the wobble */

struct pc__crossing {
    pc_stream *stream;
    pc_tensor *places[PLACES][PC_FIELDS_MAX]; /* of each part; pinned, with room for a whole batch */
    int next;
    pthread_mutex_t
        lock; /* held while calls may be told of a failure, and while the program relies on there being none */
    uint64_t failures;
    pc_error failure; /* the last */
};

/* Owned by the caller whatever scopes are open. */
static pc_tensor *own(pc_tensor *t)
{
    if (t)
        pc__scope_forget(t);
    return t;
}

static pc_tensor *open_place(const pc__source *s, int part)
{
    pc__meta meta;
    pc__rows_meta(&meta, &s->part[part], s->batch);
    return own(pc_empty_pinned(pc_shape_of(meta.ndim, meta.shape), meta.dtype, s->device));
}

static pc_status open_places(pc__crossing *c, const pc__source *s)
{
    for (int i = 0; i < PLACES; i++)
        for (int k = 0; k < s->parts; k++) {
            c->places[i][k] = open_place(s, k);
            if (!c->places[i][k])
                return pc_error_last()->status;
        }
    return PC_OK;
}

pc__crossing *pc__crossing_new(const pc__source *source)
{
    pc__crossing *c = pc__calloc(1, sizeof *c);
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    c->stream = pc_stream(source->device);
    if (c->stream && open_places(c, source) == PC_OK)
        return c;
    pc__crossing_free(c);
    return NULL;
}

void pc__crossing_free(pc__crossing *crossing)
{
    if (!crossing)
        return;
    pc_stream_free(crossing->stream);
    for (int i = 0; i < PLACES; i++)
        for (int k = 0; k < PC_FIELDS_MAX; k++)
            pc_tensor_free(crossing->places[i][k]);
    pthread_mutex_destroy(&crossing->lock);
    pc__free(crossing);
}

static pc_status fill(const pc__source *s, const pc__made *made, int threads, pc_tensor **place)
{
    void *parts[PC_FIELDS_MAX];
    for (int k = 0; k < s->parts; k++)
        parts[k] = pc__data(place[k]);
    return s->kind->fill(s, threads, made, parts);
}

/* Enqueue the copy of the first n entries. */
static pc_tensor *send(pc_tensor *from, int64_t n, pc_device device)
{
    pc_tensor *there = NULL;
    PC_SCOPE {
        pc_tensor *part = pc_slice(from, 0, 0, n, 1);
        there = part ? pc_keep(pc_to(part, device, (pc_dtype)part->dtype, true)) : NULL;
    }
    return own(there);
}

/* What the place held before may still be on its way. */
static pc_status wait_for_place(pc_tensor **place, int parts)
{
    for (int k = 0; k < parts; k++)
        PC__TRY(pc__settle(place[k]->storage, true, "the loader", true));
    return PC_OK;
}

static pc_status send_all(pc_tensor **place, const pc__source *s, pc__made *made)
{
    for (int k = 0; k < s->parts; k++) {
        made->part[k] = send(place[k], made->n, s->device);
        if (!made->part[k])
            return pc_error_last()->status;
    }
    return PC_OK;
}

/* A step of the maker's that may be told of a failure; without memory nothing was lost. */
static pc_status noted(pc__crossing *c, pc_status status)
{
    if (status != PC_OK && status != PC_ERR_MEMORY) {
        c->failures++;
        c->failure = *pc_error_last();
    }
    return status;
}

pc_status pc__device_batch_make(const pc__source *source, int threads, pc__made *made)
{
    pc__crossing *c = source->crossing;
    pc_tensor **place = c->places[c->next];
    pthread_mutex_lock(&c->lock);
    pc_status status = noted(c, wait_for_place(place, source->parts));
    pthread_mutex_unlock(&c->lock);
    PC__TRY(status);
    PC__TRY(fill(source, made, threads, place));
    pthread_mutex_lock(&c->lock);
    status = PC_ERR_STATE;
    PC_WITH_STREAM(c->stream) {
        status = send_all(place, source, made);
    }
    (void)noted(c, status);
    made->sent_after = c->failures;
    pthread_mutex_unlock(&c->lock);
    c->next = (c->next + 1) % PLACES;
    return status;
}

pc_status pc__device_batch_finish(const pc__source *source, pc__made *made)
{
    pc__crossing *c = source->crossing;
    if (!c)
        return PC_OK;
    pthread_mutex_lock(&c->lock);
    const pc_status status =
        made->sent_after == c->failures ? source->kind->finish(source, made) : pc__error_put(&c->failure);
    pthread_mutex_unlock(&c->lock);
    return status;
}

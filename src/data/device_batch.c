/* device_batch.c: a batch crosses as bytes, a quarter of what its floats would be, while the one before is being
 * trained on. Whoever makes batches ahead fills one of a few pinned places and enqueues the copies on a stream of the
 * loader's; the program's own stream augments when the batch is taken, and waits for those copies by the order of the
 * data. The maker waits where the device has not yet copied what a place held before: so much memory is pinned and no
 * more, however far the program is ahead of the device. */
#include "data/device_batch.h"

#include "data/augment.h"
#include "device/order.h"

enum { PLACES = 3 }; /* one being filled, one being copied, one for the wobble */

enum part { PICTURES, TABLE, LABELS, PARTS };

struct pc__crossing {
    pc_stream *stream;
    pc_tensor *places[PLACES][PARTS]; /* pinned, with room for a whole batch */
    int next;
};

/* Owned by the caller whatever scopes are open. */
static pc_tensor *own(pc_tensor *t)
{
    if (t)
        pc__scope_forget(t);
    return t;
}

static pc_status open_places(pc__crossing *c, const pc__source *s)
{
    const int64_t n = s->batch, size = s->pictures.size;
    for (int i = 0; i < PLACES; i++) {
        pc_tensor **place = c->places[i];
        place[PICTURES] = own(pc_empty_pinned(PC_SHAPE(n, size, size, 3), PC_U8, s->device));
        place[TABLE] = own(pc_empty_pinned(PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64, s->device));
        place[LABELS] = own(pc_empty_pinned(pc__label_shape(s, n), pc__label_dtype(s), s->device));
        if (!place[PICTURES] || !place[TABLE] || !place[LABELS])
            return pc_error_last()->status;
    }
    return PC_OK;
}

pc__crossing *pc__crossing_new(const pc__source *source)
{
    pc__crossing *c = pc__calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->stream = pc_stream_new(source->device);
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
        for (int k = 0; k < PARTS; k++)
            pc_tensor_free(crossing->places[i][k]);
    pc__free(crossing);
}

static void fill_pictures(const pc__source *s, const pc__made *made, uint8_t *to)
{
    const size_t bytes = pc__picture_bytes(s->pictures.size);
    for (int64_t i = 0; i < made->n; i++)
        memcpy(to + (size_t)i * bytes, s->pictures.pixels + (size_t)made->samples[i] * bytes, bytes);
}

static pc_status fill(const pc__source *s, const pc__made *made, pc_tensor **place)
{
    for (int k = 0; k < PARTS; k++) /* what it held before may still be on its way */
        PC__TRY(pc__settle(place[k]->storage, true, "the loader", true));
    const pc__augment_keys keys = {s->seed, (uint64_t)s->next.epoch};
    fill_pictures(s, made, pc__data(place[PICTURES]));
    pc__augment_rows(&s->augment, &keys, made->samples, made->n, s->pictures.size, s->pictures.size,
                     pc__data(place[TABLE]));
    pc__fill_labels(s, made, pc__data(place[LABELS]));
    return PC_OK;
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

pc_status pc__device_batch_make(const pc__source *source, pc__made *made)
{
    pc__crossing *c = source->crossing;
    pc_tensor **place = c->places[c->next];
    PC__TRY(fill(source, made, place));
    PC_WITH_STREAM(c->stream)
    {
        made->pictures = send(place[PICTURES], made->n, source->device);
        made->table = made->pictures ? send(place[TABLE], made->n, source->device) : NULL;
        made->y = made->table ? send(place[LABELS], made->n, source->device) : NULL;
    }
    if (!made->y)
        return pc_error_last()->status;
    c->next = (c->next + 1) % PLACES;
    return PC_OK;
}

pc_status pc__device_batch_augment(const pc__source *source, pc__made *made)
{
    if (made->x)
        return PC_OK;
    const pc__augment_attributes attributes = pc__augment_attributes_of(&source->augment);
    made->x = own(pc__augment(made->pictures, made->table, NULL, &attributes));
    if (!made->x)
        return pc_error_last()->status;
    pc_tensor_free(made->pictures);
    pc_tensor_free(made->table);
    made->pictures = made->table = NULL;
    return PC_OK;
}

/* resident.c: pictures that stay on the device. */
#include "data/resident.h"

#include "data/augment.h"
#include "data/kept.h"
#include "device/failure.h"
#include "device/order.h"
#include "ops/epoch.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/threads.h>

enum { ROOM_PICTURES = 64 };

struct pc__resident {
    pc__epoch_tensors on;                        /* the device */
    pc_tensor *order, *keys, *table;             /* of all samples */
    pc_tensor *places, *part_order, *part_table; /* of a rank's, which `on` has then; NULL: it has those of all */
    int rank, ranks;                             /* that they are for */
    bool sent, there;                            /* pictures and labels: queued; known to have arrived */
    int64_t epoch;                               /* whose order and table are there; -1: none's */
    pc_stream *side;                             /* of recordings: what they make batches on; NULL: there is none yet */
    pc_event *fork;
};

static int64_t bytes_of(const pc__source *s)
{
    const int64_t each = (int64_t)(pc__frame_bytes(pc__pictures_of(s)->pictures.frame) + sizeof(pc__augment_row) +
                                   2 * sizeof(int64_t) + pc_dtype_size(pc__label_dtype(s)));
    return s->count * each;
}

/* --- tensors --- */

/* Owned by the caller whatever scopes are open. */
static pc_tensor *room(pc_shape shape, pc_dtype dtype, pc_device device)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, dtype, shape.ndim, shape.dim);
    return pc__tensor_unscoped(&meta, device);
}

static bool make_tensors(pc__resident *r, const pc__source *s)
{
    const int64_t n = s->count;
    const pc__frame f = pc__pictures_of(s)->pictures.frame;
    const struct {
        pc_tensor **t;
        pc_shape shape;
        pc_dtype dtype;
    } wanted[] = {{&r->on.pictures, PC_SHAPE(n, f.height, f.width, f.channels), PC_U8},
                  {&r->on.labels, pc__label_shape(s, n), pc__label_dtype(s)},
                  {&r->order, PC_SHAPE(n), PC_I64},
                  {&r->keys, PC_SHAPE(n), PC_I64},
                  {&r->table, PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64},
                  {&r->on.place, PC_SHAPE(1), PC_I64}};
    for (int i = 0; i < PC__COUNT(wanted); i++) {
        *wanted[i].t = room(wanted[i].shape, wanted[i].dtype, s->device);
        if (!*wanted[i].t)
            return false;
    }
    r->on.order = r->order;
    r->on.table = r->table;
    r->ranks = 1;
    return true;
}

static void drop_part(pc__resident *r)
{
    pc_tensor_free(r->places);
    pc_tensor_free(r->part_order);
    pc_tensor_free(r->part_table);
    r->places = r->part_order = r->part_table = NULL;
}

void pc__resident_free(pc__resident *r)
{
    if (!r)
        return;
    pc_tensor *const tensors[] = {r->on.pictures, r->on.labels, r->order, r->keys, r->table, r->on.place};
    for (int i = 0; i < PC__COUNT(tensors); i++)
        pc_tensor_free(tensors[i]);
    drop_part(r);
    pc_event_free(r->fork);
    pc_stream_free(r->side);
    pc__free(r);
}

/* Pictures from `first` on that lie one behind the other: in the cache, or, `room` being for `most`, nowhere. */
static int64_t run_of(const pc__pictures *p, int64_t first, int64_t most)
{
    const bool kept = p->slot[first] >= 0;
    int64_t n = 1;
    while (first + n < p->folder.count && (kept || n < most) && p->slot[first + n] == (kept ? p->slot[first] + n : -1))
        n++;
    return n;
}

static pc_status send_run(pc__resident *r, const pc__pictures *p, int64_t first, int64_t n, uint8_t *room)
{
    const size_t bytes = pc__frame_bytes(p->frame);
    int64_t files[ROOM_PICTURES];
    pc_status status = PC_OK;
    for (int64_t i = 0; p->slot[first] < 0 && i < n; i++)
        files[i] = first + i;
    if (p->slot[first] < 0)
        PC__TRY(pc__pictures_copy(p, files, n, pc_threads_get(), room));
    PC_SCOPE {
        pc_tensor *part = pc_slice(r->on.pictures, 0, first, first + n, 1);
        status =
            part ? pc__tensor_write(part, p->slot[first] < 0 ? room : p->cache->pixels + (size_t)p->slot[first] * bytes,
                                    "the loader")
                 : pc_error_last()->status;
    }
    return status;
}

/* What is not kept on the host passes through `room`. */
static pc_status send_pictures(pc__resident *r, const pc__pictures *p)
{
    uint8_t *room = p->streamed ? pc__alloc(ROOM_PICTURES * pc__frame_bytes(p->frame)) : NULL;
    pc_status status = p->streamed && !room ? PC_ERR_MEMORY : PC_OK;
    for (int64_t first = 0, n; status == PC_OK && first < p->folder.count; first += n) {
        n = run_of(p, first, ROOM_PICTURES);
        status = send_run(r, p, first, n, room);
    }
    pc__free(room);
    return status;
}

static pc_status send(pc__resident *r, const pc__source *s)
{
    void *labels = pc__alloc((size_t)s->count * pc_dtype_size(pc__label_dtype(s)));
    if (!labels)
        return PC_ERR_MEMORY;
    pc__fill_labels(s, NULL, s->count, labels);
    pc_status status = pc__tensor_write(r->on.labels, labels, "the loader");
    if (status == PC_OK)
        status = send_pictures(r, &pc__pictures_of(s)->pictures);
    pc__free(labels);
    r->sent = status == PC_OK;
    return status;
}

static pc__resident *make(const pc__source *s)
{
    pc__resident *r = pc__calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->epoch = -1;
    if (make_tensors(r, s) && send(r, s) == PC_OK)
        return r;
    pc__resident_free(r);
    return NULL;
}

pc_status pc__resident_new(const pc__source *source, pc_residence wanted, char *why, size_t n, pc__resident **resident)
{
    bool fits = false;
    *resident = NULL;
    PC__TRY(pc__residence(source->device, "pictures", bytes_of(source), wanted, why, n, &fits));
    if (!fits)
        return PC_OK;
    *resident = make(source);
    if (*resident)
        return PC_OK;
    const pc_error error = pc__error_take();
    if (error.status != PC_ERR_MEMORY)
        return pc__error_put(&error);
    snprintf(why, n, "pictures stay in host memory: %s", error.message);
    return PC_OK;
}

/* --- epochs --- */

static bool changes(const pc_augment *a)
{
    return a->rotation > 0 || a->width_shift > 0 || a->height_shift > 0 || a->shear > 0 || a->zoom_high > 0 ||
           a->flip_horizontal || a->flip_vertical || a->channel_shift > 0 || a->brightness_high > 0 ||
           a->crop_high > 0 || a->pad > 0 || a->erase > 0 || pc__augment_jitters(a);
}

static pc_status wait_for(pc_tensor *t)
{
    PC__TRY(pc__settle(t->storage, false, "the loader", true));
    return pc__storage_sound(t->storage, "the loader");
}

static pc_status arrive(pc__resident *r, const pc__source *s)
{
    PC__TRY(r->sent ? PC_OK : send(r, s));
    r->sent = false;
    PC__TRY(wait_for(r->on.labels));
    PC__TRY(wait_for(r->on.pictures));
    r->sent = r->there = true;
    return PC_OK;
}

/* Room for the rank's samples of an epoch, one batch behind the other: kernels that count batches find them as those of
 * a loader alone. */
static pc_status open_part(pc__resident *r, const pc__source *s)
{
    int64_t n = 0, *places = pc__alloc((size_t)(s->count + s->batches) * sizeof *places);
    if (!places)
        return PC_ERR_MEMORY;
    for (int64_t b = 0; b < s->batches; b++) {
        const pc__rank_part p = pc__source_part(s, b);
        for (int64_t i = 0; i < p.n; i++)
            places[n++] = p.first + i;
    }
    r->places = room(PC_SHAPE(n), PC_I64, s->device);
    r->part_order = room(PC_SHAPE(n), PC_I64, s->device);
    r->part_table = room(PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64, s->device);
    const bool fits = r->places && r->part_order && r->part_table;
    const pc_status status = fits ? pc__tensor_write(r->places, places, "the loader") : PC_ERR_MEMORY;
    pc__free(places);
    return status;
}

static pc_status share(pc__resident *r, const pc__source *s)
{
    if (r->rank == s->rank && r->ranks == s->ranks)
        return PC_OK;
    drop_part(r);
    r->epoch = -1;
    r->ranks = 0; /* until it is done */
    r->on.order = r->order;
    r->on.table = r->table;
    if (s->ranks > 1) {
        PC__TRY(open_part(r, s));
        r->on.order = r->part_order;
        r->on.table = r->part_table;
    }
    r->rank = s->rank;
    r->ranks = s->ranks;
    return PC_OK;
}

static pc_status take_part(pc__resident *r)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            status = pc_copy(r->part_order, pc_index_select(r->order, 0, r->places));
            if (status == PC_OK)
                status = pc_copy(r->part_table, pc_index_select(r->table, 0, r->places));
        }
    }
    return status;
}

pc_status pc__resident_prepare(pc__resident *r, const pc__source *s)
{
    const int64_t epoch = s->shuffle || changes(&pc__pictures_of(s)->augment) ? s->next.epoch : 0;
    const pc__frame f = pc__pictures_of(s)->pictures.frame;
    const pc__epoch_attributes attributes = {
        .plan = pc__augment_plan_of(&pc__pictures_of(s)->augment, s->seed, (uint64_t)epoch, f.height, f.width),
        .shuffle = s->shuffle};
    PC__TRY(share(r, s));
    if (r->epoch != epoch) {
        r->epoch = -1;
        PC__TRY(pc__epoch(r->order, r->keys, r->table, &attributes));
        PC__TRY(r->places ? take_part(r) : PC_OK);
        PC__TRY(wait_for(r->on.table));
        r->epoch = epoch;
    }
    return r->there ? PC_OK : arrive(r, s);
}

/* --- batches --- */

pc_status pc__resident_room(const pc__source *s, int64_t n, pc_tensor **x, pc_tensor **y)
{
    const pc__frame f = pc__pictures_of(s)->pictures.frame;
    pc__meta meta;
    pc__meta_channels_last(&meta, PC_F32, (int64_t[]){n, f.channels, f.height, f.width});
    *x = pc__tensor_unscoped(&meta, s->device);
    *y = *x ? room(pc__label_shape(s, n), pc__label_dtype(s), s->device) : NULL;
    return *y ? PC_OK : PC_ERR_MEMORY;
}

static pc_status batch(pc__resident *r, const pc__source *s, int64_t at, pc_tensor *x, pc_tensor *y)
{
    const pc__epoch_batch_attributes attributes = {pc__augment_attributes_of(&pc__pictures_of(s)->augment), at};
    return pc__epoch_batch(&r->on, x, y, &attributes);
}

pc_status pc__resident_make(pc__resident *r, const pc__source *s, int64_t number, pc_tensor *x, pc_tensor *y)
{
    return batch(r, s, number * pc__source_part(s, 0).n, x, y); /* all before it are as large */
}

static bool has_side(pc__resident *r, pc_device device)
{
    if (!r->side)
        r->side = pc_stream(device);
    if (r->side && !r->fork)
        r->fork = pc_event_new(device);
    return r->fork;
}

pc_status pc__resident_record(pc__resident *r, const pc__source *s, pc_stream *stream, pc_tensor *x, pc_tensor *y)
{
    if (!has_side(r, s->device))
        return pc_error_last()->status;
    PC__TRY(pc_event_record(r->fork, stream));
    PC__TRY(pc_event_wait(r->fork, r->side));
    pc_status status = PC_OK;
    PC_WITH_STREAM(r->side) {
        status = batch(r, s, -1, x, y);
    }
    return status;
}

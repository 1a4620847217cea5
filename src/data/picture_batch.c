/* picture_batch.c: pixels and labels of one batch of pictures, on the host or by way of resident.c or device_batch.c. */
#include "data/picture_batch.h"

#include "base/parallel.h"
#include "data/augment.h"
#include "data/resident.h"
#include "ops/epoch.h"

enum { PICTURES, TABLE, LABELS, PARTS }; /* as they cross: uint8 [h, w, c], a row of the op augment, the label */

static pc_status augment(const pc__source *s, const pc__made *made, int64_t i, const uint8_t *pixels)
{
    const pc__picture_data *d = s->data;
    const pc__frame frame = d->pictures.frame;
    const pc_augment_values values = pc_augment_draw(&d->augment, s->seed, (uint64_t)made->epoch,
                                                     (uint64_t)made->samples[i], frame.height, frame.width);
    return pc_augment_apply(&d->augment, &values, pixels, frame.height, frame.width, frame.channels,
                            (float *)pc__data(made->tensor[0]) + (size_t)i * pc__frame_bytes(frame));
}

typedef struct making {
    const pc__source *s;
    const pc__made *made;
} making;

static pc_status make_picture(void *context, int64_t i)
{
    const pc__source *s = ((const making *)context)->s;
    const pc__made *made = ((const making *)context)->made;
    const pc__pictures *p = &pc__pictures_of(s)->pictures;
    const uint8_t *pixels;
    uint8_t *room = p->streamed ? pc__alloc(pc__frame_bytes(p->frame)) : NULL;
    if (p->streamed && !room)
        return PC_ERR_MEMORY;
    pc_status status = pc__pictures_get(p, made->samples[i], room, &pixels);
    if (status == PC_OK)
        status = augment(s, made, i, pixels);
    pc__free(room);
    return status;
}

static bool is_binary(const pc__source *s)
{
    return pc__pictures_of(s)->pictures.folder.class_count == 2;
}

pc_dtype pc__label_dtype(const pc__source *s)
{
    return is_binary(s) ? PC_F32 : PC_I64;
}

pc_shape pc__label_shape(const pc__source *s, int64_t n)
{
    return is_binary(s) ? PC_SHAPE(n, 1) : PC_SHAPE(n);
}

static int label(const pc__source *s, int64_t sample)
{
    return pc__pictures_of(s)->pictures.folder.files[sample].label;
}

void pc__fill_labels(const pc__source *s, const int64_t *samples, int64_t n, void *to)
{
    const bool binary = is_binary(s);
    for (int64_t i = 0; i < n; i++) {
        const int of = label(s, samples ? samples[i] : i);
        if (binary)
            ((float *)to)[i] = (float)of;
        else
            ((int64_t *)to)[i] = of;
    }
}

static pc_status make_tensors(const pc__source *s, pc__made *made)
{
    const pc__frame f = pc__pictures_of(s)->pictures.frame;
    pc__meta meta;
    pc__meta_channels_last(&meta, PC_F32, (int64_t[]){made->n, f.channels, f.height, f.width});
    made->tensor[0] = pc__tensor_unscoped(&meta, PC_DEVICE_CPU);
    pc__rows_meta(&meta, &s->part[LABELS], made->n);
    made->tensor[1] = made->tensor[0] ? pc__tensor_unscoped(&meta, PC_DEVICE_CPU) : NULL;
    return made->tensor[1] ? PC_OK : PC_ERR_MEMORY;
}

static pc_status here(const pc__source *s, int threads, pc__made *made)
{
    PC__TRY(make_tensors(s, made));
    PC__TRY(pc__parallel_try(PC__MIN(threads, (int)made->n), made->n, make_picture, &(making){s, made}));
    pc__fill_labels(s, made->samples, made->n, pc__data(made->tensor[1]));
    return PC_OK;
}

static pc_status fill(const pc__source *s, int threads, const pc__made *made, void *const *parts)
{
    const pc__picture_data *d = s->data;
    const pc__frame frame = d->pictures.frame;
    const pc__augment_plan plan =
        pc__augment_plan_of(&d->augment, s->seed, (uint64_t)made->epoch, frame.height, frame.width);
    pc__epoch_table(&plan, made->samples, made->n, parts[TABLE]);
    pc__fill_labels(s, made->samples, made->n, parts[LABELS]);
    return pc__pictures_copy(&d->pictures, made->samples, made->n, d->pictures.streamed ? threads : 1, parts[PICTURES]);
}

/* Owned by the caller whatever scopes are open. */
static pc_tensor *own(pc_tensor *t)
{
    if (t)
        pc__scope_forget(t);
    return t;
}

static pc_status finish(const pc__source *s, pc__made *made)
{
    const pc__augment_attributes attributes = pc__augment_attributes_of(&pc__pictures_of(s)->augment);
    made->tensor[0] = own(pc__augment(made->part[PICTURES], made->part[TABLE], NULL, &attributes));
    if (made->tensor[0]) /* what failed on the way fails this stream too */
        made->tensor[1] = own(pc_clone(made->part[LABELS]));
    return made->tensor[1] ? PC_OK : pc_error_last()->status;
}

static pc_status make_there(const pc__source *s, pc__made *made)
{
    PC__TRY(pc__resident_prepare(s->resident, s));
    PC__TRY(pc__resident_room(s, made->n, &made->tensor[0], &made->tensor[1]));
    return pc__resident_make(s->resident, s, made->before / s->batch, made->tensor[0], made->tensor[1]);
}

static uint64_t fingerprint(const pc__source *s, uint64_t hash)
{
    const pc__folder *folder = &pc__pictures_of(s)->pictures.folder;
    for (int i = 0; i < folder->class_count; i++)
        hash = pc__hash_text(hash, folder->classes[i]);
    for (int i = 0; i < folder->count; i++)
        hash = pc__hash_text(hash, folder->files[i].path);
    return hash;
}

static void close_data(pc__source *s)
{
    pc__picture_data *d = s->data;
    pc__resident_free(s->resident);
    pc__pictures_free(&d->pictures);
    pc__free(d->shown);
    pc__free(d);
}

const pc__kind pc__picture_kind = {.here = here,
                                   .fill = fill,
                                   .finish = finish,
                                   .make_there = make_there,
                                   .fingerprint = fingerprint,
                                   .label = label,
                                   .close = close_data};

pc_status pc__picture_source(pc__source *s, pc__pictures *pictures, const pc_augment *plan)
{
    pc__picture_data *d = pc__calloc(1, sizeof *d);
    if (!d) {
        pc__pictures_free(pictures);
        return PC_ERR_MEMORY;
    }
    *d = (pc__picture_data){.pictures = *pictures, .augment = *plan};
    *pictures = (pc__pictures){0};
    const pc__frame f = d->pictures.frame;
    s->kind = &pc__picture_kind;
    s->data = d;
    s->count = d->pictures.folder.count;
    s->wide = d->pictures.streamed;
    s->tensors = 2;
    s->parts = PARTS;
    s->part[PICTURES] = (pc_field){PC_U8, PC_SHAPE(f.height, f.width, f.channels)};
    s->part[TABLE] = (pc_field){PC_F64, PC_SHAPE(PC__AUGMENT_COLUMNS)};
    s->part[LABELS] = (pc_field){pc__label_dtype(s), is_binary(s) ? PC_SHAPE(1) : PC_SHAPE_SCALAR};
    if (s->wide)
        d->shown = pc__alloc(pc__frame_bytes(f));
    return d->shown || !s->wide ? PC_OK : PC_ERR_MEMORY;
}

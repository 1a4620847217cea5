/* batch.c: the order of an epoch, and the pixels and labels of one batch of it, on the host or by way of resident.c or
 * device_batch.c. */
#include "data/batch.h"

#include "base/parallel.h"
#include "data/device_batch.h"
#include "data/resident.h"
#include "ops/epoch.h"

static void set_order(pc__source *s)
{
    const int64_t epoch = s->next.epoch;
    if (s->order_epoch == epoch)
        return;
    if (s->shuffle)
        pc__epoch_order(s->seed, (uint64_t)epoch, s->pictures.folder.count, s->order, s->keys);
    else
        for (int64_t i = 0; s->order_epoch < 0 && i < s->pictures.folder.count; i++)
            s->order[i] = i;
    s->order_epoch = epoch;
}

static pc_status augment(const pc__source *s, const pc__made *made, int64_t i, const uint8_t *pixels)
{
    const pc__frame frame = s->pictures.frame;
    const pc_augment_values values = pc_augment_draw(&s->augment, s->seed, (uint64_t)s->next.epoch,
                                                     (uint64_t)made->samples[i], frame.height, frame.width);
    return pc_augment_apply(&s->augment, &values, pixels, frame.height, frame.width, frame.channels,
                            (float *)pc__data(made->x) + (size_t)i * pc__frame_bytes(frame));
}

static pc_status make_picture(const pc__source *s, const pc__made *made, int64_t i)
{
    const uint8_t *pixels;
    uint8_t *room = s->pictures.streamed ? pc__alloc(pc__frame_bytes(s->pictures.frame)) : NULL;
    if (s->pictures.streamed && !room)
        return PC_ERR_MEMORY;
    pc_status status = pc__pictures_get(&s->pictures, made->samples[i], room, &pixels);
    if (status == PC_OK)
        status = augment(s, made, i, pixels);
    pc__free(room);
    return status;
}

typedef struct making {
    const pc__source *s;
    const pc__made *made;
    int64_t failed; /* a picture that could not be made, or -1 */
} making;

static void make_one(void *context, int64_t i)
{
    making *m = context;
    if (make_picture(m->s, m->made, i) == PC_OK)
        return;
    if (pc__thread() > 0)
        pc_error_clear(); /* a helper's, which nobody would read */
    __atomic_store_n(&m->failed, i, __ATOMIC_RELAXED);
}

static pc_status make_pictures(const pc__source *s, const pc__made *made, int threads)
{
    if (threads <= 1) {
        for (int64_t i = 0; i < made->n; i++)
            PC__TRY(make_picture(s, made, i));
        return PC_OK;
    }
    making m = {s, made, -1};
    pc__parallel(threads, made->n, make_one, &m);
    return m.failed < 0 ? PC_OK : make_picture(s, made, m.failed); /* once more: the error belongs to this thread */
}

static bool is_binary(const pc__source *s)
{
    return s->pictures.folder.class_count == 2;
}

pc_dtype pc__label_dtype(const pc__source *s)
{
    return is_binary(s) ? PC_F32 : PC_I64;
}

pc_shape pc__label_shape(const pc__source *s, int64_t n)
{
    return is_binary(s) ? PC_SHAPE(n, 1) : PC_SHAPE(n);
}

void pc__fill_labels(const pc__source *s, const int64_t *samples, int64_t n, void *to)
{
    const bool binary = is_binary(s);
    for (int64_t i = 0; i < n; i++) {
        const int label = s->pictures.folder.files[samples ? samples[i] : i].label;
        if (binary)
            ((float *)to)[i] = (float)label;
        else
            ((int64_t *)to)[i] = label;
    }
}

static pc_status make_tensors(const pc__source *s, pc__made *made)
{
    const pc__frame f = s->pictures.frame;
    pc__meta meta;
    pc__meta_channels_last(&meta, PC_F32, (int64_t[]){made->n, f.channels, f.height, f.width});
    made->x = pc__tensor_unscoped(&meta, PC_DEVICE_CPU);
    const pc_shape labels = pc__label_shape(s, made->n);
    pc__meta_contiguous(&meta, pc__label_dtype(s), labels.ndim, labels.dim);
    made->y = made->x ? pc__tensor_unscoped(&meta, PC_DEVICE_CPU) : NULL;
    return made->y ? PC_OK : PC_ERR_MEMORY;
}

static pc_status make_here(const pc__source *s, pc__made *made, int threads)
{
    PC__TRY(make_tensors(s, made));
    PC__TRY(make_pictures(s, made, PC__MIN(threads, (int)made->n)));
    pc__fill_labels(s, made->samples, made->n, pc__data(made->y));
    return PC_OK;
}

static pc_status make_there(const pc__source *s, pc__made *made)
{
    PC__TRY(pc__resident_prepare(s->resident, s));
    PC__TRY(pc__resident_room(s, made->n, &made->x, &made->y));
    return pc__resident_make(s->resident, s, made->first, made->x, made->y);
}

static pc_status make(const pc__source *s, int threads, pc__made *made)
{
    if (s->resident)
        return make_there(s, made);
    return s->crossing ? pc__device_batch_make(s, threads, made) : make_here(s, made, threads);
}

void pc__source_step(pc__source *s)
{
    if (++s->next.batch == s->batches)
        s->next = (pc__position){s->next.epoch + 1, 0};
}

pc_status pc__source_make(pc__source *s, int threads, pc__made *made)
{
    set_order(s);
    made->first = s->next.batch * s->batch;
    made->n = PC__MIN(s->batch, s->pictures.folder.count - made->first);
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
    pc_tensor **const tensors[] = {&made->x, &made->y, &made->pictures, &made->table, &made->labels};
    for (int i = 0; i < PC__COUNT(tensors); i++) {
        pc_tensor_free(*tensors[i]);
        *tensors[i] = NULL;
    }
}

void pc__made_close(pc__made *made)
{
    pc__made_drop(made);
    pc__free(made->samples);
    made->samples = NULL;
}

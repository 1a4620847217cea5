/* device_batch.c: a batch crosses as bytes, a quarter of what its floats would be, while the one before is being
 * trained on: whoever makes batches ahead enqueues the copies on a stream of the loader's; the program's own stream
 * augments when the batch is taken, and waits for those copies by the order of the data. */
#include "data/device_batch.h"

#include "data/augment.h"

/* Owned by the caller whatever scopes are open. */
static pc_tensor *own(pc_tensor *t)
{
    if (t)
        pc__scope_forget(t);
    return t;
}

/* Host memory to fill, of the kind that copies to the device start from. */
static pc_tensor *staging(pc_shape shape, pc_dtype dtype)
{
    return own(pc_empty(shape, dtype, PC_DEVICE_CPU));
}

/* Fill a staging tensor and enqueue its copy. */
typedef void (*fill_fn)(const pc__source *s, const pc__made *made, void *to);

static pc_tensor *send(const pc__source *s, const pc__made *made, pc_shape shape, pc_dtype dtype, fill_fn fill)
{
    pc_tensor *host = staging(shape, dtype), *there = NULL;
    void *to = host ? pc_data(host) : NULL;
    if (to) {
        fill(s, made, to);
        there = own(pc_to(host, s->device, dtype, true));
    }
    pc_tensor_free(host);
    return there;
}

static void fill_pictures(const pc__source *s, const pc__made *made, void *to)
{
    const size_t bytes = pc__picture_bytes(s->pictures.size);
    for (int64_t i = 0; i < made->n; i++)
        memcpy((uint8_t *)to + (size_t)i * bytes, s->pictures.pixels + (size_t)made->samples[i] * bytes, bytes);
}

static void fill_table(const pc__source *s, const pc__made *made, void *to)
{
    const pc__augment_keys keys = {s->seed, (uint64_t)s->next.epoch};
    pc__augment_rows(&s->augment, &keys, made->samples, made->n, s->pictures.size, s->pictures.size, to);
}

static pc_status send_all(const pc__source *s, pc__made *made)
{
    const int64_t n = made->n, size = s->pictures.size;
    made->pictures = send(s, made, PC_SHAPE(n, size, size, 3), PC_U8, fill_pictures);
    if (made->pictures)
        made->table = send(s, made, PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64, fill_table);
    if (made->table)
        made->y = send(s, made, pc__label_shape(s, n), pc__label_dtype(s), pc__fill_labels);
    return made->y ? PC_OK : pc_error_last()->status;
}

pc_status pc__device_batch_make(const pc__source *source, pc__made *made)
{
    pc_stream *before = pc_stream_current(source->device);
    if (!before)
        return PC_ERR_DEVICE;
    PC__TRY(pc_stream_set_current(source->device, source->copies));
    const pc_status status = send_all(source, made);
    const pc_status back = pc_stream_set_current(source->device, before);
    return status != PC_OK ? status : back;
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

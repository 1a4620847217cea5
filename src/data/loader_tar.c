/* loader_tar.c: loaders of tar shards: members as fields of samples. */
#include "data/loader_state.h"
#include "data/shards.h"
#include "io/codec.h"
#include "io/npy.h"

#include <ctype.h>
#include <errno.h>
#include <paracord/image.h>
#include <stdlib.h>

typedef struct tar_data {
    pc__shards shards;
    pc_field field[2];
    pc_image_options options; /* of pictures */
} tar_data;

static pc_status fail_member(const tar_data *d, const pc__shard_member *m, const char *how)
{
    return pc__fail(PC_ERR_FORMAT, "%s in %s %s", m->name, pc__shards_path(&d->shards, m), how);
}

static pc_status take_label(const tar_data *d, const pc__shard_member *m, const uint8_t *bytes, int64_t *to)
{
    char text[24] = "", *end = text;
    memcpy(text, bytes, (size_t)PC__MIN(m->size, (int64_t)sizeof text - 1));
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool is_one = end > text && errno == 0;
    while (isspace((unsigned char)*end))
        end++;
    if (!is_one || end != text + m->size)
        return fail_member(d, m, "is no whole number");
    *to = number;
    return PC_OK;
}

/* Height x width x channels bytes become channels x height x width floats. */
static void spread(const pc_image *image, float *to)
{
    const size_t plane = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < plane; i++)
        for (int c = 0; c < image->channels; c++)
            to[(size_t)c * plane + i] = (float)image->pixels[i * (size_t)image->channels + (size_t)c] / 255.0f;
}

static pc_status take_picture(const tar_data *d, const pc__shard_member *m, const uint8_t *bytes, float *to)
{
    char name[512];
    pc_image image;
    snprintf(name, sizeof name, "%s in %s", m->name, pc__shards_path(&d->shards, m));
    PC__TRY(pc_image_decode(bytes, (size_t)m->size, name, d->options, &image));
    spread(&image, to);
    pc_image_free(&image);
    return PC_OK;
}

static pc_status parse_array(const tar_data *d, const pc__shard_member *m, const uint8_t *bytes, pc__npy *array)
{
    char name[512];
    snprintf(name, sizeof name, "%s in %s", m->name, pc__shards_path(&d->shards, m));
    return pc__npy_parse(name, bytes, (size_t)m->size, array);
}

static pc_field field_of(const pc__npy *array)
{
    return (pc_field){pc__npy_dtype(array->type), pc_shape_of(array->rank, array->shape)};
}

static pc_status take_array(const tar_data *d, const pc__shard_member *m, const uint8_t *bytes, const pc_field *field,
                            void *to)
{
    pc__npy array;
    PC__TRY(parse_array(d, m, bytes, &array));
    const pc_field of = field_of(&array);
    const bool same = of.dtype == field->dtype && of.shape.ndim == field->shape.ndim &&
                      memcmp(of.shape.dim, field->shape.dim, (size_t)of.shape.ndim * sizeof *of.shape.dim) == 0;
    if (same)
        memcpy(to, array.data, pc__field_bytes(field));
    pc__npy_free(&array);
    return same ? PC_OK : fail_member(d, m, "has another shape or dtype than the first sample's");
}

static pc_status take(tar_data *d, const pc__shard_member *m, const pc_field *field, void *to)
{
    const uint8_t *bytes;
    uint8_t *own;
    PC__TRY(pc__shards_read(&d->shards, m, &bytes, &own));
    const pc_status status = m->kind == PC__MEMBER_LABEL     ? take_label(d, m, bytes, to)
                             : m->kind == PC__MEMBER_PICTURE ? take_picture(d, m, bytes, to)
                                                             : take_array(d, m, bytes, field, to);
    pc__free(own);
    return status;
}

static pc_status sample(void *context, int64_t i, int64_t epoch, void *const *to)
{
    tar_data *d = context;
    (void)epoch;
    for (int k = 0; k < 1 + d->shards.has_y; k++)
        PC__TRY(take(d, &d->shards.samples[i].field[k], &d->field[k], to[k]));
    return PC_OK;
}

static void release(void *context)
{
    tar_data *d = context;
    pc__shards_close(&d->shards);
    pc__free(d);
}

/* --- what there is --- */

static pc_status describe(tar_data *d, int k)
{
    const pc__shard_member *m = &d->shards.samples[0].field[k];
    const uint8_t *bytes;
    uint8_t *own;
    pc__npy array;
    if (m->kind != PC__MEMBER_ARRAY) {
        d->field[k] = m->kind == PC__MEMBER_LABEL
                          ? (pc_field){PC_I64, PC_SHAPE_SCALAR}
                          : (pc_field){PC_F32, PC_SHAPE(d->options.channels, d->options.height, d->options.width)};
        return PC_OK;
    }
    PC__TRY(pc__shards_read(&d->shards, m, &bytes, &own));
    const pc_status status = parse_array(d, m, bytes, &array);
    if (status == PC_OK)
        d->field[k] = field_of(&array);
    pc__npy_free(&array);
    pc__free(own);
    return status;
}

/* All samples are like the first one, and labels are numbers. */
static pc_status check_samples(const tar_data *d)
{
    const pc__shards *s = &d->shards;
    for (int i = 0; i < s->sample_count; i++)
        for (int k = 0; k < 1 + s->has_y; k++) {
            const pc__shard_member *m = &s->samples[i].field[k];
            int64_t label;
            if (m->kind != s->samples[0].field[k].kind)
                return fail_member(d, m, "is of another kind than the first sample's");
            if (m->kind == PC__MEMBER_LABEL)
                PC__TRY(take_label(d, m, m->bytes, &label));
        }
    return PC_OK;
}

static uint64_t fingerprint(const pc__shards *s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < s->sample_count; i++)
        for (int k = 0; k < 1 + s->has_y; k++) {
            const pc__shard_member *m = &s->samples[i].field[k];
            hash = pc__hash_text(hash, m->name);
            hash = pc__hash_bytes(hash, &m->size, sizeof m->size);
            if (m->kind == PC__MEMBER_LABEL)
                hash = pc__hash_bytes(hash, m->bytes, (size_t)m->size);
        }
    return hash;
}

static pc_status check_options(const pc_tar_options *o)
{
    enum { SIDE_MAX = 16384 };
    if (o->height < 0 || o->height > SIDE_MAX || o->width < 0 || o->width > SIDE_MAX || !o->height != !o->width)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of height %d and width %d: give both, 1 to %d pixels each",
                        o->height, o->width, SIDE_MAX);
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of %d channels: use 1 (grey) or 3 (RGB)", o->channels);
    if ((unsigned)o->resize > PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no resize mode: use PC_RESIZE_NEAREST or PC_RESIZE_AREA", o->resize);
    return PC_OK;
}

static pc_status open_data(tar_data *d, const char *pattern, const pc_tar_options *o)
{
    PC__TRY(check_options(o));
    d->options = (pc_image_options){.channels = o->channels ? o->channels : 3,
                                    .width = o->width ? o->width : 64,
                                    .height = o->height ? o->height : 64,
                                    .resize = o->resize,
                                    .shorter = o->shorter,
                                    .no_exif = o->no_exif};
    PC__TRY(pc__cover_check("pictures", d->options.width, d->options.height, d->options.shorter));
    PC__TRY(pc__shards_open(pattern, o, &d->shards));
    PC__TRY(check_samples(d));
    for (int k = 0; k < 1 + d->shards.has_y; k++)
        PC__TRY(describe(d, k));
    return PC_OK;
}

pc_loader *pc_loader_new_tar(const char *pattern, pc_tar_options tar, pc_batch_options options)
{
    PC__NEED_OR(NULL, pattern);
    tar_data *d = pc__calloc(1, sizeof *d);
    if (!d)
        return NULL;
    if (open_data(d, pattern, &tar) != PC_OK) {
        release(d);
        return NULL;
    }
    const int64_t skipped = d->shards.skipped;
    const pc_samples samples = {.count = d->shards.sample_count,
                                .fields = 1 + d->shards.has_y,
                                .field = {d->field[0], d->field[1]},
                                .sample = sample,
                                .context = d,
                                .release = release,
                                .threads = true,
                                .fingerprint = fingerprint(&d->shards)};
    pc_loader *loader = pc_loader_new_samples(&samples, options);
    if (loader)
        loader->skipped = skipped;
    return loader;
}

/* loader.c: batches of pictures from folders: the options, the walk through the epochs, and facts. */
#include "data/device_batch.h"
#include "data/prefetch.h"

enum { SIZE = 64, BATCH = 32, PREFETCH = 2, SIDE_MAX = 16384, PREFETCH_MAX = 1024 };

struct pc_loader {
    pc__source source;
    pc__prefetch prefetch;
    pc__made current;  /* the batch that the program has */
    pc__position next; /* of the program; batch == batches: it is to hear of the epoch's end */
};

static pc_status check_numbers(const pc_loader_options *o)
{
    if (o->size < 0 || o->size > SIDE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of size %d: it goes from 1 to %d pixels", o->size, SIDE_MAX);
    if (o->batch < 0)
        return pc__fail(PC_ERR_ARGUMENT, "batches of %d pictures: give 1 or more", o->batch);
    if (o->prefetch < -1 || o->prefetch > PREFETCH_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%d batches made ahead: give 1 to %d, or -1 for none", o->prefetch,
                        PREFETCH_MAX);
    if ((unsigned)o->resize > PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no resize mode: use PC_RESIZE_NEAREST or PC_RESIZE_AREA", o->resize);
    if ((unsigned)o->split > PC_SPLIT_VALIDATION)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no part: use PC_SPLIT_ALL, _TRAINING or _VALIDATION", o->split);
    if (o->split != PC_SPLIT_ALL && !(o->validation_share >= 0 && o->validation_share < 1))
        return pc__fail(PC_ERR_ARGUMENT, "a validation share of %g: give 0 or above, below 1", o->validation_share);
    return PC_OK;
}

static pc_status check_class_names(const pc_loader_options *o)
{
    if (!o->class_names)
        return PC_OK;
    if (o->class_count < 2)
        return pc__fail(PC_ERR_ARGUMENT, "%d class names: a classifier needs two or more", o->class_count);
    for (int i = 0; i < o->class_count; i++)
        if (!o->class_names[i])
            return pc__fail(PC_ERR_ARGUMENT, "class name %d is NULL", i);
    return PC_OK;
}

static pc_status check_options(const char *folder, pc_loader_options *o)
{
    if (!folder || !*folder)
        return pc__fail(PC_ERR_ARGUMENT, "cannot load pictures: no folder is given");
    PC__TRY(check_numbers(o));
    PC__TRY(check_class_names(o));
    PC__TRY(pc_augment_check(&o->augment));
    PC__TRY(pc__device_check(o->device, "pc_picture_folder"));
    o->size = o->size ? o->size : SIZE;
    o->batch = o->batch ? o->batch : BATCH;
    o->prefetch = o->prefetch ? PC__MAX(o->prefetch, 0) : PREFETCH;
    o->augment.flip_horizontal |= o->flip;
    o->augment.rescale = o->augment.rescale != 0 ? o->augment.rescale : 1 / 255.0;
    return PC_OK;
}

static pc_status open_source(pc__source *s, const char *folder, const pc_loader_options *o)
{
    PC__TRY(pc__pictures_load(folder, o, &s->pictures));
    const int64_t count = s->pictures.folder.count;
    s->augment = o->augment;
    s->seed = o->seed;
    s->shuffle = o->shuffle;
    s->batch = PC__MIN(o->batch, count);
    s->batches = (count + s->batch - 1) / s->batch;
    s->order_epoch = -1;
    s->order = pc__alloc((size_t)count * sizeof *s->order);
    if (!s->order)
        return PC_ERR_MEMORY;
    s->device = o->device;
    if (s->device.type == PC_CPU)
        return PC_OK;
    s->crossing = pc__crossing_new(s);
    return s->crossing ? PC_OK : pc_error_last()->status;
}

pc_loader *pc_loader_new(const char *folder, pc_loader_options options)
{
    if (check_options(folder, &options) != PC_OK)
        return NULL;
    pc_loader *loader = pc__calloc(1, sizeof *loader);
    if (!loader)
        return NULL;
    if (open_source(&loader->source, folder, &options) == PC_OK &&
        pc__made_open(&loader->current, &loader->source) == PC_OK &&
        pc__prefetch_open(&loader->prefetch, &loader->source, options.prefetch) == PC_OK)
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
    pc__pictures_free(&loader->source.pictures);
    pc__crossing_free(loader->source.crossing);
    pc__free(loader->source.order);
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
    if (!loader || !batch) {
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_loader_next: the %s is NULL", loader ? "batch" : "loader");
        return false;
    }
    *batch = (pc_batch){0};
    pc__made_drop(&loader->current);
    if (loader->next.batch == loader->source.batches) {
        loader->next = (pc__position){loader->next.epoch + 1, 0};
        return false;
    }
    if (pc__prefetch_take(&loader->prefetch, &loader->current) != PC_OK)
        return false;
    if (pc__device_batch_augment(&loader->source, &loader->current) != PC_OK) {
        pc__made_drop(&loader->current);
        go_to(loader, loader->next);
        return false;
    }
    loader->next.batch++;
    const pc__made *made = &loader->current;
    *batch = (pc_batch){.x = made->x, .y = made->y, .n = made->n, .first = made->first, .sample = made->samples};
    return true;
}

pc_status pc_loader_seek(pc_loader *loader, int64_t epoch, int64_t batch)
{
    if (!loader)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_seek: the loader is NULL");
    if (epoch < 0 || epoch == INT64_MAX || batch < 0 || batch > loader->source.batches)
        return pc__fail(PC_ERR_RANGE, "pc_loader_seek: there is no batch %lld of epoch %lld; an epoch has %lld",
                        (long long)batch, (long long)epoch, (long long)loader->source.batches);
    pc__made_drop(&loader->current);
    go_to(loader, (pc__position){epoch, batch});
    return PC_OK;
}

int64_t pc_loader_count(const pc_loader *loader)
{
    return loader ? loader->source.pictures.folder.count : 0;
}

int64_t pc_loader_batches(const pc_loader *loader)
{
    return loader ? loader->source.batches : 0;
}

int64_t pc_loader_skipped(const pc_loader *loader)
{
    return loader ? loader->source.pictures.skipped : 0;
}

int pc_loader_class_count(const pc_loader *loader)
{
    return loader ? loader->source.pictures.folder.class_count : 0;
}

const char *pc_loader_class_name(const pc_loader *loader, int label)
{
    return label >= 0 && label < pc_loader_class_count(loader) ? loader->source.pictures.folder.classes[label] : NULL;
}

pc_status pc_loader_picture(const pc_loader *loader, int64_t i, pc_picture *picture)
{
    *picture = (pc_picture){0};
    if (i < 0 || i >= pc_loader_count(loader))
        return pc__fail(PC_ERR_RANGE, "pc_loader_picture: there is no picture %lld of %lld", (long long)i,
                        (long long)pc_loader_count(loader));
    const pc__pictures *p = &loader->source.pictures;
    const pc__picture_file *file = &p->folder.files[i];
    *picture = (pc_picture){.path = file->path,
                            .label = file->label,
                            .image = {p->pixels + (size_t)i * pc__picture_bytes(p->size), p->size, p->size, 3}};
    return PC_OK;
}

/* FNV-1a, over the text and its end. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    while (*text++);
    return hash;
}

uint64_t pc_loader_fingerprint(const pc_loader *loader)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < pc_loader_class_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.classes[i]);
    for (int64_t i = 0; i < pc_loader_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.files[i].path);
    return hash;
}

/* loader_folder.c: loaders of pictures from folders: the options, and where the pictures go. */
#include "data/device_batch.h"
#include "data/gather.h"
#include "data/loader_state.h"
#include "data/picture_batch.h"
#include "data/resident.h"
#include "data/wake.h"
#include "io/codec.h"

enum { SIZE = 64, SIDE_MAX = 16384 };

static pc_status check_numbers(const pc_loader_options *o)
{
    PC__TRY(pc__walk_check("pictures", o->batch, o->prefetch, o->resident, o->split, o->validation_share));
    if ((unsigned)o->resize > PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no resize mode: use PC_RESIZE_NEAREST or PC_RESIZE_AREA", o->resize);
    if (o->cache < -1)
        return pc__fail(PC_ERR_ARGUMENT, "a cache of %lld bytes: give 1 or more, 0 for what fits, or -1 for none",
                        (long long)o->cache);
    return PC_OK;
}

static pc_status check_frame(const pc_loader_options *o)
{
    if (o->size < 0 || o->size > SIDE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of size %d: it goes from 1 to %d pixels", o->size, SIDE_MAX);
    if (o->height < 0 || o->height > SIDE_MAX || o->width < 0 || o->width > SIDE_MAX || !o->height != !o->width)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of height %d and width %d: give both, 1 to %d pixels each",
                        o->height, o->width, SIDE_MAX);
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return pc__fail(PC_ERR_ARGUMENT, "pictures of %d channels: use 1 (grey) or 3 (RGB)", o->channels);
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
    if (!*folder)
        return pc__fail(PC_ERR_ARGUMENT, "cannot load pictures: no folder is given");
    PC__TRY(check_frame(o));
    PC__TRY(check_numbers(o));
    PC__TRY(check_class_names(o));
    PC__TRY(pc_augment_check(&o->augment));
    PC__TRY(pc__device_check(o->device, "pc_loader_new"));
    o->size = o->size ? o->size : SIZE;
    o->height = o->height ? o->height : o->size;
    o->width = o->width ? o->width : o->size;
    PC__TRY(pc__cover_check("pictures", o->width, o->height, o->shorter));
    o->channels = o->channels ? o->channels : 3;
    o->batch = o->batch ? o->batch : PC__BATCH;
    o->prefetch = o->prefetch ? PC__MAX(o->prefetch, 0) : PC__PREFETCH;
    o->augment.flip_horizontal |= o->flip;
    o->augment.rescale = o->augment.rescale != 0 ? o->augment.rescale : 1 / 255.0;
    return PC_OK;
}

static pc_status open_device(pc_loader *loader, const pc_loader_options *o)
{
    pc__source *s = &loader->source;
    s->device = o->device;
    if (s->device.type == PC_CPU) {
        snprintf(loader->why, sizeof loader->why, "pictures are in host memory, as their batches are");
        return PC_OK;
    }
    PC__TRY(pc__resident_new(s, o->resident, loader->why, sizeof loader->why, &s->resident));
    pc__log(PC_LOG_INFO, "%s", loader->why);
    if (s->resident)
        return PC_OK;
    s->crossing = pc__crossing_new(s);
    return s->crossing ? PC_OK : pc_error_last()->status;
}

static pc_status open_source(pc_loader *loader, pc__pictures *pictures, const pc_loader_options *o)
{
    PC__TRY(pc__picture_source(&loader->source, pictures, &o->augment));
    PC__TRY(pc__source_open(&loader->source, &(pc__walk){.batch = o->batch, .shuffle = o->shuffle, .seed = o->seed}));
    return open_device(loader, o);
}

/* Of these pictures, which are the loader's then, and gone on failure. */
static pc_loader *new_of(pc__pictures *pictures, const pc_loader_options *options)
{
    pc_loader *loader = pc__loader_begin();
    if (loader)
        return pc__loader_ready(loader, open_source(loader, pictures, options), options->prefetch);
    pc__pictures_free(pictures);
    return NULL;
}

/* The device wakes up meanwhile. */
static pc_status load(const char *folder, const pc_loader_options *options, pc__pictures *pictures)
{
    pc__wake wake;
    pc__wake_begin(&wake, options->device);
    const pc_status status = pc__pictures_load(folder, options, pictures);
    pc__wake_end(&wake);
    return status;
}

/* The part that the options ask for; on failure none. */
static pc_status take_part(const char *folder, const pc_loader_options *o, pc__pictures *pictures)
{
    pc__pictures validation;
    if (o->split == PC_SPLIT_ALL)
        return PC_OK;
    const pc_status status = pc__pictures_divide(pictures, o->validation_share, &validation);
    const int count = pictures->folder.count;
    if (status != PC_OK) {
        pc__pictures_free(pictures);
        return status;
    }
    if (o->split == PC_SPLIT_VALIDATION) {
        const pc__pictures training = *pictures;
        *pictures = validation;
        validation = training;
    }
    pc__pictures_free(&validation);
    if (pictures->folder.count)
        return PC_OK;
    pc__pictures_free(pictures);
    return pc__fail(PC_ERR_NOT_FOUND,
                    "%s has no pictures for validation: a share of %g is none of any class, %d in all", folder,
                    o->validation_share, count);
}

pc_loader *pc_loader_new(const char *folder, pc_loader_options options)
{
    PC__NEED_OR(NULL, folder);
    pc__pictures pictures;
    if (check_options(folder, &options) != PC_OK || load(folder, &options, &pictures) != PC_OK ||
        take_part(folder, &options, &pictures) != PC_OK)
        return NULL;
    return new_of(&pictures, &options);
}

pc_status pc__loader_new_parts(const char *folder, pc_loader_options train_options, pc_loader_options test_options,
                               pc_loader **train, pc_loader **test)
{
    pc__pictures training, validation;
    *train = *test = NULL;
    PC__TRY(check_options(folder, &train_options));
    PC__TRY(check_options(folder, &test_options));
    PC__TRY(load(folder, &train_options, &training));
    pc_status status = pc__pictures_divide(&training, train_options.validation_share, &validation);
    if (status != PC_OK) {
        pc__pictures_free(&training);
        return status;
    }
    const bool any = validation.folder.count > 0;
    *train = new_of(&training, &train_options);
    if (*train && any)
        *test = new_of(&validation, &test_options);
    else
        pc__pictures_free(&validation);
    if (*train && (*test || !any))
        return PC_OK;
    pc_loader_free(*train);
    *train = NULL;
    return pc_error_last()->status;
}

/* run_data.c: where the pictures are, and loading them. */
#include "data/gather.h"
#include "train/data_folders.h"
#include "train/run.h"

#include <errno.h>
#include <sys/stat.h>

static pc_status find_folders(pc__run *run)
{
    const char *data = run->s.data;
    struct stat info;
    if (!data || !*data)
        return pc__fail(PC_ERR_ARGUMENT, "pc_train_folder: no folder of pictures was given");
    if (stat(data, &info) != 0)
        return pc__fail_file(errno, "cannot open the folder %s", data);
    if (!S_ISDIR(info.st_mode))
        return pc__fail(PC_ERR_FILE,
                        "%s is not a folder; name the folder that holds train/ and test/, or one folder per class",
                        data);
    PC__TRY(pc__find_train_folder(data, &run->train_folder));
    PC__TRY(pc__find_test_folder(data, &run->test_folder));
    if (run->test_folder && !run->train_folder)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has %s but no train/ beside it", data,
                        run->test_folder + strlen(data) + 1);
    if (!run->train_folder) {
        run->train_folder = pc__strdup(data);
        if (!run->train_folder)
            return PC_ERR_MEMORY;
    }
    run->split = !run->test_folder && run->s.val_split > 0;
    return PC_OK;
}

static pc_status add_file(pc__run_files *files, const char *path, const char *why)
{
    PC__TRY(pc__grow((void **)&files->files, &files->room, files->count, sizeof *files->files));
    pc__report_file *entry = &files->files[files->count++];
    *entry = (pc__report_file){pc__strdup(path), pc__strdup(why)};
    return entry->path && entry->reason ? PC_OK : PC_ERR_MEMORY;
}

/* The first ones, for the report. */
static void remember(pc__run *run, pc__run_files *files, const char *path, const char *why)
{
    if (files->count < PC__REPORT_FILES && run->files_status == PC_OK)
        run->files_status = add_file(files, path, why);
}

static void skipped(void *context, const char *path, const char *why)
{
    pc__run *run = context;
    const pc_train_callbacks *callbacks = run->s.callbacks;
    remember(run, &run->skipped, path, why);
    if (callbacks && callbacks->skipped)
        callbacks->skipped(callbacks->context, path, why);
}

static void damaged(void *context, const char *path, const char *why)
{
    pc__run *run = context;
    const pc_train_callbacks *callbacks = run->s.callbacks;
    remember(run, &run->damaged, path, why);
    if (callbacks && callbacks->damaged)
        callbacks->damaged(callbacks->context, path, why);
}

static pc_loader_options options_of(pc__run *run)
{
    pc_loader_options o = {.height = run->s.height,
                           .width = run->s.width,
                           .shorter = run->s.shorter,
                           .channels = run->s.channels,
                           .batch = run->s.batch,
                           .seed = run->s.seed,
                           .resize = run->resize,
                           .device = run->device,
                           .no_exif = run->s.no_exif,
                           .strict = run->s.strict,
                           .skipped = skipped,
                           .damaged = damaged,
                           .cache = run->s.cache,
                           .context = run,
                           .validation_share = run->s.val_split};
    memcpy(o.augment.mean, run->mean, sizeof run->mean);
    memcpy(o.augment.std, run->std, sizeof run->std);
    return o;
}

static pc_status take_class_names(pc__run *run)
{
    int count = pc_loader_class_count(run->fit.train);
    run->class_names = pc__calloc((size_t)count, sizeof *run->class_names);
    if (!run->class_names)
        return PC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        run->class_names[i] = pc_loader_class_name(run->fit.train, i);
    return PC_OK;
}

static pc_loader_options train_options(pc__run *run)
{
    pc_loader_options options = options_of(run);
    options.shuffle = true;
    pc_augment *a = &options.augment;
    a->rotation = run->s.rotation;
    a->shear = run->s.shear;
    a->zoom_low = run->s.zoom > 0 ? 1 - run->s.zoom : 0;
    a->zoom_high = run->s.zoom > 0 ? 1 + run->s.zoom : 0;
    a->flip_horizontal = run->s.flip;
    a->crop_low = run->s.crop;
    a->crop_high = run->s.crop > 0 ? 1 : 0;
    a->pad = run->s.pad;
    a->jitter_brightness = run->s.brightness;
    a->jitter_contrast = run->s.contrast;
    a->jitter_saturation = run->s.saturation;
    a->jitter_hue = run->s.hue;
    a->erase = run->s.erase;
    a->fill = run->fill;
    return options;
}

/* What the pictures for training have left of the cache. */
static int64_t cache_left(const pc__run *run)
{
    const int64_t kept = pc_loader_count(run->fit.train) - pc_loader_streamed(run->fit.train);
    const int64_t left = run->s.cache - kept * (int64_t)pc__frame_bytes(pc__run_frame(run));
    return run->s.cache <= 0 ? run->s.cache : left > 0 ? left : -1;
}

static pc_status load_both(pc__run *run)
{
    run->fit.train = pc_loader_new(run->train_folder, train_options(run));
    PC__TRY(run->fit.train ? take_class_names(run) : pc_error_last()->status);
    if (!run->test_folder)
        return PC_OK;
    pc_loader_options options = options_of(run);
    options.class_names = (const char *const *)run->class_names;
    options.class_count = pc_loader_class_count(run->fit.train);
    options.cache = cache_left(run);
    run->fit.test = pc_loader_new(run->test_folder, options);
    return run->fit.test ? PC_OK : pc_error_last()->status;
}

pc_status pc__run_load_data(pc__run *run)
{
    PC__TRY(find_folders(run));
    if (run->split) {
        PC__TRY(pc__loader_new_parts(run->train_folder, train_options(run), options_of(run), &run->fit.train,
                                     &run->fit.test));
        PC__TRY(take_class_names(run));
    } else {
        PC__TRY(load_both(run));
    }
    return run->files_status;
}

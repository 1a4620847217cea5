/* run_data.c: where the pictures are, and loading them. */
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

static pc_status remember(pc__run *run, const char *path, const char *why)
{
    PC__TRY(pc__grow((void **)&run->skipped, &run->skipped_room, run->skipped_count, sizeof *run->skipped));
    pc__report_skipped *entry = &run->skipped[run->skipped_count++];
    *entry = (pc__report_skipped){pc__strdup(path), pc__strdup(why)};
    return entry->path && entry->reason ? PC_OK : PC_ERR_MEMORY;
}

/* Remember the first ones for the report, and tell the program. */
static void skipped(void *context, const char *path, const char *why)
{
    pc__run *run = context;
    const pc_train_callbacks *callbacks = run->s.callbacks;
    if (run->skipped_count < PC__REPORT_SKIPPED && run->skipped_status == PC_OK)
        run->skipped_status = remember(run, path, why);
    if (callbacks && callbacks->skipped)
        callbacks->skipped(callbacks->context, path, why);
}

static pc_loader_options options_of(pc__run *run)
{
    return (pc_loader_options){.size = run->s.size,
                               .batch = run->s.batch,
                               .seed = run->s.seed,
                               .resize = run->resize,
                               .device = run->device,
                               .strict = run->s.strict,
                               .skipped = skipped,
                               .context = run,
                               .validation_share = run->s.val_split};
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

static pc_status load_train(pc__run *run)
{
    pc_loader_options options = options_of(run);
    options.shuffle = true;
    options.split = run->split ? PC_SPLIT_TRAINING : PC_SPLIT_ALL;
    options.augment = (pc_augment){.rotation = run->s.rotation,
                                   .shear = run->s.shear,
                                   .zoom_low = run->s.zoom > 0 ? 1 - run->s.zoom : 0,
                                   .zoom_high = run->s.zoom > 0 ? 1 + run->s.zoom : 0,
                                   .flip_horizontal = run->s.flip};
    run->fit.train = pc_loader_new(run->train_folder, options);
    return run->fit.train ? take_class_names(run) : pc_error_last()->status;
}

pc_status pc__run_load_data(pc__run *run)
{
    PC__TRY(find_folders(run));
    PC__TRY(load_train(run));
    if (!run->test_folder && !run->split)
        return run->skipped_status;
    pc_loader_options options = options_of(run);
    options.split = run->split ? PC_SPLIT_VALIDATION : PC_SPLIT_ALL;
    options.class_names = (const char *const *)run->class_names;
    options.class_count = pc_loader_class_count(run->fit.train);
    run->fit.test = pc_loader_new(run->split ? run->train_folder : run->test_folder, options);
    return run->fit.test ? run->skipped_status : pc_error_last()->status;
}

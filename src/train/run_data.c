/* run_data.c: where the pictures are, and loading them. */
#include "train/run.h"

#include <errno.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static pc_status join(const char *folder, const char *name, char **path)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/%s", folder, name);
    *path = text.data;
    return text.failed ? (pc__text_free(&text), *path = NULL, PC_ERR_MEMORY) : PC_OK;
}

/* The first of the names that is a folder in `folder`; *path stays NULL when none is. */
static pc_status find(const char *folder, const char *const *names, char **path)
{
    for (*path = NULL; *names; names++) {
        PC__TRY(join(folder, *names, path));
        if (is_folder(*path))
            return PC_OK;
        pc__free(*path);
        *path = NULL;
    }
    return PC_OK;
}

static pc_status find_folders(pc__run *run)
{
    static const char *const train_names[] = {"train", "training_set", "training", NULL};
    static const char *const test_names[] = {"test", "test_set", "validation", "valid", "val", NULL};
    const char *data = run->s.data;
    struct stat info;
    if (!data || !*data)
        return pc__fail(PC_ERR_ARGUMENT, "pc_train_folder: no folder of pictures was given");
    if (stat(data, &info) != 0)
        return pc__fail_file(errno, "cannot open the folder %s", data);
    if (!S_ISDIR(info.st_mode))
        return pc__fail(PC_ERR_FILE, "%s is not a folder; name the folder that holds train/ and test/, or one folder per class",
                        data);
    PC__TRY(find(data, train_names, &run->train_folder));
    PC__TRY(find(data, test_names, &run->test_folder));
    if (run->test_folder && !run->train_folder)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has %s but no train/ beside it", data, run->test_folder + strlen(data) + 1);
    if (!run->train_folder) {
        run->train_folder = pc__strdup(data);
        if (!run->train_folder)
            return PC_ERR_MEMORY;
    }
    run->split = !run->test_folder && run->s.val_split > 0;
    return PC_OK;
}

/* Remember the first ones for the report, and tell the program. */
static void skipped(void *context, const char *path, const char *why)
{
    pc__run *run = context;
    const pc_train_callbacks *callbacks = run->s.callbacks;
    if (run->skipped_count < PC__REPORT_SKIPPED &&
        pc__grow((void **)&run->skipped, &run->skipped_room, run->skipped_count, sizeof *run->skipped) == PC_OK) {
        pc__report_skipped entry = {pc__strdup(path), pc__strdup(why)};
        if (entry.path && entry.reason) {
            run->skipped[run->skipped_count++] = entry;
        } else {
            pc__free((void *)entry.path);
            pc__free((void *)entry.reason);
        }
    }
    if (callbacks && callbacks->skipped)
        callbacks->skipped(callbacks->context, path, why);
}

static pc_loader_options options_of(pc__run *run)
{
    return (pc_loader_options){.size = run->s.size, .batch = run->s.batch, .seed = run->s.seed, .resize = run->resize,
                               .device = run->device, .strict = run->s.strict, .skipped = skipped, .context = run,
                               .validation_share = run->s.val_split};
}

static pc_status load_train(pc__run *run)
{
    pc_loader_options options = options_of(run);
    options.shuffle = true;
    options.split = run->split ? PC_SPLIT_TRAINING : PC_SPLIT_ALL;
    options.augment = (pc_augment){.rotation = run->s.rotation, .shear = run->s.shear,
                                   .zoom_low = run->s.zoom > 0 ? 1 - run->s.zoom : 0,
                                   .zoom_high = run->s.zoom > 0 ? 1 + run->s.zoom : 0,
                                   .flip_horizontal = run->s.flip};
    run->fit.train = pc_loader_new(run->train_folder, options);
    if (!run->fit.train)
        return pc_error_last()->status;
    int count = pc_loader_class_count(run->fit.train);
    run->class_names = pc__calloc((size_t)count, sizeof *run->class_names);
    if (!run->class_names)
        return PC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        run->class_names[i] = pc_loader_class_name(run->fit.train, i);
    return PC_OK;
}

pc_status pc__run_load_data(pc__run *run)
{
    PC__TRY(find_folders(run));
    PC__TRY(load_train(run));
    if (!run->test_folder && !run->split)
        return PC_OK;
    pc_loader_options options = options_of(run);
    options.split = run->split ? PC_SPLIT_VALIDATION : PC_SPLIT_ALL;
    options.class_names = (const char *const *)run->class_names;
    options.class_count = pc_loader_class_count(run->fit.train);
    run->fit.test = pc_loader_new(run->split ? run->train_folder : run->test_folder, options);
    return run->fit.test ? PC_OK : pc_error_last()->status;
}

/* folder.c: what is named in the place of a GPT's folder, and is none. */
#include "gpt/model.h"
#include "io/safetensors.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* "FOLDER/NAME" in `path`, and whether it is there. */
static bool is_there(const char *folder, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(path, F_OK) == 0;
}

/* Whether paracord train has written the folder's model.safetensors. */
static bool has_classifier(const char *folder)
{
    char path[PATH_MAX];
    const bool failed = pc_failed();
    pc_weights *file = is_there(folder, "model.safetensors", path) ? pc_weights_open(path) : NULL;
    const bool has = file && pc_weights_note(file, "paracord");
    pc_weights_free(file);
    if (!failed) /* what cannot be read is not known */
        pc_error_clear();
    return has;
}

pc_status pc__gpt_folder_check(const char *folder)
{
    char path[PATH_MAX];
    struct stat info;
    if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
        return pc__fail(PC_ERR_FILE, "%s is no folder, and a GPT is one, with config.json and its weights", folder);
    if (!is_there(folder, "config.json", path) && (is_there(folder, "model.h5", path) || has_classifier(folder)))
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "%s has no GPT but a network for pictures, of paracord train: use paracord predict, eval or show", folder);
    return PC_OK;
}

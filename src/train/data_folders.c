/* data_folders.c: looking for folders by name. */
#include "train/data_folders.h"

#include <sys/stat.h>

bool pc__is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static pc_status join(const char *folder, const char *name, char **path)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/%s", folder, name);
    if (text.failed)
        pc__text_free(&text);
    *path = text.data;
    return text.data ? PC_OK : PC_ERR_MEMORY;
}

/* The first of the names that is a folder in `folder`. */
static pc_status find(const char *folder, const char *const *names, char **path)
{
    for (*path = NULL; *names; names++) {
        PC__TRY(join(folder, *names, path));
        if (pc__is_folder(*path))
            return PC_OK;
        pc__free(*path);
        *path = NULL;
    }
    return PC_OK;
}

pc_status pc__find_train_folder(const char *data, char **path)
{
    static const char *const names[] = {"train", "training_set", "training", NULL};
    return find(data, names, path);
}

pc_status pc__find_test_folder(const char *data, char **path)
{
    static const char *const names[] = {"test", "test_set", "validation", "valid", "val", NULL};
    return find(data, names, path);
}

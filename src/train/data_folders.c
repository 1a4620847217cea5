/* data_folders.c: looking for folders by name. */
#include "train/data_folders.h"

#include <dirent.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

static const char *const train_names[] = {"train", "training_set", "training", NULL};
static const char *const test_names[] = {"test", "test_set", "validation", "valid", "val", NULL};

bool pc__is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Of the name the first `capitals` letters are large. */
static pc_status join(const char *folder, const char *name, size_t capitals, char **path)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/", folder);
    for (size_t i = 0; name[i]; i++) {
        const char c = i < capitals && name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
        pc__text_append(&text, &c, 1);
    }
    if (text.failed)
        pc__text_free(&text);
    *path = text.data;
    return text.data ? PC_OK : PC_ERR_MEMORY;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcasecmp(name, *names) != 0)
        names++;
    return *names;
}

/* Whether a folder has another one in it, hidden ones aside, and those of the parts of a set if these do not count. */
static bool has_folder(const char *path, bool parts_count)
{
    bool found = false;
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        char inner[PATH_MAX];
        const bool part = is_one_of(name, train_names) || is_one_of(name, test_names);
        found = name[0] != '.' && (parts_count || !part) &&
                snprintf(inner, sizeof inner, "%s/%s", path, name) < (int)sizeof inner && pc__is_folder(inner);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The first of the names that is a folder in `data`: "train", "Train" or "TRAIN". One that was overlooked would be a class. A
 * class of trains, beside others and with no folder in it, is none. */
static pc_status find(const char *data, const char *const *names, char **path)
{
    for (*path = NULL; *names; names++)
        for (int way = 0; way < 3; way++) {
            PC__TRY(join(data, *names, way == 2 ? strlen(*names) : (size_t)way, path));
            if (pc__is_folder(*path) && (has_folder(*path, true) || !has_folder(data, false)))
                return PC_OK;
            pc__free(*path);
            *path = NULL;
        }
    return PC_OK;
}

pc_status pc__find_train_folder(const char *data, char **path)
{
    return find(data, train_names, path);
}

pc_status pc__find_test_folder(const char *data, char **path)
{
    return find(data, test_names, path);
}

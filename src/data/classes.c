/* classes.c: the classes of a folder of pictures: their order, and what they need. */
#include "data/folder.h"

static int position(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The classes that are asked for, as far as they fit into a message. */
typedef struct name_list {
    char s[160];
} name_list;

static name_list list_names(const char *const *names, int count)
{
    name_list list = {""};
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        const int n = snprintf(list.s + used, sizeof list.s - used, "%s%s", i ? ", " : "", names[i]);
        if (n < 0 || used + (size_t)n >= sizeof list.s - 8) {
            snprintf(list.s + used, sizeof list.s - used, "%s...", i ? ", " : "");
            break;
        }
        used += (size_t)n;
    }
    return list;
}

static pc_status check_names(const pc__folder *folder, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (position(names[i], (const char *const *)folder->classes, folder->class_count) < 0)
            return pc__fail(PC_ERR_NOT_FOUND, "%s has no folder for class %s", folder->root, names[i]);
        if (position(names[i], names, count) != i)
            return pc__fail(PC_ERR_ARGUMENT, "class names: %s comes twice", names[i]);
    }
    for (int i = 0; i < folder->class_count; i++)
        if (position(folder->classes[i], names, count) < 0)
            return pc__fail(PC_ERR_NOT_FOUND, "%s/%s is no folder of a known class: the classes are %s", folder->root,
                            folder->classes[i], list_names(names, count).s);
    return PC_OK;
}

pc_status pc__folder_relabel(pc__folder *folder, const char *const *names, int count)
{
    PC__TRY(check_names(folder, names, count));
    for (int i = 0; i < folder->count; i++)
        folder->files[i].label = position(folder->classes[folder->files[i].label], names, count);
    char **ordered = pc__alloc((size_t)count * sizeof *ordered);
    if (!ordered)
        return PC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        ordered[position(folder->classes[i], names, count)] = folder->classes[i];
    pc__free(folder->classes);
    folder->classes = ordered;
    folder->class_capacity = count;
    pc__folder_sort(folder);
    return PC_OK;
}

int pc__folder_class_end(const pc__folder *folder, int first)
{
    int i = first;
    while (i < folder->count && folder->files[i].label == folder->files[first].label)
        i++;
    return i;
}

pc_status pc__folder_check(const pc__folder *folder)
{
    if (folder->class_count == 0)
        return pc__fail(PC_ERR_NOT_FOUND,
                        "%s has no class folders: put the pictures of each class into a folder of "
                        "its own in it",
                        folder->root);
    if (folder->class_count == 1)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has one class only, %s: a classifier needs two or more", folder->root,
                        folder->classes[0]);
    int next = 0;
    for (int i = 0; i < folder->class_count; i++) {
        if (next == folder->count || folder->files[next].label != i)
            return pc__fail(PC_ERR_NOT_FOUND, "class %s has no pictures: there are none in %s/%s", folder->classes[i],
                            folder->root, folder->classes[i]);
        next = pc__folder_class_end(folder, next);
    }
    return PC_OK;
}

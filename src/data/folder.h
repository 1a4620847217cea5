/* folder.h: the picture files below a folder, one folder per class, in an order that depends on names alone. */
#ifndef PC__FOLDER_H
#define PC__FOLDER_H

#include "base/base.h"

#include <paracord/loader.h>

typedef struct pc__picture_file {
    char *path; /* below the root: "cat/1.jpg" */
    int label;
} pc__picture_file;

/* Files are sorted by label, then bytewise by path. All memory is from pc__alloc. */
typedef struct pc__folder {
    char *root;
    char **classes; /* names, by label */
    int class_count, class_capacity;
    pc__picture_file *files;
    int count, capacity;
} pc__folder;

/* Find the class folders of `root` (its sub-folders, hidden ones aside, links followed) and the picture files at any
 * depth in each, told by their suffix. Classes are numbered by sorted name. PC_ERR_FILE when a folder cannot be read.
 * On failure *folder is empty. */
PC__SHARED pc_status pc__folder_scan(const char *root, pc__folder *folder);

/* The same for pictures anywhere below `root`, in it too: no classes, every label is 0. */
pc_status pc__folder_scan_flat(const char *root, pc__folder *folder);

/* Number the classes as `names` does. PC_ERR_NOT_FOUND names a class without a folder, or a folder that is no class. */
pc_status pc__folder_relabel(pc__folder *folder, const char *const *names, int count);

/* PC_ERR_NOT_FOUND when there are no class folders, only one, or one without pictures. */
PC__SHARED pc_status pc__folder_check(const pc__folder *folder);

/* One behind the last file of the class whose first is `first`. */
int pc__folder_class_end(const pc__folder *folder, int first);

/* By label, then bytewise by path. */
void pc__folder_sort(pc__folder *folder);

/* "root/path" of file i, for opening and for messages. From pc__alloc. */
PC__SHARED char *pc__folder_path(const pc__folder *folder, int i);

PC__SHARED void pc__folder_free(pc__folder *folder);

#endif

/* paths.h: the files that make up one timeline. */
#ifndef PC__TIMELINE_PATHS_H
#define PC__TIMELINE_PATHS_H

#include "base/base.h"

typedef struct pc__path_list {
    char **items;
    int count, room;
} pc__path_list;

/* Add a file, or the timelines of ranks in a folder, by name. */
pc_status pc__timeline_paths(pc__path_list *list, const char *path);
void pc__timeline_paths_free(pc__path_list *list);

#endif

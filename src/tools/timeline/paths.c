/* paths.c: a folder of timelines: trace.rank3.json, and of a job that was started again trace.start1.rank3.json. Any word
 * may stand for "trace". */
#include "timeline/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

void pc__timeline_paths_free(pc__path_list *list)
{
    for (int i = 0; i < list->count; i++)
        pc__free(list->items[i]);
    pc__free(list->items);
    *list = (pc__path_list){0};
}

static pc_status add(pc__path_list *list, const char *path)
{
    PC__TRY(pc__grow((void **)&list->items, &list->room, list->count, sizeof *list->items));
    list->items[list->count] = pc__strdup(path);
    return list->items[list->count] ? (list->count++, PC_OK) : PC_ERR_MEMORY;
}

/* Whether it is a timeline of a rank, and of which start. */
static bool is_rank(const char *name, long *start)
{
    char *end;
    const char *rank = strstr(name, ".rank"), *again = strstr(name, ".start");
    *start = again && again < rank ? strtol(again + 6, NULL, 10) : 0;
    if (!rank || !strncmp(name, "calls.", 6))
        return false;
    (void)strtol(rank + 5, &end, 10);
    return end > rank + 5 && strcmp(end, ".json") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static pc_status add_folder(pc__path_list *list, const char *folder, DIR *dir)
{
    long last = -1, start;
    bool calls = false;
    char path[4096];
    const int first = list->count;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (is_rank(entry->d_name, &start))
            last = PC__MAX(last, start);
        calls = calls || !strncmp(entry->d_name, "calls.", 6);
    }
    rewinddir(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (is_rank(entry->d_name, &start) && start == last) {
            snprintf(path, sizeof path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", entry->d_name);
            PC__TRY(add(list, path));
        }
    if (list->count == first)
        return pc__fail(
            PC_ERR_NOT_FOUND,
            "%s holds no timelines of ranks (trace.rank0.json and so on): PARACORD_TRACE=%s has ranks write "
            "them there%s",
            folder, folder, calls ? "; the calls that it holds are for paracord trace calls" : "");
    qsort(list->items + first, (size_t)(list->count - first), sizeof *list->items, by_name);
    return PC_OK;
}

pc_status pc__timeline_paths(pc__path_list *list, const char *path)
{
    struct stat about;
    PC__NEED(path);
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return add(list, path);
    DIR *dir = opendir(path);
    if (!dir)
        return pc__fail_file(errno, "cannot read the folder %s", path);
    const pc_status status = add_folder(list, path, dir);
    closedir(dir);
    return status;
}

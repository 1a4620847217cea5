/* inside.h: the folders that a walk down one branch is in, so that a link to one of them ends there. */
#ifndef PC__INSIDE_H
#define PC__INSIDE_H

#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

enum { PC__INSIDE_MAX = 64 };

typedef struct pc__inside {
    struct {
        dev_t device;
        ino_t inode;
    } folders[PC__INSIDE_MAX];
    int depth;
} pc__inside;

/* True when the walk is in this folder already, which a link led to. */
static inline bool pc__is_inside(const pc__inside *w, const struct stat *info)
{
    for (int i = 0; i < w->depth; i++)
        if (w->folders[i].device == info->st_dev && w->folders[i].inode == info->st_ino)
            return true;
    return false;
}

/* After a stat that failed: PC_OK when the entry is a link to nowhere, or gone by now; else an error, as what cannot be looked
 * at may be what is looked for. */
static inline pc_status pc__is_nothing(const char *path)
{
    return errno == ENOENT || errno == ELOOP ? PC_OK : pc__fail_file(errno, "cannot read %s", path);
}

/* Into a folder, which `path` names for the error where that is too deep; out of it by w->depth--. */
static inline pc_status pc__go_inside(pc__inside *w, const char *path, const struct stat *info)
{
    if (w->depth == PC__INSIDE_MAX)
        return pc__fail(PC_ERR_FILE, "cannot read %s: more than %d folders deep", path, PC__INSIDE_MAX);
    w->folders[w->depth].device = info->st_dev;
    w->folders[w->depth++].inode = info->st_ino;
    return PC_OK;
}

#endif

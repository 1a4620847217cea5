/* file.h: whole files in, whole files out. A write goes to a temporary beside the target, is flushed to the disk and
 * renamed over it: after a crash, a kill or a full disk the old file is still whole and no temporary is left that a
 * later write would not reuse. */
#ifndef PC__FILE_H
#define PC__FILE_H

#include "base/base.h"

/* Read a whole file into *bytes (from pc__alloc, one zero byte behind the end). */
pc_status pc__file_read(const char *path, uint8_t **bytes, size_t *n);

/* Write `n` bytes as the new content of `path`. */
pc_status pc__file_write(const char *path, const void *bytes, size_t n);

/* All `n` bytes to an open file; 0, or errno. */
int pc__file_put(int fd, const void *bytes, size_t n);

/* The pieces, for writers that need a path to write to (HDF5): the name of the temporary for `path` (from pc__alloc),
 * and its fsync and rename over `path` (also syncs the folder). On failure the temporary is removed. */
char *pc__file_temporary(const char *path);
pc_status pc__file_commit(const char *temporary, const char *path);

/* Make a folder and its parents; fine when it is already there. */
pc_status pc__folder_make(const char *path);

#endif

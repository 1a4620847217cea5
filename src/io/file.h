/* file.h: whole files in, whole files out. A write goes to a temporary beside the target, is flushed to the disk and
 * renamed over it: after a crash, a kill or a full disk the old file is still whole and no temporary is left that a
 * later write would not reuse. A link stays, and what it leads to is written; what is there and is no regular file (a device, a
 * pipe) is PC_ERR_FILE. */
#ifndef PC__FILE_H
#define PC__FILE_H

#include "base/base.h"

/* Open to read: a regular file, of *size bytes then, or an open descriptor under a name that stands for it (/dev/stdin,
 * /dev/fd/3), whose *size is -1 when it is a pipe, a socket or a terminal. Anything else is PC_ERR_FILE at once:
 * nothing waits for the other end of a FIFO. */
pc_status pc__file_open(const char *path, int *fd, int64_t *size);

/* Read what pc__file_open opened to its end, into *bytes (from pc__alloc, one zero byte behind the end), and close it.
 */
pc_status pc__file_take(int fd, const char *path, int64_t size, uint8_t **bytes, size_t *n);

/* Both: a whole file. */
PC__SHARED pc_status pc__file_read(const char *path, uint8_t **bytes, size_t *n);

/* Git's large file storage leaves a few lines of text in place of a file that was not fetched. pc__file_take refuses
 * such a file by name, with what to do; who reads by himself asks, and pc__fail_lfs records that. */
bool pc__is_lfs_pointer(const void *head, size_t n);
pc_status pc__fail_lfs(const char *path);

/* Write `n` bytes as the new content of `path`. */
PC__SHARED pc_status pc__file_write(const char *path, const void *bytes, size_t n);

/* All `n` bytes to an open file; 0, or errno. */
int pc__file_put(int fd, const void *bytes, size_t n);

/* The pieces, for writers that need a path to write to (HDF5): the name of the temporary for `path` (from pc__alloc),
 * and its fsync and rename over what it was made for (also syncs the folder); `path` is for messages. On failure the temporary is removed. */
char *pc__file_temporary(const char *path);
pc_status pc__file_commit(const char *temporary, const char *path);

/* Make a folder and its parents; fine when it is already there. */
PC__SHARED pc_status pc__folder_make(const char *path);

#endif

/* file.h: whole files in, whole files out. A write goes to a temporary beside the target, is flushed to the disk and
 * renamed over it: after a crash, a kill or a full disk the old file is still whole. Each writer has a temporary of its own,
 * TARGET.paracord-N.tmp with the first number that no living one has, so that of several the last is whole; what a killed
 * one has left the next one removes. A link stays, and what it leads to is written, or made; a file keeps its mode; what
 * is there and is no regular file (a device, a pipe) is PC_ERR_FILE. */
#ifndef PC__FILE_H
#define PC__FILE_H

#include "base/base.h"

#include <sys/stat.h>

/* Open to read: a regular file, of *size bytes then, or an open descriptor under a name that stands for it (/dev/stdin,
 * /dev/fd/3), whose *size is -1 when it is a pipe, a socket or a terminal. Anything else is PC_ERR_FILE at once:
 * nothing waits for the other end of a FIFO. */
pc_status pc__file_open(const char *path, int *fd, int64_t *size);

/* Read what pc__file_open opened to its end, into *bytes (from pc__alloc, one zero byte behind the end), and close it.
 */
pc_status pc__file_take(int fd, const char *path, int64_t size, uint8_t **bytes, size_t *n);

/* Both: a whole file. */
PC__SHARED pc_status pc__file_read(const char *path, uint8_t **bytes, size_t *n);

/* What is no regular file, in words. */
const char *pc__file_kind(mode_t mode);

/* Git's large file storage leaves a few lines of text in place of a file that was not fetched. pc__file_take refuses
 * such a file by name, with what to do; who reads by himself asks, and pc__fail_lfs records that. */
bool pc__is_lfs_pointer(const void *head, size_t n);
pc_status pc__fail_lfs(const char *path);

/* Write `n` bytes as the new content of `path`. */
PC__SHARED pc_status pc__file_write(const char *path, const void *bytes, size_t n);

/* All `n` bytes to an open file; 0, or errno. */
int pc__file_put(int fd, const void *bytes, size_t n);

/* The pieces, for writers who have not all in memory. */
typedef struct pc__draft {
    int fd, number;           /* open for reading and writing, and locked; -1: there is none */
    char *target, *temporary; /* from pc__alloc */
} pc__draft;

/* A new, empty temporary for `path`. It ends by pc__file_commit (flushed, and in the place of what it is for; on failure it
 * is removed), or by pc__file_drop, which removes it and may be called for one that has ended; `path` is for messages. */
pc_status pc__file_begin(const char *path, pc__draft *d);
pc_status pc__file_commit(pc__draft *d, const char *path);
void pc__file_drop(pc__draft *d);

/* The name of `path`'s temporary of that number (from pc__alloc), for other processes that write into it. */
char *pc__file_temporary(const char *path, int number);

/* Remove what killed writers of `path` have left. */
pc_status pc__file_sweep(const char *path);

/* Whether a file's name is that of a temporary, for a target that has the first `n` of its letters. */
PC__SHARED bool pc__file_is_temporary(const char *name, size_t n);

/* Make a folder and its parents; fine when it is already there. */
PC__SHARED pc_status pc__folder_make(const char *path);

#endif

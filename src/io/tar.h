/* tar.h: the members of a tar file, which may be compressed, by libarchive, opened when one is read and never linked. */
#ifndef PC__TAR_H
#define PC__TAR_H

#include "base/base.h"

typedef struct pc__tar pc__tar;

/* A regular file in it, or a hard link to one that came before. */
typedef struct pc__tar_member {
    const char *name; /* valid during the call */
    int64_t size;
    int64_t offset;   /* of its bytes in the tar file; -1: it is compressed, or in pieces, and has none */
    const char *link; /* the member whose bytes it has, and no others; NULL: its own */
} pc__tar_member;

/* Called for each; what it fails with ends the reading. */
typedef pc_status (*pc__tar_fn)(void *context, pc__tar *tar, const pc__tar_member *member);

/* Go through the file that is open as fd, from its beginning, and through archives that follow the first in it (cat a.tar
 * b.tar). PC_ERR_FORMAT: it is no tar file, or is truncated or broken;
 * PC_ERR_UNSUPPORTED: no libarchive, at build time or now. */
pc_status pc__tar_read(const char *path, int fd, pc__tar_fn each, void *context);

/* The member's bytes, from pc__alloc: during the call for it, which is no link. PC_ERR_MEMORY where it has more than `most`. */
pc_status pc__tar_take(pc__tar *tar, int64_t most, uint8_t **bytes, size_t *n);

#endif

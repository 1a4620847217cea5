/* root_parts.h: what the files that make up root.h share. */
#ifndef PC__PROBE_ROOT_PARTS_H
#define PC__PROBE_ROOT_PARTS_H

#include "probe/root.h"

/* The names in a folder, each ended by 0, which were read once: folders of libraries are looked through again and
 * again. */
typedef struct pc__root_listing {
    char *path;
    pc__text names;
} pc__root_listing;

struct pc__root {
    int folder; /* -1 for a recording */
    bool live, recording;
    bool quiet;              /* keep nothing for now */
    pc__root_entry *entries; /* of a recording */
    int count;
    pc__text kept;  /* what was read, as a recording */
    uint64_t *seen; /* hashes of the paths that are in it */
    int seen_count, seen_capacity;
    pc__root_listing listings[32];
    int listing_count;
    char *environment, *environment_end; /* answers/environment, once it was asked for; its lines end with 0 */
    bool environment_read;
    bool starved; /* memory ran out: what was not read is not missing */
};

/* root_inside.c: open below the root, and read the link there; links in a copy of a machine point into the copy. */
int pc__root_open_in(pc__root *root, const char *path, int flags);
ssize_t pc__root_link_in(pc__root *root, const char *path, char *target, size_t n);

/* root_keep.c: keep what was read for a recording, the first time that this kind of question is asked about the path:
 * 'c' content, 'n' name, 's' status, 'v' file system. */
void pc__root_keep(pc__root *root, const pc__root_entry *entry, char question);
void pc__root_keep_content(pc__root *root, const char *path, const char *content, size_t n, bool link);

#endif

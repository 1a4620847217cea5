/* shards.h: the samples of tar shards: which members there are, and where. */
#ifndef PC__SHARDS_H
#define PC__SHARDS_H

#include "data/batch.h"
#include "data/open_files.h"
#include "io/frame.h"

#include <paracord/samples.h>

typedef enum pc__member_kind { PC__MEMBER_PICTURE, PC__MEMBER_ARRAY, PC__MEMBER_LABEL } pc__member_kind;

/* A member that is a field of a sample. */
typedef struct pc__shard_member {
    int shard;      /* whose file it is in */
    int64_t offset; /* there; -1: in memory */
    int64_t size;
    uint8_t *bytes; /* in memory; of labels always */
    char *name;     /* in the tar file */
    pc__member_kind kind;
    int rank; /* of its ending among those that would do */
} pc__shard_member;

typedef struct pc__shard_sample {
    pc__shard_member field[2]; /* x, y; a name of NULL: it is not there */
} pc__shard_sample;

typedef struct pc__shards {
    pc__open_files files;
    pc__shard_sample *samples;
    int sample_count, sample_room;
    int64_t skipped;
    int64_t kept, most; /* bytes in memory, and how many there may be */
    bool has_y;
    const char *endings[2];
    /* while a file is read: the sample that its members go to */
    pc__shard_sample open;
    bool lacks; /* what one of its members is a link to */
    char *key;
    int first, linked; /* of the samples: the file's first one, and the one that a link led to last */
} pc__shards;

/* Find the shards and look through them. On failure *shards is empty. */
pc_status pc__shards_open(const char *pattern, const pc_tar_options *options, pc__shards *shards);
const char *pc__shards_path(const pc__shards *shards, const pc__shard_member *member);
void pc__shards_close(pc__shards *shards);

/* The bytes of a member: *own is from pc__alloc, or NULL where *bytes is the shards'. */
pc_status pc__shards_read(pc__shards *shards, const pc__shard_member *member, const uint8_t **bytes, uint8_t **own);

#endif

/* batch.h: making the batches of an endless run of epochs, one after the other. */
#ifndef PC__BATCH_H
#define PC__BATCH_H

#include "data/kind.h"

typedef struct pc__position {
    int64_t epoch, batch;
} pc__position;

typedef struct pc__crossing pc__crossing;
typedef struct pc__resident pc__resident;
typedef struct pc__kept pc__kept;

/* What batches are made from, and which is next. Used by one thread at a time. */
struct pc__source {
    const pc__kind *kind;
    void *data;                   /* the kind's own */
    int tensors, parts;           /* of a batch */
    pc_field part[PC_FIELDS_MAX]; /* as it crosses to a device */
    int64_t count;                /* samples */
    uint64_t seed;
    bool shuffle;
    bool wide;              /* making a batch is worth all cores, though the program is computing meanwhile */
    int64_t batch, batches; /* samples per batch, batches per epoch */
    int64_t *order;         /* of the samples in epoch `order_epoch`, -1: in none yet */
    uint64_t *keys;         /* scratch memory for it */
    int64_t order_epoch;
    pc__position next;
    int rank, ranks;        /* whose part of each batch is made; ranks 1: all of it */
    pc_device device;       /* of the batches */
    pc__resident *resident; /* the pictures there (resident.h); NULL: they are not */
    pc__kept *kept;         /* the samples there (kept.h); NULL: they are not */
    pc__crossing *crossing; /* to the device (device_batch.h); NULL: it is the CPU, or has the samples */
};

/* One batch. */
struct pc__made {
    pc_tensor *tensor[PC_FIELDS_MAX]; /* NULL: none, or on another device: not yet */
    pc_tensor *part[PC_FIELDS_MAX];   /* on another device what these are made from (device_batch.h) */
    uint64_t sent_after;              /* how many failures of the crossing there had been */
    int64_t *samples;                 /* room for source->batch; stays when the tensors go */
    int64_t n, first;                 /* samples, and the place of the first in the epoch's order */
    int64_t whole, counted, before;   /* of a batch that ranks share: of all, of these, and before it */
    int64_t epoch;
    pc_error error; /* why there is none */
};

/* What a rank has of a batch: `n` samples from place `first` of the order on, of which `part` count, of `whole`. */
typedef struct pc__rank_part {
    int64_t first, n, part, whole;
} pc__rank_part;

/* Shuffle, batches and the like, of a source whose kind, data, count, tensors and parts are set. */
typedef struct pc__walk {
    int batch;
    bool shuffle, drop_last;
    uint64_t seed;
} pc__walk;

pc_status pc__source_open(pc__source *source, const pc__walk *walk);

/* And all that it has, the kind's own too. */
void pc__source_close(pc__source *source);

/* Make the next batch with up to `threads` threads (1: none but the calling one) and step on. On failure the source
 * stays where it is. `made` has no tensors before. */
pc_status pc__source_make(pc__source *source, int threads, pc__made *made);

/* The next batch is the one behind. */
void pc__source_step(pc__source *source);

/* Samples of an epoch that are in a batch; and what the source's rank has of batch number `batch`. */
int64_t pc__source_given(const pc__source *source);
pc__rank_part pc__source_part(const pc__source *source, int64_t batch);

pc_status pc__made_open(pc__made *made, const pc__source *source);
void pc__made_drop(pc__made *made); /* the tensors */
void pc__made_close(pc__made *made);

#endif

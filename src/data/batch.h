/* batch.h: making the batches of an endless run of epochs, one after the other. */
#ifndef PC__BATCH_H
#define PC__BATCH_H

#include "data/pictures.h"
#include "tensor/tensor.h"

typedef struct pc__position {
    int64_t epoch, batch;
} pc__position;

typedef struct pc__crossing pc__crossing;
typedef struct pc__resident pc__resident;

/* What batches are made from, and which is next. Used by one thread at a time. */
typedef struct pc__source {
    pc__pictures pictures;
    pc_augment augment;
    uint64_t seed;
    bool shuffle;
    int64_t batch, batches; /* pictures per batch, batches per epoch */
    int64_t *order;         /* of the samples in epoch `order_epoch`, -1: in none yet */
    uint64_t *keys;         /* scratch memory for it */
    int64_t order_epoch;
    pc__position next;
    pc_device device;       /* of the batches */
    pc__resident *resident; /* the pictures there (resident.h); NULL: they are not */
    pc__crossing *crossing; /* to the device (device_batch.h); NULL: it is the CPU, or has the pictures */
} pc__source;

/* One batch. */
typedef struct pc__made {
    pc_tensor *x, *y; /* NULL: none, or on another device: not yet */
    /* On another device what x and y are made from (device_batch.h): uint8 [n, height, width, channels], rows for the
     * op augment, and what y will be; and how many failures of the crossing there had been. */
    pc_tensor *pictures, *table, *labels;
    uint64_t sent_after;
    int64_t *samples; /* room for source->batch; stays when the tensors go */
    int64_t n, first;
    pc_error error; /* why there is none */
} pc__made;

/* Make the next batch with up to `threads` threads (1: none but the calling one) and step on. On failure the source
 * stays where it is. made->x and y are NULL before. */
pc_status pc__source_make(pc__source *source, int threads, pc__made *made);

/* The next batch is the one behind. */
void pc__source_step(pc__source *source);

pc_status pc__made_open(pc__made *made, const pc__source *source);
void pc__made_drop(pc__made *made); /* the tensors */
void pc__made_close(pc__made *made);

/* Labels of n pictures: float32 [n, 1] for two classes, else int64 [n]. samples NULL: 0 to n - 1. */
pc_shape pc__label_shape(const pc__source *source, int64_t n);
pc_dtype pc__label_dtype(const pc__source *source);
void pc__fill_labels(const pc__source *source, const int64_t *samples, int64_t n, void *to);

#endif

/* buckets.h: gradients of many parameters in few pieces of memory. */
#ifndef PC__BUCKETS_H
#define PC__BUCKETS_H

#include "autograd/leaf_watch.h"

typedef struct pc__bucket {
    pc_tensor *flat; /* all of its memory; NULL: it has none now */
    int64_t count;   /* elements of it */
    int64_t numbers; /* the first of those behind its parameters, one for each of them (lacking.h) */
    int first, last; /* parameters */
    int left;        /* of a backward pass: those whose gradient is not there yet */
} pc__bucket;

typedef struct pc__buckets {
    pc_tensor *const *parameter; /* the caller's */
    int parameters;
    pc__bucket *bucket; /* in the order in which they get full: of the last parameters first */
    int count, room;
    pc__leaf_watch
        *watch;      /* by parameter: its place, where the bucket has memory; set and number are for whoever made it */
    int64_t *offset; /* by parameter: of its first element in the bucket, on 256 bytes; zeros lie between them */
    int *of;         /* by parameter: its bucket */
} pc__buckets;

/* For these parameters, which collect gradients and go through a network in about this order; at least so many bytes in a
 * bucket, and as many in each of its `parts`. `numbered`: with a number for each parameter behind them. None has memory.
 * PC_ERR_MEMORY. */
pc_status pc__buckets_make(pc__buckets *buckets, pc_tensor *const *parameters, int count, double bytes, int parts,
                           bool numbered);
void pc__buckets_free(pc__buckets *buckets);

/* Memory for bucket b, and places for its parameters' gradients in it; it goes. */
pc_status pc__bucket_open(pc__buckets *buckets, int b);
void pc__bucket_close(pc__buckets *buckets, int b);

/* As parameter i, in memory like its bucket's. The caller owns it. */
pc_tensor *pc__bucket_view(const pc__buckets *buckets, int i, pc_tensor *flat);

/* The device and dtype of all that is in bucket b. */
static inline pc_device pc__bucket_device(const pc__buckets *buckets, int b)
{
    return pc_tensor_device(buckets->parameter[buckets->bucket[b].last]);
}
static inline pc_dtype pc__bucket_dtype(const pc__buckets *buckets, int b)
{
    return (pc_dtype)buckets->parameter[buckets->bucket[b].last]->dtype;
}

/* One of `parts` of bucket b's elements, or all of them, in dtype; no contents. The caller owns it. */
pc_tensor *pc__bucket_part(const pc__buckets *buckets, int b, int parts, pc_dtype dtype);

/* Zeros between the parameters in memory like bucket b's. */
pc_status pc__bucket_clear_gaps(const pc__buckets *buckets, int b, pc_tensor *flat);

#endif

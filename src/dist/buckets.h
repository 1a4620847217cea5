/* buckets.h: gradients of many parameters in few pieces of memory. */
#ifndef PC__BUCKETS_H
#define PC__BUCKETS_H

#include "autograd/leaf_watch.h"

typedef struct pc__bucket {
    pc_tensor *flat; /* all of its memory; a parameter's gradient is a view of it, on 256 bytes, zeros between them */
    int first, last; /* parameters */
    int left;        /* of a backward pass: those whose gradient is not there yet */
} pc__bucket;

typedef struct pc__buckets {
    pc__bucket *bucket; /* in the order in which they get full: of the last parameters first */
    int count, room;
    pc__leaf_watch *watch; /* by parameter: its place; set and number are for whoever made it */
    int *of;               /* by parameter: its bucket */
} pc__buckets;

/* For these parameters, which collect gradients and go through a network in about this order; at least so many bytes in a
 * bucket, and as many in each of its `parts`. PC_ERR_MEMORY. */
pc_status pc__buckets_make(pc__buckets *buckets, pc_tensor *const *parameters, int count, double bytes, int parts);

/* As the parameter, in a bucket's or like memory where its place is. The caller owns it. */
pc_tensor *pc__bucket_view(pc_tensor *flat, const pc_tensor *parameter, int64_t offset);
void pc__buckets_free(pc__buckets *buckets, int parameters);

#endif

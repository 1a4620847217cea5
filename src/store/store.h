/* store.h: the control plane as the rest of the library sees it: a store of small values that all ranks share, heartbeats,
 * and who is lost. All of it is off until pc_dist_init has made a world of more than one rank; the functions below then
 * give PC_ERR_STATE where they say nothing else. Any thread may call any of them at any time.
 *
 * A name belongs to the start of the job that made it (pc_dist_generation): nobody ever reads what an earlier start wrote.
 * Each wait has a deadline, and ends at once, with PC_ERR_LOST and why, when a rank or the store is lost. */
#ifndef PC__STORE_H
#define PC__STORE_H

#include "base/base.h"

#define PC__STORE_KEY_MAX 255         /* bytes of a name, without its end */
#define PC__STORE_VALUE_MAX (1 << 24) /* bytes of a value */
#define PC__STORE_KEYS_MAX 65536      /* names of one wait */
#define PC__WHY_MAX 384               /* bytes of a sentence about a rank, with its end */
#define PC__BEAT_NAME_MAX 24
#define PC__STORE_MULTIPLE "multiple of ranks" /* a name: pc_dist_need_multiple's */

/* Give `key` this value, whatever it had. */
pc_status pc__store_set(const char *key, const void *value, size_t bytes);

/* Wait up to `seconds` (0: do not wait) until somebody has set `key`, and copy its value. *bytes (may be NULL) is how many
 * it has. PC_ERR_TIMEOUT; PC_ERR_RANGE when it has more than `capacity`. */
pc_status pc__store_get(const char *key, void *buffer, size_t capacity, size_t *bytes, double seconds);

/* Add to a number, which is 0 before; *value (may be NULL) is what it is then. A number is a value of eight bytes, in the
 * order of the machine that serves the store; PC_ERR_STATE when the value is no number. */
pc_status pc__store_add(const char *key, int64_t delta, int64_t *value);

/* Give `key` the value `desired` if it has `expected` now (NULL: if nobody has set it). *swapped says whether it did. */
pc_status pc__store_compare_set(const char *key, const void *expected, size_t expected_bytes, const void *desired,
                                size_t desired_bytes, bool *swapped);

/* Wait up to `seconds` until all of these are set. PC_ERR_TIMEOUT names some of those that are not. */
pc_status pc__store_wait_all(const char *const *keys, int count, double seconds);

/* Forget the names that begin so. *deleted (may be NULL): how many there were. */
pc_status pc__store_delete(const char *prefix, int *deleted);

/* Wait until every rank has called this with the same name, which can be used once in a start. PC_ERR_TIMEOUT names the
 * ranks that have not come. PC_OK at once in a world of one. */
pc_status pc__store_barrier(const char *name, double seconds);

/* What a rank is doing: the collectives it has entered and finished last. Numbers count from 1; 0: none yet. */
typedef struct pc__beat {
    uint64_t entered, finished; /* sequence numbers */
    uint64_t group;             /* of the collective entered last */
    uint64_t bytes;
    uint64_t hash; /* of all collectives so far, for the checked mode; whoever sets beats says how it is made */
    int32_t dtype; /* a pc_dtype; -1: none */
    int32_t state; /* free for whoever sets beats: what the host does meanwhile */
    char name[PC__BEAT_NAME_MAX]; /* "all_reduce"; "" when there is none */
} pc__beat;

/* From now on this is sent every second. Costs a lock that nobody holds for long; no memory. Does nothing where no
 * heart beats. */
void pc__beat_set(const pc__beat *beat);

typedef struct pc__beat_record {
    pc__beat beat;
    double age; /* seconds since the store got it */
    int rank;
    bool came; /* the rank has been in the store in this start; without, all else is zero */
    bool left; /* by pc_dist_end */
    bool lost;
} pc__beat_record;

/* The last record of each rank: up to `capacity` of them, in order. *count: the size of the world. */
pc_status pc__beats_get(pc__beat_record *records, int capacity, int *count);

/* Whether a rank is lost: its heart stopped, its connection broke, it told an error, or the store itself is gone (*rank is
 * -1 then). `why` is one sentence about the first; it and `rank` may be NULL. Costs one load while all is well. */
bool pc__dist_lost(int *rank, char why[PC__WHY_MAX]);

/* Tell all others that this rank cannot go on, and why: pc__dist_lost is true there. Only the first call counts. The launcher
 * decides by the kind of error (PC_OK: none that is known) whether fewer ranks could go on. */
void pc__dist_tell_error(pc_status kind, const char *why);

#endif

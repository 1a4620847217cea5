/* place.h: where ranks that are threads of this process meet. Every meeting waits for all ranks of the group, or for the two
 * of a send and a receive; whoever comes last does the work for all. */
#ifndef PC__PLACE_H
#define PC__PLACE_H

#include "ops/collective.h"

enum { PC__RANKS_HERE = 64 };

typedef struct pc__place pc__place;

/* What rank `rank` brings; the same kind and number for all. */
typedef struct pc__arrival {
    int kind; /* device type of a communicator; PC_DEVICE_TYPES: of the group itself */
    int64_t number;
    int rank, first, second; /* first < 0: all ranks meet, else these two */
    const char *name;        /* for errors */
    void *brings;
} pc__arrival;

/* The work of a meeting: brought[rank], NULL for those that take no part. */
typedef pc_status (*pc__meeting_fn)(void *const *brought, int size);

pc__place *pc__place_new(int size); /* one reference */
void pc__place_hold(pc__place *place);
void pc__place_let_go(pc__place *place);

/* Wait for the others, no longer than `seconds` (0: for ever), have `work` (may be NULL) done once, and return what it returned, to all.
 * Nobody leaves before it is done. */
pc_status pc__place_meet(pc__place *place, const pc__arrival *arrival, double seconds, pc__meeting_fn work);

/* Wait until all ranks are here, as pc__place_meet, for those that come often: it looks for a while before it sleeps. */
pc_status pc__place_pass(pc__place *place, const pc__arrival *arrival, double seconds);

/* Every meeting, now and later, fails with this. */
void pc__place_abort(pc__place *place, const char *why);

/* together.c: pc__comm's. */
pc_status pc__place_together(pc__comm *comm, const pc_call *call);

/* local.c: collectives in such a place, on host memory. */
extern const pc__engine pc__engine_local;

#endif

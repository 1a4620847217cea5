/* timeline.h: what the timeline is told of ranks. */
#ifndef PC__DIST_TIMELINE_H
#define PC__DIST_TIMELINE_H

#include "ops/collective.h"

/* A call that this rank was in from `entered` to `finished`; one that is in a stream's queue. */
void pc__timeline_call(const pc__comm *comm, const pc_call *call, uint64_t number, int64_t entered, int64_t finished);
void pc__timeline_queued(const pc__comm *comm, const pc_call *call, uint64_t number, uint32_t stream, uint64_t ticket);

/* Which rank this is, and what the clocks show now. */
void pc__timeline_rank(void);

#endif

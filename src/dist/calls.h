/* calls.h: telling the store which collective this rank is in, and who is missing where one waits too long. Any thread. */
#ifndef PC__DIST_CALLS_H
#define PC__DIST_CALLS_H

#include "store/store.h"
#include "ops/collective.h"

/* The rank is in a call from enter to leave. Collectives of a communicator have numbers that count from 1; a send or receive
 * has that of the collective in front of it. */
void pc__calls_enter(const pc__comm *comm, const pc_call *call, uint64_t number);
void pc__calls_leave(const pc__comm *comm, uint64_t number);

/* The call has failed here: others need not wait for this rank. */
void pc__calls_give_up(const pc__comm *comm);

/* For those who wait, about every second: PC_ERR_STATE where a rank has given up this call, or has left the world. */
pc_status pc__calls_look(const pc__comm *comm, const pc_call *call, uint64_t number);

/* comm->seconds are over: PC_ERR_TIMEOUT, with the ranks that have not come and what they are in, by what their hearts have
 * told since. That takes about a second. PC_ERR_LOST where one is lost meanwhile. */
pc_status pc__calls_late(const pc__comm *comm, const pc_call *call, uint64_t number);

/* PC_ERR_LOST where a rank of the world is lost. */
pc_status pc__calls_lost(const pc__comm *comm, const pc_call *call, uint64_t number);

#endif

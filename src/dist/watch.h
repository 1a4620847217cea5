/* watch.h: a thread that looks after collectives which devices have in their queues. Where nothing moves for as long as a
 * group waits, or a rank is lost, it ends the group's communicator and fails what is queued. */
#ifndef PC__DIST_WATCH_H
#define PC__DIST_WATCH_H

#include "ops/collective.h"

extern const pc__comm_watch pc__group_watch;

/* In front of the communicator's end. */
void pc__watch_forget(pc__comm *comm);

#endif

/* prefetch.h: batches made ahead by a thread of its own, at most so many. */
#ifndef PC__PREFETCH_H
#define PC__PREFETCH_H

#include "data/batch.h"

#include <pthread.h>

typedef struct pc__prefetch {
    pc__source *source;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t room, news; /* for the thread: something to do; for the caller: it has done something */
    pc__made *slots;           /* a ring: `count` of them from `first` on are ready */
    int capacity, first, count;
    bool running; /* there is a thread */
    bool alone;   /* there can be none: the caller makes the batches */
    bool busy;    /* the thread is using the source and the slot behind the ready ones */
    bool held;    /* the thread is to rest until the next take */
    bool stop;
} pc__prefetch;

/* capacity 0: no thread, all cores make a batch when it is taken. The thread starts with the first take; where the
 * system has none to give, everything works as with 0. Close also what could not be opened. */
pc_status pc__prefetch_open(pc__prefetch *p, pc__source *source, int capacity);

/* The next batch into *made, which is open and holds no tensors. On failure the next take tries the same batch again.
 */
pc_status pc__prefetch_take(pc__prefetch *p, pc__made *made);

/* Go on at `position` with the next take; what was made ahead is dropped. */
void pc__prefetch_seek(pc__prefetch *p, pc__position position);

void pc__prefetch_close(pc__prefetch *p);

#endif

/* life.h: whether a thing is still there, for recordings that worked with it and do not hold it. Its memory may be given out
 * again, and other things may keep what it had, so neither its address nor its storage says so. */
#ifndef PC__LIFE_H
#define PC__LIFE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pc__life {
    atomic_int references; /* the thing's own, and those of recordings */
    atomic_bool over;
    atomic_uint_fast64_t noted; /* number of the recording that noted it last */
} pc__life;

/* A thing's field for it; NULL: no recording has asked yet. */
typedef _Atomic(pc__life *) pc__life_slot;

/* The thing goes. */
void pc__life_end(pc__life_slot *slot);

#endif

/* again.h: work of a forward pass that the calling thread does once more, because its results were not kept
 * (nn/checkpoint.c). It draws what was drawn the first time, changes no running statistics, and no plan takes it for what
 * is there already. */
#ifndef PC__AGAIN_H
#define PC__AGAIN_H

#include "tensor/tensor.h"

#include <paracord/random.h>

typedef struct pc__again {
    unsigned number;        /* of the work around it */
    pc_generator generator; /* which goes on from here */
} pc__again;

/* Draws begin at `first`, until it is left. They nest. */
pc__again pc__again_enter(pc_generator first);
void pc__again_leave(const pc__again *before);

/* 0: the thread does nothing again; else a number of this work alone. */
unsigned pc__again_number(void);

#endif

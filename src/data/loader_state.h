/* loader_state.h: the inside of a loader, for loader.c, gather.c and facts.c. */
#ifndef PC__LOADER_STATE_H
#define PC__LOADER_STATE_H

#include "data/prefetch.h"

enum { PC__WHY_MAX = 256 };

struct pc_loader {
    pc__source source;
    pc__prefetch prefetch;
    pc__made current;      /* the batch that the program has */
    pc__position next;     /* of the program; batch == batches: it is to hear of the epoch's end */
    uint8_t *shown;        /* where pictures are not kept: the one that pc_loader_picture gave last */
    char why[PC__WHY_MAX]; /* the pictures are where they are */
};

#endif

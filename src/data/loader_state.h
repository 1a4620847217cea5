/* loader_state.h: the inside of a loader, for the files that make them, gather.c and facts.c. */
#ifndef PC__LOADER_STATE_H
#define PC__LOADER_STATE_H

#include "data/prefetch.h"

enum { PC__WHY_MAX = 256 };

struct pc_loader {
    pc__source source;
    pc__prefetch prefetch;
    pc__made current;   /* the batch that the program has */
    pc__position next;  /* of the program; batch == batches: it is to hear of the epoch's end */
    char **class_names; /* of samples that have classes; a folder has its own */
    int class_count;
    int64_t skipped;       /* rows of a file that were left out */
    char why[PC__WHY_MAX]; /* the samples are where they are */
};

/* An empty one for a source to be set in, and its way on when that is done: batches ahead, unless the samples are on the
 * device. On failure the loader is freed, and NULL. */
pc_loader *pc__loader_begin(void);
pc_loader *pc__loader_ready(pc_loader *loader, pc_status status, int prefetch);

enum { PC__BATCH = 32, PC__PREFETCH = 2, PC__PREFETCH_MAX = 1024 };

/* Numbers that all kinds of loaders have. `things`: what the batches are of. */
pc_status pc__walk_check(const char *things, int batch, int prefetch, pc_residence resident, pc_split split,
                         double validation_share);

#endif

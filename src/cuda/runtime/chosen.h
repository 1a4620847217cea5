/* chosen.h: what measuring chose for each shape of an op, as a number of the op's own: in a table of the process, and in the
 * file of choices. */
#ifndef PC__CUDA_CHOSEN_H
#define PC__CUDA_CHOSEN_H

#include "cuda/runtime/choices.h"
#include "cuda/runtime/cuda.h"

#include <pthread.h>

enum { PC__CHOSEN_KEY = 160 /* bytes at most */, PC__CHOSEN_PLACES = 1024 /* a power of two */ };

typedef struct pc__chosen_place {
    bool used;
    int number;
    unsigned char key[PC__CHOSEN_KEY];
} pc__chosen_place;

/* Static and zero but for the lock. Shapes behind the last place go by the rule. */
typedef struct pc__chosen {
    pthread_mutex_t lock;
    int count;
    pc__chosen_place place[PC__CHOSEN_PLACES];
} pc__chosen;

/* How one is found that is not known yet. */
typedef struct pc__choosing {
    const void *key; /* all that the choice holds for, the device too; compared as bytes */
    size_t bytes;
    void *context;
    void (*name)(const void *context, char *text, size_t n); /* the key but for the device, in words, for the file */
    bool (*exists)(void *context, int number);               /* a file may be of another version */
    /* *number and *known; *known stays false where it cannot be measured this time. */
    pc_status (*measure)(void *context, int *number, bool *known);
} pc__choosing;

/* *number: the choice; 0, which is the rule's, where there is none and `stream` is captured: nothing is measured then. */
pc_status pc__chosen_for(pc__chosen *all, const pc_stream *stream, const pc__choosing *by, int *number);

#endif

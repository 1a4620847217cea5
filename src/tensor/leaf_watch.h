/* leaf_watch.h: who watches leaves: is told of their gradients, and may give them their memory in front of each use. */
#ifndef PC__LEAF_WATCH_H
#define PC__LEAF_WATCH_H

#include "tensor/tensor.h"

typedef struct pc__leaf_watch pc__leaf_watch;

/* Leaves that are watched together. All are called in the thread that works with the leaves, and nothing is recorded on the
 * tape meanwhile. A failure ends the walk over the tape, or is the call's. */
typedef struct pc__leaf_set {
    /* A walk comes to leaves of the set. */
    pc_status (*begin)(struct pc__leaf_set *set);
    /* A leaf is about to get the walk's first gradient: watch->place may be set. (optional) */
    pc_status (*place)(struct pc__leaf_set *set, pc__leaf_watch *watch);
    /* Nothing more of this walk comes to the leaf. */
    pc_status (*ready)(struct pc__leaf_set *set, pc__leaf_watch *watch);
    /* The end of a walk without failures; leaves that it did not reach were not ready. */
    pc_status (*end)(struct pc__leaf_set *set);
    /* A call is about to read these, or to write them, and one or more have a watch of the set: those are to have contents.
     * (optional) */
    pc_status (*used)(struct pc__leaf_set *set, pc_tensor *const *tensors, int n, bool write);
    /* The leaf in 16 bits, with the record of a cast and the leaf's watch. NULL: an error. (optional) */
    pc_tensor *(*half)(struct pc__leaf_set *set, pc_tensor *leaf, pc_dtype dtype);
    uint64_t visit; /* the last walk that met one of its leaves */
    uint64_t
        whole; /* which time it is that leaves have all their contents until the program says otherwise; 0: not now, or always */
} pc__leaf_set;

/* The watch of a leaf (pc_tensor.watch), and of what stands for it in 16 bits. */
struct pc__leaf_watch {
    pc__leaf_set *set;
    pc_tensor *place; /* where the leaf's first gradient is put, of its shape, dtype and memory order; NULL: anywhere */
    int awaited;      /* gradients of the walk under way that have not come yet */
    int number;       /* for the set */
    bool given;       /* walks have brought the leaf's gradient; false: the set has put zeros in the place of none */
    /* Read where it is not given: [1], above 0 where others had one, whom the leaf's step follows; else a step leaves the
     * leaf as it is. NULL: zeros are a gradient. */
    pc_tensor *others;
};

/* Watched leaves that calls have taken and that collect gradients, each once. */
typedef struct pc__leaf_notes {
    pc_tensor **leaf; /* no references */
    int count, room;
    int no_grad; /* how many PC_NO_GRAD the thread was in at the beginning; 0: nothing is noted */
} pc__leaf_notes;

/* autograd/watch.c: from here on, in a PC_NO_GRAD, the thread notes them, until pc__leaf_note_end, which gives what was noted
 * (pc__free its list) and goes on with what was noted before. */
pc__leaf_notes pc__leaf_note_begin(void);
pc__leaf_notes pc__leaf_note_end(pc__leaf_notes before);

/* A call takes this one, or what was made of it before. */
pc_status pc__leaf_note(pc_tensor *t);

#endif

/* tape.h: records of calls: what a gradient rule will need, and where its results go. */
#ifndef PC__TAPE_H
#define PC__TAPE_H

#include "tensor/call.h"

/* A saved tensor, and the version its storage had then. */
typedef struct pc__saved {
    pc_tensor *tensor;
    unsigned version;
} pc__saved;

/* Where the gradient of an input goes: to an output of an earlier record, or to a leaf. Both NULL: nowhere. */
typedef struct pc__edge {
    struct pc__node *node;
    int output;
    pc_tensor *leaf;
} pc__edge;

typedef struct pc__node {
    atomic_int references;
    uint64_t sequence; /* later calls have larger ones */
    const pc__op *op;
    pc_device device;
    int n_in, n_out;
    bool released;  /* a backward has been through */
    bool shared;    /* pc__node_share */
    uint64_t visit; /* the last walk that came by */
    struct pc__node *next_dead;
    pc__edge *edges;     /* n_in */
    pc__saved *saved_in; /* n_in */
    pc__meta *in_meta;   /* n_in */
    pc__saved saved_out[PC__OUT_MAX];
    pc__meta out_meta[PC__OUT_MAX];
    pc_tensor *pending[PC__OUT_MAX]; /* gradients that arrived during a walk */
    void *attributes;
} pc__node;

/* Drop gradients that arrived and went no further. */
void pc__node_clear(pc__node *node);

/* Drop what the gradient rule needed, the edges and pending gradients; the record stays as a mark. */
void pc__node_release(pc__node *node);

/* In front of a change of the leaf's gradient, in place too, which a recording may have to put back. */
pc_status pc__grad_changes(pc_tensor *leaf);

/* visit(context, leaf, before) for each such change of the recording, the oldest first; `before`: the leaf had a gradient
 * in front of it. A leaf may come several times. Ends with the first that fails. */
pc_status pc__grad_each_change(const pc_graph *graph, pc_status (*visit)(void *context, pc_tensor *leaf, bool before),
                               void *context);

#endif

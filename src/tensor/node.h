/* node.h: what tensors know of the tape: a record is dropped with the last tensor or record that needs it. */
#ifndef PC__NODE_H
#define PC__NODE_H

struct pc__node;

/* Give up one reference to a record (autograd/tape.c); NULL is fine. */
void pc__node_drop(struct pc__node *node);

/* Several losses go through it, each in a walk of its own: it stays as it is until its last holder drops it. Of records that
 * saved nothing; NULL is fine. */
void pc__node_share(struct pc__node *node);

/* The name of the op it records. */
const char *pc__node_name(const struct pc__node *node);

#endif

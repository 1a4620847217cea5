/* epilogue.h: a product, what follows it, and how the gradient comes back to it: for the pass that makes one call of them
 * (epilogues.c). */
#ifndef PC__EPILOGUE_H
#define PC__EPILOGUE_H

#include "plan/plan.h"

#include "ops/table.h"

/* In the order in which kernels do them. */
typedef enum pc__epilogue_step {
    PC__STEP_ACTIVATION,
    PC__STEP_POOL,
    PC__STEP_C_ORDER, /* a copy of channels-last memory into C order */
    PC__EPILOGUE_STEPS
} pc__epilogue_step;

enum { PC__EPILOGUE_UNDONE = 2 * PC__EPILOGUE_STEPS };

typedef struct pc__epilogue {
    int product;                     /* node */
    int step[PC__EPILOGUE_STEPS];    /* nodes; -1: there is no such */
    pc__epilogue_step last;          /* how many of them the product does */
    int backward;                    /* the product's gradient, or -1: nobody wants one */
    int undone[PC__EPILOGUE_UNDONE]; /* nodes on the way of the gradient whose work it does */
    int undone_count;
    int copy;            /* one of those, which stays: it turns the gradient's memory; or -1 */
    const pc_tensor *dy; /* the gradient behind the last step */
    int dy_number;       /* of its storage */
} pc__epilogue;

typedef struct pc__epilogues {
    pc__plan *plan;
    pc__plan_uses uses;
    const pc__backend *backend;
} pc__epilogues;

/* For a pass: who uses what, for pc__plan_uses_free. False: there is no memory, and the plan is right without the pass. */
static inline bool pc__epilogues_find(pc__epilogues *s)
{
    const bool found = pc__plan_uses_make(&s->uses, s->plan);
    if (!found)
        pc_error_clear();
    return found;
}

static inline pc__plan_node *pc__node(const pc__epilogues *s, int i)
{
    return &s->plan->node[i];
}

static inline const pc_tensor *pc__result(const pc__epilogues *s, int i)
{
    return pc__node(s, i)->call->out[0];
}

static inline int pc__result_number(const pc__epilogues *s, int i)
{
    return pc__node(s, i)->number[pc__node(s, i)->call->n_in];
}

/* Made in the recording, once, and nobody else can see it. */
static inline bool pc__is_temporary(const pc__epilogues *s, int number)
{
    const pc__plan_storage *storage = &s->plan->storage[number];
    return storage->place == PC__PLACE_TEMPORARY && storage->writes == 1;
}

static inline bool pc__node_is(const pc__epilogues *s, int i, int op)
{
    return !pc__node(s, i)->gone && pc__node(s, i)->kind == PC__NODE_CALL && pc__node(s, i)->call->op->index == op;
}

static inline bool pc__is_convolution(const pc__epilogues *s, const pc__epilogue *e)
{
    return pc__node_is(s, e->product, PC__OP_conv2d);
}

static inline bool pc__epilogue_has(const pc__epilogue *e, pc__epilogue_step step)
{
    return step <= e->last && e->step[step] >= 0;
}

/* The same elements in the same places of memory, whatever their shapes. */
bool pc__is_same_memory(const pc_tensor *a, const pc_tensor *b);

/* Only the order of memory changes. */
bool pc__is_reordering(const pc__epilogues *s, int i);

/* A value that is made once, in the recording, and read by these nodes alone. */
bool pc__is_only_for(const pc__epilogues *s, int number, const int *nodes, int count);

/* Which operand of the product's gradient is what. */
static inline int pc__operand_y(const pc__epilogues *s, const pc__epilogue *e)
{
    return pc__is_convolution(s, e) ? 2 : 1;
}
static inline int pc__operand_dy(const pc__epilogues *s, const pc__epilogue *e)
{
    return pc__is_convolution(s, e) ? 4 : 0;
}

/* Whether a node from..to - 1 may do anything to the order of the stream that `of` is on, or writes one of these storages,
 * or, with `reads`, uses the first of them. */
bool pc__is_between(const pc__epilogues *s, int from, int to, const pc_stream *of, const int *number, int count,
                    bool reads);

/* --- norms_add.c --- */

/* The shape of an operand, in the memory of t. */
pc_tensor pc__seen_as(const pc_tensor *old, const pc_tensor *t);

/* Normalisations that add. */
void pc__norms_add(pc__epilogues *s);

/* --- epilogue_gradient.c --- */

/* Look for the product's gradient. True where there is none, or where it comes by the steps up to the last: then what it
 * can do itself is noted. */
bool pc__epilogue_gradient(const pc__epilogues *s, pc__epilogue *e);

/* --- epilogue_fuse.c --- */

/* Whether the backend wants it done as one. */
bool pc__epilogue_is_taken(const pc__epilogues *s, const pc__epilogue *e);

/* Do it; without memory nothing changes. */
void pc__epilogue_fuse(pc__epilogues *s, const pc__epilogue *e);

/* --- norm_steps.c: additions and ReLUs that normalisations of channels do, forward and backward --- */

void pc__norm_steps(pc__epilogues *s);

#endif

/* call.h: one op with its tensors, and what the one way in needs to know about every op.
 *
 * An op is a row in ops/ops.def: shape rule and gradient rule in src/ops/, a kernel of the same name in each backend.
 */
#ifndef PC__CALL_H
#define PC__CALL_H

#include "tensor/tensor.h"

#define PC__OUT_MAX 4

typedef struct pc__op pc__op;

typedef struct pc_call {
    const pc__op *op;
    pc_tensor **in;
    int n_in;
    int n_out;
    pc_tensor *out[PC__OUT_MAX];
    const void *attributes; /* the op's own struct */
    size_t attribute_bytes;
} pc_call;

/* What a gradient rule works with. It sets in_grad[i] where needs[i], using ops; nothing is recorded meanwhile, and
 * intermediates go with the scope around it. */
typedef struct pc__grad {
    const pc__op *op;
    const void *attributes;
    int n_in, n_out;
    pc_tensor **in;          /* saved inputs; NULL unless the row saves them */
    pc_tensor **out;         /* saved outputs; NULL unless the row saves them */
    const pc__meta *in_meta; /* shape and dtype of every input */
    const pc__meta *out_meta;
    pc_device device;
    pc_tensor **out_grad; /* NULL where no gradient arrived */
    const bool *needs;
    const bool
        *wider; /* by input of 16 bits: a float32 gradient is taken as it is; else it is rounded where it arrives */
    pc_tensor **in_grad;
} pc__grad;

enum pc__op_flags {
    PC__SIDE_EFFECTS = 1 << 0, /* the kernel does what plans cannot see: no call is left out, nor done once for two */
    PC__BY_ALL_ATTRIBUTES = 1 << 1, /* calls with other attributes do other work */
    PC__SAVE_OUT0 = 1 << 4,
    PC__SAVE_OUT1 = 1 << 5,
    PC__SAVE_OUT2 = 1 << 6,
    PC__SAVE_CROSS = 1 << 7,   /* in[0] where in[1] wants a gradient, and in[1] where in[0] does */
    PC__VIEW = 1 << 8,         /* outputs share in[0]'s memory: no kernel */
    PC__IN_PLACE = 1 << 9,     /* writes the tensors that its wrapper put in call->out */
    PC__WRITES_IN = 1 << 10,   /* and its inputs: an optimiser's parameters and slots */
    PC__TAKES_ONE = 1 << 11,   /* the gradient rule is told of a gradient of one by out_grad[0] NULL */
    PC__WRITES_HALF = 1 << 12, /* PC__WRITES_IN for the first half of the inputs, a list that is made of the second */
    PC__BY_ELEMENT =
        1 << 13, /* an element of the result needs those in its place, which may be in one memory with it */
    PC__OVERWRITES = 1 << 14, /* in place, all elements of what it writes, which it does not read */
    /* What it computes is in its attributes, a struct that begins with an int: of how many bytes. Calls do other work where
     * those differ. */
    PC__BY_ATTRIBUTES = 1 << 15,
    PC__TAKES_NUMBER = 1 << 16, /* of two inputs; with one, its attributes have a number for the other (ops/number.h) */
    PC__READS_OUT = 1 << 17,    /* in place, and yet it only reads what stands there: what a rank sends */
    PC__HAS_PARAMETER = 1 << 18, /* its attributes have a number that it takes besides (ops/number.h) */
    /* of several ranks together: none may leave it out, nor do it twice */
    PC__COLLECTIVE = PC__IN_PLACE | PC__SIDE_EFFECTS | PC__BY_ALL_ATTRIBUTES,
    PC__SAVE_IN0 = 1 << 24, /* and so on: eight bits, one for each of the first inputs */
    PC__SAVE_IN1 = 1 << 25,
    PC__SAVE_IN2 = 1 << 26,
    PC__SAVE_IN3 = 1 << 27,
    PC__SAVE_IN4 = 1 << 28,
};

struct pc__op {
    const char *name;
    int index; /* in the backends' arrays of kernels */
    int n_out;
    unsigned flags;
    /* Check the inputs and describe each output. */
    pc_status (*infer)(pc_call *call, pc__meta *out);
    pc_status (*gradient)(pc__grad *grad);
};

/* Tensor i of the call, inputs first. */
static inline pc_tensor *pc__call_tensor(const pc_call *call, int i)
{
    return i < call->n_in ? call->in[i] : call->out[i - call->n_in];
}

/* True where the kernel writes tensor i of the call, inputs first. */
static inline bool pc__call_writes(const pc_call *call, int i)
{
    if (i >= call->n_in)
        return !(call->op->flags & PC__READS_OUT);
    return call->op->flags & PC__WRITES_IN || (call->op->flags & PC__WRITES_HALF && i < call->n_in / 2);
}

/* True where the kernel writes all of tensor i, inputs first, without having read it. */
static inline bool pc__call_overwrites(const pc_call *call, int i)
{
    return pc__call_writes(call, i) && (!(call->op->flags & PC__IN_PLACE) || call->op->flags & PC__OVERWRITES);
}

/* True where the kernel leaves nothing of what tensor i's storage held. */
static inline bool pc__call_renews(const pc_call *call, int i)
{
    const pc_tensor *t = pc__call_tensor(call, i);
    return pc__call_overwrites(call, i) &&
           (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size((pc_dtype)t->dtype) == t->storage->bytes;
}

/* The one way in (ops/dispatch.c). On success call->out holds the new tensors. */
pc_status pc_dispatch(pc_call *call);

/* Note a finished call on the tape where an input requires gradients. Lives on the floor above (autograd/tape.c): the
 * one call of the house that goes up. */
pc_status pc__tape_record(const pc_call *call);

/* True when calls are recorded in this thread and an input of this one requires gradients. */
bool pc__tape_wants(const pc_call *call);

#endif

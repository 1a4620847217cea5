/* collective.h: what collectives are to the floors below groups: ops with a communicator among their attributes, and an
 * engine that does them.
 *
 * Dense memory is what takes part, element by element in the order of the memory. in_place: out[0] is read and written.
 * The others read in[0] and write out[0]. A rank that has nothing to give or to take passes an empty tensor. */
#ifndef PC__COLLECTIVE_H
#define PC__COLLECTIVE_H

#include "tensor/call.h"

#include <paracord/group.h>

/* NAME(op, in place, root or other rank counts) */
#define PC__COLLECTIVES(NAME)                                                                                          \
    NAME(all_reduce, true, false)                                                                                      \
    NAME(broadcast, true, true)                                                                                        \
    NAME(reduce, true, true)                                                                                           \
    NAME(all_gather, false, false)                                                                                     \
    NAME(reduce_scatter, false, false)                                                                                 \
    NAME(gather_to, false, true)                                                                                       \
    NAME(scatter, false, true)                                                                                         \
    NAME(all_to_all, false, false)                                                                                     \
    NAME(send, true, true)                                                                                             \
    NAME(receive, true, true)

typedef struct pc__comm pc__comm;

/* The attributes of all of them. */
typedef struct pc__collective {
    pc__comm *comm;
    int reduction;  /* pc_group_op, where there is one */
    int peer;       /* the root, or the other rank */
    uint64_t entry; /* of the journal; 0: none yet */
} pc__collective;

/* In which order a dense tensor's elements lie, and so take part: the dimensions of more than one, the outermost first, as digits
 * of base 16 (the first dimension is 1). 0: C order. */
static inline uint64_t pc__memory_order(const pc_tensor *t)
{
    int dims[PC_MAX_DIMS], n = 0;
    uint64_t order = 0;
    bool turned = false;
    for (int d = 0; d < t->ndim; d++) {
        int at = n;
        if (t->shape[d] < 2)
            continue;
        for (n++; at > 0 && t->strides[dims[at - 1]] < t->strides[d]; at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
    }
    for (int i = 0; i < n; i++) {
        turned = turned || (i && dims[i] < dims[i - 1]);
        order = order << 4 | (uint64_t)(dims[i] + 1);
    }
    return turned ? order : 0;
}

/* "C order", "memory order 1 0" */
enum { PC__ORDER_WORDS = 16 + 2 * PC_MAX_DIMS };
static inline const char *pc__order_words(uint64_t order, char words[PC__ORDER_WORDS])
{
    int n = snprintf(words, PC__ORDER_WORDS, order ? "memory order" : "C order");
    for (int shift = 60; shift >= 0; shift -= 4)
        if (order >> shift & 15)
            n += snprintf(words + n, (size_t)(PC__ORDER_WORDS - n), " %d", (int)(order >> shift & 15) - 1);
    return words;
}

enum { PC__ENGINE_ID = 128 };

/* Who moves the data between the ranks of a group on one kind of device. */
typedef struct pc__engine {
    const char *name;
    bool on_host; /* it reads and writes the memory itself, in the thread that runs the kernel */

    /* What the ranks are to know of each other, made by rank 0 and given to all. (optional) */
    pc_status (*id)(unsigned char id[PC__ENGINE_ID]);

    /* comm comes with all but `implementation` set. All ranks call it; it waits for the others no longer than
     * comm->seconds. */
    pc_status (*open)(pc__comm *comm, const unsigned char id[PC__ENGINE_ID]);

    /* Do the call, or queue it on the stream and tell comm->watch. */
    pc_status (*run)(pc__comm *comm, pc_stream *stream, const pc_call *call);

    /* What went wrong in what was queued. Any thread. (optional) */
    pc_status (*query)(pc__comm *comm);

    /* What is under way ends with an error that says why, now and for ever. Any thread. */
    void (*abort)(pc__comm *comm, const char *why);

    void (*close)(pc__comm *comm);
} pc__engine;

/* What an engine that only queues work tells whoever looks after it, so that a rank that does not come is no wait without an
 * end: in front of a call, and once it, or a graph that holds calls, is in the stream's queue. */
typedef struct pc__comm_watch {
    void (*enters)(pc__comm *comm, const char *name);
    void (*queued)(pc__comm *comm, pc_stream *stream);
} pc__comm_watch;

/* The journal of calls, as engines fill it. */
typedef struct pc__comm_log {
    /* A call is done, or queued, from begins to ends. It gives what `ends` wants to have. */
    uint64_t (*begins)(pc__comm *comm, const pc_stream *stream, const pc_call *call);
    void (*ends)(pc__comm *comm, uint64_t entry, const pc_stream *stream, const pc_call *call, pc_status status);
    void (*launches)(pc__comm *comm,
                     const pc_stream *stream); /* a graph that holds calls which nobody sees one by one */
} pc__comm_log;

/* A rank's end of a group, on one device. */
struct pc__comm {
    const pc__engine *engine;
    pc_device device;
    int rank, size;
    _Atomic double seconds; /* how long a wait for other ranks may last: set while engines work */
    const char *group;      /* its name, for errors */
    void *place;            /* of ranks that are threads: where they meet */
    const int *members;     /* the group's ranks in the world, for errors */
    const pc__comm_watch *watch;
    const pc__comm_log *log;
    uint64_t begun; /* calls of all ranks that have begun, which is their number */
    /* Of ranks that are threads of one process, and queue work that waits for the others': wait until all of them are here. It
     * is called in front of what queues such work and behind it, for a call, or NULL for a graph. Else a call into the
     * driver that waits for what one rank has queued would keep another one from queuing its part. NULL: processes. */
    pc_status (*together)(pc__comm *comm, const pc_call *call);
    int64_t passed, *pairs; /* together's: how often; between this rank and each other */
    void *implementation;
};

/* The engine that an op's kernel is. */
static inline pc_status pc__collective_run(pc_stream *stream, const pc_call *call)
{
    pc__comm *comm = ((const pc__collective *)call->attributes)->comm;
    const uint64_t entry = comm->log->begins(comm, stream, call);
    const pc_status status = comm->engine->run(comm, stream, call);
    comm->log->ends(comm, entry, stream, call, status);
    return status;
}

bool pc__is_collective(const pc__op *op);

#endif

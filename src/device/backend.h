/* backend.h: the ONE interface that a backend implements. A slot marked (optional) may be NULL.
 *
 * Calls queue work on a stream and return; only ticket_synchronize waits. Every slot may be called from any thread.
 * `index` is the number of a device of this backend's type, already checked.
 */
#ifndef PC__BACKEND_H
#define PC__BACKEND_H

#include "base/base.h"
#include "base/site.h"

#include <paracord/stream.h>
#include <pthread.h>
#include <stdatomic.h>

#define PC__BACKEND_API 20

struct pc_call; /* an op with its tensors: tensor/call.h */
typedef pc_status (*pc__kernel)(pc_stream *stream, const struct pc_call *call);

struct pc_op_run; /* a run of a kernel as programs have them: op.h */
typedef pc_status (*pc__lesson_kernel)(const struct pc_op_run *run);

/* What every piece of queued work carries beside itself. */
typedef struct pc__work {
    const char *name; /* of the op or copy; static storage */
    const char *note; /* why it is done this way, for the timeline, or NULL; static storage */
    uint64_t ticket;  /* its number in its stream */
    pc__site site;
    int64_t queued; /* when, while tracing */
} pc__work;

/* What a device says about its memory, in bytes. */
typedef struct pc__memory_info {
    int64_t total, free, largest; /* largest: the largest free piece */
} pc__memory_info;

/* Of what is given to a graph on its stream: what follows is run number `run` (from 1) of those that go on beside what
 * comes behind them, in an order of their own, as soon as what is there by now is done; no longer; what follows waits for
 * the runs up to that number. */
typedef enum pc__aside { PC__ASIDE_BEGIN, PC__ASIDE_END, PC__ASIDE_MEET } pc__aside;

typedef struct pc__waits pc__waits;

typedef struct pc__backend {
    unsigned api_version; /* PC__BACKEND_API of the headers it was built with */
    pc_device_type type;
    const char *name;
    const char *ops;        /* of a plug-in: its pc__op_names (plugin.h) */
    bool immediate;         /* work is done when the call returns: nothing needs ordering or waiting */
    bool one_device_graphs; /* a recording cannot go on on another device */
    bool skips;             /* what is queued behind a failure is not done, nor what other streams let wait for it, and
                             * those streams say so */
    bool convolves_to_c_order; /* its convolutions write C order as fast as channels last */
    bool norms_to_half;        /* its normalisations of float32 write 16 bits, and their gradients read them, as well */
    int span; /* so many calls in a row of a recording it may do as one: memory that one of them read last
                             * is not yet given to another of them */

    /* How many devices there are; with 0, why. */
    int (*count)(char *why, size_t n);

    /* Device memory, aligned to 64 bytes or more. PC_ERR_MEMORY must leave no error recorded: the caching allocator
     * frees what it caches and asks again before it reports. */
    pc_status (*allocate)(int index, size_t bytes, void **block);
    void (*release)(int index, void *block, size_t bytes);
    pc_status (*memory)(int index, pc__memory_info *info); /* (optional) */

    /* Host memory that the device can copy from and to without a detour, and that its kernels use by its address as they
     * use the device's own; errors as above. (optional: plain host memory then) */
    pc_status (*allocate_host)(size_t bytes, void **block);
    void (*release_host)(void *block, size_t bytes);

    /* `stream` comes with device, backend, id and priority set; `implementation` is the backend's. Closing comes when
     * all work is done. */
    pc_status (*stream_open)(pc_stream *stream);
    void (*stream_close)(pc_stream *stream);

    /* Queued work, in the order of the calls, which come one at a time for a stream with tickets that count up. A
     * ticket is done when its work is, or when it was skipped because of a failure before it.
     *
     * Work that is recorded has a ticket without work, and is kept in a plan. Between graph_begin and graph_end, submit,
     * copy and host_call get what passes have left of it, in its order and with its tickets: it goes into
     * graph->implementation, and nothing into a queue.
     *
     * stream_wait: later work of `stream` waits for everything of `other` (same backend) up to `ticket`. Tickets of a
     * recording wait too, so that what was queued before it is done when they are.
     * submit: run kernel(stream, call) later; `call` and its tensors are copied, the memory stays valid until then.
     * copy: bytes between this backend's devices and the host, either way, or within one of them; the devices say where the
     * bytes lie, whosever tensors they are (pc__storage_place). Host memory stays valid until then.
     * host_call: run function(context) in a thread of the backend's. NULL for a ticket without work, which never fails
     * for want of memory and is in no graph.
     * event_record: never of what is recorded. */
    pc_status (*stream_wait)(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work);
    pc_status (*submit)(pc_stream *stream, pc__kernel kernel, const struct pc_call *call, const pc__work *work);
    pc_status (*copy)(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                      size_t bytes, const pc__work *work);
    pc_status (*host_call)(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work);
    pc_status (*event_record)(pc_event *event, pc_stream *stream, const pc__work *work);
    pc_status (*graph_launch)(pc_graph *graph, pc_stream *stream, const pc__work *work);

    /* How the call that the stream was given last is done ("by cuDNN"), in static storage, or NULL: for plans. The
     * stream's lock is held since submit. (optional) */
    const char *(*note)(const pc_stream *stream);

    /* The host waits until a ticket is done; stream->done says so to later callers. The failure of work up to it is
     * recorded and returned, once. ticket_query brings stream->done up to date (optional: it always is). */
    pc_status (*ticket_synchronize)(pc_stream *stream, uint64_t ticket);
    pc_status (*ticket_query)(pc_stream *stream);

    /* Record and return the failure that stream->failed announces, once, and forget it. Work queued until now stays
     * skipped. */
    pc_status (*stream_error)(pc_stream *stream);

    /* Work from the ticket on is built on what failed with this error on another stream. (optional: where it skips) */
    void (*stream_fail)(pc_stream *stream, uint64_t ticket, const pc_error *error);

    pc_status (*event_open)(pc_event *event);
    void (*event_close)(pc_event *event);
    pc_status (*event_elapsed)(pc_event *start, pc_event *end, double *milliseconds); /* both are done */

    /* Building: begin and end bracket what goes into graph->implementation, which begin sets and a failed begin leaves
     * NULL; join makes `other` part of it; wait orders what follows on `stream` behind what is there of `other`, where the
     * order of the calls does not; aside is for graph->stream, and end meets what is not met by then. update puts the work
     * of `newer`, which has the same kernels and shapes, into `graph`, or says what differs. prepare comes before begin, for
     * each call that submit will get: what cannot be made between begin and end. */
    pc_status (*graph_prepare)(pc_stream *stream, const struct pc_call *call); /* (optional) */
    pc_status (*graph_begin)(pc_graph *graph, pc_stream *stream);
    pc_status (*graph_join)(pc_graph *graph, pc_stream *other);                            /* (optional) */
    pc_status (*graph_wait)(pc_graph *graph, pc_stream *stream, pc_stream *other);         /* (optional) */
    pc_status (*graph_aside)(pc_graph *graph, pc_stream *stream, pc__aside what, int run); /* (optional) */
    pc_status (*graph_end)(pc_graph *graph, pc_stream *stream);
    pc_status (*graph_update)(pc_graph *graph, pc_graph *newer);
    void (*graph_close)(pc_graph *graph);

    /* Whether the call is done faster as the calls that it stands for: a convolution that pools as one that does not, and
     * a pooling; a region (ops/region.h). Shapes and dtypes count, memory does not. (optional: it never is) */
    bool (*is_faster_apart)(const struct pc_call *call);

    /* Whether conv2d reads pictures in C order as they lie, forward and for the gradient of its weights, and as fast as
     * channels last. By shapes and dtypes alone. (optional: it never does) */
    bool (*reads_planes)(const struct pc_call *call);

    /* Whether conv2d's sum, without a pooling, is fastest where pictures and results lie in C order, both, though its bias and
     * activation are calls of their own then. By shapes and dtypes alone. (optional: it never is) */
    bool (*keeps_planes)(const struct pc_call *call);

    /* Kernels by op; a missing one is an error that names op, dtype and device. */
    const pc__kernel *(*kernels)(void);

    /* Who moves data between ranks on this backend's devices (ops/collective.h). (optional) */
    const struct pc__engine *engine;

    /* Kernels of the lessons, by ops/lessons.h. (optional: for a backend that runs another one's) */
    const pc__lesson_kernel *(*lessons)(void);
} pc__backend;

/* Memory of the call at hand (workspace.h), by level; NULL: none. */
enum { PC__WORKSPACES = 4 };
typedef struct pc__workspaces {
    struct pc__storage *block[PC__WORKSPACES];
} pc__workspaces;

struct pc_stream {
    pc_device device;
    uint32_t id; /* never 0, never used again */
    int priority;
    bool is_default;
    atomic_bool closed; /* freed by the program; kept for those who still look at it */
    atomic_bool failed; /* stream_error has something to say */
    bool ordered; /* all of its work is done in the order of the calls, launches of what was recorded too: a group's */
    uint32_t behind; /* of such a one: its next work comes behind this stream's with that ticket; 0: behind none */
    uint64_t behind_ticket;
    atomic_int references;
    atomic_uint_fast64_t ticket; /* of the work queued last */
    atomic_uint_fast64_t done;   /* of the work done last, as far as is known */
    atomic_uint_fast64_t taken;  /* as ticket, and of the work that is being queued */
    pc__waits *waits;            /* waits.h; NULL: none */
    pthread_mutex_t lock;        /* held from taking a ticket to queuing its work */
    const pc__backend *backend;
    pc__workspaces workspaces;           /* of the work that is being queued: under the lock */
    atomic_uint_fast64_t recorder;       /* who records it (recorder.h); 0: nobody */
    _Atomic(pc_graph *) recording;       /* the graph being recorded, or NULL: for that thread alone */
    atomic_uint_fast64_t recording_from; /* tickets above this are of that graph */
    atomic_uint recording_site;          /* where it was begun */
    void *implementation;
    pc_stream *next; /* in the list of open streams */
};

/* A mark is a ticket of a stream. */
struct pc_event {
    pc_device device;
    const pc__backend *backend;
    bool recorded;
    bool in_graph; /* recorded while its stream was being recorded: it has no time */
    uint32_t stream;
    uint64_t ticket;
    void *implementation;
};

/* registry.c: the backend of a device type, or NULL; the device checked, PC_ERR_DEVICE naming the valid ones. */
const pc__backend *pc__backend_of(pc_device_type type);
pc_status pc__device_check(pc_device device, const char *who);

/* streams.c: the open stream of that id, held until pc__stream_let_go, or NULL when it was freed (its work is then
 * done). */
pc_stream *pc__stream_hold(uint32_t id);
void pc__stream_let_go(pc_stream *stream);

/* streams.c: see to it that the end of the calling thread gives back what it holds of streams. */
void pc__stream_watch_end(void);

#define PC__DEVICES_MAX 64

#endif

/* state.h: the inside of CUDA devices, streams and recordings. */
#ifndef PC__CUDA_STATE_H
#define PC__CUDA_STATE_H

#include "cuda/runtime/cuda.h"
#include "cuda/loss/head.h"
#include "cuda/pointwise/small.h"
#include "ops/collective.h"

/* --- devices (device.c) --- */

typedef struct pc__cuda_device {
    atomic_bool open, lost;
    int multiprocessors;
    int block_room;      /* bytes of shared memory that a block may have, */
    int shared_room;     /* and that a multiprocessor has for all of its blocks, */
    int registers;       /* as many registers, */
    int threads;         /* and threads */
    bool early;          /* shared/dependent_launch.cuh */
    int least, greatest; /* stream priorities in CUDA's order */
    pc_error loss;       /* once lost */
} pc__cuda_device;
extern pc__cuda_device pc__cuda_devices[PC__DEVICES_MAX];

int pc__cuda_count(char *why, size_t n);

int pc__cuda_here(void); /* which one that is */

/* The same, and see to what every device needs once: code for it, its properties. */
pc_status pc__cuda_open(int index);

pc_status pc__cuda_allocate(int index, size_t bytes, void **block);
void pc__cuda_release(int index, void *block, size_t bytes);
pc_status pc__cuda_memory(int index, pc__memory_info *info);
pc_status pc__cuda_allocate_host(size_t bytes, void **block);
void pc__cuda_release_host(void *block, size_t bytes);

/* error.c: true for errors after which the device does nothing more in this process. */
bool pc__cuda_is_loss(cudaError_t status);

/* Record that the device is lost, if it is not yet: "in WHERE" names the work. Records and returns that error. */
pc_status pc__cuda_lose(int index, cudaError_t status, const char *where);

/* --- streams --- */

enum { PC__CUDA_MARKS = 256, PC__CUDA_WORKS = 1024 };

/* An event in the stream: when it is passed, so is the ticket. */
typedef struct pc__cuda_mark {
    uint64_t ticket;
    cudaEvent_t event; /* made when first needed, used again */
} pc__cuda_mark;

/* Who queued what: for the words of errors. */
typedef struct pc__cuda_origin {
    uint64_t ticket;
    const char *name;
    pc__site site;
} pc__cuda_origin;

struct pc__cuda_graph;

typedef struct pc__cuda_block {
    void *data;
    size_t bytes;
} pc__cuda_block;

/* A recording that was launched, until its work is done. */
typedef struct pc__cuda_launch {
    uint64_t first, ticket;       /* of those that were not looked at */
    struct pc__cuda_graph *graph; /* one reference */
} pc__cuda_launch;

/* Work between two events with times, for the timeline. */
typedef struct pc__cuda_timed {
    pc__work work;
    const char *engine;
    int64_t bytes;
    cudaEvent_t start, end;
} pc__cuda_timed;

typedef struct pc__cuda_state {
    pc__cuda_stream face; /* first: what kernels see */
    pc_stream *stream;
    cudaStream_t own;
    unsigned *counters;    /* outside recordings */
    atomic_bool has_small; /* some calls are held */
    pthread_mutex_t lock;  /* over all below: waits come from any thread */

    pc__cuda_small_list small; /* queued and not yet launched */
    uint64_t small_from;       /* the ticket of the first of them */

    pc__cuda_mark mark[PC__CUDA_MARKS]; /* a ring, the oldest first */
    int first_mark, marks;
    uint64_t newest;        /* ticket of the newest mark ever made */
    atomic_int watched;     /* mark so many pieces of work more: somebody waited for one inside the queue */
    uint64_t checked;       /* faults of tickets up to this are looked at */
    pc__cuda_fault *faults; /* one for each of the last PC__CUDA_WORKS tickets */
    pc__cuda_origin origin[PC__CUDA_WORKS];

    pc__cuda_launch *launch;
    int launches, launch_room;

    bool failing; /* nobody has been told yet */
    uint64_t failed_ticket;
    pc_error error;

    pc__cuda_timed *timed; /* in the order of the queue */
    int timed_count, timed_room;
    cudaEvent_t anchor; /* an event whose time on the host's clock is known */
    int64_t anchor_time;
    cudaEvent_t *spare; /* events with times */
    int spare_count, spare_room;
} pc__cuda_state;

static inline pc__cuda_state *pc__cuda_state_of(const pc_stream *stream)
{
    return stream->implementation;
}

/* stream.c; priority: CUDA's, of the stream, or so much more urgent. */
int pc__cuda_priority(const pc_stream *stream, int more);
pc_status pc__cuda_counters_new(unsigned **counters, cudaStream_t queue, const char *what);
pc_status pc__cuda_stream_open(pc_stream *stream);
void pc__cuda_stream_close(pc_stream *stream);
pc_status pc__cuda_stream_wait(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work);
pc_status pc__cuda_submit(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work);
const char *pc__cuda_note(const pc_stream *stream);
pc_status pc__cuda_host_call(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work);

/* copy.c */
pc_status pc__cuda_copy(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                        size_t bytes, const pc__work *work);

/* What every piece of work does before and after it is queued; times come out in the timeline. `call` and `bytes` are
 * for recordings. */
typedef struct pc__cuda_queuing {
    pc_stream *stream;
    const pc__work *work;
    const char *engine;
    int64_t bytes;
    const pc_call *call;
    cudaEvent_t start; /* while tracing */
} pc__cuda_queuing;
pc_status pc__cuda_queue_begin(pc__cuda_queuing *q);
pc_status pc__cuda_queue_end(pc__cuda_queuing *q, pc_status status);

/* mark.c: when tickets are done. */
pc_status pc__cuda_ticket_synchronize(pc_stream *stream, uint64_t ticket);
pc_status pc__cuda_ticket_query(pc_stream *stream);
pc_status pc__cuda_mark_now(pc__cuda_state *s, uint64_t ticket); /* the lock is held */
pc_status pc__cuda_mark_for(pc__cuda_state *s, uint64_t ticket, cudaEvent_t *event, uint64_t *covers); /* the same */
void pc__cuda_marks_free(pc__cuda_state *s);

/* small.c: launch what is held; the lock is held, and the device is the thread's current one. */
void pc__cuda_small_go(pc__cuda_state *s);

/* fault.c: what went wrong on the device; the lock is held. */
void pc__cuda_faults_look(pc__cuda_state *s, uint64_t done); /* of tickets up to that */
pc_status pc__cuda_stream_lost(pc__cuda_state *s, cudaError_t status);
pc_status pc__cuda_stream_error(pc_stream *stream);
void pc__cuda_stream_fail(pc_stream *stream, uint64_t ticket, const pc_error *error);
void pc__cuda_stream_fails(pc__cuda_state *s, uint64_t ticket); /* with the thread's last error, which it takes */

/* Find in `fault` what happened, and forget it: PC_OK, or an error recorded with these names. */
pc_status pc__cuda_fault_say(pc__cuda_fault *fault, const char *name, pc__site site, int device);

/* timed.c: begin gives an event with times before the work (NULL while there is no trace), end closes it. */
pc_status pc__cuda_timed_begin(pc__cuda_queuing *q);
void pc__cuda_timed_end(const pc__cuda_queuing *q);
void pc__cuda_timed_tell(pc__cuda_state *s); /* what is done; the lock is held */
void pc__cuda_timed_free(pc__cuda_state *s);

/* --- events (event.c) --- */

pc_status pc__cuda_event_open(pc_event *event);
void pc__cuda_event_close(pc_event *event);
pc_status pc__cuda_event_record(pc_event *event, pc_stream *stream, const pc__work *work);
pc_status pc__cuda_event_elapsed(pc_event *start, pc_event *end, double *milliseconds);

/* --- recordings (graph.c, branch.c) --- */

/* One piece of recorded work. */
typedef struct pc__cuda_step {
    const char *name;
    pc__site site;
    pc_call *call; /* a copy; NULL for copies and functions */
    int64_t bytes;
} pc__cuda_step;

/* What one of the program's streams gives to a recording: only what waits for each other is in one order. What kernels
 * of one queue have for themselves, one after the other, each branch has its own of. */
typedef struct pc__cuda_branch {
    cudaStream_t capture;
    unsigned *counters;
    pc__cuda_block newest[PC__WORKSPACES]; /* of the graph's workspaces: its largest of each level */
    pc__cuda_head head;
    cudaError_t refused;        /* what went wrong when it was let go: work of calls that have succeeded is missing */
    uint64_t started, complete; /* while its stream's face is another branch's: what it says here, */
    bool met;                   /* and this, too */
} pc__cuda_branch;

typedef struct pc__cuda_graph {
    atomic_int references; /* the program's, and launches under way */
    int index;
    pc__cuda_branch **branch; /* of the stream that it began on, then of those that joined, in that order */
    int branches, branch_room;
    pc__cuda_branch *aside; /* one of them, of no stream (aside.c); NULL: nothing is beside */
    cudaEvent_t *run;       /* behind each run of it */
    int runs, run_room;
    int met;          /* the last run that the first branch has waited for */
    cudaEvent_t fork; /* carries each wait of one branch for another */
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    pc__cuda_step *step;
    int steps, step_room;
    pc__cuda_fault *faults; /* PC__CUDA_GRAPH_FAULTS of them; steps share them in turn */
    pc__comm **comm;        /* whose ranks launch it together (ops/collective.h) */
    int comms, comm_room;
} pc__cuda_graph;

enum { PC__CUDA_GRAPH_FAULTS = 256 };

/* Calls of a branch that one launch may do: head.h's five are the most. */
enum { PC__CUDA_SPAN = 6 };

pc_status pc__cuda_graph_begin(pc_graph *graph, pc_stream *stream);
pc_status pc__cuda_graph_join(pc_graph *graph, pc_stream *other);
pc_status pc__cuda_graph_end(pc_graph *graph, pc_stream *stream);
pc_status pc__cuda_graph_goes_with(const pc_stream *stream, pc__comm *comm); /* of the recording on the stream */
pc_status pc__cuda_graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work);
pc_status pc__cuda_graph_update(pc_graph *graph, pc_graph *newer);
void pc__cuda_graph_close(pc_graph *graph);
pc_status pc__cuda_graph_step(pc__cuda_graph *g, const pc__cuda_queuing *q); /* note a step, before it is captured */
pc_status pc__cuda_graph_faults(pc__cuda_graph *g);                          /* after a launch */
void pc__cuda_graph_drop(pc__cuda_graph *g);

/* A branch for what the stream is given from now on. The first one is being captured then, the others as soon as they
 * wait for one that is. */
pc_status pc__cuda_branch_open(pc__cuda_graph *g, pc_stream *stream);
void pc__cuda_branch_leave(pc_stream *stream); /* what the stream is given goes to its own queue again */
pc_status pc__cuda_branch_make(pc__cuda_graph *g, const pc_stream *stream, pc__cuda_branch **made);
void pc__cuda_branch_enter(pc_stream *stream, pc__cuda_branch *b); /* what the stream is given goes there */
void pc__cuda_branches_end(pc__cuda_graph *g);                     /* nothing is captured any more */
void pc__cuda_branches_free(pc__cuda_graph *g);

/* aside.c: backend.h's graph_aside; and all runs are waited for, before the stream leaves. */
pc_status pc__cuda_graph_aside(pc_graph *graph, pc_stream *stream, pc__aside what, int run);
pc_status pc__cuda_asides_meet(pc__cuda_graph *g, pc_stream *stream);
void pc__cuda_asides_end(pc__cuda_graph *g);

/* What is recorded on `stream` from now on comes after what is recorded on `other` by now. */
pc_status pc__cuda_branch_wait(pc_graph *graph, pc_stream *stream, pc_stream *other);

/* PARACORD_CUDA_SYNC=1: wait after every piece of work, so that errors name it. */
extern bool pc__cuda_sync;

/* PARACORD_NVTX=1: what is queued, and the program's ranges, are NVTX ranges of the domain "Paracord" for NVIDIA's
 * tools (nvtx.c). Start comes once; push and pop only where pc__cuda_nvtx says so. */
extern bool pc__cuda_nvtx;
void pc__cuda_nvtx_start(const pc__host_api *host);
void pc__cuda_nvtx_push(const char *name);
void pc__cuda_nvtx_pop(void);

#endif

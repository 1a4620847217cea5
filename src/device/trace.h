/* trace.h: the timeline. What the rest of the library tells it; nothing is done unless a trace is on. */
#ifndef PC__TRACE_H
#define PC__TRACE_H

#include "base/base.h"
#include "base/site.h"

#include <paracord/device.h>
#include <stdatomic.h>

extern atomic_bool pc__trace_on;

static inline bool pc__tracing(void)
{
    return atomic_load_explicit(&pc__trace_on, memory_order_relaxed);
}

/* Nanoseconds of CLOCK_MONOTONIC: the clock of every row. */
int64_t pc__now(void);

/* The same where a trace is on, else 0. */
static inline int64_t pc__trace_now(void)
{
    return pc__tracing() ? pc__now() : 0;
}

/* Names and notes are static storage or live until the call returns. */

/* One piece of work that a device has done: a kernel, a copy, a function on the host. */
typedef struct pc__trace_work {
    const char *name; /* "conv2d", "copy to device", "copy to host", "copy between devices", "host function" */
    pc_device device;
    uint32_t stream;    /* id */
    uint64_t ticket;    /* number of the work in its stream */
    const char *engine; /* "compute", "copy in", "copy out", "host" */
    int lane;           /* engines that do several things at once have several, from 0 */
    int64_t queued, started, ended;
    int64_t bytes; /* moved by a copy, touched by a kernel; 0: unknown */
    pc__site site;
    const char *note; /* why it was done this way ("staged: the source is pageable"), or NULL */
} pc__trace_work;
void pc__trace_work_done(const pc__trace_work *work);

/* Work `ticket` of `stream` waits for work `other_ticket` of `other`: an arrow. */
void pc__trace_wait(pc_device device, uint32_t stream, uint64_t ticket, pc_device other_device, uint32_t other,
                    uint64_t other_ticket);

/* Something the calling host thread did from `started` to now. kind: "op" (queuing one), "wait" (stood still for a
 * device), "loader", "step", "memory". device is that which it waited for, type -1 for none. */
typedef struct pc__trace_host {
    const char *kind, *name, *note; /* note may be NULL */
    int64_t started, ended;
    pc_device device;
    uint32_t stream; /* waited for; 0: none */
    int64_t bytes;
    pc__site site;
} pc__trace_host;
void pc__trace_host_done(const pc__trace_host *event);

/* The same of an op that was done or queued on a stream, from `started` to now; 0: the trace was off then, and nothing is told. */
void pc__trace_op_done(const char *name, const char *note, int64_t started, pc_device device, uint32_t stream,
                       pc__site site);

/* A collective call of a rank, which is a process or a thread of one. Where the host does it, when it was entered and done;
 * of one that is queued (started 0) the stream and ticket of the work that is it. */
typedef struct pc__trace_collective {
    const char *name, *group, *dtype;
    uint64_t number;        /* of the group's calls on such devices, from 1 */
    int member, rank, size; /* in the world, or among the threads; in the group */
    int64_t bytes, started, ended;
    pc_device device;
    uint32_t stream;
    uint64_t ticket;
    bool pair; /* between two ranks */
} pc__trace_collective;
void pc__trace_collective_done(const pc__trace_collective *call);

/* Which rank of a job writes this timeline, and its clock: the job's clock shows `offset` more than pc__now() at `at`, within
 * `error`. Told again it is a second look at the clocks. Kept for timelines that begin
 * later. From one thread at a time, while none begins. */
typedef struct pc__trace_rank {
    int rank, size, start;
    uint64_t job;
    int64_t at, offset, error;
} pc__trace_rank;
void pc__trace_rank_set(const pc__trace_rank *rank);

/* dist/timeline.c: ".rank3" for a process that a launcher has started as a rank of several, else "". Weak: a program that is
 * linked without ranks does without. */
enum { PC__TRACE_RANK_NAME = 48 };
__attribute__((weak)) void pc__trace_rank_name(char name[PC__TRACE_RANK_NAME]);

/* trace_env.c: PARACORD_TRACE is for the processes that this one starts: a timeline that it has begun here goes. */
PC__SHARED void pc__trace_leave_to_ranks(void);

/* Whoever else wants the program's ranges (PC_TRACE_RANGE), as they open and close in each thread, trace or not: the
 * CUDA plug-in, for NVTX. Set once; NULL at first. */
typedef struct pc__trace_ranges {
    void (*push)(const char *name);
    void (*pop)(void);
} pc__trace_ranges;
void pc__trace_ranges_set(const pc__trace_ranges *ranges);

/* A mark without length in the calling thread's row: "out of memory", "graph captured". */
void pc__trace_mark(const char *name, const char *note, pc__site site);

#endif

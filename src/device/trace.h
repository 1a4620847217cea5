/* trace.h: the timeline. What the rest of the library tells it; nothing is done unless a trace is on. */
#ifndef PC__TRACE_H
#define PC__TRACE_H

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

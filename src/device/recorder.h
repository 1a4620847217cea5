/* recorder.h: whose recording a stream is part of. A recording belongs to the thread that began it: that one alone
 * looks into it, and what others ask of its streams is PC_ERR_STATE until it ends. */
#ifndef PC__RECORDER_H
#define PC__RECORDER_H

#include "device/backend.h"

/* The calling thread's number: never 0, never used again. */
uint64_t pc__recorder_here(void);

/* The recording that the calling thread makes of the stream, or NULL. */
static inline pc_graph *pc__graph_of(const pc_stream *stream)
{
    const uint64_t recorder = atomic_load_explicit(&stream->recorder, memory_order_acquire);
    return recorder && recorder == pc__recorder_here() ? atomic_load(&stream->recording) : NULL;
}

/* Whether another thread records the stream. */
static inline bool pc__recorded_elsewhere(const pc_stream *stream)
{
    const uint64_t recorder = atomic_load_explicit(&stream->recorder, memory_order_acquire);
    return recorder && recorder != pc__recorder_here();
}

/* Whether ticket `ticket` of the stream is work of a recording under way. */
static inline bool pc__is_recorded(const pc_stream *stream, uint64_t ticket)
{
    return atomic_load_explicit(&stream->recorder, memory_order_acquire) &&
           ticket > atomic_load(&stream->recording_from);
}

/* PC_ERR_STATE, which names what `who` asked for, the stream, and the thread that records it. */
pc_status pc__recorder_refuses(const pc_stream *stream, const char *who);

static inline pc_status pc__recorder_admits(const pc_stream *stream, const char *who)
{
    return pc__recorded_elsewhere(stream) ? pc__recorder_refuses(stream, who) : PC_OK;
}

/* The stream is part of the calling thread's recording from here on, and no longer. Its lock is held, or no other
 * thread can have it. */
void pc__recorder_enters(pc_stream *stream, pc_graph *graph);
void pc__recorder_leaves(pc_stream *stream);

/* The calling thread's recordings: one begins, takes from now on all that the thread queues on its device, ends; any of
 * those under way, or NULL. */
void pc__recorder_begins(pc_graph *graph);
void pc__recorder_takes_all(pc_graph *graph);
void pc__recorder_ends(pc_graph *graph);
pc_graph *pc__recorder_any(void);

/* The calling thread's recording that work of the stream is part of, or will be as soon as there is some; or NULL. */
pc_graph *pc__recording_for(const pc_stream *stream);

#endif

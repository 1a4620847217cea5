/* stream.h: queues of work on a device, marks in them, and recordings of them.
 *
 * An op enqueues its work on the calling thread's current stream of its device and returns. A device may gather small
 * pieces of work, to start them together: at the latest when the program records an event behind them, waits for the
 * stream or asks whether it is done. Paracord orders streams by the data they share, so that two streams need no marks
 * for that; events are for time and for the host. On `cpu` work runs at once, in the calling thread: there every stream
 * is always done.
 *
 * What goes wrong in queued work is told by the next call that queues on that stream or waits for it, whichever
 * thread makes it; threads that wait at the same time are each told. The message names the op and the place of its
 * call. What was queued behind it by then, there and on streams that wait for it, is not done (on GPUs it may be, on
 * what there was). What all that was to write has no result: whoever reads such a tensor (or a view of it), works with
 * it or launches what reads it gets the failure again, each time, until all of the memory is written again, by one call
 * that does not read it: pc_fill, pc_copy, a generator of random numbers, a launch that begins with such a call.
 * Writing a part of it, or pc_data, does not help. Weights of a step that failed are such tensors: load them, or make
 * the network again. So is what an optimiser keeps of them (Adam, a momentum): pc_optimizer_reset.
 *
 * What fails on a stream fails for all who use that stream. Threads that are not to suffer by each other's mistakes use
 * streams of their own (PC_WITH_STREAM), not the default one.
 *
 * Threads: any thread may use any stream, unless another one records it (pc_graph_begin), and free what it made last.
 *
 *     pc_event *start = pc_event_new(dev), *end = pc_event_new(dev);
 *     pc_event_record(start, NULL);
 *     work();
 *     pc_event_record(end, NULL);
 *     double ms;
 *     pc_event_elapsed(start, end, &ms); // waits for both
 */
#ifndef PARACORD_STREAM_H
#define PARACORD_STREAM_H

#include <paracord/device.h>

PC_BEGIN

typedef struct pc_stream pc_stream;
typedef struct pc_event pc_event;
typedef struct pc_graph pc_graph;

typedef struct pc_stream_options {
    int reserved_;
    int priority; /* where several streams of a device could go on, higher ones go first; 0 is usual */
} pc_stream_options;

/* A new stream on `device`: pc_stream(dev), or pc_stream(dev, .priority = 1). NULL on failure. The caller owns it; free
 * waits for its work, drops an unfinished recording, and where it is a thread's current stream the default one takes
 * its place. */
PC_API PC_MUST_USE pc_stream *pc_stream_new(pc_device device, pc_stream_options options);
#define pc_stream(...) PC_STREAM_(__VA_ARGS__, )
#define PC_STREAM_(device, ...) pc_stream_new((device), PC_OPTIONS(pc_stream_options, __VA_ARGS__))
PC_API void pc_stream_free(pc_stream *stream);

/* The calling thread's current stream of `device` (borrowed; the device's default stream unless set), and set it:
 * NULL restores the default stream. */
PC_API pc_stream *pc_stream_current(pc_device device);
PC_API PC_MUST_USE pc_status pc_stream_set_current(pc_device device, pc_stream *stream);

/* Inside the braces `stream` is the calling thread's current one of its device:
 *
 *     PC_WITH_STREAM(side) { y = pc_exp(x); }
 *
 * Leaving by return, break or goto restores what was before. */
#define PC_WITH_STREAM(stream) PC_BLOCK_(pc_with_stream, pc_with_stream_leave, pc_with_stream_enter(stream))

typedef struct pc_with_stream {
    int open;
    pc_device device;
    pc_stream *before;
} pc_with_stream;
PC_API pc_with_stream pc_with_stream_enter(pc_stream *stream);
PC_API void pc_with_stream_leave(pc_with_stream *with);

PC_API pc_device pc_stream_device(const pc_stream *stream);
PC_API int pc_stream_priority(const pc_stream *stream);

/* Wait until all work of the stream is done, and report what went wrong in it. NULL stream: the current device's
 * current stream. */
PC_API PC_MUST_USE pc_status pc_stream_synchronize(pc_stream *stream);

/* *done says whether all work of the stream (NULL: as above) is done; never waits. Returns what went wrong in it. */
PC_API PC_MUST_USE pc_status pc_stream_query(pc_stream *stream, bool *done);

/* Wait for all streams of a device. */
PC_API PC_MUST_USE pc_status pc_device_synchronize(pc_device device);

/* Queue a call of function(context) on the host, in a thread of the library's, after the work so far of the stream
 * (NULL: as above); later work of the stream waits for it. It must not call into Paracord for that device. On `cpu` it
 * runs at once. */
typedef void (*pc_stream_fn)(void *context);
PC_API PC_MUST_USE pc_status pc_stream_call(pc_stream *stream, pc_stream_fn function, void *context);

/* --- waits that nobody asked for --- */

/* What the calling thread thinks of calls that make the host wait for a device without saying so in their name
 * (pc_item, pc_read, pc_print, pc_to without non_blocking, pc_data of a copy under way, a copy between kinds of
 * accelerators): nothing; a warning (log.h) for each; or PC_ERR_STATE. The messages name the call and its place.
 * pc_stream_synchronize and its like are always allowed. */
typedef enum pc_sync_policy { PC_SYNC_ALLOW, PC_SYNC_WARN, PC_SYNC_REFUSE } pc_sync_policy;

/* Set it, and get what it was. */
PC_API pc_sync_policy pc_sync_policy_set(pc_sync_policy policy);

/* --- order by hand --- */

/* Inside the braces the calling thread's work waits for nothing but what is before it in its own stream and what
 * pc_event_wait says: order is the program's job, also between this work and work outside the braces. Memory is still
 * never handed out before its last use. PARACORD_CHECK=streams finds what was forgotten. Leave by the end, return,
 * break or goto. */
#define PC_MANUAL_ORDER PC_BLOCK_(int, pc_manual_order_leave, (pc_manual_order_enter(), 1))
PC_API void pc_manual_order_enter(void);
PC_API void pc_manual_order_leave(int *open);

/* --- events --- */

/* A mark. NULL on failure. The caller owns it. */
PC_API PC_MUST_USE pc_event *pc_event_new(pc_device device);
PC_API void pc_event_free(pc_event *event);

/* Put the mark at the end of `stream` (NULL: the current stream of the event's device). */
PC_API PC_MUST_USE pc_status pc_event_record(pc_event *event, pc_stream *stream);

/* Make later work of `stream` (NULL: as above) wait for the mark; the host does not wait. */
PC_API PC_MUST_USE pc_status pc_event_wait(pc_event *event, pc_stream *stream);

/* Make the host wait for the mark; query never waits. An event never recorded counts as done. */
PC_API PC_MUST_USE pc_status pc_event_synchronize(pc_event *event);
PC_API PC_MUST_USE pc_status pc_event_query(pc_event *event, bool *done);

/* Milliseconds between two recorded marks of one device; waits for both. PC_ERR_STATE when one was not recorded. */
PC_API PC_MUST_USE pc_status pc_event_elapsed(pc_event *start, pc_event *end, double *milliseconds);

/* --- graphs --- */

/* Record the work that is queued on `stream` (NULL: the current device's current stream) between begin and end instead
 * of running it, and the work of other streams of that kind of device that waits for it (by data or by event): they
 * join, until the end. The graph keeps the memory of every tensor that takes part in its launches. Tensors made
 * meanwhile get their memory when the recording ends, or when work outside of it asks for them: PC_ERR_MEMORY is told
 * by pc_graph_end. Work whose result nobody can see is left out, and what is computed twice is computed once
 * (pc_graph_text). What no recording can hold (data on the host, waiting for the device) fails with PC_ERR_STATE,
 * naming the call and its place; pc_graph_end then fails too, gradients, loss scalers and the counts of optimisers are
 * what they were before, and tensors made meanwhile have no result until they are written. A launch does what was queued then, whatever mode a
 * network or a setting of the thread has by now (pc_step_run looks: step.h). So random numbers, dropout's too, are those
 * that were drawn then, in every launch; for a training step pc_step_run draws new ones for dropout.
 *
 * Threads: a recording belongs to the thread that began it, and ends with that thread at the latest. Until then what
 * another thread asks of its streams (queuing, waiting, reading, pc_graph_begin and pc_graph_end, pc_stream_free, which
 * then does nothing), or of what it writes, is PC_ERR_STATE, which names both, and is no failure of the recording. The
 * default stream of a device is all threads': record on one of your own. */
PC_API PC_MUST_USE pc_status pc_graph_begin(pc_stream *stream);
PC_API PC_MUST_USE pc_graph *pc_graph_end(pc_stream *stream);

/* Enqueue everything the graph holds on `stream` (NULL: the current stream of the graph's device), in the order that
 * the recorded streams had: GPUs do side by side what they were given so. Ordered with other streams by the data it
 * shares with them, as any op. */
PC_API PC_MUST_USE pc_status pc_graph_launch(pc_graph *graph, pc_stream *stream);

/* Let `graph` do what `newer` does, when both hold the same ops on the same shapes and dtypes and only memory differs;
 * `newer` then holds what graph had. Otherwise PC_ERR_SHAPE names the first op that differs, and nothing changes. */
PC_API PC_MUST_USE pc_status pc_graph_update(pc_graph *graph, pc_graph *newer);
PC_API void pc_graph_free(pc_graph *graph);

/* The plan of the graph in words: a line for each piece of work that was recorded, with the op, the storages that it
 * reads and writes, shape, dtype and call site, and how the device does it where it says so ("by cuDNN"); what was
 * taken out and why; what memory it needs. For people: its form may change. Text that the caller gives to pc_text_free,
 * or NULL with PC_ERR_MEMORY. PARACORD_PLAN=print in the environment prints it on standard error when a recording
 * ends. */
PC_API PC_MUST_USE char *pc_graph_text(const pc_graph *graph);

/* Bytes of the device's memory that the recording needed for what was made in it: its temporaries, which share memory
 * where none needs what another one holds, the tensors that the program has kept, the workspaces of kernels, and weights
 * in 16 bits, which graphs of the same weights have in common. Known when the recording ends, before anything is
 * launched. */
PC_API int64_t pc_graph_memory(const pc_graph *graph);

PC_END
#endif

/* stream.h: queues of work on a device, marks in them, and recordings of them.
 *
 * An op enqueues its work on the calling thread's current stream of its device and returns. Paracord orders streams by
 * the data they share, so that two streams need no marks for that; events are for time and for the host. On `cpu` work
 * runs at once, in the calling thread: there every stream is always done.
 *
 *     pc_event *start = pc_event_new(dev), *end = pc_event_new(dev);
 *     pc_event_record(start, NULL);  work();  pc_event_record(end, NULL);
 *     double ms; pc_event_elapsed(start, end, &ms);
 */
#ifndef PARACORD_STREAM_H
#define PARACORD_STREAM_H

#include <paracord/device.h>

PC_BEGIN

typedef struct pc_stream pc_stream;
typedef struct pc_event pc_event;
typedef struct pc_graph pc_graph;

/* A new stream on `device`. NULL on failure. The caller owns it; free waits for its work and drops an unfinished
 * recording. It must not be the current one of another thread then. */
PC_API PC_MUST_USE pc_stream *pc_stream_new(pc_device device);
PC_API void pc_stream_free(pc_stream *stream);

/* The calling thread's current stream of `device` (borrowed; the device's default stream unless set), and set it:
 * NULL restores the default stream. */
PC_API pc_stream *pc_stream_current(pc_device device);
PC_API PC_MUST_USE pc_status pc_stream_set_current(pc_device device, pc_stream *stream);

PC_API pc_device pc_stream_device(const pc_stream *stream);

/* Wait until all work of the stream is done, and report what went wrong in it. NULL stream: the current device's
 * current stream. */
PC_API PC_MUST_USE pc_status pc_stream_synchronize(pc_stream *stream);

/* *done says whether all work of the stream is done; never waits. */
PC_API PC_MUST_USE pc_status pc_stream_query(pc_stream *stream, bool *done);

/* Wait for all streams of a device. */
PC_API PC_MUST_USE pc_status pc_device_synchronize(pc_device device);

/* A mark. NULL on failure. The caller owns it. */
PC_API PC_MUST_USE pc_event *pc_event_new(pc_device device);
PC_API void pc_event_free(pc_event *event);

/* Put the mark at the end of `stream` (NULL: the current stream of the event's device). */
PC_API PC_MUST_USE pc_status pc_event_record(pc_event *event, pc_stream *stream);

/* Make later work of `stream` wait for the mark; the host does not wait. */
PC_API PC_MUST_USE pc_status pc_event_wait(pc_event *event, pc_stream *stream);

/* Make the host wait for the mark; query never waits. An event never recorded counts as done. */
PC_API PC_MUST_USE pc_status pc_event_synchronize(pc_event *event);
PC_API PC_MUST_USE pc_status pc_event_query(pc_event *event, bool *done);

/* Milliseconds between two recorded marks of one device; waits for both. PC_ERR_STATE when one was not recorded. */
PC_API PC_MUST_USE pc_status pc_event_elapsed(pc_event *start, pc_event *end, double *milliseconds);

/* Record the work that the calling thread enqueues on `stream` between begin and end instead of running it. The graph
 * keeps the memory of every tensor that took part. Reading data on the host meanwhile fails with PC_ERR_STATE. */
PC_API PC_MUST_USE pc_status pc_graph_begin(pc_stream *stream);
PC_API PC_MUST_USE pc_graph *pc_graph_end(pc_stream *stream);

/* Enqueue everything the graph holds, in order, on `stream` (NULL: the current stream of the graph's device). */
PC_API PC_MUST_USE pc_status pc_graph_launch(pc_graph *graph, pc_stream *stream);
PC_API void pc_graph_free(pc_graph *graph);

PC_END
#endif

/* backend.h: the ONE interface that a backend implements. A slot marked (optional) may be NULL.
 *
 * Calls enqueue on a stream and return; only the *_synchronize slots wait. Every slot may be called from any thread.
 * `index` is the number of a device of this backend's type, already checked.
 */
#ifndef PC__BACKEND_H
#define PC__BACKEND_H

#include "base/base.h"

#include <paracord/stream.h>
#include <stdatomic.h>

#define PC__BACKEND_API 1

struct pc_call; /* an op with its tensors: tensor/call.h */
typedef pc_status (*pc__kernel)(pc_stream *stream, const struct pc_call *call);

typedef struct pc__backend {
    unsigned api_version; /* PC__BACKEND_API of the headers it was built with */
    pc_device_type type;
    const char *name;
    bool immediate; /* work is done when the call returns: nothing needs ordering or waiting */

    /* How many devices there are; with 0, why. */
    int (*count)(char *why, size_t n);

    /* Device memory, aligned to 64 bytes or more. PC_ERR_MEMORY must leave no error recorded: the caching allocator
     * frees what it caches and asks again before it reports. */
    pc_status (*allocate)(int index, size_t bytes, void **block);
    void (*release)(int index, void *block, size_t bytes);

    /* Host memory that the device can copy from and to without a detour. (optional: plain host memory then) */
    pc_status (*allocate_host)(size_t bytes, void **block);
    void (*release_host)(void *block);

    /* `stream` comes with device, backend and id set; `implementation` is the backend's. */
    pc_status (*stream_open)(pc_stream *stream);
    void (*stream_close)(pc_stream *stream);
    pc_status (*stream_synchronize)(pc_stream *stream);
    pc_status (*stream_query)(pc_stream *stream, bool *done);

    /* Make later work of `stream` wait until `other` has done everything up to `ticket`; and the host likewise. */
    pc_status (*stream_wait)(pc_stream *stream, pc_stream *other, uint64_t ticket);
    pc_status (*ticket_synchronize)(pc_stream *stream, uint64_t ticket);

    pc_status (*event_open)(pc_event *event);
    void (*event_close)(pc_event *event);
    pc_status (*event_record)(pc_event *event, pc_stream *stream);
    pc_status (*event_wait)(pc_event *event, pc_stream *stream);
    pc_status (*event_synchronize)(pc_event *event);
    pc_status (*event_query)(pc_event *event, bool *done);
    pc_status (*event_elapsed)(pc_event *start, pc_event *end, double *milliseconds);

    /* Copy bytes between this backend's devices and the host, either way, enqueued on `stream`. */
    pc_status (*copy)(pc_stream *stream, void *to, pc_device to_device, const void *from, pc_device from_device,
                      size_t bytes);

    /* Between begin and end, work enqueued on `stream` is recorded in graph->implementation and not run. */
    pc_status (*graph_begin)(pc_graph *graph, pc_stream *stream);
    pc_status (*graph_end)(pc_graph *graph, pc_stream *stream);
    pc_status (*graph_launch)(pc_graph *graph, pc_stream *stream);
    void (*graph_close)(pc_graph *graph);

    /* Kernels by op; a missing one is an error that names op, dtype and device. `submit` (optional) takes a kernel
     * and its call to run them later (a worker thread, a recording) where calling the kernel would run it now. */
    const pc__kernel *(*kernels)(void);
    pc_status (*submit)(pc_stream *stream, pc__kernel kernel, const struct pc_call *call);
} pc__backend;

struct pc_stream {
    pc_device device;
    uint32_t id; /* never 0, never used again */
    bool is_default;
    atomic_uint_fast64_t ticket; /* of the work enqueued last */
    const pc__backend *backend;
    pc_graph *recording; /* the graph being recorded, or NULL */
    void *implementation;
};

struct pc_event {
    pc_device device;
    const pc__backend *backend;
    bool recorded;
    void *implementation;
};

struct pc_graph {
    pc_device device;
    const pc__backend *backend;
    void *implementation;
};

/* registry.c: the backend of a device type, or NULL; the device checked, PC_ERR_DEVICE naming the valid ones. */
const pc__backend *pc__backend_of(pc_device_type type);
pc_status pc__device_check(pc_device device, const char *who);

/* stream.c: the open stream of that id, or NULL when it was closed (its work is then done). */
pc_stream *pc__stream_by_id(uint32_t id);

#define PC__DEVICES_MAX 64

#endif

/* stream.c: streams: the default one of each device, those that programs make, and each thread's current one. */
#include "device/backend.h"

#include <pthread.h>

typedef struct stream_slot {
    pc_stream *stream;
    struct stream_slot *next;
} stream_slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pc_stream defaults[PC_DEVICE_TYPES][PC__DEVICES_MAX];
static atomic_bool default_ready[PC_DEVICE_TYPES][PC__DEVICES_MAX];
static stream_slot *open_streams; /* those made by pc_stream_new */
static uint32_t last_id;

static _Thread_local pc_stream *current[PC_DEVICE_TYPES][PC__DEVICES_MAX];

static pc_stream *default_stream(pc_device device)
{
    pc_stream *stream = &defaults[device.type][device.index];
    atomic_bool *ready = &default_ready[device.type][device.index];
    if (atomic_load_explicit(ready, memory_order_acquire))
        return stream;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(ready, memory_order_relaxed)) {
        stream->device = device;
        stream->backend = pc__backend_of(device.type);
        stream->id = ++last_id;
        stream->is_default = true;
        if (stream->backend->stream_open(stream) == PC_OK)
            atomic_store_explicit(ready, true, memory_order_release);
        else
            stream = NULL;
    }
    pthread_mutex_unlock(&lock);
    return stream;
}

pc_stream *pc_stream_current(pc_device device)
{
    if ((unsigned)device.type < PC_DEVICE_TYPES && (unsigned)device.index < PC__DEVICES_MAX) {
        pc_stream *stream = current[device.type][device.index];
        if (stream)
            return stream;
    }
    if (pc__device_check(device, "pc_stream_current") != PC_OK)
        return NULL;
    return current[device.type][device.index] = default_stream(device);
}

pc_status pc_stream_set_current(pc_device device, pc_stream *stream)
{
    PC__TRY(pc__device_check(device, "pc_stream_set_current"));
    if (stream && !pc_device_equal(stream->device, device))
        return pc__fail(PC_ERR_DEVICE, "pc_stream_set_current: the stream belongs to another device");
    current[device.type][device.index] = stream; /* NULL: looked up as the default at the next use */
    return PC_OK;
}

pc_device pc_stream_device(const pc_stream *stream)
{
    return stream ? stream->device : (pc_device){-1, 0};
}

pc_stream *pc_stream_new(pc_device device)
{
    if (pc__device_check(device, "pc_stream_new") != PC_OK)
        return NULL;
    pc_stream *stream = pc__calloc(1, sizeof *stream);
    stream_slot *slot = pc__calloc(1, sizeof *slot);
    if (!stream || !slot)
        goto failed;
    stream->device = device;
    stream->backend = pc__backend_of(device.type);
    pthread_mutex_lock(&lock);
    stream->id = ++last_id;
    pthread_mutex_unlock(&lock);
    if (stream->backend->stream_open(stream) != PC_OK)
        goto failed;
    slot->stream = stream;
    pthread_mutex_lock(&lock);
    slot->next = open_streams;
    open_streams = slot;
    pthread_mutex_unlock(&lock);
    return stream;
failed:
    pc__free(stream);
    pc__free(slot);
    return NULL;
}

void pc_stream_free(pc_stream *stream)
{
    if (!stream || stream->is_default)
        return;
    if (stream->recording)
        pc_graph_free(pc_graph_end(stream));
    (void)stream->backend->stream_synchronize(stream);
    if (current[stream->device.type][stream->device.index] == stream)
        current[stream->device.type][stream->device.index] = NULL;
    pthread_mutex_lock(&lock);
    stream_slot **link = &open_streams;
    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    stream_slot *slot = *link;
    if (slot)
        *link = slot->next;
    pthread_mutex_unlock(&lock);
    pc__free(slot);
    stream->backend->stream_close(stream);
    pc__free(stream);
}

pc_stream *pc__stream_by_id(uint32_t id)
{
    pc_stream *found = NULL;
    pthread_mutex_lock(&lock);
    for (stream_slot *slot = open_streams; slot && !found; slot = slot->next)
        if (slot->stream->id == id)
            found = slot->stream;
    for (int type = 0; type < PC_DEVICE_TYPES && !found; type++)
        for (int i = 0; i < PC__DEVICES_MAX && !found; i++)
            if (atomic_load(&default_ready[type][i]) && defaults[type][i].id == id)
                found = &defaults[type][i];
    pthread_mutex_unlock(&lock);
    return found;
}

static pc_stream *or_current(pc_stream *stream)
{
    return stream ? stream : pc_stream_current(pc_device_current());
}

pc_status pc_stream_synchronize(pc_stream *stream)
{
    stream = or_current(stream);
    if (!stream)
        return PC_ERR_DEVICE;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "pc_stream_synchronize: the stream is being recorded; end the recording first");
    return stream->backend->stream_synchronize(stream);
}

pc_status pc_stream_query(pc_stream *stream, bool *done)
{
    *done = false;
    stream = or_current(stream);
    return stream ? stream->backend->stream_query(stream, done) : PC_ERR_DEVICE;
}

pc_status pc_device_synchronize(pc_device device)
{
    PC__TRY(pc__device_check(device, "pc_device_synchronize"));
    pc_stream *stream = default_stream(device);
    if (!stream)
        return PC_ERR_BACKEND;
    pc_status status = stream->backend->stream_synchronize(stream);
    pthread_mutex_lock(&lock);
    for (stream_slot *slot = open_streams; slot && status == PC_OK; slot = slot->next)
        if (pc_device_equal(slot->stream->device, device))
            status = slot->stream->backend->stream_synchronize(slot->stream);
    pthread_mutex_unlock(&lock);
    return status;
}

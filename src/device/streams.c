/* streams.c: which streams there are: the default one of each device, those that programs make, each thread's current
 * one; and how long they live. */
#include "device/graph.h"
#include "device/order.h"
#include "device/wait.h"
#include "device/waits.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pc_stream defaults[PC_DEVICE_TYPES][PC__DEVICES_MAX];
static atomic_bool default_ready[PC_DEVICE_TYPES][PC__DEVICES_MAX];
static pc_stream *open_streams;
static uint32_t last_id;

/* Each thread holds those of its current streams that programs made; a key's destructor lets go of them. */
static _Thread_local pc_stream *current[PC_DEVICE_TYPES][PC__DEVICES_MAX];
static pthread_key_t leaving;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Give the stream to the backend and into the list. The lock is held. */
static pc_status open_stream(pc_stream *stream, pc_device device, int priority)
{
    stream->device = device;
    stream->backend = pc__backend_of(device.type);
    stream->priority = priority;
    stream->id = ++last_id;
    atomic_store(&stream->references, 1);
    pthread_mutex_init(&stream->lock, NULL);
    PC__TRY(stream->backend->stream_open(stream));
    stream->next = open_streams;
    open_streams = stream;
    return PC_OK;
}

static pc_stream *default_stream(pc_device device)
{
    pc_stream *stream = &defaults[device.type][device.index];
    atomic_bool *ready = &default_ready[device.type][device.index];
    if (atomic_load_explicit(ready, memory_order_acquire))
        return stream;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(ready, memory_order_relaxed)) {
        stream->is_default = true;
        if (open_stream(stream, device, 0) == PC_OK)
            atomic_store_explicit(ready, true, memory_order_release);
        else
            stream = NULL;
    }
    pthread_mutex_unlock(&lock);
    return stream;
}

static void take_out(pc_stream *stream)
{
    pc_stream **link = &open_streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
}

/* Whoever finds it in the list gets a reference: the last one to go takes it out. */
void pc__stream_let_go(pc_stream *stream)
{
    int n = stream ? atomic_load(&stream->references) : 2;
    while (n > 1)
        if (!stream || atomic_compare_exchange_weak(&stream->references, &n, n - 1))
            return;
    pthread_mutex_lock(&lock);
    bool last = atomic_fetch_sub(&stream->references, 1) == 1;
    if (last)
        take_out(stream);
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    stream->backend->stream_close(stream);
    pc__waits_free(stream);
    pthread_mutex_destroy(&stream->lock);
    pc__free(stream);
}

pc_stream *pc__stream_hold(uint32_t id)
{
    pthread_mutex_lock(&lock);
    pc_stream *stream = open_streams;
    while (stream && stream->id != id)
        stream = stream->next;
    if (stream)
        atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return stream;
}

/* Another thread may have freed it when this one had just looked it up to queue work on it. */
static void let_go_current(pc_stream **place)
{
    pc_stream *stream = *place;
    *place = NULL;
    if (stream && atomic_load(&stream->closed))
        (void)pc__stream_finish(stream, "pc_stream_free");
    pc__stream_let_go(stream);
}

static void leave(void *unused)
{
    (void)unused;
    pc__graph_abandon_all();
    for (int type = 0; type < PC_DEVICE_TYPES; type++)
        for (int i = 0; i < PC__DEVICES_MAX; i++)
            let_go_current(&current[type][i]);
}

static void make_key(void)
{
    (void)pthread_key_create(&leaving, leave);
}

void pc__stream_watch_end(void)
{
    pthread_once(&once, make_key);
    (void)pthread_setspecific(leaving, current);
}

/* A stream that another thread has freed is nobody's current one any more. */
static void set_current(pc_device device, pc_stream *stream)
{
    pc_stream **place = &current[device.type][device.index];
    pc__stream_watch_end();
    if (stream)
        atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    let_go_current(place);
    *place = stream;
}

pc_stream *pc_stream_current(pc_device device)
{
    if ((unsigned)device.type < PC_DEVICE_TYPES && (unsigned)device.index < PC__DEVICES_MAX) {
        pc_stream *stream = current[device.type][device.index];
        if (stream && !atomic_load_explicit(&stream->closed, memory_order_relaxed))
            return stream;
        if (!stream && atomic_load_explicit(&default_ready[device.type][device.index], memory_order_acquire))
            return &defaults[device.type][device.index];
    }
    if (pc__device_check(device, "pc_stream_current") != PC_OK)
        return NULL;
    set_current(device, NULL);
    return default_stream(device);
}

pc_status pc_stream_set_current(pc_device device, pc_stream *stream)
{
    PC__TRY(pc__device_check(device, "pc_stream_set_current"));
    if (stream && !pc_device_equal(stream->device, device))
        return pc__fail(PC_ERR_DEVICE, "pc_stream_set_current: the stream belongs to another device");
    set_current(device, stream && stream->is_default ? NULL : stream);
    return PC_OK;
}

pc_stream *pc_stream_new(pc_device device, pc_stream_options options)
{
    if (pc__device_check(device, "pc_stream_new") != PC_OK)
        return NULL;
    pc_stream *stream = pc__calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    pthread_mutex_lock(&lock);
    pc_status status = open_stream(stream, device, options.priority);
    pthread_mutex_unlock(&lock);
    if (status == PC_OK)
        return stream;
    pthread_mutex_destroy(&stream->lock);
    pc__free(stream);
    return NULL;
}

void pc_stream_free(pc_stream *stream)
{
    if (!stream || stream->is_default || pc__recorder_admits(stream, "pc_stream_free") != PC_OK)
        return;
    pc__graph_abandon(stream);
    pthread_mutex_lock(&stream->lock); /* who queues after this finds it closed later */
    atomic_store(&stream->closed, true);
    pthread_mutex_unlock(&stream->lock);
    (void)pc__stream_finish(stream, "pc_stream_free");
    if (current[stream->device.type][stream->device.index] == stream)
        set_current(stream->device, NULL);
    pc__stream_let_go(stream);
}

pc_with_stream pc_with_stream_enter(pc_stream *stream)
{
    pc_with_stream with = {.open = 1, .device = {-1, 0}}; /* the block that follows is run whatever happens here */
    PC__NEED_OR(with, stream);
    with.device = stream->device;
    with.before = current[stream->device.type][stream->device.index];
    if (with.before) /* held by the scope: the program may free it inside */
        atomic_fetch_add_explicit(&with.before->references, 1, memory_order_relaxed);
    set_current(stream->device, stream->is_default ? NULL : stream);
    return with;
}

void pc_with_stream_leave(pc_with_stream *with)
{
    if (!with || !with->open)
        return;
    with->open = 0;
    if (with->device.type < 0)
        return;
    set_current(with->device, with->before);
    pc__stream_let_go(with->before);
}

pc_status pc_device_synchronize(pc_device device)
{
    PC__TRY(pc__device_check(device, "pc_device_synchronize"));
    if (!default_stream(device))
        return PC_ERR_BACKEND;
    /* One stream after the other, held but without the lock: others may go on opening and closing theirs. */
    pc_status status = PC_OK;
    for (uint32_t after = 0;;) {
        pthread_mutex_lock(&lock);
        pc_stream *next = NULL;
        for (pc_stream *s = open_streams; s; s = s->next)
            if (pc_device_equal(s->device, device) && s->id > after && (!next || s->id < next->id))
                next = s;
        if (next)
            atomic_fetch_add_explicit(&next->references, 1, memory_order_relaxed);
        pthread_mutex_unlock(&lock);
        if (!next)
            return status;
        after = next->id;
        pc_status one = pc__stream_finish(next, "pc_device_synchronize");
        status = status == PC_OK ? one : status;
        pc__stream_let_go(next);
    }
}

/* client_loop.c: the thread that holds the connection to the store. */
#if PC_HAVE_UV
#include "store/client_parts.h"
#include "store/connect.h"

#include <unistd.h>

#define READ_AT_ONCE 65536
#define STALL_MS 1000 /* a loop that comes so late was stopped itself */

typedef struct outgoing {
    uv_write_t write;
    char *data;
} outgoing;

void pc__client_lost(pc__client *client, int rank, const char *why)
{
    if (!atomic_load(&client->any_lost)) {
        client->lost_rank = rank;
        snprintf(client->lost_why, sizeof client->lost_why, "%s", why);
        atomic_store(&client->any_lost, true);
    }
    pthread_cond_broadcast(&client->changed);
}

static void tell(pc__client *c, const char *why)
{
    if (c->bad)
        c->bad(why);
}

static void closed(uv_handle_t *handle)
{
    (void)handle;
}

static double silence_of(pc__client *c)
{
    return (double)(uv_now(&c->loop) - c->heard) / 1000;
}

/* The connection is no more, or (without a reason) of no use; the loop stays for pc__client_close. */
static void gone(pc__client *c, const char *why)
{
    static const char ended[] = "the launcher or rank 0 that served it has ended";
    static const char stopped[] = "the launcher or rank 0 that serves it was stopped, or its host or network is gone";
    char text[PC__WHY_MAX], silence[64];
    if (!c->has_tcp)
        return;
    c->has_tcp = false;
    uv_close((uv_handle_t *)&c->tcp, closed);
    uv_timer_stop(&c->timer);
    pthread_mutex_lock(&c->lock);
    c->state = PC__CLIENT_GONE;
    if (!c->ending) {
        snprintf(silence, sizeof silence, "it gave no sign of life for %.1f s", silence_of(c));
        snprintf(text, sizeof text, "the store at %.160s, port %d, is gone (%.60s): %s", c->world.host, c->world.port,
                 why ? why : silence, why ? ended : stopped);
        pc__client_lost(c, -1, text);
    }
    const bool lost = !c->ending;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (lost)
        tell(c, text);
}

static void written(uv_write_t *write, int status)
{
    outgoing *out = (outgoing *)write;
    pc__client *c = write->data;
    pc__free(out->data);
    pc__free(out);
    if (status < 0)
        gone(c, uv_strerror(status));
}

static void send_frame(pc__client *c, pc__text *frame)
{
    outgoing *out = c->has_tcp && !frame->failed && frame->length ? pc__calloc(1, sizeof *out) : NULL;
    if (!out) {
        if (c->has_tcp && (frame->failed || frame->length))
            gone(c, "out of memory");
        pc__text_free(frame);
        return;
    }
    out->data = frame->data;
    out->write.data = c;
    uv_buf_t buffer = uv_buf_init(frame->data, (unsigned)frame->length);
    *frame = (pc__text){0};
    const int problem = uv_write(&out->write, (uv_stream_t *)&c->tcp, &buffer, 1, written);
    if (problem < 0) {
        pc__free(out->data);
        pc__free(out);
        gone(c, uv_strerror(problem));
    }
}

/* The store answers each beat. Time in which this process was stopped itself does not count. */
static bool is_silent(pc__client *c)
{
    const uint64_t now = uv_now(&c->loop), gap = now - c->beat_at;
    c->beat_at = now;
    if (gap > (uint64_t)(1000 * c->period) + STALL_MS)
        c->heard = now;
    return c->limit > 0 && silence_of(c) > c->limit;
}

static void send_beat(uv_timer_t *timer)
{
    pc__client *c = timer->data;
    pc__text frame = {0};
    if (is_silent(c)) {
        gone(c, NULL);
        return;
    }
    pthread_mutex_lock(&c->lock);
    const pc__beat beat = c->beat;
    pthread_mutex_unlock(&c->lock);
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_BEAT, 0);
    pc__put_beat(&frame, &beat);
    pc__frame_end(&frame, begin);
    send_frame(c, &frame);
}

/* What callers have queued, in order: frames go out in the order in which they came in. */
static void wake(uv_async_t *async)
{
    pc__client *c = async->data;
    pc__text out = {0};
    pthread_mutex_lock(&c->lock);
    while (c->unsent) {
        pc__call *call = c->unsent;
        c->unsent = call->next;
        call->next = c->sent;
        c->sent = call;
        pc__text_append(&out, call->frame.data, call->frame.length);
        pc__text_free(&call->frame);
    }
    if (c->more.length)
        pc__text_append(&out, c->more.data, c->more.length);
    pc__text_free(&c->more);
    c->more = (pc__text){0};
    const bool ending = c->ending;
    pthread_mutex_unlock(&c->lock);
    send_frame(c, &out);
    if (!ending)
        return;
    if (c->has_tcp)
        uv_close((uv_handle_t *)&c->tcp, closed);
    c->has_tcp = false;
    uv_close((uv_handle_t *)&c->wake, closed);
    uv_close((uv_handle_t *)&c->timer, closed);
}

static void answer(pc__client *c, pc__frame *frame)
{
    pthread_mutex_lock(&c->lock);
    for (pc__call **at = &c->sent; *at; at = &(*at)->next) {
        pc__call *call = *at;
        if (call->id != frame->request)
            continue;
        *at = call->next;
        call->result = (pc__wire_result)pc__take_u8(&frame->body);
        call->n = (size_t)(frame->body.end - frame->body.at);
        call->answer = pc__alloc(call->n);
        if (!call->answer)
            call->result = PC__WIRE_NO_MEMORY;
        else if (call->n)
            memcpy(call->answer, frame->body.at, call->n);
        call->done = true;
        pthread_cond_broadcast(&c->changed);
        break;
    }
    pthread_mutex_unlock(&c->lock);
}

static void lost(pc__client *c, pc__frame *frame)
{
    char why[PC__WHY_MAX];
    const int rank = (int)pc__take_u32(&frame->body);
    pc__take_text(&frame->body, why, sizeof why);
    pthread_mutex_lock(&c->lock);
    pc__client_lost(c, rank, why);
    pthread_mutex_unlock(&c->lock);
    tell(c, why);
}

static void dump(pc__client *c, pc__frame *frame)
{
    char why[PC__WHY_MAX];
    pc__take_text(&frame->body, why, sizeof why);
    tell(c, why);
}

static void read_frames(pc__client *c)
{
    pc__frame frame;
    pc__next next;
    while (c->has_tcp && (next = pc__stream_next(&c->in, &frame)) != PC__NEXT_MORE) {
        if (next == PC__NEXT_BROKEN)
            gone(c, "it answers nonsense");
        else if (frame.kind == PC__WIRE_REPLY)
            answer(c, &frame);
        else if (frame.kind == PC__WIRE_LOST)
            lost(c, &frame);
        else if (frame.kind == PC__WIRE_DUMP)
            dump(c, &frame);
    }
}

static void room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    pc__client *c = handle->data;
    (void)suggested;
    char *at = pc__stream_room(&c->in, READ_AT_ONCE);
    *buffer = uv_buf_init(at, at ? READ_AT_ONCE : 0);
}

static void came(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    pc__client *c = stream->data;
    (void)buffer;
    if (n < 0)
        gone(c, uv_strerror((int)n));
    else if (n > 0) {
        c->heard = uv_now(&c->loop);
        pc__stream_came(&c->in, (size_t)n);
        read_frames(c);
    }
}

static int reach(pc__client *c)
{
    char host[64] = "";
    const pc__world *w = &c->world;
    (void)gethostname(host, sizeof host - 1);
    const pc__hello hello = {.version = c->version,
                             .token = w->token,
                             .host = host,
                             .rank = w->rank,
                             .size = w->size,
                             .generation = w->generation,
                             .process = (int)getpid()};
    return pc__wire_connect((pc__address){w->host, w->port, "pc_dist_init"}, &hello, c->seconds, &c->given_up, &c->in);
}

static bool begin(pc__client *c, int fd)
{
    if (uv_loop_init(&c->loop) < 0)
        return false;
    c->wake.data = c->timer.data = c->tcp.data = c;
    uv_async_init(&c->loop, &c->wake, wake);
    uv_timer_init(&c->loop, &c->timer);
    uv_tcp_init(&c->loop, &c->tcp);
    c->has_tcp = true;
    if (uv_tcp_open(&c->tcp, fd) < 0 || uv_read_start((uv_stream_t *)&c->tcp, room, came) < 0) {
        c->has_tcp = false;
        uv_close((uv_handle_t *)&c->wake, closed);
        uv_close((uv_handle_t *)&c->timer, closed);
        uv_close((uv_handle_t *)&c->tcp, closed);
        uv_run(&c->loop, UV_RUN_DEFAULT);
        uv_loop_close(&c->loop);
        return false;
    }
    const uint64_t period = (uint64_t)(1000 * c->period);
    c->heard = c->beat_at = uv_now(&c->loop);
    uv_timer_start(&c->timer, send_beat, 0, period);
    return true;
}

void *pc__client_thread(void *client)
{
    pc__client *c = client;
    const int fd = reach(c);
    bool ready = fd >= 0 && begin(c, fd);
    if (fd >= 0 && !ready) {
        close(fd);
        (void)pc__fail(PC_ERR_BACKEND, "pc_dist_init: libuv has no loop for the connection to the store");
    }
    pthread_mutex_lock(&c->lock);
    c->state = ready ? PC__CLIENT_READY : PC__CLIENT_NONE;
    c->error = pc__error_take();
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (ready) {
        read_frames(c); /* what came with the welcome */
        uv_run(&c->loop, UV_RUN_DEFAULT);
        uv_loop_close(&c->loop);
    }
    pc__stream_free(&c->in);
    return NULL;
}
#endif

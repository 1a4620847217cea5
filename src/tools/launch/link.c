/* link.c: the connection of another host's agent to node 0. */
#if PC_HAVE_UV
#include "store/connect.h"
#include "launch/parts.h"

#include <stdlib.h>
#include <unistd.h>

#define BEAT_MS 500
#define STALL_MS 1000
#define TRY_SECONDS 0.2
#define READ_AT_ONCE 4096

typedef struct pc__link {
    uv_tcp_t tcp;
    uv_timer_t timer;
    pc__launch *launch;
    pc__stream_in in;
    bool open, closing;
    double limit;                    /* seconds of silence, 0: none */
    uint64_t lost_at, heard, ticked; /* ms of the loop */
} pc__link;

typedef struct outgoing {
    uv_write_t write;
    char *data;
} outgoing;

static void written(uv_write_t *write, int status)
{
    outgoing *out = (outgoing *)write;
    (void)status; /* reading tells the end of a connection, too */
    pc__free(out->data);
    pc__free(out);
}

static void send_frame(pc__link *k, pc__text *frame)
{
    outgoing *out = k->open && !frame->failed ? pc__calloc(1, sizeof *out) : NULL;
    if (!out) {
        pc__text_free(frame);
        return;
    }
    out->data = frame->data;
    uv_buf_t buffer = uv_buf_init(frame->data, (unsigned)frame->length);
    if (uv_write(&out->write, (uv_stream_t *)&k->tcp, &buffer, 1, written) < 0)
        written(&out->write, 0);
}

void pc__link_say(pc__launch *launch, pc__text *body)
{
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_NODE, 0);
    pc__text_append(&frame, body->data, body->length);
    pc__frame_end(&frame, begin);
    pc__text_free(body);
    send_frame(launch->link, &frame);
}

static void closed(uv_handle_t *tcp)
{
    pc__link *k = tcp->data;
    k->closing = false;
    pc__stream_free(&k->in);
}

static void gone(pc__link *k)
{
    pc__launch *l = k->launch;
    if (!k->open)
        return;
    k->open = false;
    k->closing = true;
    uv_close((uv_handle_t *)&k->tcp, closed);
    k->lost_at = uv_now(&l->loop);
    if (l->over)
        return;
    pc__launch_tell(l, "node 0, at %s, is gone; stopping the ranks of this host", l->options.master);
    pc__agent_stop(l, -1);
}

static void room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    pc__link *k = handle->data;
    (void)suggested;
    char *at = pc__stream_room(&k->in, READ_AT_ONCE);
    *buffer = uv_buf_init(at, at ? READ_AT_ONCE : 0);
}

static void read_frames(pc__link *k)
{
    pc__frame frame;
    pc__next next;
    while (k->open && (next = pc__stream_next(&k->in, &frame)) != PC__NEXT_MORE)
        if (next == PC__NEXT_BROKEN)
            gone(k);
        else if (frame.kind == PC__WIRE_NODE)
            pc__agent_hear(k->launch, &frame.body);
}

static void came(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    pc__link *k = stream->data;
    (void)buffer;
    if (n < 0)
        gone(k);
    else if (n > 0) {
        k->heard = uv_now(&k->launch->loop);
        pc__stream_came(&k->in, (size_t)n);
        read_frames(k);
    }
}

static pc_status reach(pc__link *k, double seconds)
{
    pc__launch *l = k->launch;
    char host[PC__HOST_MAX];
    int port;
    pc__text body = {0};
    PC__TRY(pc__env_address("--master", l->options.master, host, &port));
    const pc__hello hello = {.version = PC_VERSION,
                             .token = l->token,
                             .host = l->host,
                             .role = PC__WIRE_LAUNCHER,
                             .rank = l->options.node_rank,
                             .size = l->options.nodes,
                             .process = (int)getpid()};
    k->in.limit = PC__WIRE_FRAME_MAX;
    const int fd = pc__wire_connect((pc__address){host, port, "node 0"}, &hello, seconds, NULL, &k->in);
    if (fd < 0)
        return pc_error_last()->status;
    uv_tcp_init(&l->loop, &k->tcp);
    k->tcp.data = k;
    k->open = true;
    uv_update_time(&l->loop);
    k->heard = uv_now(&l->loop);
    if (uv_tcp_open(&k->tcp, fd) < 0 || uv_read_start((uv_stream_t *)&k->tcp, room, came) < 0)
        return pc__fail(PC_ERR_BACKEND, "libuv does not take the connection to node 0");
    pc__put_u8(&body, PC__SAY_READY);
    pc__put_u32(&body, (uint32_t)l->options.ranks);
    pc__put_u32(&body, 0);
    pc__put_text(&body, l->host);
    pc__link_say(l, &body);
    read_frames(k);
    return PC_OK;
}

/* Node 0 answers each beat. Time in which this process was stopped itself does not count. */
static bool is_silent(pc__link *k)
{
    const uint64_t now = uv_now(&k->launch->loop), gap = now - k->ticked;
    k->ticked = now;
    if (gap > BEAT_MS + STALL_MS)
        k->heard = now;
    return k->limit > 0 && (double)(now - k->heard) > 1000 * k->limit;
}

/* A sign of life; or, where node 0 is gone, another try, when the ranks of this host have ended. */
static void tick(uv_timer_t *timer)
{
    pc__link *k = timer->data;
    pc__launch *l = k->launch;
    pc__text frame = {0};
    if (k->open && is_silent(k))
        gone(k);
    if (k->open) {
        pc__frame_end(&frame, pc__frame_begin(&frame, PC__WIRE_BEAT, 0));
        send_frame(k, &frame);
        return;
    }
    if (l->busy || k->closing || l->over)
        return;
    if (l->signalled) {
        pc__launch_over(l, 128 + l->signalled);
        return;
    }
    const pc_status status = reach(k, TRY_SECONDS);
    if (status == PC_OK)
        return;
    if (status == PC_ERR_TIMEOUT && uv_now(&l->loop) < k->lost_at + (uint64_t)(1000 * l->options.timeout_seconds)) {
        pc_error_clear();
        return;
    }
    if (status == PC_ERR_TIMEOUT) {
        pc_error_clear();
        (void)pc__fail(PC_ERR_LOST, "node 0 was at %s, is gone, and has not come back within %.3g s", l->options.master,
                       l->options.timeout_seconds);
    }
    l->error = pc__error_take();
    pc__launch_over(l, 1);
}

pc_status pc__link_begin(pc__launch *launch)
{
    double limit;
    PC__TRY(pc__beat_limit(getenv, &limit));
    pc__link *k = pc__calloc(1, sizeof *k);
    if (!k)
        return PC_ERR_MEMORY;
    launch->link = k;
    k->limit = limit;
    k->launch = launch;
    uv_timer_init(&launch->loop, &k->timer);
    k->timer.data = k;
    uv_timer_start(&k->timer, tick, BEAT_MS, BEAT_MS);
    return reach(k, launch->options.timeout_seconds);
}

void pc__link_close(pc__launch *launch)
{
    pc__link *k = launch->link;
    if (!k)
        return;
    if (k->open) {
        k->open = false;
        k->closing = true;
        uv_close((uv_handle_t *)&k->tcp, closed);
    }
    uv_close((uv_handle_t *)&k->timer, NULL);
}
#endif

/* server_peer.c: connections to the store's server: what comes in, what goes out. */
#if PC_HAVE_UV
#include "store/server_parts.h"

#define READ_AT_ONCE 65536
#define OUT_MAX (256u << 20) /* bytes waiting for a peer that does not read: it is cut then */
#define STRANGERS_MAX 256    /* connections that have not said hello yet */

typedef struct outgoing {
    uv_write_t write;
    char *data;
} outgoing;

static void written(uv_write_t *write, int status)
{
    outgoing *out = (outgoing *)write;
    pc__peer *peer = write->data;
    pc__free(out->data);
    pc__free(out);
    if (status < 0)
        pc__peer_cut(peer);
}

/* The stream's magic stands in front of the first frame: strangers are told nothing before they say something sensible. */
static void with_magic(pc__peer *peer, pc__text *frame)
{
    pc__text first = {0};
    pc__text_append(&first, PC__WIRE_MAGIC, PC__WIRE_MAGIC_BYTES);
    pc__text_append(&first, frame->data, frame->length);
    first.failed = first.failed || frame->failed;
    pc__text_free(frame);
    *frame = first;
    peer->magic_sent = true;
}

void pc__peer_send(pc__peer *peer, pc__text *frame)
{
    if (!peer->closing && !peer->magic_sent)
        with_magic(peer, frame);
    outgoing *out = peer->closing ? NULL : pc__calloc(1, sizeof *out);
    if (!out || frame->failed || uv_stream_get_write_queue_size((uv_stream_t *)&peer->tcp) > OUT_MAX) {
        pc__free(out);
        pc__text_free(frame);
        pc__peer_cut(peer);
        return;
    }
    out->data = frame->data;
    out->write.data = peer;
    uv_buf_t buffer = uv_buf_init(frame->data, (unsigned)frame->length);
    *frame = (pc__text){0};
    if (uv_write(&out->write, (uv_stream_t *)&peer->tcp, &buffer, 1, written) < 0) {
        pc__free(out->data);
        pc__free(out);
        pc__peer_cut(peer);
    }
}

static void peer_closed(uv_handle_t *handle)
{
    pc__peer *peer = handle->data;
    pc__stream_free(&peer->in);
    pc__free(peer);
}

void pc__peer_cut(pc__peer *peer)
{
    pc__server *s = peer->server;
    if (peer->closing)
        return;
    peer->closing = true;
    for (pc__peer **at = &s->peers; *at; at = &(*at)->next)
        if (*at == peer) {
            *at = peer->next;
            break;
        }
    pc__wait_drop(s, peer);
    uv_close((uv_handle_t *)&peer->tcp, peer_closed);
    if (peer->welcome && !s->closing)
        pc__ranks_gone(peer);
}

static void room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    pc__peer *peer = handle->data;
    (void)suggested;
    char *at = pc__stream_room(&peer->in, READ_AT_ONCE);
    *buffer = uv_buf_init(at, at ? READ_AT_ONCE : 0);
}

/* The answer to a hello that was refused has to get out before the connection ends. */
static void refused_sent(uv_shutdown_t *request, int status)
{
    pc__peer *peer = request->data;
    (void)status;
    pc__free(request);
    pc__peer_cut(peer);
}

static void end_softly(pc__peer *peer)
{
    uv_shutdown_t *request = peer->closing ? NULL : pc__calloc(1, sizeof *request);
    if (peer->closing)
        return;
    uv_read_stop((uv_stream_t *)&peer->tcp);
    if (request)
        request->data = peer;
    if (!request || uv_shutdown(request, (uv_stream_t *)&peer->tcp, refused_sent) < 0) {
        pc__free(request);
        pc__peer_cut(peer);
    }
}

static void read_frames(pc__peer *peer)
{
    pc__frame frame;
    pc__next next = PC__NEXT_MORE;
    while (!peer->closing && (next = pc__stream_next(&peer->in, &frame)) == PC__NEXT_FRAME) {
        if (peer->welcome) {
            if (!pc__peer_request(peer, &frame))
                next = PC__NEXT_BROKEN;
        } else if (frame.kind != PC__WIRE_HELLO)
            next = PC__NEXT_BROKEN;
        else if (!pc__peer_hello(peer, &frame.body)) {
            end_softly(peer);
            return;
        }
        if (next == PC__NEXT_BROKEN)
            break;
    }
    if (next == PC__NEXT_BROKEN)
        pc__peer_cut(peer);
}

static void came(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    pc__peer *peer = stream->data;
    (void)buffer;
    if (n < 0)
        pc__peer_cut(peer);
    else if (n > 0) {
        peer->heard = uv_now(peer->server->loop);
        pc__stream_came(&peer->in, (size_t)n);
        read_frames(peer);
    }
    pc_error_clear(); /* what went wrong is between the server and that peer */
}

static int strangers(const pc__server *s)
{
    int n = 0;
    for (const pc__peer *peer = s->peers; peer; peer = peer->next)
        n += !peer->welcome;
    return n;
}

void pc__peer_accept(pc__server *server)
{
    pc__peer *peer = pc__calloc(1, sizeof *peer);
    if (!peer) {
        pc_error_clear();
        return;
    }
    peer->server = server;
    peer->tcp.data = peer;
    peer->rank = -1;
    peer->in.limit = PC__WIRE_HELLO_MAX;
    peer->since = peer->heard = uv_now(server->loop);
    uv_tcp_init(server->loop, &peer->tcp);
    peer->next = server->peers;
    server->peers = peer;
    if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&peer->tcp) < 0 ||
        strangers(server) > STRANGERS_MAX || uv_read_start((uv_stream_t *)&peer->tcp, room, came) < 0)
        pc__peer_cut(peer);
    else
        uv_tcp_nodelay(&peer->tcp, 1);
}
#endif

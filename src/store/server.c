/* server.c: the store's server: its beginning and end. What peers say is in server_peer.c and behind. */
#if PC_HAVE_UV
#include "store/server_parts.h"

#include <sys/random.h>

#define BACKLOG 511
#define TICK_MS 200

static void connection(uv_stream_t *listener, int status)
{
    if (status == 0)
        pc__peer_accept(listener->data);
}

static void tick(uv_timer_t *timer)
{
    pc__ranks_tick(timer->data);
}

static pc_status refuse(const pc__server_options *o, int problem)
{
    if (problem == UV_EADDRINUSE)
        return pc__fail(PC_ERR_BACKEND,
                        "port %d of %s is in use, by another job or another program: choose another port (MASTER_PORT, "
                        "PARACORD_STORE_PORT, or --master of paracord launch)",
                        o->port, o->host);
    if (problem == UV_EADDRNOTAVAIL)
        return pc__fail(PC_ERR_BACKEND,
                        "%s is no address of this machine, which is to serve the store: correct the master's address",
                        o->host);
    if (problem == UV_EACCES)
        return pc__fail(PC_ERR_BACKEND, "port %d is for root alone: choose one from 1024 on", o->port);
    return pc__fail_cause(problem == UV_ENOMEM ? PC_ERR_MEMORY : PC_ERR_BACKEND, uv_strerror(problem),
                          "cannot listen at %s, port %d", o->host, o->port);
}

static int listen_at(pc__server *s, const pc__server_options *o)
{
    struct sockaddr_storage address;
    int length = sizeof address;
    int problem = uv_ip4_addr(o->host, o->port, (struct sockaddr_in *)&address);
    if (problem)
        problem = uv_ip6_addr(o->host, o->port, (struct sockaddr_in6 *)&address);
    problem = problem ? problem : uv_tcp_bind(&s->listener, (struct sockaddr *)&address, 0);
    if ((problem == UV_EAFNOSUPPORT || problem == UV_EADDRNOTAVAIL) &&
        !strcmp(o->host, "::")) { /* a system without IPv6 */
        uv_ip4_addr("0.0.0.0", o->port, (struct sockaddr_in *)&address);
        problem = uv_tcp_bind(&s->listener, (struct sockaddr *)&address, 0);
    }
    problem = problem ? problem : uv_listen((uv_stream_t *)&s->listener, BACKLOG, connection);
    problem = problem ? problem : uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address, &length);
    const uint16_t port = address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                        : ((struct sockaddr_in *)&address)->sin_port;
    s->port = ((port & 255) << 8) | (port >> 8);
    return problem;
}

static void handle_closed(uv_handle_t *handle)
{
    pc__server *s = handle->data;
    if (--s->handles)
        return;
    void (*closed)(void *context) = s->closed;
    void *context = s->closed_context;
    pc__wait_drop(s, NULL);
    pc__table_free(&s->table);
    pc__free(s->ranks);
    pc__free(s);
    if (closed)
        closed(context);
}

pc__server *pc__server_open(uv_loop_t *loop, const pc__server_options *options)
{
    pc__server *s = pc__calloc(1, sizeof *s);
    pc__rank *ranks = pc__calloc((size_t)PC__MAX(options->size, 1), sizeof *ranks);
    if (!s || !ranks) {
        pc__free(s);
        pc__free(ranks);
        return NULL;
    }
    s->loop = loop;
    s->options = *options;
    snprintf(s->token, sizeof s->token, "%s", options->token);
    snprintf(s->version, sizeof s->version, "%s", options->version);
    s->options.token = s->token;
    s->options.version = s->version;
    s->options.host = NULL;
    s->ranks = ranks;
    s->first_lost = -1;
    uv_tcp_init(loop, &s->listener);
    uv_timer_init(loop, &s->timer);
    s->listener.data = s->timer.data = s;
    s->handles = 2;
    s->last_tick = uv_now(loop);
    (void)!getrandom(&s->job, sizeof s->job, 0);
    const int problem = listen_at(s, options);
    if (problem) {
        (void)refuse(options, problem);
        pc__server_close(s, NULL, NULL);
        return NULL;
    }
    uv_timer_start(&s->timer, tick, TICK_MS, TICK_MS);
    return s;
}

int pc__server_port(const pc__server *server)
{
    return server->port;
}

pc_status pc__server_restart(pc__server *server, int size, int generation)
{
    pc__rank *ranks = pc__calloc((size_t)PC__MAX(size, 1), sizeof *ranks);
    if (!ranks)
        return PC_ERR_MEMORY;
    pc__free(server->ranks);
    server->ranks = ranks;
    server->options.size = size;
    server->options.generation = generation;
    server->first_lost = -1;
    for (pc__peer *peer = server->peers, *next; peer; peer = next) {
        next = peer->next;
        if (peer->welcome && peer->role == PC__WIRE_RANK) {
            peer->rank = -1;
            pc__peer_cut(peer);
        }
    }
    pc__wait_drop(server, NULL);
    pc__table_free(&server->table);
    return PC_OK;
}

void pc__server_close(pc__server *server, void (*closed)(void *context), void *context)
{
    if (server->closing)
        return;
    server->closing = true;
    server->closed = closed;
    server->closed_context = context;
    while (server->peers)
        pc__peer_cut(server->peers);
    uv_close((uv_handle_t *)&server->timer, handle_closed);
    uv_close((uv_handle_t *)&server->listener, handle_closed);
}
#endif

/* server_ranks.c: which ranks live, and who is told of those that do not. */
#if PC_HAVE_UV
#include "store/server_parts.h"

#include <stdlib.h>

#define HELLO_LIMIT_MS 5000
#define STALL_MS 1000 /* a loop that comes so late was stopped itself */

static void put_lost(pc__text *frame, int rank, const char *why)
{
    const size_t begin = pc__frame_begin(frame, PC__WIRE_LOST, 0);
    pc__put_u32(frame, (uint32_t)rank);
    pc__put_text(frame, why);
    pc__frame_end(frame, begin);
}

void pc__server_lose(pc__server *server, int rank, bool silent, const char *why)
{
    if (rank < 0 || rank >= server->options.size || server->ranks[rank].lost)
        return;
    server->ranks[rank].lost = true;
    if (server->first_lost < 0) {
        server->first_lost = rank;
        snprintf(server->first_why, sizeof server->first_why, "%s", why);
    }
    for (int i = 0; i < server->options.size; i++) { /* by ranks: the list of peers changes when one is cut */
        pc__text frame = {0};
        if ((i == rank && !silent) || !server->ranks[i].peer) /* it may only have slept */
            continue;
        put_lost(&frame, rank, why);
        pc__peer_send(server->ranks[i].peer, &frame);
    }
    if (server->options.lost)
        server->options.lost(server->options.context, rank, silent, why);
}

void pc__ranks_tell(pc__peer *peer)
{
    pc__text frame = {0};
    if (peer->server->first_lost < 0 || peer->closing)
        return;
    put_lost(&frame, peer->server->first_lost, peer->server->first_why);
    pc__peer_send(peer, &frame);
}

void pc__ranks_gone(pc__peer *peer)
{
    pc__server *s = peer->server;
    char why[PC__WHY_MAX];
    if (peer->role == PC__WIRE_LAUNCHER) {
        snprintf(why, sizeof why, "the connection to node %d (%s) ended", peer->rank, peer->host);
        if (s->options.gone)
            s->options.gone(s->options.context, peer->rank, why);
        return;
    }
    if (peer->rank < 0)
        return;
    s->ranks[peer->rank].peer = NULL;
    if (s->ranks[peer->rank].left)
        return;
    snprintf(why, sizeof why, "rank %d (process %d on %s) ended without pc_dist_end, or its connection broke",
             peer->rank, peer->process, peer->host);
    pc__server_lose(s, peer->rank, false, why);
}

void pc__ranks_dump(pc__server *server, const pc__peer *but, const char *why)
{
    for (int i = 0; i < server->options.size; i++) { /* by ranks, as above */
        pc__text frame = {0};
        if (!server->ranks[i].peer || server->ranks[i].peer == but)
            continue;
        const size_t begin = pc__frame_begin(&frame, PC__WIRE_DUMP, 0);
        pc__put_text(&frame, why);
        pc__frame_end(&frame, begin);
        pc__peer_send(server->ranks[i].peer, &frame);
    }
}

void pc__server_dump(pc__server *server, const char *why)
{
    pc__ranks_dump(server, NULL, why);
}

static void check(pc__peer *peer, uint64_t now)
{
    pc__server *s = peer->server;
    const double limit = s->options.beat_limit, silent = now > peer->heard ? (double)(now - peer->heard) / 1000 : 0;
    char why[PC__WHY_MAX];
    if (!peer->welcome) {
        if (now - peer->since > HELLO_LIMIT_MS)
            pc__peer_cut(peer);
        return;
    }
    if (limit <= 0 || silent < limit)
        return;
    if (peer->role == PC__WIRE_RANK && peer->rank >= 0) {
        const bool left = s->ranks[peer->rank].left;
        snprintf(why, sizeof why,
                 "rank %d (process %d on %s) gave no sign of life for %.1f s: it was stopped, or its host or network "
                 "is gone",
                 peer->rank, peer->process, peer->host, silent);
        if (!left)
            pc__server_lose(s, peer->rank, true, why);
    } else if (peer->role == PC__WIRE_LAUNCHER)
        pc__peer_cut(peer);
}

static void check_all(pc__server *s, uint64_t now, pc__wire_role role)
{
    for (pc__peer *peer = s->peers, *next; peer; peer = next) {
        next = peer->next;
        if (peer->role == role)
            check(peer, now);
        if (next && next->closing) /* cut on the way */
            break;
    }
}

void pc__ranks_tick(pc__server *server)
{
    const uint64_t now = uv_now(server->loop), gap = now - server->last_tick;
    server->last_tick = now;
    for (pc__peer *peer = server->peers; peer && gap > STALL_MS; peer = peer->next)
        peer->heard += gap;                    /* what they said meanwhile has not been read */
    check_all(server, now, PC__WIRE_LAUNCHER); /* a host that is gone explains its ranks */
    check_all(server, now, PC__WIRE_RANK);
}

void pc__ranks_beats(pc__peer *peer, uint32_t request)
{
    const pc__server *s = peer->server;
    const uint64_t now = uv_now(s->loop);
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_REPLY, request);
    pc__put_u8(&frame, PC__WIRE_FINE);
    pc__put_u32(&frame, (uint32_t)s->options.size);
    for (int i = 0; i < s->options.size; i++) {
        const pc__rank *r = &s->ranks[i];
        pc__put_u8(&frame, (unsigned)(r->came | r->left << 1 | r->lost << 2));
        pc__put_u64(&frame, r->peer && now > r->peer->heard ? now - r->peer->heard : 0);
        pc__put_beat(&frame, &r->beat);
    }
    pc__frame_end(&frame, begin);
    pc__peer_send(peer, &frame);
}

int pc__server_present(const pc__server *server)
{
    int n = 0;
    for (int i = 0; i < server->options.size; i++)
        n += server->ranks[i].came && !server->ranks[i].left && !server->ranks[i].lost;
    return n;
}

int pc__server_missing(const pc__server *server)
{
    int n = 0;
    for (int i = 0; i < server->options.size && server->first_lost < 0; i++)
        n += !server->ranks[i].came;
    return n;
}

bool pc__server_beat(const pc__server *server, int rank, pc__beat *beat)
{
    if (rank < 0 || rank >= server->options.size || !server->ranks[rank].came)
        return false;
    *beat = server->ranks[rank].beat;
    return true;
}

pc_status pc__server_told(const pc__server *server, int rank)
{
    return rank >= 0 && rank < server->options.size ? server->ranks[rank].told : PC_OK;
}

int pc__server_multiple(const pc__server *server)
{
    char text[16] = "";
    size_t n = 0;
    const void *value = pc__table_get(&server->table, PC__STORE_MULTIPLE, &n);
    if (!value || n >= sizeof text)
        return 0;
    memcpy(text, value, n);
    const long ranks = strtol(text, NULL, 10);
    return ranks > 0 && ranks <= PC__RANKS_MAX ? (int)ranks : 0;
}

void pc__server_tell(pc__server *server, int node, pc__text *body)
{
    for (pc__peer *peer = server->peers; peer; peer = peer->next)
        if (peer->welcome && peer->role == PC__WIRE_LAUNCHER && peer->rank == node) {
            pc__text frame = {0};
            const size_t begin = pc__frame_begin(&frame, PC__WIRE_NODE, 0);
            pc__text_append(&frame, body->data, body->length);
            pc__frame_end(&frame, begin);
            pc__peer_send(peer, &frame);
            break;
        }
    pc__text_free(body);
}
#endif

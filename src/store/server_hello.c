/* server_hello.c: who may use the store, and what the others are told. */
#if PC_HAVE_UV
#include "store/server_parts.h"

#include <stdarg.h>

/* Takes the same time whatever is wrong with the text. */
static bool is_token(const pc__server *s, const char *text)
{
    char theirs[PC__TOKEN_MAX + 1] = "";
    const size_t n = strlen(text);
    memcpy(theirs, text, PC__MIN(n, (size_t)PC__TOKEN_MAX));
    unsigned different = n > PC__TOKEN_MAX;
    for (int i = 0; i <= PC__TOKEN_MAX; i++)
        different |= (unsigned char)theirs[i] ^ (unsigned char)s->token[i];
    return different == 0;
}

static bool refuse(pc__peer *peer, pc__wire_refusal why, const char *format, ...) PC_PRINTF(3, 4);
static bool refuse(pc__peer *peer, pc__wire_refusal why, const char *format, ...)
{
    char text[PC__WHY_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_REFUSED, 0);
    pc__put_u8(&frame, why);
    pc__put_text(&frame, text);
    pc__frame_end(&frame, begin);
    pc__peer_send(peer, &frame);
    return false;
}

static bool rank_may_come(pc__peer *peer, int size, int generation)
{
    const pc__server *s = peer->server;
    if (size != s->options.size)
        return refuse(peer, PC__WIRE_SIZE, "its world has %d ranks, not %d: start all ranks with one WORLD_SIZE",
                      s->options.size, size);
    if (generation != s->options.generation)
        return refuse(peer, generation > s->options.generation ? PC__WIRE_EARLY : PC__WIRE_STALE,
                      "it serves start %d of the job, this rank is of start %d: end what is left of the older",
                      s->options.generation, generation);
    if (peer->rank < 0 || peer->rank >= size)
        return refuse(peer, PC__WIRE_SIZE, "ranks count from 0 to %d", size - 1);
    const pc__rank *rank = &s->ranks[peer->rank];
    if (rank->peer)
        return refuse(peer, PC__WIRE_TAKEN, "process %d on %s is rank %d already: give each process a rank of its own",
                      rank->peer->process, rank->peer->host, peer->rank);
    if (rank->came)
        return refuse(peer, PC__WIRE_TAKEN, "rank %d was there before and is %s: start the whole job again", peer->rank,
                      rank->lost ? "lost" : "gone");
    return true;
}

static bool launcher_may_come(pc__peer *peer)
{
    if (!peer->server->options.came)
        return refuse(peer, PC__WIRE_TAKEN, "it is rank 0's, and no launcher's");
    for (const pc__peer *other = peer->server->peers; other; other = other->next)
        if (other != peer && other->welcome && other->role == PC__WIRE_LAUNCHER && other->rank == peer->rank)
            return refuse(peer, PC__WIRE_TAKEN,
                          "process %d on %s is node %d already: give each host a --node-rank of its own",
                          other->process, other->host, peer->rank);
    return true;
}

static void welcome(pc__peer *peer)
{
    pc__server *s = peer->server;
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_WELCOME, 0);
    pc__frame_end(&frame, begin);
    peer->welcome = true;
    peer->in.limit = PC__WIRE_FRAME_MAX;
    if (peer->role == PC__WIRE_RANK)
        s->ranks[peer->rank] = (pc__rank){.peer = peer, .came = true, .beat.dtype = -1};
    pc__peer_send(peer, &frame);
    if (peer->role == PC__WIRE_RANK)
        pc__ranks_tell(peer);
    else if (!peer->closing)
        s->options.came(s->options.context, peer->rank);
}

bool pc__peer_hello(pc__peer *peer, pc__body *body)
{
    const pc__server *s = peer->server;
    char version[256], token[256];
    const uint32_t protocol = pc__take_u32(body);
    pc__take_text(body, version, sizeof version);
    pc__take_text(body, token, sizeof token);
    if (body->broken)
        return false;
    if (!is_token(s, token))
        return refuse(peer, PC__WIRE_TOKEN,
                      "the token is another one: it belongs to another job, or PARACORD_TOKEN differs");
    if (protocol != PC__WIRE_PROTOCOL || strcmp(version, s->version) != 0)
        return refuse(peer, PC__WIRE_VERSION,
                      "it is served by Paracord %s, and this process has %.32s: use one version everywhere", s->version,
                      version);
    pc__take_text(body, peer->host, sizeof peer->host);
    const unsigned role = pc__take_u8(body);
    peer->role = role == PC__WIRE_LAUNCHER ? PC__WIRE_LAUNCHER : PC__WIRE_RANK;
    peer->rank = (int)pc__take_u32(body);
    const int size = (int)pc__take_u32(body), generation = (int)pc__take_u32(body);
    peer->process = (int)pc__take_u32(body);
    if (body->broken || role > PC__WIRE_LAUNCHER)
        return false;
    if (peer->role == PC__WIRE_RANK ? !rank_may_come(peer, size, generation) : !launcher_may_come(peer))
        return false;
    welcome(peer);
    return true;
}
#endif

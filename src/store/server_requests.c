/* server_requests.c: what peers ask of the store. */
#if PC_HAVE_UV
#include "device/trace.h"
#include "store/clock.h"
#include "store/server_parts.h"

typedef struct key {
    char text[PC__STORE_KEY_MAX + 1];
} key;

static size_t reply_begin(pc__text *frame, uint32_t request, pc__wire_result result)
{
    const size_t begin = pc__frame_begin(frame, PC__WIRE_REPLY, request);
    pc__put_u8(frame, result);
    return begin;
}

static bool reply(pc__peer *peer, uint32_t request, pc__wire_result result)
{
    pc__text frame = {0};
    pc__frame_end(&frame, reply_begin(&frame, request, result));
    pc__peer_send(peer, &frame);
    return true;
}

static bool reply_number(pc__peer *peer, uint32_t request, uint64_t number)
{
    pc__text frame = {0};
    const size_t begin = reply_begin(&frame, request, PC__WIRE_FINE);
    pc__put_u64(&frame, number);
    pc__frame_end(&frame, begin);
    pc__peer_send(peer, &frame);
    return true;
}

static pc__wire_result store(pc__server *s, const char *name, const void *value, size_t n)
{
    if (!pc__table_set(&s->table, name, value, n))
        return PC__WIRE_NO_MEMORY;
    pc__wait_set(s, name);
    return PC__WIRE_FINE;
}

static bool set(pc__peer *peer, pc__frame *frame, const key *name)
{
    size_t n;
    const void *value = pc__take_bytes(&frame->body, &n);
    if (frame->body.broken || n > PC__STORE_VALUE_MAX)
        return false;
    return reply(peer, frame->request, store(peer->server, name->text, value, n));
}

static bool add(pc__peer *peer, pc__frame *frame, const key *name)
{
    const uint64_t delta = pc__take_u64(&frame->body);
    uint64_t value = 0;
    size_t n;
    const void *there = pc__table_get(&peer->server->table, name->text, &n);
    if (frame->body.broken)
        return false;
    if (there && n != sizeof value)
        return reply(peer, frame->request, PC__WIRE_NO_NUMBER);
    if (there)
        memcpy(&value, there, sizeof value);
    value += delta;
    const pc__wire_result result = store(peer->server, name->text, &value, sizeof value);
    return result == PC__WIRE_FINE ? reply_number(peer, frame->request, value) : reply(peer, frame->request, result);
}

static bool compare_set(pc__peer *peer, pc__frame *frame, const key *name)
{
    const unsigned expects = pc__take_u8(&frame->body);
    size_t expected_n, desired_n, n;
    const void *expected = pc__take_bytes(&frame->body, &expected_n);
    const void *desired = pc__take_bytes(&frame->body, &desired_n);
    if (frame->body.broken || desired_n > PC__STORE_VALUE_MAX)
        return false;
    const void *there = pc__table_get(&peer->server->table, name->text, &n);
    const bool equal = expects ? there && n == expected_n && (!n || !memcmp(there, expected, n)) : !there;
    const pc__wire_result result = equal ? store(peer->server, name->text, desired, desired_n) : PC__WIRE_FINE;
    return result == PC__WIRE_FINE ? reply_number(peer, frame->request, equal) : reply(peer, frame->request, result);
}

static bool wait_for_all(pc__peer *peer, pc__frame *frame)
{
    const uint32_t count = pc__take_u32(&frame->body);
    key name;
    if (!count || count > PC__STORE_KEYS_MAX)
        return false;
    char **keys = pc__calloc(count, sizeof *keys);
    uint32_t i = 0;
    for (; keys && i < count; i++) {
        pc__take_text(&frame->body, name.text, sizeof name.text);
        if (frame->body.broken || !(keys[i] = pc__strdup(name.text)))
            break;
    }
    if (keys && i == count && !frame->body.broken)
        return pc__wait_add(peer, frame->request, false, keys, (int)count);
    while (i)
        pc__free(keys[--i]);
    pc__free(keys);
    return false;
}

static bool wait_for_value(pc__peer *peer, uint32_t request, const key *name)
{
    char **keys = pc__calloc(1, sizeof *keys);
    if (keys && (keys[0] = pc__strdup(name->text)))
        return pc__wait_add(peer, request, true, keys, 1);
    pc__free(keys);
    return reply(peer, request, PC__WIRE_NO_MEMORY);
}

static bool told_error(pc__peer *peer, pc__frame *frame)
{
    char why[PC__WHY_MAX], text[PC__WHY_MAX];
    const unsigned kind = pc__take_u8(&frame->body);
    pc__take_text(&frame->body, text, sizeof text - 64);
    if (frame->body.broken || peer->role != PC__WIRE_RANK)
        return false;
    snprintf(why, sizeof why, "rank %d on %s says: %.290s", peer->rank, peer->host, text);
    peer->server->ranks[peer->rank].told = (pc_status)kind;
    pc__server_lose(peer->server, peer->rank, false, why);
    return reply(peer, frame->request, PC__WIRE_FINE);
}

static bool dump(pc__peer *peer, pc__frame *frame)
{
    char why[PC__WHY_MAX];
    pc__take_text(&frame->body, why, sizeof why);
    if (frame->body.broken || peer->role != PC__WIRE_RANK)
        return false;
    pc__ranks_dump(peer->server, peer, why);
    return reply(peer, frame->request, PC__WIRE_FINE);
}

static bool tell_time(pc__peer *peer, uint32_t request)
{
    char name[PC__CLOCK_NAME_MAX];
    pc__text frame = {0};
    pc__clock_name(name);
    const size_t begin = reply_begin(&frame, request, PC__WIRE_FINE);
    pc__put_u64(&frame, (uint64_t)pc__now());
    pc__put_u64(&frame, peer->server->job);
    pc__put_text(&frame, name);
    pc__frame_end(&frame, begin);
    pc__peer_send(peer, &frame);
    return true;
}

static bool left(pc__peer *peer, uint32_t request)
{
    if (peer->role == PC__WIRE_RANK)
        peer->server->ranks[peer->rank].left = true;
    return reply(peer, request, PC__WIRE_FINE);
}

static bool beat(pc__peer *peer, pc__frame *frame)
{
    pc__beat given;
    pc__text answer = {0};
    if (peer->role == PC__WIRE_RANK) {
        pc__take_beat(&frame->body, &given);
        if (frame->body.broken)
            return false;
        peer->server->ranks[peer->rank].beat = given;
    }
    pc__frame_end(&answer, pc__frame_begin(&answer, PC__WIRE_BEAT, 0));
    pc__peer_send(peer, &answer);
    return true;
}

/* Requests that begin with a name. */
static bool named(pc__peer *peer, pc__frame *frame)
{
    key name;
    pc__take_text(&frame->body, name.text, sizeof name.text);
    if (frame->body.broken)
        return false;
    switch (frame->kind) {
    case PC__WIRE_SET:
        return set(peer, frame, &name);
    case PC__WIRE_GET:
        return wait_for_value(peer, frame->request, &name);
    case PC__WIRE_ADD:
        return add(peer, frame, &name);
    case PC__WIRE_COMPARE_SET:
        return compare_set(peer, frame, &name);
    default:
        return reply_number(peer, frame->request, (uint64_t)pc__table_delete(&peer->server->table, name.text));
    }
}

bool pc__peer_request(pc__peer *peer, pc__frame *frame)
{
    pc__server *s = peer->server;
    switch (frame->kind) {
    case PC__WIRE_SET:
    case PC__WIRE_GET:
    case PC__WIRE_ADD:
    case PC__WIRE_COMPARE_SET:
    case PC__WIRE_DELETE:
        return named(peer, frame);
    case PC__WIRE_WAIT:
        return wait_for_all(peer, frame);
    case PC__WIRE_CANCEL:
        pc__wait_cancel(peer, frame->request);
        return true;
    case PC__WIRE_BEAT:
        return beat(peer, frame);
    case PC__WIRE_BEATS:
        pc__ranks_beats(peer, frame->request);
        return true;
    case PC__WIRE_ERROR:
        return told_error(peer, frame);
    case PC__WIRE_BYE:
        return left(peer, frame->request);
    case PC__WIRE_CLOCK:
        return tell_time(peer, frame->request);
    case PC__WIRE_DUMP:
        return dump(peer, frame);
    case PC__WIRE_NODE:
        if (peer->role != PC__WIRE_LAUNCHER || !s->options.said)
            return false;
        s->options.said(s->options.context, peer->rank, &frame->body);
        return true;
    default:
        return false;
    }
}
#endif

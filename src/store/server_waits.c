/* server_waits.c: requests that wait for names. */
#if PC_HAVE_UV
#include "store/server_parts.h"

#define MISSING_TOLD 8 /* names that an answer to a wait that was given up has */

static void free_keys(char **keys, int count)
{
    for (int i = 0; i < count; i++)
        pc__free(keys[i]);
    pc__free(keys);
}

static void drop(pc__wait *w)
{
    free_keys(w->keys, w->count);
    pc__free(w);
}

static bool is_there(const pc__server *s, const char *key)
{
    size_t n;
    return pc__table_get(&s->table, key, &n) != NULL;
}

/* Go on behind the names that are there; true at the end. */
static bool advance(const pc__server *s, pc__wait *w)
{
    while (w->found < w->count && is_there(s, w->keys[w->found]))
        w->found++;
    return w->found == w->count;
}

static void answer(pc__wait *w)
{
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_REPLY, w->request);
    size_t n;
    pc__put_u8(&frame, PC__WIRE_FINE);
    if (w->wants_value) {
        const void *value = pc__table_get(&w->peer->server->table, w->keys[0], &n);
        pc__put_bytes(&frame, value, n);
    }
    pc__frame_end(&frame, begin);
    pc__peer *peer = w->peer;
    drop(w);
    pc__peer_send(peer, &frame);
}

bool pc__wait_add(pc__peer *peer, uint32_t request, bool wants_value, char **keys, int count)
{
    pc__wait *w = pc__calloc(1, sizeof *w);
    if (!w) {
        free_keys(keys, count);
        return false;
    }
    *w = (pc__wait){peer->server->waits, peer, request, wants_value, keys, count, 0};
    if (advance(peer->server, w))
        answer(w);
    else
        peer->server->waits = w;
    return true;
}

void pc__wait_set(pc__server *server, const char *key)
{
    pc__wait *ready = NULL;
    for (pc__wait **at = &server->waits; *at;) {
        pc__wait *w = *at;
        if (strcmp(w->keys[w->found], key) != 0 || !advance(server, w)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = ready;
        ready = w;
    }
    for (pc__wait *next; ready; ready = next) { /* an answer may cut a peer, which drops its waits of the list */
        next = ready->next;
        if (ready->peer->closing)
            drop(ready);
        else
            answer(ready);
    }
}

static void answer_missing(const pc__server *s, pc__wait *w)
{
    pc__text frame = {0};
    const size_t begin = pc__frame_begin(&frame, PC__WIRE_REPLY, w->request);
    uint32_t missing = 0, told = 0;
    pc__put_u8(&frame, PC__WIRE_NOT_THERE);
    for (int i = w->found; i < w->count; i++)
        missing += !is_there(s, w->keys[i]);
    pc__put_u32(&frame, missing);
    for (int i = w->found; i < w->count && told < MISSING_TOLD; i++)
        if (!is_there(s, w->keys[i])) {
            pc__put_text(&frame, w->keys[i]);
            told++;
        }
    pc__frame_end(&frame, begin);
    pc__peer *peer = w->peer;
    drop(w);
    pc__peer_send(peer, &frame);
}

void pc__wait_cancel(pc__peer *peer, uint32_t request)
{
    for (pc__wait **at = &peer->server->waits; *at; at = &(*at)->next) {
        pc__wait *w = *at;
        if (w->peer == peer && w->request == request) {
            *at = w->next;
            answer_missing(peer->server, w);
            return;
        }
    }
}

void pc__wait_drop(pc__server *server, const pc__peer *peer)
{
    for (pc__wait **at = &server->waits; *at;) {
        pc__wait *w = *at;
        if (peer && w->peer != peer) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        drop(w);
    }
}
#endif

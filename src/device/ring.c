/* ring.c: how many large pinned pieces of each device are under way. The pieces are the pinned cache's. */
#include "device/ring.h"

#include "device/wait.h"

enum { PIECES = 8 };
#define SMALL ((size_t)256 << 10)

typedef struct ring {
    pthread_mutex_t lock;
    pc__use last[PIECES]; /* of the piece that was used that long ago */
    int next;
} ring;

static ring rings[PC_DEVICE_TYPES][PC__DEVICES_MAX] = {
    [0 ... PC_DEVICE_TYPES - 1] = {[0 ... PC__DEVICES_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}}};

static ring *ring_of(const pc_stream *stream)
{
    return &rings[stream->device.type][stream->device.index];
}

/* The stream of the piece that was used `ahead` pieces after the oldest, held, when it is still under way; else NULL.
 */
static pc_stream *under_way(ring *r, int ahead, uint64_t *ticket)
{
    pthread_mutex_lock(&r->lock);
    pc__use use = r->last[(r->next + ahead) % PIECES];
    pthread_mutex_unlock(&r->lock);
    *ticket = use.ticket;
    pc_stream *stream = use.stream ? pc__stream_hold(use.stream) : NULL;
    if (!stream || !pc__ticket_done(stream, use.ticket))
        return stream;
    pc__stream_let_go(stream);
    return NULL;
}

pc_status pc__ring_allows(pc_stream *stream, size_t n, const char *who)
{
    size_t pieces = n > SMALL ? (n + PC__RING_PIECE - 1) / PC__RING_PIECE : 0;
    bool waits = pieces > PIECES;
    for (int i = 0; !waits && i < (int)pieces; i++) {
        uint64_t ticket;
        pc_stream *other = under_way(ring_of(stream), i, &ticket);
        waits = other != NULL;
        pc__stream_let_go(other);
    }
    return waits ? pc__wait_allowed(stream->device, who) : PC_OK;
}

static pc_status wait_for_oldest(ring *r, const char *who)
{
    uint64_t ticket;
    pc_stream *stream = under_way(r, 0, &ticket);
    pc_status status = stream ? pc__host_wait(stream, ticket, who, "all pinned pieces are under way") : PC_OK;
    pc__stream_let_go(stream);
    return status;
}

pc__storage *pc__ring_take(pc_stream *stream, size_t n, const char *who)
{
    if (n > SMALL && wait_for_oldest(ring_of(stream), who) != PC_OK)
        return NULL;
    return pc__storage_pinned(stream->device.type, n, who);
}

void pc__ring_note(const pc_stream *stream, size_t n, uint64_t ticket)
{
    if (n <= SMALL)
        return;
    ring *r = ring_of(stream);
    pthread_mutex_lock(&r->lock);
    r->last[r->next] = (pc__use){stream->id, false, ticket};
    r->next = (r->next + 1) % PIECES;
    pthread_mutex_unlock(&r->lock);
}

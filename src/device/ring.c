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

static pc_status wait_for_oldest(ring *r, const char *who)
{
    pthread_mutex_lock(&r->lock);
    pc__use oldest = r->last[r->next];
    pthread_mutex_unlock(&r->lock);
    pc_stream *stream = oldest.stream ? pc__stream_hold(oldest.stream) : NULL;
    pc_status status = PC_OK;
    if (stream && !pc__ticket_done(stream, oldest.ticket)) {
        status = pc__wait_allowed(stream->device, who);
        if (status == PC_OK)
            status = pc__host_wait(stream, oldest.ticket, who, "all pinned pieces are under way");
    }
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

/* waits.c: failures go from stream to stream along the waits. */
#include "device/waits.h"

#include "device/failure.h"
#include "device/wait.h"

enum { MANY = 64 };

typedef struct waited {
    uint64_t ticket; /* of the stream's own work */
    uint32_t stream;
    uint64_t for_ticket;
} waited;

struct pc__waits {
    waited *list;
    int count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over all lists; a leaf */

static pc_status add(pc_stream *stream, const waited *w)
{
    if (!stream->waits)
        stream->waits = pc__calloc(1, sizeof *stream->waits);
    pc__waits *all = stream->waits;
    if (!all || pc__grow((void **)&all->list, &all->room, all->count, sizeof *all->list) != PC_OK)
        return PC_ERR_MEMORY;
    all->list[all->count++] = *w;
    return PC_OK;
}

/* One of up to the ticket, which leaves the list. */
static bool take(pc_stream *stream, uint64_t ticket, waited *w)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    pc__waits *all = stream->waits;
    for (int i = 0; all && i < all->count && !found; i++)
        if (all->list[i].ticket <= ticket) {
            *w = all->list[i];
            all->list[i] = all->list[--all->count];
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

/* What that work built on is looked at before itself. */
static void look_at(const waited *w)
{
    pc_stream *other = pc__stream_hold(w->stream);
    if (!other)
        return; /* all of it was waited for, and looked at */
    (void)pc__ticket_done(other, w->for_ticket);
    pc__waits_look(other, w->for_ticket);
    pc__stream_let_go(other);
}

void pc__waits_look(pc_stream *stream, uint64_t ticket)
{
    waited w;
    while (take(stream, ticket, &w)) {
        look_at(&w);
        const unsigned number = pc__ever_failed() ? pc__failure_of(w.stream, w.for_ticket) : 0;
        if (!number)
            continue;
        const pc_error error = pc__failure_error(number);
        stream->backend->stream_fail(stream, w.ticket, &error);
    }
}

pc_status pc__waits_note(pc_stream *stream, uint64_t ticket, const pc_stream *other, uint64_t for_ticket)
{
    if (stream->backend->skips || stream->backend->immediate)
        return PC_OK;
    const unsigned number = pc__ever_failed() ? pc__failure_of(other->id, for_ticket) : 0;
    if (number && pc__failure_is_told(number))
        return PC_OK; /* whoever reads what it left is refused; whoever writes over it is not to fail */
    pthread_mutex_lock(&lock);
    const pc_status status = add(stream, &(waited){ticket, other->id, for_ticket});
    const int count = stream->waits ? stream->waits->count : 0;
    const uint64_t oldest = count ? stream->waits->list[0].ticket : 0;
    pthread_mutex_unlock(&lock);
    if (count >= MANY && pc__ticket_done(stream, oldest))
        pc__waits_look(stream, atomic_load(&stream->done));
    return status;
}

void pc__waits_forget(pc_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&lock);
    pc__waits *all = stream->waits;
    for (int i = all ? all->count : 0; i-- > 0;)
        if (all->list[i].ticket == ticket)
            all->list[i] = all->list[--all->count];
    pthread_mutex_unlock(&lock);
}

void pc__waits_free(pc_stream *stream)
{
    if (stream->waits)
        pc__free(stream->waits->list);
    pc__free(stream->waits);
    stream->waits = NULL;
}

/* check_order.c: the clocks of streams, of the host and of events.
 *
 * A stream's clock changes by waits alone; its past is kept as the tickets from which each clock held, so that a wait
 * for an older ticket learns what was known then. What the host has waited for, every later piece of work relies on:
 * of that past nothing is needed.
 */
#include "device/check_clock.h"

enum {
    STREAMS_MAX = 1024, /* seen at once; beyond, the checker starts over */
    STREAM_SLOTS = 2 * STREAMS_MAX,
    PAST_MAX = 256,
    EVENT_SLOTS = 256,
};

typedef struct past {
    uint64_t from; /* the first ticket of this clock */
    pc__clock *clock;
} past;

typedef struct stream_order {
    uint32_t id;
    uint64_t last;         /* ticket, of what was seen */
    uint64_t blurred;      /* tickets below it share one clock, a later one than theirs */
    uint64_t host_version; /* joined already */
    past *pasts;           /* at least one: the last is now */
    int count, capacity;
} stream_order;

typedef struct event_order {
    const pc_event *event;
    uint32_t stream;
    uint64_t ticket;
    pc__clock *clock;
    struct event_order *next;
} event_order;

static stream_order *streams[STREAM_SLOTS];
static int stream_count;
static event_order *events[EVENT_SLOTS];
static pc__clock *host;
static uint64_t host_version = 1;
uint64_t pc__hb_blurred;

static pc__clock *retain(pc__clock *clock)
{
    if (clock)
        clock->references++;
    return clock;
}

static stream_order *stream_new(uint32_t id)
{
    stream_order *stream = pc__try_alloc_aligned(sizeof *stream, 16);
    past *pasts = pc__try_alloc_aligned(4 * sizeof *pasts, 16);
    if (!stream || !pasts) {
        pc__free(stream);
        pc__free(pasts);
        return NULL;
    }
    pasts[0] = (past){0, retain(host)};
    *stream = (stream_order){.id = id, .host_version = host_version, .pasts = pasts, .count = 1, .capacity = 4};
    return stream;
}

static stream_order *order_of(const pc_stream *stream)
{
    size_t slot = stream->id % STREAM_SLOTS;
    while (streams[slot] && streams[slot]->id != stream->id)
        slot = (slot + 1) % STREAM_SLOTS;
    if (!streams[slot] && stream_count < STREAMS_MAX) {
        streams[slot] = stream_new(stream->id);
        stream_count += streams[slot] != NULL;
    }
    return streams[slot];
}

static void drop_oldest(stream_order *stream, int n)
{
    for (int i = 0; i < n; i++)
        pc__clock_drop(stream->pasts[i].clock);
    stream->count -= n;
    memmove(stream->pasts, stream->pasts + n, (size_t)stream->count * sizeof *stream->pasts);
}

/* Forget the clocks of tickets that the host has waited for; when there are still too many, let the older half share a
 * later clock: waits for them then count for more than they are, which hides races and invents none. */
static void shorten(stream_order *stream)
{
    int n = 0;
    while (n + 1 < stream->count && pc__clock_knows(host, stream->id, stream->pasts[n + 1].from - 1))
        n++;
    drop_oldest(stream, n);
    if (stream->count < PAST_MAX)
        return;
    drop_oldest(stream, PAST_MAX / 2);
    stream->blurred = stream->pasts[0].from;
}

static bool make_room(stream_order *stream)
{
    if (stream->count == stream->capacity)
        shorten(stream);
    if (stream->count < stream->capacity)
        return true;
    past *wider = pc__try_alloc_aligned(2 * (size_t)stream->capacity * sizeof *wider, 16);
    if (!wider)
        return false;
    memcpy(wider, stream->pasts, (size_t)stream->count * sizeof *wider);
    pc__free(stream->pasts);
    stream->pasts = wider;
    stream->capacity *= 2;
    return true;
}

static past *now(const stream_order *stream)
{
    return &stream->pasts[stream->count - 1];
}

/* Later work of the stream relies on this too. */
static bool learn(stream_order *stream, const pc__clock *clock, uint32_t other, uint64_t ticket)
{
    pc__clock *wiser = retain(now(stream)->clock);
    if (!pc__clock_join(&wiser, clock, other, ticket)) {
        pc__clock_drop(wiser);
        return false;
    }
    bool same = wiser == now(stream)->clock;
    bool fresh = now(stream)->from == stream->last + 1;
    if (!same && !fresh && !make_room(stream)) {
        pc__clock_drop(wiser);
        return false;
    }
    if (same || fresh)
        pc__clock_drop(now(stream)->clock);
    else
        stream->pasts[stream->count++].from = stream->last + 1;
    now(stream)->clock = wiser;
    return true;
}

/* Events and other work without memory take tickets too; what is learned now holds from the next one on. */
static void catch_up(stream_order *order, const pc_stream *stream)
{
    order->last = PC__MAX(order->last, atomic_load_explicit(&stream->ticket, memory_order_relaxed));
}

/* What is known once work `ticket` of the stream is done, but for the ticket itself. */
static const pc__clock *clock_after(const stream_order *stream, uint64_t ticket)
{
    if (ticket < stream->blurred)
        pc__hb_blurred++;
    int i = stream->count - 1;
    while (i > 0 && stream->pasts[i].from > ticket)
        i--;
    return stream->pasts[i].clock;
}

bool pc__hb_work(const pc_stream *stream, uint64_t ticket, const pc__clock **clock)
{
    stream_order *order = order_of(stream);
    if (!order)
        return false;
    if (order->host_version != host_version && !learn(order, host, 0, 0))
        return false;
    order->host_version = host_version;
    order->last = PC__MAX(order->last, ticket);
    *clock = now(order)->clock;
    return true;
}

const pc__clock *pc__hb_host(void)
{
    return host;
}

uint64_t pc__hb_host_version(void)
{
    return host_version;
}

static bool host_learns(const pc__clock *clock, uint32_t stream, uint64_t ticket)
{
    pc__clock *before = retain(host); /* kept, so that no new clock can lie where it was */
    bool fine = pc__clock_join(&host, clock, stream, ticket);
    host_version += host != before;
    pc__clock_drop(before);
    return fine;
}

bool pc__hb_stream_waits(const pc_stream *stream, const pc_stream *other, uint64_t ticket)
{
    if (stream->id == other->id || pc__clock_knows(host, other->id, ticket))
        return true; /* what the host knows, the next work of the stream relies on anyway */
    stream_order *waiting = order_of(stream), *waited = order_of(other);
    if (!waiting || !waited)
        return false;
    catch_up(waiting, stream);
    return learn(waiting, clock_after(waited, ticket), other->id, ticket);
}

bool pc__hb_host_waited(const pc_stream *other, uint64_t ticket)
{
    if (pc__clock_knows(host, other->id, ticket))
        return true;
    stream_order *waited = order_of(other);
    return waited && host_learns(clock_after(waited, ticket), other->id, ticket);
}

static event_order **find_event(const pc_event *event)
{
    event_order **link = &events[((uintptr_t)event >> 4) % EVENT_SLOTS];
    while (*link && (*link)->event != event)
        link = &(*link)->next;
    return link;
}

bool pc__hb_event_recorded(const pc_event *event, const pc_stream *stream)
{
    stream_order *order = order_of(stream);
    event_order **link = find_event(event);
    if (order && !*link) {
        event_order *made = pc__try_alloc_aligned(sizeof *made, 16);
        if (made)
            *made = (event_order){.event = event};
        *link = made;
    }
    if (!order || !*link)
        return false;
    pc__clock_drop((*link)->clock);
    (*link)->clock = retain(now(order)->clock);
    (*link)->stream = order->id;
    (*link)->ticket = order->last;
    return true;
}

bool pc__hb_event_waits(const pc_event *event, const pc_stream *stream)
{
    const event_order *mark = *find_event(event);
    if (!mark)
        return true;
    stream_order *order = order_of(stream);
    if (!order)
        return false;
    catch_up(order, stream);
    return learn(order, mark->clock, mark->stream == order->id ? 0 : mark->stream, mark->ticket);
}

bool pc__hb_event_host_waited(const pc_event *event)
{
    const event_order *mark = *find_event(event);
    return !mark || host_learns(mark->clock, mark->stream, mark->ticket);
}

static void event_drop(event_order **link)
{
    event_order *gone = *link;
    *link = gone->next;
    pc__clock_drop(gone->clock);
    pc__free(gone);
}

void pc__hb_event_gone(const pc_event *event)
{
    event_order **link = find_event(event);
    if (*link)
        event_drop(link);
}

void pc__hb_clear(void)
{
    for (int i = 0; i < STREAM_SLOTS; i++) {
        if (!streams[i])
            continue;
        drop_oldest(streams[i], streams[i]->count);
        pc__free(streams[i]->pasts);
        pc__free(streams[i]);
        streams[i] = NULL;
    }
    stream_count = 0;
    for (int i = 0; i < EVENT_SLOTS; i++)
        while (events[i])
            event_drop(&events[i]);
    pc__clock_drop(host);
    host = NULL;
    host_version++;
}

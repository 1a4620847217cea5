/* transfer.c: copies. Devices copy pinned memory by themselves. Other host memory goes through pinned pieces: what is
 * small through one of its size, what is large through a ring of pieces, so that little memory is pinned. No device reads
 * what another backend's has: such a copy goes through the host's memory, by a stream of each.
 *
 * A storage is `exposed` when the program holds a pointer into it: it could write there before a copy has read it, or
 * read there before a copy has written it. Such memory is copied out before the call returns, and written while the
 * host waits. */
#include "device/transfer.h"

#include "device/check.h"
#include "device/failure.h"
#include "device/graph.h"
#include "device/order.h"
#include "device/plan.h"
#include "device/ring.h"
#include "device/trace.h"
#include "device/wait.h"

typedef struct copying {
    pc_stream *stream;
    pc__bytes to, from;
    size_t n;
    pc__work work;
    const char *who;
} copying;

static void *address(pc__bytes b)
{
    return (char *)b.storage->data + b.offset;
}

/* Whether n bytes from there on are all of the storage. */
static bool renews(pc__bytes to, size_t n)
{
    return to.offset == 0 && n == to.storage->bytes;
}

static void heal(const pc_stream *stream, pc__bytes to, size_t n)
{
    if (renews(to, n) && !pc__graph_of(stream))
        pc__storage_heals(to.storage);
}

static pc_status order(copying *c, pc__bytes b, bool write)
{
    if (pc__ever_failed() && (write || pc__graph_of(c->stream)))
        (void)pc__storage_failure(b.storage); /* before its last writer is forgotten */
    else
        PC__TRY(pc__storage_sound(b.storage, c->who));
    PC__TRY(pc__uses(b.storage, c->stream, &c->work, write));
    if (!c->stream->recording) {
        PC__TRY(pc__graph_allows_beside(c->stream, c->who));
        PC__TRY(pc__uses_now(b.storage, &c->work));
    }
    return pc__graph_uses(c->stream, b.storage, write, write && renews(b, c->n));
}

/* Both sides, with all waits before the checker hears of the work. */
static pc_status uses(copying *c)
{
    PC__TRY(order(c, c->from, false));
    PC__TRY(order(c, c->to, true));
    if (pc__checking()) {
        pc__check_use both[] = {{c->from.storage, c->from.offset, c->from.offset + c->n, false},
                                {c->to.storage, c->to.offset, c->to.offset + c->n, true}};
        pc__check_work(c->work.name, c->work.site, c->stream, c->work.ticket, both, 2);
    }
    return PC_OK;
}

static const char *name_of(const copying *c)
{
    if (c->from.storage->device.type == PC_CPU)
        return "copy to device";
    return c->to.storage->device.type == PC_CPU ? "copy to host" : "copy between devices";
}

/* One copy that the device does by itself. */
static pc_status direct(copying *c, uint64_t *ticket)
{
    c->work.name = name_of(c);
    PC__TRY(pc__graph_gives(c->stream, c->to.storage));
    PC__TRY(pc__graph_gives(c->stream, c->from.storage));
    PC__TRY(pc__queue_open(c->stream, &c->work));
    pc_status status = uses(c);
    if (status == PC_OK && c->stream->recording)
        status = pc__plan_copy(c->stream, c->to, c->from, c->n, &c->work);
    else if (status == PC_OK)
        status = c->stream->backend->copy(c->stream, address(c->to), pc__storage_place(c->to.storage), address(c->from),
                                          pc__storage_place(c->from.storage), c->n, &c->work);
    pc__queue_close(c->stream, &c->work, status);
    *ticket = c->work.ticket;
    return status;
}

static bool is_direct(const pc_stream *stream, const pc__storage *storage)
{
    return storage->device.type != PC_CPU || (storage->pinned && storage->pinned_for == stream->device.type);
}

static bool is_exposed(const pc__storage *storage)
{
    return storage->device.type == PC_CPU && atomic_load_explicit(&storage->exposed, memory_order_relaxed);
}

static pc_status through_piece(copying *c, const char *from, size_t n, pc__storage *piece, uint64_t *ticket)
{
    memcpy(piece->data, from, n);
    copying part = {c->stream, c->to, {piece, 0}, n, {.note = c->work.note}, c->who};
    return direct(&part, ticket);
}

/* Read host memory now, piece by piece, and let the device copy from the pieces. */
static pc_status stage_in(copying *c, const char *from, const char *who, uint64_t *ticket)
{
    PC__TRY(pc__ring_allows(c->stream, c->n, who));
    while (c->n) {
        size_t n = PC__MIN(c->n, PC__RING_PIECE);
        pc__storage *piece = pc__ring_take(c->stream, n, who);
        if (!piece)
            return pc_error_last()->status;
        pc_status status = through_piece(c, from, n, piece, ticket);
        pc__storage_drop(piece);
        PC__TRY(status);
        pc__ring_note(c->stream, n, *ticket);
        c->to.offset += n;
        from += n;
        c->n -= n;
    }
    return PC_OK;
}

/* Put a piece where it belongs, when the device has filled it: runs in the stream. */
typedef struct landing {
    void *to;
    const void *from;
    size_t n;
} landing;

static void land(void *context)
{
    landing l = *(landing *)context;
    memcpy(l.to, l.from, l.n);
}

static pc_status queue_landing(copying *c, pc__storage *piece, size_t n, uint64_t *ticket)
{
    /* The landing is kept in the piece's own memory, behind the bytes. */
    landing *l = (landing *)(void *)((char *)piece->data + PC__RING_PIECE_ROUNDED(n));
    *l = (landing){address(c->to), piece->data, n};
    copying part = {c->stream, c->to, {piece, 0}, n, {.name = "unpack on host", .note = c->work.note}, c->who};
    PC__TRY(pc__queue_open(c->stream, &part.work));
    pc_status status = uses(&part);
    if (status == PC_OK)
        status = c->stream->backend->host_call(c->stream, land, l, &part.work);
    pc__queue_close(c->stream, &part.work, status);
    *ticket = part.work.ticket;
    return status;
}

/* Into a tensor's pageable memory: the device fills pieces, and the host's side of the stream unpacks them. */
static pc_status stage_out(copying *c, const char *who, uint64_t *ticket)
{
    PC__TRY(pc__ring_allows(c->stream, c->n, who));
    while (c->n) {
        size_t n = PC__MIN(c->n, PC__RING_PIECE);
        pc__storage *piece = pc__ring_take(c->stream, PC__RING_PIECE_ROUNDED(n) + sizeof(landing), who);
        if (!piece)
            return pc_error_last()->status;
        copying part = {c->stream, {piece, 0}, c->from, n, {.note = c->work.note}, c->who};
        pc_status status = direct(&part, ticket);
        if (status == PC_OK)
            status = queue_landing(c, piece, n, ticket);
        pc__storage_drop(piece);
        PC__TRY(status);
        pc__ring_note(c->stream, n, *ticket);
        c->to.offset += n;
        c->from.offset += n;
        c->n -= n;
    }
    return PC_OK;
}

static pc_status check_maps(const pc__storage *a, const pc__storage *b, const char *who)
{
    if (!atomic_load(&a->mapped) && !atomic_load(&b->mapped))
        return PC_OK;
    return pc__fail(PC_ERR_STATE, "%s: the host tensor is mapped; call pc_unmap before it is copied", who);
}

static pc_status from_host(copying *c, const char *who, uint64_t *ticket)
{
    pc__storage *from = c->from.storage;
    bool pinned = is_direct(c->stream, from);
    if (pinned && !is_exposed(from))
        return direct(c, ticket);
    c->work.note = pinned ? "staged: the program holds a pointer from pc_data; pc_map and pc_unmap would not"
                          : "staged: the source is pageable";
    PC__TRY(
        pc__graph_allows(c->stream, who, pinned ? "memory that a pointer from pc_data points to" : "pageable memory"));
    PC__TRY(pc__settle(from, false, who, false));
    PC__TRY(pc__storage_sound(from, who));
    if (pc__checking())
        pc__check_host(who, pc__site_here(), &(pc__check_use){from, c->from.offset, c->from.offset + c->n, false});
    return stage_in(c, address(c->from), who, ticket);
}

static pc_status to_host(copying *c, const char *who, uint64_t *ticket)
{
    if (is_direct(c->stream, c->to.storage))
        return direct(c, ticket);
    c->work.note = "staged: the destination is pageable";
    PC__TRY(pc__graph_allows(c->stream, who, "pageable memory"));
    return stage_out(c, who, ticket);
}

/* Whoever else waits for the stream may be told first that the copy, or what it copies, was not done. */
static pc_status arrived(const copying *c, uint64_t ticket)
{
    const unsigned number = pc__ever_failed() ? pc__failure_of(c->stream->id, ticket) : 0;
    return number ? pc__failure_tell(number, c->who) : pc__storage_sound(c->from.storage, c->who);
}

/* Memory of the program, as a storage for the time of a call. */
static pc_status out(pc_stream *stream, void *to, pc__bytes from, size_t n, const char *who)
{
    pc__storage host = {.device = PC_DEVICE_CPU, .data = to, .bytes = n, .capacity = n};
    copying c = {stream, {&host, 0}, from, n, {0}, who};
    uint64_t ticket = 0;
    pc_status status = n ? direct(&c, &ticket) : PC_OK;
    if (status == PC_OK)
        status = pc__host_wait(stream, ticket, who, "data for the host");
    if (status == PC_OK && n)
        status = arrived(&c, ticket);
    pc__free(host.order.other);
    if (pc__checking())
        pc__check_forget(&host);
    return status;
}

static bool is_between_kinds(pc__bytes to, pc__bytes from)
{
    const pc_device_type a = to.storage->device.type, b = from.storage->device.type;
    return a != b && a != PC_CPU && b != PC_CPU;
}

/* Piece by piece: out on a stream of the source's device, which the host waits for, and in on the copy's own. */
static pc_status through_host(copying *c, const char *who, uint64_t *ticket)
{
    pc_stream *source = pc_stream_current(c->from.storage->device);
    PC__TRY(pc__graph_allows(c->stream, who, "a copy between kinds of devices"));
    if (!source)
        return pc_error_last()->status;
    PC__TRY(pc__graph_allows(source, who, "data on the host"));
    PC__TRY(pc__wait_allowed(source->device, who));
    char *piece = pc__alloc(PC__MIN(c->n, PC__RING_PIECE));
    pc_status status = piece ? PC_OK : pc_error_last()->status;
    while (status == PC_OK && c->n) {
        size_t n = PC__MIN(c->n, PC__RING_PIECE);
        copying part = {c->stream, c->to, {0}, n, {.note = "staged: from another kind of device"}, who};
        status = out(source, piece, c->from, n, who);
        if (status == PC_OK)
            status = stage_in(&part, piece, who, ticket);
        c->to.offset += n;
        c->from.offset += n;
        c->n -= n;
    }
    pc__free(piece);
    return status;
}

pc_status pc__transfer(pc_stream *stream, pc__bytes to, pc__bytes from, size_t n, const char *who, bool wait)
{
    if (!n)
        return PC_OK;
    PC__TRY(check_maps(to.storage, from.storage, who));
    bool exposed = is_exposed(to.storage);
    if (wait || exposed) {
        PC__TRY(pc__graph_allows(stream, who, "waiting"));
        PC__TRY(pc__wait_allowed(stream->device, who));
    }
    copying c = {stream, to, from, n, {0}, who};
    uint64_t ticket = 0;
    PC__TRY(from.storage->device.type == PC_CPU ? from_host(&c, who, &ticket)
            : to.storage->device.type == PC_CPU ? to_host(&c, who, &ticket)
            : is_between_kinds(to, from)        ? through_host(&c, who, &ticket)
                                                : direct(&c, &ticket));
    heal(stream, to, n);
    if (!wait && !exposed)
        return PC_OK;
    return pc__host_wait(stream, ticket, who,
                         wait ? "a blocking copy" : "the program holds a pointer to the destination");
}

pc_status pc__transfer_in(pc_stream *stream, pc__bytes to, const void *from, size_t n, const char *who)
{
    copying c = {stream, to, {0}, n, {.note = "staged: memory of the program"}, who};
    uint64_t ticket;
    PC__TRY(pc__graph_allows(stream, who, "memory of the program"));
    PC__TRY(stage_in(&c, from, who, &ticket));
    heal(stream, to, n);
    return PC_OK;
}

pc_status pc__transfer_out(pc_stream *stream, void *to, pc__bytes from, size_t n, const char *who)
{
    PC__TRY(pc__graph_allows(stream, who, "data on the host"));
    PC__TRY(pc__wait_allowed(stream->device, who));
    return out(stream, to, from, n, who);
}

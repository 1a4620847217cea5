/* order.h: queuing work so that streams are ordered by the data they share.
 *
 *     pc__work work = {.name = "add"};
 *     PC__TRY(pc__queue_open(stream, &work));
 *     pc_status status = pc__uses(a, stream, &work, false);               // ... every storage it reads or writes
 *     if (status == PC_OK) status = backend->submit(stream, kernel, call, &work);
 *     pc__queue_close(stream, &work, status);
 *
 * A storage's `owner` is the stream that wrote it last (or used it first); its own queue orders what it does, so it
 * pays a compare and a store. Other streams' uses since are in a list; they take a lock, and wait for the tickets at
 * hand and nothing more. */
#ifndef PC__ORDER_H
#define PC__ORDER_H

#include "device/storage.h"

/* Take the next ticket of the stream: no other thread queues on it until pc__queue_close. Fails with what earlier work
 * of the stream failed with, and where another thread records it. */
pc_status pc__queue_open(pc_stream *stream, pc__work *work);
void pc__queue_close(pc_stream *stream, const pc__work *work, pc_status status);

pc_status pc__uses_slowly(pc__storage *storage, pc_stream *stream, const pc__work *work, bool write);

/* Its owner writes it; a call may name what it writes twice. */
static inline void pc__wrote(pc__users *o, uint64_t ticket)
{
    const uint64_t before = atomic_load_explicit(&o->wrote, memory_order_relaxed);
    if (before == ticket)
        return;
    o->before = before;
    atomic_store_explicit(&o->wrote, ticket, memory_order_relaxed);
}

/* The work uses the storage: make it wait for what it must not overtake, and note it. */
static inline pc_status pc__uses(pc__storage *storage, pc_stream *stream, const pc__work *work, bool write)
{
    pc__users *o = &storage->order;
    if (atomic_load_explicit(&o->owner, memory_order_relaxed) != stream->id ||
        (write && atomic_load_explicit(&o->others, memory_order_relaxed)))
        return pc__uses_slowly(storage, stream, work, write);
    if (write)
        pc__wrote(o, work->ticket);
    else
        atomic_store_explicit(&o->read, work->ticket, memory_order_relaxed);
    return PC_OK;
}

/* The same for a block that comes from the cache: in manual order too, since the program cannot know of it, and without
 * becoming part of a recording that it was refused to. */
pc_status pc__uses_always(pc__storage *storage, pc_stream *stream, const pc__work *work);

/* Work that is recorded nowhere uses the storage: PC_ERR_STATE where only the end of a recording gives it memory. */
pc_status pc__uses_now(const pc__storage *storage, const pc__work *work);

/* Let work of `stream` wait for work `ticket` of stream number `id`. */
pc_status pc__wait_for(pc_stream *stream, uint32_t id, uint64_t ticket, const pc__work *work);

/* True when nothing queued still uses the storage. */
bool pc__is_idle(pc__storage *storage);

/* True when all that still uses it is queued on `stream` alone. */
bool pc__is_own(const pc__storage *storage, const pc_stream *stream);

/* The storage gets the block's memory: who still uses that is waited for by who uses the storage next. */
void pc__order_inherit(pc__storage *storage, pc__storage *block);

/* The stream has it for its own, and work `ticket` wrote it: nobody else uses it. */
void pc__order_own(pc__storage *storage, const pc_stream *stream, uint64_t ticket);

/* Nothing uses it: forget what is noted. */
void pc__order_reset(pc__storage *storage);

/* The host waits for the last writer, and with `readers` for everything else too, because `who` needs it. */
pc_status pc__settle(pc__storage *storage, bool readers, const char *who, bool asked);

#endif

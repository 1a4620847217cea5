/* order.c: who used a storage, and who waits for whom. */
#include "device/order.h"

#include "device/check.h"
#include "device/failure.h"
#include "device/graph.h"
#include "device/plan.h"
#include "device/recorder.h"
#include "device/trace.h"
#include "device/wait.h"
#include "device/waits.h"
#include "device/workspace.h"

void pc_manual_order_enter(void)
{
    pc__mode.manual_order++;
}

void pc_manual_order_leave(int *open)
{
    if (!open || !*open)
        return;
    pc__mode.manual_order -= pc__mode.manual_order > 0;
    *open = 0;
}

/* Storages share a few locks; two that share one by chance only wait a little for each other. */
static pthread_mutex_t locks[64] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *lock_of(const pc__storage *storage)
{
    return &locks[(uintptr_t)storage / 64 * 0x9e3779b97f4a7c15u >> 58];
}

/* What an ordered stream has to come behind. */
static pc_status follow(pc_stream *stream, const pc__work *work)
{
    if (!stream->behind || stream->recording)
        return PC_OK;
    PC__TRY(pc__wait_for(stream, stream->behind, stream->behind_ticket, work));
    stream->behind = 0;
    return PC_OK;
}

pc_status pc__queue_open(pc_stream *stream, pc__work *work)
{
    pthread_mutex_lock(&stream->lock);
    pc_status status = pc__recorder_admits(stream, work->name);
    if (status == PC_OK && atomic_load_explicit(&stream->failed, memory_order_acquire))
        status = stream->backend->stream_error(stream); /* unless another thread was told */
    work->ticket = atomic_load_explicit(&stream->ticket, memory_order_relaxed) + 1;
    if (status == PC_OK)
        status = pc__graph_takes(stream, work);
    if (status == PC_OK)
        status = follow(stream, work);
    if (status != PC_OK) {
        pthread_mutex_unlock(&stream->lock);
        pc__failures_tidy();
        return status;
    }
    atomic_store_explicit(&stream->taken, work->ticket, memory_order_release);
    work->site = pc__site_here();
    work->queued = pc__trace_now();
    return PC_OK;
}

/* Work that could not be queued leaves its mark: uses that are noted say its ticket, in place of those before, which
 * what is already in the queue waits for. */
static bool leave_mark(pc_stream *stream, const pc__work *work)
{
    return !stream->backend->immediate && stream->backend->host_call(stream, NULL, NULL, work) == PC_OK;
}

void pc__queue_close(pc_stream *stream, const pc__work *work, pc_status status)
{
    if (status == PC_OK || leave_mark(stream, work))
        atomic_store_explicit(&stream->ticket, work->ticket, memory_order_release);
    else if (stream->waits)
        pc__waits_forget(stream, work->ticket); /* other work will have that ticket */
    const pc__workspaces used = stream->workspaces;
    stream->workspaces = (pc__workspaces){0};
    pthread_mutex_unlock(&stream->lock);
    pc__workspaces_give(&used, stream, work->ticket);
    pc__trace_op_done(work->name, work->note, work->queued, stream->device, stream->id, work->site);
}

/* Across backends there is no other way than the host's. */
static pc_status wait_across(pc_stream *stream, pc_stream *other, uint64_t ticket)
{
    (void)stream;
    return pc__host_wait(other, ticket, "pc_to", "a copy between kinds of devices");
}

static pc_status wait_for_stream(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *work, bool data)
{
    if (pc__checking())
        pc__check_stream_waits(stream, other, ticket);
    bool joined = false;
    if (data)
        PC__TRY(pc__graph_meets(stream, other, ticket, work->name, &joined));
    if (!joined && pc__ticket_done(other, ticket)) {
        if (pc__ever_failed()) /* it may be done and built on what failed elsewhere */
            pc__waits_look(other, ticket);
        if (!atomic_load(&other->failed))
            return PC_OK;
    }
    if (work->queued)
        pc__trace_wait(stream->device, stream->id, work->ticket, other->device, other->id, ticket);
    if (stream->backend != other->backend)
        return wait_across(stream, other, ticket);
    PC__TRY(pc__waits_note(stream, work->ticket, other, ticket));
    PC__TRY(stream->backend->stream_wait(stream, other, ticket, work));
    return joined ? pc__plan_wait(stream, other, work) : PC_OK;
}

/* `data`: for what is in memory, and not only for the end of its use: of a recording's own the stream becomes part. */
static pc_status wait_for(pc_stream *stream, uint32_t id, uint64_t ticket, const pc__work *work, bool data)
{
    if (!ticket || !id || id == stream->id)
        return PC_OK;
    pc_stream *other = pc__stream_hold(id);
    if (!other)
        return PC_OK;
    /* A use is noted before its work is queued; should queuing fail, nobody is to wait for what never comes. */
    uint64_t queued = atomic_load_explicit(&other->ticket, memory_order_acquire);
    pc_status status = wait_for_stream(stream, other, PC__MIN(ticket, queued), work, data);
    pc__stream_let_go(other);
    return status;
}

pc_status pc__wait_for(pc_stream *stream, uint32_t id, uint64_t ticket, const pc__work *work)
{
    return wait_for(stream, id, ticket, work, true);
}

/* Note a use by a stream that does not own the storage. */
static pc_status note(pc__users *o, const pc_stream *stream, const pc__work *work, bool write)
{
    int n = atomic_load_explicit(&o->others, memory_order_relaxed);
    for (int i = 0; i < n; i++)
        if (o->other[i].stream == stream->id) {
            o->other[i].ticket = work->ticket;
            o->other[i].write |= write;
            return PC_OK;
        }
    PC__TRY(pc__grow((void **)&o->other, &o->room, n, sizeof *o->other));
    o->other[n] = (pc__use){stream->id, write, work->ticket};
    atomic_store_explicit(&o->others, n + 1, memory_order_release);
    return PC_OK;
}

static void own(pc__users *o, const pc_stream *stream, const pc__work *work, bool write)
{
    o->before = UINT64_MAX;
    atomic_store_explicit(&o->wrote, write ? work->ticket : 0, memory_order_relaxed);
    atomic_store_explicit(&o->read, write ? 0 : work->ticket, memory_order_relaxed);
    atomic_store_explicit(&o->others, 0, memory_order_relaxed);
    o->born = 0;
    atomic_store_explicit(&o->owner, stream->id, memory_order_release);
}

/* Wait for the storage's writers, and with `readers` for all uses. */
static pc_status wait_for_uses(pc__users *o, pc_stream *stream, const pc__work *work, bool readers, bool data)
{
    uint64_t wrote = atomic_load(&o->wrote), read = atomic_load(&o->read);
    PC__TRY(wait_for(stream, atomic_load(&o->owner), readers ? PC__MAX(wrote, read) : wrote, work, data));
    for (int i = 0; i < atomic_load(&o->others); i++)
        if (readers || o->other[i].write)
            PC__TRY(wait_for(stream, o->other[i].stream, o->other[i].ticket, work, data));
    return PC_OK;
}

static pc_status use(pc__storage *storage, pc_stream *stream, const pc__work *work, bool write)
{
    pc__users *o = &storage->order;
    uint32_t owner = atomic_load(&o->owner);
    if (!owner) {
        own(o, stream, work, write);
        return PC_OK;
    }
    if (pc__mode.manual_order) /* what used the block before it came out of the cache is not the program's to order */
        PC__TRY(pc__wait_for(stream, owner, o->born, work));
    else
        PC__TRY(wait_for_uses(o, stream, work, write, true));
    if (write && !pc__mode.manual_order)
        own(o, stream, work, true);
    else if (owner == stream->id && write)
        pc__wrote(o, work->ticket);
    else if (owner == stream->id)
        atomic_store(&o->read, work->ticket);
    else
        return note(o, stream, work, write);
    return PC_OK;
}

pc_status pc__uses_slowly(pc__storage *storage, pc_stream *stream, const pc__work *work, bool write)
{
    pthread_mutex_t *lock = lock_of(storage);
    pthread_mutex_lock(lock);
    pc_status status = use(storage, stream, work, write);
    pthread_mutex_unlock(lock);
    return status;
}

pc_status pc__uses_now(const pc__storage *storage, const pc__work *work)
{
    if (!atomic_load_explicit(&storage->planned, memory_order_acquire))
        return PC_OK;
    if (storage->elsewhere)
        return pc__fail(PC_ERR_STATE, "%s: the tensor has no contents in this process: %s", work->name, storage->maker);
    return pc__fail(
        PC_ERR_STATE,
        "%s: a tensor of a recording that has not ended, of %s, is used by work outside of it; let that wait "
        "for the recording's stream, or end the recording first",
        work->name, storage->maker);
}

pc_status pc__uses_always(pc__storage *storage, pc_stream *stream, const pc__work *work)
{
    pc__users *o = &storage->order;
    pthread_mutex_t *lock = lock_of(storage);
    pthread_mutex_lock(lock);
    pc_status status = atomic_load(&o->owner) ? wait_for_uses(o, stream, work, true, false) : PC_OK;
    if (status == PC_OK)
        own(o, stream, work, true);
    pthread_mutex_unlock(lock);
    return status;
}

void pc__order_own(pc__storage *storage, const pc_stream *stream, uint64_t ticket)
{
    const pc__work work = {.ticket = ticket};
    pthread_mutex_lock(lock_of(storage));
    own(&storage->order, stream, &work, true);
    pthread_mutex_unlock(lock_of(storage));
}

static bool use_is_done(uint32_t id, uint64_t ticket)
{
    pc_stream *stream = id && ticket ? pc__stream_hold(id) : NULL;
    if (!stream)
        return true;
    bool done = pc__ticket_done(stream, PC__MIN(ticket, atomic_load(&stream->ticket)));
    pc__stream_let_go(stream);
    return done;
}

bool pc__is_idle(pc__storage *storage)
{
    pc__users *o = &storage->order;
    if (!atomic_load(&o->owner))
        return true;
    pthread_mutex_lock(lock_of(storage));
    bool idle = use_is_done(atomic_load(&o->owner), PC__MAX(atomic_load(&o->wrote), atomic_load(&o->read)));
    for (int i = 0; idle && i < atomic_load(&o->others); i++)
        idle = use_is_done(o->other[i].stream, o->other[i].ticket);
    pthread_mutex_unlock(lock_of(storage));
    return idle;
}

bool pc__is_own(const pc__storage *storage, const pc_stream *stream)
{
    const pc__users *o = &storage->order;
    return atomic_load(&o->owner) == stream->id && !atomic_load(&o->others);
}

void pc__order_inherit(pc__storage *storage, pc__storage *block)
{
    pc__users *o = &storage->order, *from = &block->order;
    if (!atomic_load(&from->owner))
        return;
    pthread_mutex_lock(lock_of(storage));
    pc__free(o->other);
    *o = *from;
    o->born = PC__MAX(atomic_load(&o->wrote), atomic_load(&o->read));
    from->other = NULL;
    pthread_mutex_unlock(lock_of(storage));
}

void pc__order_reset(pc__storage *storage)
{
    pc__users *o = &storage->order;
    if (!atomic_load_explicit(&o->owner, memory_order_relaxed))
        return; /* most storages, on the CPU */
    atomic_store_explicit(&o->others, 0, memory_order_relaxed);
    atomic_store_explicit(&o->wrote, 0, memory_order_relaxed);
    atomic_store_explicit(&o->read, 0, memory_order_relaxed);
    atomic_store_explicit(&o->owner, 0, memory_order_release);
}

/* Of what was written before it came out of the cache nothing is left to fail. */
static unsigned find_failure(const pc__storage *storage)
{
    const pc__users *o = &storage->order;
    const uint32_t owner = atomic_load(&o->owner);
    const uint64_t wrote = atomic_load(&o->wrote);
    unsigned number = owner && wrote > o->born ? pc__failure_of(owner, wrote) : 0;
    for (int i = 0; !number && i < atomic_load(&o->others); i++)
        if (o->other[i].write)
            number = pc__failure_of(o->other[i].stream, o->other[i].ticket);
    return number;
}

unsigned pc__storage_failure(pc__storage *storage)
{
    unsigned number = atomic_load_explicit(&storage->failure, memory_order_relaxed);
    if (number)
        return number;
    pthread_mutex_lock(lock_of(storage));
    number = find_failure(storage);
    pthread_mutex_unlock(lock_of(storage));
    if (number)
        atomic_store_explicit(&storage->failure, number, memory_order_relaxed);
    return number;
}

/* The next use that the host must wait for, or false. */
static bool pending(pc__storage *storage, bool readers, pc__use *found)
{
    pc__users *o = &storage->order;
    pthread_mutex_lock(lock_of(storage));
    uint64_t wrote = atomic_load(&o->wrote), read = atomic_load(&o->read);
    *found = (pc__use){atomic_load(&o->owner), true, readers ? PC__MAX(wrote, read) : wrote};
    bool there = found->stream && found->ticket;
    for (int i = 0; !there && i < atomic_load(&o->others); i++) {
        *found = o->other[i];
        there = readers || found->write;
    }
    pthread_mutex_unlock(lock_of(storage));
    return there;
}

/* Unless the owner, which takes no lock, has used it again meanwhile. */
static void forget_up_to(atomic_uint_fast64_t *last, uint_fast64_t ticket)
{
    uint_fast64_t seen = atomic_load(last);
    while (seen && seen <= ticket && !atomic_compare_exchange_weak(last, &seen, 0))
        continue;
}

/* The use has been waited for: it need not be seen again. */
static void forget(pc__storage *storage, const pc__use *seen)
{
    pc__users *o = &storage->order;
    pthread_mutex_lock(lock_of(storage));
    if (atomic_load(&o->owner) == seen->stream) {
        forget_up_to(&o->wrote, seen->ticket);
        forget_up_to(&o->read, seen->ticket);
    }
    int n = atomic_load(&o->others);
    for (int i = 0; i < n; i++)
        if (o->other[i].stream == seen->stream && o->other[i].ticket <= seen->ticket) {
            o->other[i--] = o->other[--n];
            atomic_store(&o->others, n);
        }
    pthread_mutex_unlock(lock_of(storage));
}

pc_status pc__settle(pc__storage *storage, bool readers, const char *who, bool asked)
{
    pc__use next;
    while (atomic_load_explicit(&storage->order.owner, memory_order_acquire) && pending(storage, readers, &next)) {
        pc_stream *stream = pc__stream_hold(next.stream);
        pc_status status = PC_OK;
        if (stream) {
            uint64_t ticket = PC__MIN(next.ticket, atomic_load(&stream->ticket));
            if (pc__is_recorded(stream, next.ticket))
                status = pc__graph_allows(stream, who, "data that only a launch will compute");
            else if (!asked && !pc__ticket_done(stream, ticket))
                status = pc__wait_allowed(stream->device, who);
            if (status == PC_OK)
                status = pc__host_wait(stream, ticket, who, asked ? NULL : "data under way");
            pc__stream_let_go(stream);
        }
        PC__TRY(status);
        if (pc__ever_failed())
            (void)pc__storage_failure(storage);
        forget(storage, &next);
    }
    return PC_OK;
}

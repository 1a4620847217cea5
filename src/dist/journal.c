/* journal.c: a ring of slots. A slot's number says whose it is, and is 0 while it is written, so that readers need no lock.
 * A writer that sleeps while a thousand others go by may leave its time in another call's entry. */
#include "dist/journal.h"

#include "device/backend.h"
#include "device/trace.h"
#include "dist/ticks.h"
#include "dist/timeline.h"
#include "ops/table.h"

enum { SLOTS = 1024, WORDS = sizeof(pc__journal_entry) / sizeof(uint64_t) };

#define WORD(member) (offsetof(pc__journal_entry, member) / sizeof(uint64_t))

static struct {
    atomic_uint_least64_t id;
    atomic_uint_least64_t words[WORDS];
} ring[SLOTS];
static atomic_uint_least64_t last;

static uint64_t put(const pc__journal_entry *entry)
{
    uint64_t words[WORDS];
    const uint64_t id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    memcpy(words, entry, sizeof words);
    atomic_store_explicit(&ring[id % SLOTS].id, 0, memory_order_relaxed);
    for (size_t i = 0; i < WORDS; i++) /* each behind that 0 */
        atomic_store_explicit(&ring[id % SLOTS].words[i], words[i], memory_order_release);
    atomic_store_explicit(&ring[id % SLOTS].id, id, memory_order_release);
    return id;
}

static bool is_there(uint64_t id)
{
    return atomic_load_explicit(&ring[id % SLOTS].id, memory_order_relaxed) == id;
}

static void set(uint64_t id, size_t word, uint64_t value)
{
    atomic_store_explicit(&ring[id % SLOTS].words[word], value, memory_order_relaxed);
}

static bool take(uint64_t id, pc__journal_entry *entry)
{
    uint64_t words[WORDS];
    if (atomic_load_explicit(&ring[id % SLOTS].id, memory_order_acquire) != id)
        return false;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&ring[id % SLOTS].words[i], memory_order_acquire);
    memcpy(entry, words, sizeof words);
    return is_there(id);
}

static void in_time(const pc__ticks_scale *scale, int64_t *moment)
{
    if (*moment)
        *moment = pc__ticks_time(scale, *moment);
}

int pc__journal_read(pc__journal_entry *entries, int capacity)
{
    int n = 0;
    const uint64_t end = atomic_load_explicit(&last, memory_order_acquire);
    const uint64_t most = (uint64_t)PC__MIN(capacity, PC__JOURNAL_CALLS);
    const pc__ticks_scale scale = pc__ticks_look();
    for (uint64_t id = end > most ? end - most + 1 : 1; id <= end; id++)
        if (take(id, &entries[n])) {
            in_time(&scale, &entries[n].queued);
            in_time(&scale, &entries[n].entered);
            in_time(&scale, &entries[n++].finished);
        }
    return n;
}

const char *pc__journal_op(const pc__journal_entry *entry)
{
    return entry->op < 0 ? "a graph with collectives" : pc__ops[entry->op].name;
}

/* What must be the same in all ranks: of calls in place the tensor, of others what each rank brings or gets. */
static int64_t count_of(int op, const pc_tensor *to, const pc_tensor *from)
{
    const pc_tensor *t = from && op != PC__OP_reduce_scatter && op != PC__OP_scatter ? from : to;
    return pc__count(t->ndim, t->shape);
}

static bool is_pair(int op)
{
    return op == PC__OP_send || op == PC__OP_receive;
}

static bool reduces(int op)
{
    return op == PC__OP_all_reduce || op == PC__OP_reduce || op == PC__OP_reduce_scatter;
}

/* Whether the root, or the other rank, counts. */
static bool has_peer(int op)
{
#define PEER(name, in_place, peer) [PC__OP_##name] = peer,
    static const bool has[PC__OP_COUNT] = {PC__COLLECTIVES(PEER)};
#undef PEER
    return has[op];
}

static pc__journal_entry entry_of(const pc__comm *comm, int op, const pc_tensor *to, const pc_tensor *from,
                                  const pc__collective *a)
{
    pc__journal_entry e = {.op = op,
                           .dtype = to->dtype,
                           .count = count_of(op, to, from),
                           .rank = comm->rank,
                           .size = comm->size,
                           .member = comm->members[comm->rank],
                           .peer = has_peer(op) ? a->peer : -1,
                           .reduction = reduces(op) ? a->reduction : -1,
                           .device = comm->device};
    memcpy(e.group, comm->group, sizeof e.group); /* a group's name has that room */
    return e;
}

uint64_t pc__journal_queue(const pc_stream *stream, int op, const pc_tensor *to, const pc_tensor *from,
                           const pc__collective *attributes)
{
    if (stream->backend->immediate)
        return 0;
    pc__journal_entry e = entry_of(attributes->comm, op, to, from, attributes);
    e.queued = pc__ticks();
    e.stream = stream->id;
    return put(&e);
}

void pc__journal_set(uint64_t entry, pc__journal_state state)
{
    if (is_there(entry))
        set(entry, WORD(state), state);
}

/* Whether the host has queued this call, and not a graph that holds it. */
static bool waits(uint64_t entry)
{
    return entry && is_there(entry) &&
           atomic_load_explicit(&ring[entry % SLOTS].words[WORD(state)], memory_order_relaxed) == PC__CALL_QUEUED;
}

static uint64_t begins(pc__comm *comm, const pc_stream *stream, const pc_call *call)
{
    const pc__collective *a = call->attributes;
    const int64_t now = pc__ticks();
    const uint64_t number = is_pair(call->op->index) ? comm->begun : ++comm->begun;
    if (waits(a->entry)) {
        set(a->entry, WORD(number), number);
        set(a->entry, WORD(entered), (uint64_t)now);
        set(a->entry, WORD(state), PC__CALL_RUNNING);
        return a->entry;
    }
    pc__journal_entry e = entry_of(comm, call->op->index, call->out[0], call->n_in ? call->in[0] : NULL, a);
    e.number = number;
    e.entered = now;
    e.stream = stream->id;
    e.state = PC__CALL_RUNNING;
    return put(&e);
}

/* An engine that queues has done with it before the device has begun. */
static void is_queued(const pc__comm *comm, uint64_t entry, const pc_stream *stream, const pc_call *call)
{
    const uint64_t ticket = atomic_load_explicit(&stream->taken, memory_order_relaxed);
    set(entry, WORD(ticket), ticket);
    set(entry, WORD(entered), 0);
    set(entry, WORD(state), stream->recording ? PC__CALL_RECORDED : PC__CALL_QUEUED);
    if (pc__tracing() && !stream->recording)
        pc__timeline_queued(comm, call, comm->begun, stream->id, ticket);
}

static void draw(const pc__comm *comm, const pc_call *call, int64_t entered, int64_t finished)
{
    const pc__ticks_scale scale = pc__ticks_look();
    pc__timeline_call(comm, call, comm->begun, pc__ticks_time(&scale, entered), pc__ticks_time(&scale, finished));
}

static void ends(pc__comm *comm, uint64_t entry, const pc_stream *stream, const pc_call *call, pc_status status)
{
    const bool queued = status == PC_OK && !comm->engine->on_host;
    if (queued && stream->recording) /* its launches have numbers */
        comm->begun -= !is_pair(call->op->index);
    if (!is_there(entry))
        return;
    if (queued) {
        is_queued(comm, entry, stream, call);
        return;
    }
    const int64_t now = pc__ticks();
    set(entry, WORD(finished), (uint64_t)now);
    set(entry, WORD(state), status == PC_OK ? PC__CALL_DONE : PC__CALL_FAILED);
    if (pc__tracing())
        draw(comm, call, (int64_t)atomic_load_explicit(&ring[entry % SLOTS].words[WORD(entered)], memory_order_relaxed),
             now);
}

static void launches(pc__comm *comm, const pc_stream *stream)
{
    pc__journal_entry e = {.number = ++comm->begun,
                           .op = -1,
                           .dtype = -1,
                           .rank = comm->rank,
                           .size = comm->size,
                           .member = comm->members[comm->rank],
                           .peer = -1,
                           .reduction = -1,
                           .queued = pc__ticks(),
                           .stream = stream->id,
                           .ticket = atomic_load_explicit(&stream->taken, memory_order_relaxed),
                           .device = comm->device};
    memcpy(e.group, comm->group, sizeof e.group);
    (void)put(&e);
}

const pc__comm_log pc__group_log = {.begins = begins, .ends = ends, .launches = launches};

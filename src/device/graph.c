/* graph.c: recording what streams are given, and launching it. A launch is one piece of work that uses every storage
 * of the recording, so the order between streams holds for graphs as for ops. */
#include "device/graph.h"

#include "device/check.h"
#include "device/order.h"
#include "device/trace.h"
#include "device/wait.h"

static atomic_uint_fast64_t last_number;

pc_status pc__graph_allows(pc_stream *stream, const char *who, const char *what)
{
    pc_graph *graph = stream->recording;
    if (!graph)
        return PC_OK;
    char site[PC__SITE_TEXT];
    pc_status status = pc__fail(PC_ERR_STATE,
                                "%s (%s): the stream is being recorded, and %s cannot be part of a recording; do it "
                                "before pc_graph_begin or after pc_graph_end",
                                who, pc__site_text(pc__site_here(), site), what);
    if (graph->refused.status == PC_OK)
        graph->refused = *pc_error_last();
    return status;
}

static pc_status join(pc_stream *stream, pc_graph *graph)
{
    PC__TRY(pc__grow((void **)&graph->others, &graph->other_room, graph->other_count, sizeof *graph->others));
    if (graph->backend->graph_join)
        PC__TRY(graph->backend->graph_join(graph, stream));
    atomic_fetch_add(&stream->references, 1);
    graph->others[graph->other_count++] = stream;
    stream->recording_from = atomic_load(&stream->ticket);
    stream->recording = graph;
    return PC_OK;
}

pc_status pc__graph_meets(pc_stream *stream, pc_stream *other, uint64_t ticket, bool *joined)
{
    pc_graph *graph = other->recording, *own = stream->recording;
    *joined = graph && ticket > other->recording_from;
    if (!*joined || own == graph)
        return PC_OK;
    char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
    if (stream->backend != graph->backend)
        return pc__fail(PC_ERR_STATE, "a recording on %s cannot go on on %s", pc_device_name(other->device, a),
                        pc_device_name(stream->device, b));
    if (own)
        return pc__fail(PC_ERR_STATE,
                        "work of one recording on %s waits for work of another one; record both on one "
                        "stream, or share no data",
                        pc_device_name(stream->device, a));
    return join(stream, graph);
}

static size_t place_of(const pc__graph_use *uses, int room, const pc__storage *storage)
{
    size_t i = (uintptr_t)storage / 64 * 0x9e3779b97f4a7c15u >> 32;
    while (uses[i % (size_t)room].storage && uses[i % (size_t)room].storage != storage)
        i++;
    return i % (size_t)room;
}

static pc_status more_room(pc_graph *graph)
{
    if (graph->use_count * 2 < graph->use_room)
        return PC_OK;
    int room = graph->use_room ? graph->use_room * 2 : 64;
    pc__graph_use *uses = pc__calloc((size_t)room, sizeof *uses);
    if (!uses)
        return PC_ERR_MEMORY;
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            uses[place_of(uses, room, graph->uses[i].storage)] = graph->uses[i];
    pc__free(graph->uses);
    graph->uses = uses;
    graph->use_room = room;
    return PC_OK;
}

static pc_status note(pc_stream *stream, pc__storage *storage, bool write, bool made)
{
    pc_graph *graph = stream->recording;
    if (!graph)
        return PC_OK;
    PC__TRY(more_room(graph));
    pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    if (!use->storage) {
        pc__storage_retain(storage);
        use->storage = storage;
        graph->use_count++;
    }
    use->write |= write;
    use->made |= made;
    return PC_OK;
}

pc_status pc__graph_uses(pc_stream *stream, pc__storage *storage, bool write)
{
    return note(stream, storage, write, false);
}

pc_status pc__graph_makes(pc_stream *stream, pc__storage *storage)
{
    return note(stream, storage, false, true);
}

/* NULL: none. */
static const pc__graph_use *use_of(const pc_graph *graph, const pc__storage *storage)
{
    if (!graph || !graph->use_count)
        return NULL;
    const pc__graph_use *use = &graph->uses[place_of(graph->uses, graph->use_room, storage)];
    return use->storage ? use : NULL;
}

bool pc__graph_reads(const pc_stream *stream, const pc__storage *storage)
{
    const pc__graph_use *use = use_of(stream->recording, storage);
    return use && !use->write;
}

int pc__graph_holds(const pc_stream *stream, const pc__storage *storage)
{
    const pc_graph *graph = stream->recording;
    return graph ? (use_of(graph, storage) != NULL) + (use_of(graph->lender, storage) != NULL) : 0;
}

void pc__graph_borrow(pc_stream *stream, const pc_graph *lender)
{
    pc_graph *graph = stream->recording;
    graph->lender = lender;
}

pc__storage *pc__graph_lent(const pc_stream *stream, size_t bytes)
{
    const pc_graph *graph = stream->recording, *lender = graph ? graph->lender : NULL;
    for (int i = 0; lender && i < lender->use_room; i++) {
        const pc__graph_use *use = &lender->uses[i];
        if (use->storage && use->made && use->storage->bytes == bytes && atomic_load(&use->storage->references) == 1) {
            pc__storage_retain(use->storage);
            return use->storage;
        }
    }
    return NULL;
}

uint64_t pc__graph_number(const pc_stream *stream)
{
    const pc_graph *graph = stream->recording;
    return graph ? graph->number : 0;
}

pc_status pc_graph_begin(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    if (!stream)
        return PC_ERR_DEVICE;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "pc_graph_begin: the stream is already being recorded");
    pc_graph *graph = pc__calloc(1, sizeof *graph);
    if (!graph)
        return PC_ERR_MEMORY;
    graph->device = stream->device;
    graph->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    graph->backend = stream->backend;
    graph->stream = stream;
    pc_status status = stream->backend->graph_begin(graph, stream);
    if (status != PC_OK) {
        pc__free(graph);
        return status;
    }
    stream->recording_from = atomic_load(&stream->ticket);
    stream->recording = graph;
    return PC_OK;
}

/* What joined comes back to the stream that the recording began on, so that the recording has one end. */
static pc_status gather(pc_graph *graph)
{
    for (int i = 0; i < graph->other_count; i++) {
        pc_stream *other = graph->others[i];
        pc__work work = {.name = "end of a recording"};
        PC__TRY(pc__queue_open(graph->stream, &work));
        pc_status status = graph->backend->stream_wait(graph->stream, other, atomic_load(&other->ticket), &work);
        if (status == PC_OK)
            status = graph->backend->host_call(graph->stream, NULL, NULL, &work);
        pc__queue_close(graph->stream, &work, status);
        PC__TRY(status);
    }
    return PC_OK;
}

static void release_streams(pc_graph *graph)
{
    graph->stream->recording = NULL;
    graph->stream = NULL;
    graph->lender = NULL;
    for (int i = 0; i < graph->other_count; i++) {
        graph->others[i]->recording = NULL;
        pc__stream_let_go(graph->others[i]);
    }
    graph->other_count = 0;
}

pc_graph *pc_graph_end(pc_stream *stream)
{
    if (!stream)
        stream = pc_stream_current(pc_device_current());
    pc_graph *graph = stream ? stream->recording : NULL;
    if (!graph)
        return pc__null(PC_ERR_STATE, "pc_graph_end: the stream is not being recorded");
    if (graph->stream != stream)
        return pc__null(PC_ERR_STATE, "pc_graph_end: the recording began on another stream; end it there");
    pc_status status = gather(graph);
    pc_status ended = graph->backend->graph_end(graph, stream);
    release_streams(graph);
    if (graph->refused.status != PC_OK)
        status = pc__fail(graph->refused.status, "pc_graph_end: the recording is not complete: %.380s",
                          graph->refused.message);
    if (status == PC_OK && ended == PC_OK) {
        pc__trace_mark("graph recorded", NULL, pc__site_here());
        return graph;
    }
    pc_graph_free(graph);
    return NULL;
}

void pc__graph_abandon(pc_stream *stream)
{
    pc_graph *graph = stream->recording;
    if (!graph)
        return;
    (void)gather(graph);
    (void)graph->backend->graph_end(graph, graph->stream);
    release_streams(graph);
    pc_graph_free(graph);
}

static pc_status settle_all(pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            PC__TRY(pc__settle(graph->uses[i].storage, graph->uses[i].write, "pc_graph_launch", true));
    return PC_OK;
}

/* All waits come before the checker hears of the work. */
static pc_status note_uses(pc_graph *graph, pc_stream *stream, const pc__work *work)
{
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            PC__TRY(pc__uses(graph->uses[i].storage, stream, work, graph->uses[i].write));
    for (int i = 0; pc__checking() && i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        pc__check_use whole = {use->storage, 0, use->storage ? use->storage->bytes : 0, use->write};
        if (use->storage)
            pc__check_work(work->name, work->site, stream, work->ticket, &whole, 1);
    }
    return PC_OK;
}

/* As a call in place does for what it writes. What was made for the recording its first launch makes: nobody has seen
 * anything else there, and a backward pass through what was recorded finds what that saved. */
static void raise_versions(pc_graph *graph)
{
    for (int i = 0; i < graph->use_room; i++) {
        const pc__graph_use *use = &graph->uses[i];
        if (use->storage && use->write && (graph->launched || !use->made))
            atomic_fetch_add_explicit(&use->storage->version, 1, memory_order_relaxed);
    }
    graph->launched = true;
}

pc_status pc_graph_launch(pc_graph *graph, pc_stream *stream)
{
    if (!graph)
        return pc__fail(PC_ERR_ARGUMENT, "pc_graph_launch: the graph is NULL");
    if (!stream)
        stream = pc_stream_current(graph->device);
    if (!stream)
        return PC_ERR_DEVICE;
    if (stream->recording)
        return pc__fail(PC_ERR_STATE, "pc_graph_launch: the stream is being recorded; end the recording first");
    if (!pc_device_equal(stream->device, graph->device))
        return pc__fail(PC_ERR_DEVICE, "pc_graph_launch: the graph was recorded on another device");
    raise_versions(graph);
    pc__work work = {.name = "graph"};
    if (graph->backend->immediate) {
        PC__TRY(settle_all(graph));
        return graph->backend->graph_launch(graph, stream, &work);
    }
    PC__TRY(pc__queue_open(stream, &work));
    pc_status status = note_uses(graph, stream, &work);
    if (status == PC_OK)
        status = graph->backend->graph_launch(graph, stream, &work);
    pc__queue_close(stream, &work, status);
    return status;
}

static void swap_uses(pc_graph *a, pc_graph *b)
{
    pc_graph kept = *a;
    a->uses = b->uses;
    a->use_count = b->use_count;
    a->use_room = b->use_room;
    a->launched = b->launched;
    b->uses = kept.uses;
    b->use_count = kept.use_count;
    b->use_room = kept.use_room;
    b->launched = kept.launched;
}

pc_status pc_graph_update(pc_graph *graph, pc_graph *newer)
{
    if (!graph || !newer)
        return pc__fail(PC_ERR_ARGUMENT, "pc_graph_update: the graph is NULL");
    if (!pc_device_equal(graph->device, newer->device))
        return pc__fail(PC_ERR_DEVICE, "pc_graph_update: the graphs were recorded on different devices");
    PC__TRY(graph->backend->graph_update(graph, newer));
    swap_uses(graph, newer);
    return PC_OK;
}

void pc_graph_free(pc_graph *graph)
{
    if (!graph)
        return;
    graph->backend->graph_close(graph);
    for (int i = 0; i < graph->use_room; i++)
        if (graph->uses[i].storage)
            pc__storage_drop(graph->uses[i].storage);
    pc__free(graph->uses);
    pc__free(graph->others);
    pc__free(graph);
}

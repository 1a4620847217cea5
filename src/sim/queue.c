/* queue.c: streams as queues. What needs no engine (marks, waits) is done by whoever lets the stream go on. */
#include "sim/sim.h"

#include "device/failure.h"
#include "device/trace.h"
#include "ops/collective.h"

void pc__sim_let_go(pc__sim_stream *s)
{
    if (--s->references)
        return;
    pthread_cond_destroy(&s->progress);
    pc__free(s);
}

void pc__sim_command_free(pc__sim_command *c)
{
    if (c->kind == PC__SIM_KERNEL)
        pc__free(c->kernel.call);
    else if (c->kind == PC__SIM_EVENT && --c->mark.event->references == 0)
        pc__free(c->mark.event);
    else if (c->kind == PC__SIM_GRAPH)
        pc__sim_graph_drop(c->graph.graph);
    else if (c->kind == PC__SIM_WAIT)
        pc__sim_let_go(c->wait.other);
    pc__free(c);
}

static void fail(pc__sim_stream *s, uint64_t ticket, const pc_error *error)
{
    if (s->failing)
        return;
    memmove(s->failed + 1, s->failed, sizeof s->failed - sizeof s->failed[0]);
    s->failed[0] = (pc__sim_failure){ticket, UINT64_MAX}; /* until somebody is told */
    s->failing = true;
    s->error = *error;
    if (!s->stream)
        return;
    pc__failure_begin(s->stream->id, ticket, error);
    atomic_store_explicit(&s->stream->failed, true, memory_order_release);
}

static bool is_skipped(const pc__sim_stream *s, uint64_t ticket)
{
    for (int i = 0; i < PC__SIM_FAILURES && s->failed[i].from; i++)
        if (ticket >= s->failed[i].from && ticket <= s->failed[i].to)
            return true;
    return false;
}

/* What a stream waited for is done; where that failed, so has what would have built on it. */
static void pass_wait(pc__sim_stream *s, const pc__sim_command *c)
{
    const pc__sim_stream *other = c->wait.other;
    if (is_skipped(other, c->wait.ticket) && !is_skipped(s, c->work.ticket))
        fail(s, c->work.ticket, &other->error);
}

/* Streams that waited for what is done now go on. */
static void wake(pc__sim_stream *s)
{
    for (pc__sim_stream **link = &s->waiting; *link;) {
        pc__sim_stream *w = *link;
        if (w->first->wait.ticket > s->done) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        w->busy = false;
        pc__sim_advance(w);
        link = &s->waiting; /* the list may have changed meanwhile */
    }
}

static void take_out(pc__sim_stream *s)
{
    pc__sim_command *c = s->first;
    s->first = c->next;
    if (!s->first)
        s->last = &s->first;
    bool is_last = c->kind != PC__SIM_WAIT; /* the work that a wait is for has the same ticket */
    if (is_last)
        s->done = c->work.ticket;
    if (is_last && s->stream)
        atomic_store_explicit(&s->stream->done, s->done, memory_order_release);
    if (c->kind == PC__SIM_SPARE)
        s->spare_queued = false;
    else
        pc__sim_command_free(c);
    if (is_last)
        wake(s);
    if (s->host_waiters)
        pthread_cond_broadcast(&s->progress);
}

static void line_up(pc__sim_stream *s, pc__sim_engine *engine)
{
    pc__sim_stream **link = &engine->ready;
    while (*link && (*link)->stream->priority >= s->stream->priority)
        link = &(*link)->next;
    s->next = *link;
    *link = s;
    s->busy = true;
    pthread_cond_signal(&engine->work);
}

static void wait_for(pc__sim_stream *s, pc__sim_stream *other)
{
    s->next = other->waiting;
    other->waiting = s;
    s->busy = true;
}

pc__sim_command *pc__sim_at_hand(const pc__sim_stream *s)
{
    return s->first->kind == PC__SIM_GRAPH ? s->first->graph.at : s->first;
}

static void step_over(pc__sim_stream *s)
{
    pc__sim_command *c = s->first;
    if (c->kind == PC__SIM_GRAPH && c->graph.at && c->graph.at->next)
        c->graph.at = c->graph.at->next;
    else
        take_out(s);
}

static pc__sim_engine_kind engine_of(const pc__sim_command *c)
{
    if (c->kind == PC__SIM_KERNEL && pc__is_collective(c->kernel.call->op))
        return PC__SIM_LINK;
    return c->kind == PC__SIM_KERNEL ? PC__SIM_COMPUTE : c->kind == PC__SIM_COPY ? c->copy.engine : PC__SIM_HOST;
}

/* The event may have been recorded again since, in a stream that was faster. */
static void pass_mark(const pc__sim_command *c, int64_t time)
{
    if (c->mark.number == c->mark.event->mark)
        c->mark.event->time = time;
}

/* The first command, which waits for nobody and is not skipped. */
static void begin(pc__sim_stream *s)
{
    pc__sim_command *c = pc__sim_at_hand(s);
    if (c && c->kind == PC__SIM_EVENT)
        pass_mark(c, pc__now());
    if (c && (c->kind == PC__SIM_KERNEL || c->kind == PC__SIM_COPY || c->kind == PC__SIM_CALL))
        line_up(s, &s->device->engine[engine_of(c)]);
    else
        step_over(s);
}

void pc__sim_advance(pc__sim_stream *s)
{
    while (s->first && !s->busy) {
        pc__sim_command *c = s->first;
        if (s->device->lost)
            fail(s, c->work.ticket, &s->device->loss);
        if (c->kind == PC__SIM_WAIT && c->wait.other->done < c->wait.ticket) {
            wait_for(s, c->wait.other);
        } else if (c->kind == PC__SIM_WAIT) {
            pass_wait(s, c);
            take_out(s);
        } else if (is_skipped(s, c->work.ticket)) {
            if (c->kind == PC__SIM_EVENT)
                pass_mark(c, 0);
            take_out(s);
        } else {
            begin(s);
        }
    }
}

void pc__sim_push(pc__sim_stream *s, pc__sim_command *c)
{
    *s->last = c;
    s->last = &c->next;
    if (c->kind != PC__SIM_WAIT) /* the work that it is for may be refused; its ticket is another's then */
        s->queued = c->work.ticket;
    pc__sim_advance(s);
}

void pc__sim_work_done(pc__sim_stream *s, const pc_error *error)
{
    if (error->status != PC_OK)
        fail(s, s->first->work.ticket, error);
    s->busy = false;
    step_over(s);
    pc__sim_advance(s);
}

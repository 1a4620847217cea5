/* watch.c: who waits for whom, and for how long already. */
#include "dist/watch.h"

#include "device/backend.h"
#include "device/trace.h"
#include "dist/dump.h"
#include "store/store.h"

#include <signal.h>
#include <time.h>

/* The newest work of a communicator in a stream's queue. */
typedef struct entry {
    struct entry *next;
    pc__comm *comm;
    const char *name;      /* of the call or graph */
    uint64_t calls;        /* so many were queued, graphs counted once */
    bool entering;         /* inside the engine's call, which may wait for others itself */
    uint32_t stream;       /* 0: nothing is in a queue */
    uint64_t ticket, seen; /* of the newest work; how far the stream was when it was looked at last */
    int64_t since;         /* nothing has moved since, in nanoseconds */
    uint64_t told;         /* calls that the heart tells of */
    bool given_up;
} entry;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry *first;
    bool running;
} all = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false};

static entry *entry_of(pc__comm *comm)
{
    for (entry *e = all.first; e; e = e->next)
        if (e->comm == comm)
            return e;
    entry *e = pc__calloc(1, sizeof *e);
    if (!e) {
        pc_error_clear(); /* nobody looks after this one */
        return NULL;
    }
    e->comm = comm;
    e->next = all.first;
    return all.first = e;
}

/* "rank 1 is at number 4 (broadcast)", of those that are not as far as this one. */
static void name_behind(const entry *e, char *text, size_t n)
{
    enum { MOST = 64 };
    pc__beat_record records[MOST];
    int count = 0;
    size_t at = 0;
    text[0] = 0;
    if (e->comm->place || pc__beats_get(records, MOST, &count) != PC_OK) {
        pc_error_clear();
        return;
    }
    for (int r = 0; r < PC__MIN(count, MOST) && at < n; r++)
        if (records[r].beat.entered < e->calls || records[r].lost)
            at += (size_t)snprintf(text + at, n - at, "%srank %d %s number %llu (%s)", at ? ", " : "; ", r,
                                   records[r].lost ? "is lost, last in" : "is at",
                                   (unsigned long long)records[r].beat.entered,
                                   records[r].beat.name[0] ? records[r].beat.name : "none");
}

/* What is queued fails, and the device's kernels that wait for others end. */
static void give_up(entry *e, const char *why)
{
    char behind[256];
    name_behind(e, behind, sizeof behind);
    e->given_up = true;
    (void)pc__fail(PC_ERR_STATE, "%s, number %llu of rank %d of %s: %s%s", e->name, (unsigned long long)e->calls,
                   e->comm->rank, e->comm->group, why, behind);
    const pc_error error = pc__error_take();
    pc__log(PC_LOG_WARNING, "%s", error.message);
    pc__dump_all(error.message);
    pc_stream *stream = e->stream ? pc__stream_hold(e->stream) : NULL;
    if (stream && stream->backend->stream_fail)
        stream->backend->stream_fail(stream, e->seen + 1, &error);
    if (stream)
        pc__stream_let_go(stream);
    if (!e->comm->place)
        pc__dist_tell_error(error.status, error.message);
    e->comm->engine->abort(e->comm, error.message);
}

/* What the heart tells of: the newest call, as of the last look. */
static void beat(entry *e)
{
    pc__beat b = {.entered = e->calls, .finished = e->stream || e->entering ? e->calls - 1 : e->calls, .dtype = -1};
    if (e->comm->place || (e->told == e->calls && b.finished < e->calls))
        return;
    e->told = e->calls;
    snprintf(b.name, sizeof b.name, "%s", e->name);
    pc__beat_set(&b);
}

/* True while there is something to wait for. */
static bool is_under_way(entry *e)
{
    if (e->entering || !e->stream)
        return e->entering;
    pc_stream *stream = pc__stream_hold(e->stream);
    if (!stream)
        return false;
    if (stream->backend->ticket_query && stream->backend->ticket_query(stream) != PC_OK)
        pc_error_clear(); /* told to whoever waits */
    const uint64_t done = atomic_load_explicit(&stream->done, memory_order_acquire);
    pc__stream_let_go(stream);
    if (done != e->seen)
        e->since = pc__now();
    e->seen = done;
    if (done >= e->ticket)
        e->stream = 0;
    return e->stream;
}

static void look(entry *e)
{
    int rank;
    char lost[PC__WHY_MAX], why[PC__WHY_MAX + 32];
    const bool under_way = !e->given_up && is_under_way(e);
    beat(e);
    if (!under_way)
        return;
    const double waited = (double)(pc__now() - e->since) * 1e-9;
    if (!e->comm->place && pc__dist_lost(&rank, lost)) {
        snprintf(why, sizeof why, "%s", lost);
        give_up(e, why);
    } else if (e->comm->engine->query && e->comm->engine->query(e->comm) != PC_OK) {
        const pc_error error = pc__error_take();
        give_up(e, error.message);
    } else if (e->comm->seconds > 0 && waited > e->comm->seconds) {
        snprintf(why, sizeof why, "nothing has moved for %.3g s (pc_group_set_timeout)", waited);
        give_up(e, why);
    }
}

static bool anything(void)
{
    for (const entry *e = all.first; e; e = e->next)
        if (!e->given_up && (e->entering || e->stream))
            return true;
    return false;
}

/* Ten times a second while something is under way. */
static void *watch_main(void *context)
{
    (void)context;
    pthread_mutex_lock(&all.lock);
    for (;;) {
        while (!anything())
            pthread_cond_wait(&all.changed, &all.lock);
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 100000000;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&all.changed, &all.lock, &end);
        for (entry *e = all.first; e; e = e->next)
            look(e);
    }
    return NULL;
}

static void start(void)
{
    pthread_t thread;
    sigset_t set, before;
    if (all.running)
        return;
    sigfillset(&set); /* signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &set, &before);
    all.running = pthread_create(&thread, NULL, watch_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!all.running)
        return;
    pthread_setname_np(thread, "pc groups");
    pthread_detach(thread);
}

static void enters(pc__comm *comm, const char *name)
{
    pthread_mutex_lock(&all.lock);
    entry *e = entry_of(comm);
    if (e) {
        const bool idle = !e->entering && !e->stream;
        e->name = name;
        e->calls++;
        e->entering = true;
        if (idle)
            e->since = pc__now();
        start();
        if (idle)
            pthread_cond_signal(&all.changed);
    }
    pthread_mutex_unlock(&all.lock);
}

/* stream NULL: it was captured, and nothing is under way. */
static void queued(pc__comm *comm, pc_stream *stream)
{
    pthread_mutex_lock(&all.lock);
    entry *e = entry_of(comm);
    if (e && stream) {
        e->stream = stream->id;
        e->ticket = atomic_load_explicit(&stream->taken, memory_order_acquire);
    }
    if (e)
        e->entering = false;
    pthread_mutex_unlock(&all.lock);
}

const pc__comm_watch pc__group_watch = {.enters = enters, .queued = queued};

void pc__watch_forget(pc__comm *comm)
{
    pthread_mutex_lock(&all.lock);
    for (entry **link = &all.first, *e; (e = *link); link = &e->next)
        if (e->comm == comm) {
            *link = e->next;
            pc__free(e);
            break;
        }
    pthread_mutex_unlock(&all.lock);
}

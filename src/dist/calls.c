/* calls.c: collectives as heartbeats, and sentences about ranks that others wait for. */
#include "dist/calls.h"

#include "dist/dump.h"
#include "ops/table.h"

#include <paracord/dist.h>
#include <time.h>

enum { GIVEN_UP = 1 }; /* a beat's state: of the call entered last */

#define FRESH 1.5 /* seconds in which every heart beats */
#define LOOK_NS 20000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pc__beat beat;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t group_of(const pc__comm *comm)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)comm->device.type; /* FNV-1a */
    for (const char *c = comm->group; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

static bool is_pair(const pc_call *call)
{
    return call->op->index == PC__OP_send || call->op->index == PC__OP_receive;
}

static pc__beat beat_of(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    const pc_tensor *t = call->out[0];
    pc__beat b = {.entered = number,
                  .finished = number - !is_pair(call),
                  .group = group_of(comm),
                  .bytes = (uint64_t)pc__count(t->ndim, t->shape) * pc_dtype_size((pc_dtype)t->dtype),
                  .dtype = t->dtype};
    snprintf(b.name, sizeof b.name, "%s", call->op->name);
    return b;
}

void pc__calls_enter(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    const pc__beat b = beat_of(comm, call, number);
    pthread_mutex_lock(&lock);
    beat = b;
    pthread_mutex_unlock(&lock);
    pc__beat_set(&b);
}

void pc__calls_leave(const pc__comm *comm, uint64_t number)
{
    pthread_mutex_lock(&lock);
    if (beat.group == group_of(comm) && beat.entered == number)
        beat.finished = number;
    const pc__beat b = beat;
    pthread_mutex_unlock(&lock);
    pc__beat_set(&b);
}

void pc__calls_give_up(const pc__comm *comm)
{
    pthread_mutex_lock(&lock);
    if (beat.group == group_of(comm))
        beat.state = GIVEN_UP;
    const pc__beat b = beat;
    pthread_mutex_unlock(&lock);
    pc__beat_set(&b);
}

pc_status pc__calls_lost(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    char why[PC__WHY_MAX];
    if (!pc__dist_lost(NULL, why))
        return PC_OK;
    return pc__fail(PC_ERR_LOST, "%s, number %llu of rank %d of %s: %s", call->op->name, (unsigned long long)number,
                    comm->rank, comm->group, why);
}

/* What a rank is in, where that is not this call. */
static bool is_elsewhere(const pc__beat_record *r, const pc__beat *mine, bool pair, char *words, size_t n)
{
    const pc__beat *b = &r->beat;
    if (!r->came || r->left)
        snprintf(words, n, r->left ? "it has left" : "not seen yet");
    else if (r->age > 2 * FRESH)
        snprintf(words, n, "no sign of life for %.0f s", r->age);
    else if (!b->entered)
        snprintf(words, n, "in no collective yet");
    else if (b->group != mine->group)
        snprintf(words, n, "last in %s of another group", b->name);
    else if (!pair && b->entered == mine->entered && strcmp(b->name, mine->name) == 0 && b->bytes == mine->bytes &&
             b->dtype == mine->dtype)
        return false;
    else
        snprintf(words, n, "%s %s, number %llu, of %llu bytes",
                 b->state == GIVEN_UP       ? "has given up"
                 : b->finished < b->entered ? "in"
                                            : "last in",
                 b->name, (unsigned long long)b->entered, (unsigned long long)b->bytes);
    return true;
}

/* "rank 1 (last in broadcast, number 4, of 16 bytes), rank 3 (not seen yet)" */
static void name_missing(const pc__comm *comm, const pc_call *call, uint64_t number, const pc__beat_record *records,
                         char *text, size_t n)
{
    const pc__beat mine = beat_of(comm, call, number);
    const bool pair = is_pair(call);
    size_t at = 0;
    text[0] = 0;
    for (int r = 0; r < comm->size && at < n; r++) {
        char words[96], world[32] = "";
        const bool takes_part = pair ? r == ((const pc__collective *)call->attributes)->peer : r != comm->rank;
        if (!takes_part || !is_elsewhere(&records[comm->members[r]], &mine, pair, words, sizeof words))
            continue;
        if (comm->members[r] != r)
            snprintf(world, sizeof world, "rank %d of the world, ", comm->members[r]);
        at += (size_t)snprintf(text + at, n - at, "%srank %d (%s%s)", at ? ", " : "", r, world, words);
    }
    if (!text[0])
        snprintf(text, n, "all ranks, which are in it as well, or were: the network between them does not work");
}

pc_status pc__calls_look(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    int count = 0;
    const pc__beat mine = beat_of(comm, call, number);
    pc__beat_record *records = pc__calloc((size_t)pc_dist_size(), sizeof *records);
    pc_status status = records ? pc__beats_get(records, pc_dist_size(), &count) : PC_ERR_MEMORY;
    for (int r = 0; r < comm->size && status == PC_OK; r++) {
        const pc__beat_record *record = &records[comm->members[r]];
        const bool gave_up =
            record->beat.state == GIVEN_UP && record->beat.group == mine.group && record->beat.entered <= number;
        if (r != comm->rank && (gave_up || record->left))
            status = pc__fail(PC_ERR_STATE, "%s, number %llu of rank %d of %s: rank %d %s; its own error says why",
                              call->op->name, (unsigned long long)number, comm->rank, comm->group, r,
                              gave_up ? "has given up its calls" : "has left the world");
    }
    pc__free(records);
    return status;
}

/* Whether this says what the rank did when the deadline came; those that are gone say nothing any more. */
static bool is_fresh(const pc__beat_record *r, double waited)
{
    return !r->came || r->left || r->age < waited;
}

static pc_status look(const pc__comm *comm, const pc_call *call, uint64_t number, pc__beat_record *records)
{
    const double start = now();
    bool fresh = false;
    while (!fresh) {
        int count = 0;
        const double waited = now() - start;
        PC__TRY(pc__calls_lost(comm, call, number));
        PC__TRY(pc__beats_get(records, pc_dist_size(), &count));
        fresh = true;
        for (int r = 0; r < comm->size; r++)
            fresh = fresh && (r == comm->rank || is_fresh(&records[comm->members[r]], waited));
        if (waited > FRESH)
            break;
        if (!fresh)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return PC_OK;
}

pc_status pc__calls_late(const pc__comm *comm, const pc_call *call, uint64_t number)
{
    char missing[256];
    pc__beat_record *records = pc__calloc((size_t)pc_dist_size(), sizeof *records);
    pc_status status = records ? look(comm, call, number, records) : PC_ERR_MEMORY;
    if (status == PC_OK) {
        name_missing(comm, call, number, records, missing, sizeof missing);
        status =
            pc__fail(PC_ERR_TIMEOUT,
                     "%s, number %llu of rank %d of %s, has waited %g s for %s; every rank must make the same "
                     "calls (pc_group_set_timeout)%s%s",
                     call->op->name, (unsigned long long)number, comm->rank, comm->group, comm->seconds, missing,
                     pc__dump_folder() ? "; paracord trace calls " : "", pc__dump_folder() ? pc__dump_folder() : "");
        pc__dump_all(pc_error_last()->message);
    }
    pc__free(records);
    return status;
}

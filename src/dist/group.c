/* group.c: groups, and their ends on devices. */
#include "dist/group.h"

#include "base/number.h"
#include "device/backend.h"
#include "dist/journal.h"
#include "store/store.h"
#include "dist/ticks.h"
#include "dist/watch.h"

#include <float.h>
#include <stdlib.h>

static pc_status first_timeout(double *seconds)
{
    const char *text = getenv("PARACORD_GROUP_TIMEOUT");
    char *end;
    *seconds = 600;
    if (!text || !*text)
        return PC_OK;
    *seconds = pc__number_of(text, &end);
    return end != text && !*end && *seconds >= 0 && *seconds <= DBL_MAX
               ? PC_OK
               : pc__fail(PC_ERR_ARGUMENT, "PARACORD_GROUP_TIMEOUT is \"%.64s\": give seconds, or 0 for no limit",
                          text);
}

pc_group *pc__group_new(const char *name, int rank, int size, const int *members, double seconds)
{
    if (seconds < 0 && first_timeout(&seconds) != PC_OK)
        return NULL;
    pc_group *g = pc__calloc(1, sizeof *g);
    if (g) {
        g->members = pc__alloc((size_t)size * sizeof *g->members);
        g->pairs = pc__calloc(2 * (size_t)size, sizeof *g->pairs);
    }
    if (!g || !g->members || !g->pairs) {
        pc_group_free(g);
        return NULL;
    }
    snprintf(g->name, sizeof g->name, "%s", name);
    g->rank = rank;
    g->size = size;
    g->seconds = seconds;
    for (int i = 0; i < size; i++)
        g->members[i] = members ? members[i] : i;
    return g;
}

static atomic_int of_threads;

pc_status pc_group_threads(int n, pc_group *groups[])
{
    char name[32] = "threads";
    PC__NEED(groups);
    if (n < 1 || n > PC__RANKS_HERE)
        return pc__fail(PC_ERR_ARGUMENT, "pc_group_threads: %d ranks; a process has 1 to %d", n, PC__RANKS_HERE);
    for (int i = 0; i < n; i++)
        groups[i] = NULL;
    pc__place *place = pc__place_new(n);
    if (!place)
        return PC_ERR_MEMORY;
    const int number = atomic_fetch_add(&of_threads, 1);
    if (number)
        snprintf(name, sizeof name, "threads.%d", number);
    pc_status status = PC_OK;
    for (int i = 0; i < n && status == PC_OK; i++) {
        groups[i] = pc__group_new(name, i, n, NULL, -1);
        status = groups[i] ? PC_OK : pc_error_last()->status;
        if (groups[i]) {
            groups[i]->place = place;
            pc__place_hold(place);
        }
    }
    pc__place_let_go(place);
    for (int i = 0; i < n && status != PC_OK; i++) {
        pc_group_free(groups[i]);
        groups[i] = NULL;
    }
    return status;
}

int pc_group_rank(const pc_group *group)
{
    PC__NEED_OR(-1, group);
    return group->rank;
}

int pc_group_size(const pc_group *group)
{
    PC__NEED_OR(-1, group);
    return group->size;
}

pc_status pc_group_set_timeout(pc_group *group, double seconds)
{
    PC__NEED(group);
    if (!(seconds >= 0))
        return pc__fail(PC_ERR_ARGUMENT, "pc_group_set_timeout: %g s; it is 0 (no limit) or more", seconds);
    group->seconds = seconds;
    for (int i = 0; i < PC_DEVICE_TYPES; i++)
        group->end[i].comm.seconds = seconds;
    return PC_OK;
}

typedef struct letter {
    const void *mine;
    size_t bytes;
    char *all;
} letter;

static pc_status deliver(void *const *brought, int size)
{
    for (int to = 0; to < size; to++)
        for (int from = 0; from < size; from++) {
            const letter *a = brought[from], *b = brought[to];
            if (a->bytes != b->bytes)
                return pc__fail(PC_ERR_STATE,
                                "groups: rank %d brings %zu bytes and rank %d %zu; every rank must make "
                                "the same calls",
                                from, a->bytes, to, b->bytes);
            memcpy(b->all + (size_t)from * b->bytes, a->mine, b->bytes);
        }
    return PC_OK;
}

pc_status pc__group_exchange(pc_group *group, const void *mine, size_t bytes, void *all)
{
    if (!group->place)
        return pc__world_exchange(group, mine, bytes, all);
    letter l = {mine, bytes, all};
    const pc__arrival a = {.kind = PC_DEVICE_TYPES,
                           .number = group->talks++,
                           .rank = group->rank,
                           .first = -1,
                           .second = -1,
                           .name = "a meeting of the group",
                           .brings = &l};
    return pc__place_meet(group->place, &a, group->seconds, deliver);
}

static const pc__engine *engine_for(const pc_group *g, pc_device device)
{
    const pc__backend *backend = pc__backend_of((pc_device_type)device.type);
    const bool alone = g->size == 1;
    if (g->place && (device.type != PC_CUDA || alone))
        return &pc__engine_local;
    if (device.type != PC_CUDA)
        return pc__world_engine((pc_device_type)device.type);
    if (!backend || !backend->engine)
        return pc__null(PC_ERR_UNSUPPORTED, "groups on cuda need a backend with NCCL, and this one has none");
    return backend->engine;
}

/* Rank 0 makes the id; what goes wrong there is every rank's error. */
static pc_status agree(pc_group *g, const pc__engine *engine, unsigned char id[PC__ENGINE_ID])
{
    enum { WORDS = 256 };
    struct {
        pc_status status;
        unsigned char id[PC__ENGINE_ID];
        char words[WORDS];
    } mine = {.status = PC_OK}, *all = pc__alloc((size_t)g->size * sizeof mine);
    if (!all)
        return PC_ERR_MEMORY;
    if (engine->id && g->rank == 0)
        mine.status = engine->id(mine.id);
    if (mine.status != PC_OK)
        snprintf(mine.words, sizeof mine.words, "%.*s", WORDS - 1, pc_error_last()->message);
    pc_status status = pc__group_exchange(g, &mine, sizeof mine, all);
    if (status == PC_OK && all->status != PC_OK)
        status = g->rank == 0 ? all->status : pc__fail(all->status, "rank 0 of %s: %s", g->name, all->words);
    memcpy(id, all->id, PC__ENGINE_ID);
    pc__free(all);
    return status;
}

static pc_status open_end(pc_group *g, pc__group_end *end, pc_device device)
{
    unsigned char id[PC__ENGINE_ID] = {0};
    const pc__engine *engine = engine_for(g, device);
    if (!engine)
        return pc_error_last()->status;
    pc__ticks_begin();
    pc_stream *stream = pc_stream(device, .priority = 1);
    if (!stream)
        return pc_error_last()->status;
    end->comm = (pc__comm){.engine = engine,
                           .device = device,
                           .rank = g->rank,
                           .size = g->size,
                           .seconds = g->seconds,
                           .group = g->name,
                           .place = g->place,
                           .members = g->members,
                           .watch = &pc__group_watch,
                           .log = &pc__group_log,
                           .together = g->place && !engine->on_host ? pc__place_together : NULL,
                           .pairs = g->pairs};
    pc_status status = engine->on_host && g->place ? PC_OK : agree(g, engine, id);
    if (status == PC_OK)
        status = engine->open(&end->comm, id);
    if (status != PC_OK) {
        pc_stream_free(stream);
        return status;
    }
    stream->ordered = true;
    end->stream = stream;
    return PC_OK;
}

pc__group_end *pc__group_end_of(pc_group *group, pc_device device)
{
    pc__group_end *end = &group->end[device.type];
    if (!end->stream)
        return open_end(group, end, device) == PC_OK ? end : NULL;
    if (pc_device_equal(end->comm.device, device))
        return end;
    char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
    return pc__null(PC_ERR_DEVICE,
                    "rank %d of %s works on %s, and a tensor is on %s; a rank has one device of each type", group->rank,
                    group->name, pc_device_name(end->comm.device, a), pc_device_name(device, b));
}

pc_stream *pc_group_stream(pc_group *group, pc_device device)
{
    PC__NEED_OR(NULL, group);
    if (pc__device_check(device, "pc_group_stream") != PC_OK)
        return NULL;
    const pc__group_end *end = pc__group_end_of(group, device);
    return end ? end->stream : NULL;
}

void pc__group_abort(pc_group *group, const char *why)
{
    if (group->place)
        pc__place_abort(group->place, why);
    else
        pc__dist_tell_error(pc_error_last()->status, why);
}

void pc__group_fail_as(pc_group *group, int rank)
{
    char why[PC_MESSAGE_MAX];
    const pc_error *error = pc_error_last();
    size_t n = 0;
    if (group->place) /* of processes the store says which one it was */
        n = (size_t)snprintf(why, sizeof why, "rank %d failed: ", rank);
    snprintf(why + n, sizeof why - n, "%.380s%s%.80s", error->message, error->cause[0] ? ": " : "", error->cause);
    pc__group_abort(group, why);
}

void pc__group_fail(pc_group *group)
{
    pc__group_fail_as(group, group->rank);
}

/* What is queued ends before what does it goes. */
static void close_end(pc__group_end *end)
{
    if (!end->stream)
        return;
    pc_error before = pc__error_take();
    if (pc_stream_synchronize(end->stream) != PC_OK)
        pc_error_clear(); /* told to whoever waits for the results */
    pc__watch_forget(&end->comm);
    end->comm.engine->close(&end->comm);
    pc_stream_free(end->stream);
    pc_error_clear();
    (void)pc__error_put(&before);
}

void pc_group_free(pc_group *group)
{
    if (!group)
        return;
    for (int i = 0; i < PC_DEVICE_TYPES; i++)
        close_end(&group->end[i]);
    if (group->place)
        pc__place_let_go(group->place);
    pc__free(group->members);
    pc__free(group->pairs);
    pc__free(group);
}

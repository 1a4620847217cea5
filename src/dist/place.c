/* place.c: meetings of threads. */
#include "dist/place.h"

#include "dist/dump.h"

#include <errno.h>
#include <time.h>

typedef struct meeting {
    struct meeting *next;
    int kind, first, second;
    int64_t number;
    int expected, arrived, left;
    bool done;
    pc_error error;
    void *brought[PC__RANKS_HERE];
} meeting;

/* What a rank came for last. */
typedef struct last_seen {
    const char *name;
    int64_t number;
} last_seen;

/* Who passes: the one that comes last opens it for all. */
typedef struct gate {
    atomic_int here;
    atomic_uint opened;
} gate;

struct pc__place {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int references, size;
    meeting *meetings;
    pc_error aborted;
    last_seen last[PC_DEVICE_TYPES + 1][PC__RANKS_HERE];
    gate gate[PC_DEVICE_TYPES + 1];
};

pc__place *pc__place_new(int size)
{
    pc__place *p = pc__calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->references = 1;
    p->size = size;
    return p;
}

void pc__place_hold(pc__place *place)
{
    pthread_mutex_lock(&place->lock);
    place->references++;
    pthread_mutex_unlock(&place->lock);
}

void pc__place_let_go(pc__place *place)
{
    pthread_mutex_lock(&place->lock);
    const bool last = --place->references == 0;
    pthread_mutex_unlock(&place->lock);
    if (!last)
        return;
    for (meeting *m = place->meetings, *next; m; m = next) { /* those whose others never came */
        next = m->next;
        pc__free(m);
    }
    pthread_cond_destroy(&place->changed);
    pthread_mutex_destroy(&place->lock);
    pc__free(place);
}

/* The one that this arrival is for; a new one where it is the first. */
static meeting *find(pc__place *p, const pc__arrival *a)
{
    meeting **link = &p->meetings, *m;
    for (; (m = *link); link = &m->next)
        if (m->kind == a->kind && m->number == a->number && m->first == a->first && m->second == a->second)
            return m;
    m = pc__calloc(1, sizeof *m);
    if (m) {
        *m = (meeting){.kind = a->kind,
                       .number = a->number,
                       .first = a->first,
                       .second = a->second,
                       .expected = a->first < 0 ? p->size : 2};
        *link = m;
    }
    return m;
}

static void leave(pc__place *p, meeting *m)
{
    if (++m->left < m->arrived)
        return;
    meeting **link = &p->meetings;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    pc__free(m);
}

/* "rank 1 (last in broadcast, number 4), rank 3 (not seen)" */
static void name_missing(const pc__place *p, const meeting *m, char *text, size_t n)
{
    size_t at = 0;
    text[0] = 0;
    for (int r = 0; r < p->size && at < n; r++) {
        const bool takes_part = m->first < 0 || r == m->first || r == m->second;
        if (!takes_part || m->brought[r])
            continue;
        const last_seen *last = &p->last[m->kind][r];
        at += (size_t)snprintf(text + at, n - at, "%srank %d", at ? ", " : "", r);
        if (at < n && last->name)
            at +=
                (size_t)snprintf(text + at, n - at, " (last in %s, number %lld)", last->name, (long long)last->number);
        else if (at < n)
            at += (size_t)snprintf(text + at, n - at, " (not seen yet)");
    }
}

static pc_status tell_late(pc__place *p, const pc__arrival *a, const char *missing, double seconds)
{
    pc_status status =
        pc__fail(PC_ERR_STATE,
                 "%s, number %lld of rank %d, has waited %g s for %s; every rank must make the same "
                 "calls (pc_group_set_timeout)%s%s",
                 a->name, (long long)a->number, a->rank, seconds, missing,
                 pc__dump_folder() ? "; paracord trace calls " : "", pc__dump_folder() ? pc__dump_folder() : "");
    if (p->aborted.status == PC_OK)
        p->aborted = *pc_error_last();
    pc__dump_all(pc_error_last()->message);
    pthread_cond_broadcast(&p->changed);
    return status;
}

static pc_status late(pc__place *p, const meeting *m, const pc__arrival *a, double seconds)
{
    char missing[256];
    name_missing(p, m, missing, sizeof missing);
    return tell_late(p, a, missing, seconds);
}

static struct timespec deadline_in(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double most = 1e9, wait = PC__MIN(seconds, most);
    t.tv_sec += (time_t)wait;
    t.tv_nsec += (long)((wait - (double)(time_t)wait) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* Until it is done, or cannot be any more. A meeting that all have come to is always done. */
static pc_status wait(pc__place *p, const meeting *m, const pc__arrival *a, double seconds)
{
    const struct timespec end = deadline_in(seconds);
    while (!m->done) {
        if (m->arrived < m->expected && p->aborted.status != PC_OK)
            return pc__error_put(&p->aborted);
        const int status = seconds > 0 ? pthread_cond_timedwait(&p->changed, &p->lock, &end)
                                       : pthread_cond_wait(&p->changed, &p->lock);
        if (status == ETIMEDOUT && !m->done && m->arrived < m->expected)
            return p->aborted.status != PC_OK ? pc__error_put(&p->aborted) : late(p, m, a, seconds);
    }
    return m->error.status == PC_OK ? PC_OK : pc__error_put(&m->error);
}

/* The last one does it for all, without the lock. */
static pc_status work_for_all(pc__place *p, meeting *m, pc__meeting_fn work)
{
    pthread_mutex_unlock(&p->lock);
    pc_status status = work ? work(m->brought, p->size) : PC_OK;
    pthread_mutex_lock(&p->lock);
    m->error = status == PC_OK ? (pc_error){.status = PC_OK} : *pc_error_last();
    if (status != PC_OK && p->aborted.status == PC_OK)
        p->aborted = m->error;
    m->done = true;
    pthread_cond_broadcast(&p->changed);
    return status;
}

pc_status pc__place_meet(pc__place *place, const pc__arrival *arrival, double seconds, pc__meeting_fn work)
{
    pthread_mutex_lock(&place->lock);
    place->last[arrival->kind][arrival->rank] = (last_seen){arrival->name, arrival->number};
    pc_status status = place->aborted.status != PC_OK ? pc__error_put(&place->aborted) : PC_OK;
    meeting *m = status == PC_OK ? find(place, arrival) : NULL;
    if (m) {
        m->brought[arrival->rank] = arrival->brings;
        m->arrived++;
        status = m->arrived == m->expected ? work_for_all(place, m, work) : wait(place, m, arrival, seconds);
        leave(place, m);
    } else if (status == PC_OK) {
        status = PC_ERR_MEMORY;
    }
    pthread_mutex_unlock(&place->lock);
    return status;
}

/* "rank 1 (last in broadcast, number 4)": those that have not come as far. */
static void name_behind(const pc__place *p, const pc__arrival *a, char *text, size_t n)
{
    meeting m = {.kind = a->kind, .first = -1};
    for (int r = 0; r < p->size; r++)
        m.brought[r] = p->last[a->kind][r].name && p->last[a->kind][r].number >= a->number ? &m : NULL;
    name_missing(p, &m, text, n);
}

/* The lock is held. */
static pc_status sleep_at(pc__place *p, gate *g, unsigned seen, const pc__arrival *a, double seconds)
{
    const struct timespec end = deadline_in(seconds);
    while (atomic_load(&g->opened) == seen) {
        if (p->aborted.status != PC_OK)
            return pc__error_put(&p->aborted);
        const int status = seconds > 0 ? pthread_cond_timedwait(&p->changed, &p->lock, &end)
                                       : pthread_cond_wait(&p->changed, &p->lock);
        if (status != ETIMEDOUT || atomic_load(&g->opened) != seen)
            continue;
        char behind[256];
        name_behind(p, a, behind, sizeof behind);
        return tell_late(p, a, behind, seconds);
    }
    return PC_OK;
}

pc_status pc__place_pass(pc__place *place, const pc__arrival *arrival, double seconds)
{
    enum { LOOKS = 20000 };
    gate *g = &place->gate[arrival->kind];
    const unsigned seen = atomic_load(&g->opened);
    place->last[arrival->kind][arrival->rank] = (last_seen){arrival->name, arrival->number};
    if (atomic_fetch_add(&g->here, 1) + 1 == place->size) {
        pthread_mutex_lock(&place->lock);
        atomic_store(&g->here, 0);
        atomic_fetch_add(&g->opened, 1);
        pthread_cond_broadcast(&place->changed);
        pthread_mutex_unlock(&place->lock);
        return PC_OK;
    }
    for (int i = 0; i < LOOKS; i++)
        if (atomic_load_explicit(&g->opened, memory_order_acquire) != seen)
            return PC_OK;
    pthread_mutex_lock(&place->lock);
    pc_status status = sleep_at(place, g, seen, arrival, seconds);
    pthread_mutex_unlock(&place->lock);
    return status;
}

void pc__place_abort(pc__place *place, const char *why)
{
    pthread_mutex_lock(&place->lock);
    if (place->aborted.status == PC_OK) {
        place->aborted = (pc_error){.status = PC_ERR_STATE, .file = __FILE__, .line = __LINE__};
        snprintf(place->aborted.message, sizeof place->aborted.message, "%s", why);
    }
    pthread_cond_broadcast(&place->changed);
    pthread_mutex_unlock(&place->lock);
}

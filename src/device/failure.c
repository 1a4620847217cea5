/* failure.c: the failures of queued work, in a ring of fixed size: noting one must not fail for want of memory. */
#include "device/failure.h"

#include "device/pool.h"

enum { KEPT = 256, ENOUGH = KEPT / 2 };

typedef struct failure {
    unsigned number; /* from 1; 0: none yet */
    uint32_t stream;
    uint64_t from, to;
    pc_error error;
} failure;

atomic_uint pc__failures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: nothing else is locked under it */
static failure kept[KEPT];
static unsigned looked_for; /* failures up to this number were found out for all memory */

static unsigned note(uint32_t stream, uint64_t from, uint64_t to, const pc_error *error)
{
    pthread_mutex_lock(&lock);
    const unsigned number = atomic_load_explicit(&pc__failures, memory_order_relaxed) + 1;
    kept[number % KEPT] = (failure){number, stream, from, to, *error};
    atomic_store_explicit(&pc__failures, number, memory_order_release);
    pthread_mutex_unlock(&lock);
    return number;
}

void pc__failure_begin(uint32_t stream, uint64_t ticket, const pc_error *error)
{
    (void)note(stream, ticket, UINT64_MAX, error);
}

unsigned pc__failure_told_at_once(const pc_error *error)
{
    return note(0, 0, 0, error); /* no stream has that number */
}

void pc__failure_told(uint32_t stream, uint64_t queued)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT; i++)
        if (kept[i].number && kept[i].stream == stream && kept[i].to == UINT64_MAX)
            kept[i].to = PC__MAX(queued, kept[i].from);
    pthread_mutex_unlock(&lock);
}

unsigned pc__failure_of(uint32_t stream, uint64_t ticket)
{
    unsigned number = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT && !number; i++)
        if (kept[i].number && kept[i].stream == stream && ticket >= kept[i].from && ticket <= kept[i].to)
            number = kept[i].number;
    pthread_mutex_unlock(&lock);
    return number;
}

bool pc__failure_is_told(unsigned number)
{
    pthread_mutex_lock(&lock);
    const failure *f = &kept[number % KEPT];
    const bool told = f->number != number || f->to != UINT64_MAX;
    pthread_mutex_unlock(&lock);
    return told;
}

pc_error pc__failure_error(unsigned number)
{
    pc_error error = {.status = PC_OK};
    pthread_mutex_lock(&lock);
    if (kept[number % KEPT].number == number)
        error = kept[number % KEPT].error;
    pthread_mutex_unlock(&lock);
    return error;
}

pc_status pc__failure_tell(unsigned number, const char *who)
{
    char site[PC__SITE_TEXT];
    const pc_error error = pc__failure_error(number);
    pc__site_text(pc__site_here(), site);
    if (error.status == PC_OK)
        return pc__fail(PC_ERR_STATE,
                        "%s (%.100s): the tensor has no result: the work that was to make it failed long ago; "
                        "write all of it again",
                        who, site);
    return pc__fail_at(error.file, error.line, error.status, error.cause,
                       "%s (%.100s): the tensor has no result until all of it is written again: %.300s", who, site,
                       error.message);
}

static void find_out(pc__pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    for (pc__storage *s = pool->in_use; s; s = s->next)
        (void)pc__storage_failure(s);
    pthread_mutex_unlock(&pool->lock);
}

/* Before failures leave the ring, memory that they left without contents is told so. */
void pc__failures_tidy(void)
{
    pthread_mutex_lock(&lock);
    const unsigned number = atomic_load(&pc__failures);
    const bool many = number - looked_for >= ENOUGH;
    if (many)
        looked_for = number;
    pthread_mutex_unlock(&lock);
    if (many)
        pc__pools_visit(find_out);
}

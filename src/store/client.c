/* client.c: calls of the store, from any thread. */
#include "store/client.h"

#if PC_HAVE_UV
#include "base/site.h"
#include "store/client_parts.h"
#include "store/connect.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define STORE_LIMIT 10.0 /* seconds in which the store has to answer */
#define CANCEL_LIMIT 5.0

pc__client pc__the_client = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pc__client_tell(void (*bad)(const char *why))
{
    pthread_mutex_lock(&pc__the_client.lock);
    pc__the_client.bad = bad;
    pthread_mutex_unlock(&pc__the_client.lock);
}

static void wait_until(pc__client *c, double deadline)
{
    const double whole = floor(deadline);
    const struct timespec t = {(time_t)whole, (long)(1e9 * (deadline - whole))};
    pthread_cond_timedwait(&c->changed, &c->lock, &t);
}

static void reset(pc__client *c, const pc__world *world, const char *version, double seconds)
{
    static bool made;
    if (!made) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&c->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
        made = true;
    }
    double limit = 10;
    (void)pc__beat_limit(getenv, &limit);
    c->world = *world;
    snprintf(c->version, sizeof c->version, "%s", version);
    c->seconds = seconds;
    c->limit = limit;
    c->period = limit > 0 && limit < 4 ? limit / 4 : 1;
    c->in.limit = PC__WIRE_FRAME_MAX;
    c->beat = (pc__beat){.dtype = -1};
    c->error = (pc_error){0};
    c->ending = false;
    atomic_store(&c->given_up, false);
    atomic_store(&c->any_lost, false);
    c->state = PC__CLIENT_CONNECTING;
}

/* The thread handles none of the program's signals. */
static int start_thread(pc__client *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&c->thread, NULL, pc__client_thread, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

pc_status pc__client_open(const pc__world *world, const char *version, double seconds)
{
    pc__client *c = &pc__the_client;
    pthread_mutex_lock(&c->lock);
    reset(c, world, version, seconds);
    const int problem = start_thread(c);
    while (!problem && c->state == PC__CLIENT_CONNECTING)
        wait_until(c, pc__dist_now() + 1);
    const bool ready = c->state == PC__CLIENT_READY || c->state == PC__CLIENT_GONE;
    pc_error error = c->error;
    error.site = pc__site_here(); /* the program's call, not the thread's beginning */
    if (problem)
        c->state = PC__CLIENT_NONE;
    pthread_mutex_unlock(&c->lock);
    if (problem)
        return pc__fail_cause(PC_ERR_MEMORY, strerror(problem),
                              "pc_dist_init: no thread for the connection to the store");
    if (ready)
        return PC_OK;
    pthread_join(c->thread, NULL);
    return pc__error_put(&error);
}

void pc__client_close(bool goodbye)
{
    pc__client *c = &pc__the_client;
    pc__call call = {0};
    pc__body body;
    if (goodbye) { /* fails where the connection is gone already */
        pc__call_begin(&call, PC__WIRE_BYE);
        pc_error before = pc__error_take();
        (void)pc__call_perform(&call, "pc_dist_end", PC__CALL_NOW, &body);
        pc__call_end(&call);
        pc_error_clear();
        (void)pc__error_put(&before);
    }
    pthread_mutex_lock(&c->lock);
    const bool runs = c->state != PC__CLIENT_NONE;
    c->ending = true;
    if (runs)
        uv_async_send(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (!runs)
        return;
    pthread_join(c->thread, NULL);
    pthread_mutex_lock(&c->lock);
    c->state = PC__CLIENT_NONE;
    atomic_store(&c->any_lost, false);
    pthread_mutex_unlock(&c->lock);
}

void pc__call_begin(pc__call *call, pc__wire_kind kind)
{
    *call = (pc__call){0};
    call->begin = pc__frame_begin(&call->frame, kind, 0);
}

void pc__call_end(pc__call *call)
{
    pc__text_free(&call->frame);
    pc__free(call->answer);
}

static void append(pc__client *c, pc__call *call)
{
    pc__call **at = &c->unsent;
    call->id = ++c->last_id ? c->last_id : ++c->last_id;
    for (int i = 0; i < 4; i++) /* behind the length and the kind */
        call->frame.data[call->begin + 5 + (size_t)i] = (char)(call->id >> (8 * i));
    while (*at)
        at = &(*at)->next;
    *at = call;
    uv_async_send(&c->wake);
}

/* With the lock: it is answered, or nobody waits any more. */
static void forget(pc__client *c, const pc__call *call)
{
    pc__call **const lists[] = {&c->unsent, &c->sent};
    for (int i = 0; i < 2; i++)
        for (pc__call **at = lists[i]; *at; at = &(*at)->next)
            if (*at == call) {
                *at = call->next;
                return;
            }
}

static void cancel(pc__client *c, const pc__call *call)
{
    pc__frame_end(&c->more, pc__frame_begin(&c->more, PC__WIRE_CANCEL, call->id));
    uv_async_send(&c->wake);
}

/* With the lock. */
static void wait_for_answer(pc__client *c, pc__call *call, double seconds)
{
    const bool waits = seconds >= 0;
    double deadline = pc__dist_now() + (waits ? seconds : STORE_LIMIT);
    while (!call->done && c->state == PC__CLIENT_READY && pc__dist_now() < deadline &&
           !(waits && atomic_load(&c->any_lost)))
        wait_until(c, deadline);
    if (call->done || c->state != PC__CLIENT_READY || !waits)
        return;
    cancel(c, call);
    deadline = pc__dist_now() + CANCEL_LIMIT;
    while (!call->done && c->state == PC__CLIENT_READY && pc__dist_now() < deadline)
        wait_until(c, deadline);
}

static pc_status outcome(pc__client *c, const pc__call *call, const char *what)
{
    char why[PC__WHY_MAX];
    if (call->done)
        return call->result == PC__WIRE_NO_MEMORY ? pc__fail(PC_ERR_MEMORY, "%s: the store is out of memory", what)
                                                  : PC_OK;
    if (pc__dist_lost(NULL, why))
        return pc__fail(PC_ERR_LOST, "%s: %s", what, why);
    return pc__fail(PC_ERR_TIMEOUT,
                    "%s: the store at %s, port %d, does not answer: its process or the network is stopped", what,
                    c->world.host, c->world.port);
}

pc_status pc__call_perform(pc__call *call, const char *what, double seconds, pc__body *body)
{
    pc__client *c = &pc__the_client;
    pc__frame_end(&call->frame, call->begin);
    if (call->frame.failed)
        return PC_ERR_MEMORY;
    pthread_mutex_lock(&c->lock);
    if (c->state == PC__CLIENT_NONE || c->ending) {
        pthread_mutex_unlock(&c->lock);
        return pc__fail(PC_ERR_STATE, "%s: there is no store: pc_dist_init opens it, in a world of more than one rank",
                        what);
    }
    if (c->state == PC__CLIENT_READY) {
        append(c, call);
        wait_for_answer(c, call, seconds);
        forget(c, call);
    }
    pthread_mutex_unlock(&c->lock);
    *body = (pc__body){call->answer, call->answer ? call->answer + call->n : NULL, false};
    return outcome(c, call, what);
}

void pc__beat_set(const pc__beat *beat)
{
    pc__client *c = &pc__the_client;
    pthread_mutex_lock(&c->lock);
    c->beat = *beat;
    c->beat.name[PC__BEAT_NAME_MAX - 1] = 0;
    pthread_mutex_unlock(&c->lock);
}

void pc__beat_send(void)
{
    pc__client *c = &pc__the_client;
    pthread_mutex_lock(&c->lock);
    if (c->state == PC__CLIENT_READY && !c->ending) {
        const size_t begin = pc__frame_begin(&c->more, PC__WIRE_BEAT, 0);
        pc__put_beat(&c->more, &c->beat);
        pc__frame_end(&c->more, begin);
        uv_async_send(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
}

bool pc__dist_lost(int *rank, char why[PC__WHY_MAX])
{
    pc__client *c = &pc__the_client;
    if (!atomic_load_explicit(&c->any_lost, memory_order_acquire))
        return false;
    pthread_mutex_lock(&c->lock);
    if (rank)
        *rank = c->lost_rank;
    if (why)
        memcpy(why, c->lost_why, PC__WHY_MAX);
    pthread_mutex_unlock(&c->lock);
    return true;
}
#else
/* A build without libuv: a world of one. */
#define MISSING                                                                                                        \
    "this build of Paracord has no libuv, which ranks talk by: install libuv1-dev and configure it again, or run "     \
    "alone"

pc_status pc__client_open(const pc__world *world, const char *version, double seconds)
{
    (void)world, (void)version, (void)seconds;
    return pc__fail(PC_ERR_UNSUPPORTED, "pc_dist_init: " MISSING);
}

void pc__client_tell(void (*bad)(const char *why))
{
    (void)bad;
}

pc_status pc__service_start(const pc__world *world, const char *version, double beat_limit, double seconds)
{
    (void)world, (void)version, (void)beat_limit, (void)seconds;
    return pc__fail(PC_ERR_UNSUPPORTED, "pc_dist_init: " MISSING);
}

void pc__service_stop(bool patient)
{
    (void)patient;
}

void pc__client_close(bool goodbye)
{
    (void)goodbye;
}

void pc__call_begin(pc__call *call, pc__wire_kind kind)
{
    (void)kind;
    *call = (pc__call){0};
}

pc_status pc__call_perform(pc__call *call, const char *what, double seconds, pc__body *body)
{
    (void)call, (void)seconds, (void)body;
    return pc__fail(PC_ERR_STATE, "%s: there is no store in a world of one", what);
}

void pc__call_end(pc__call *call)
{
    pc__text_free(&call->frame);
}

void pc__beat_set(const pc__beat *beat)
{
    (void)beat;
}

void pc__beat_send(void)
{
}

bool pc__dist_lost(int *rank, char why[PC__WHY_MAX])
{
    (void)rank, (void)why;
    return false;
}
#endif

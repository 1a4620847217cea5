/* service.c: rank 0's server of the store, where no launcher of ours has one. */
#if PC_HAVE_UV
#include "base/site.h"
#include "store/client.h"
#include "store/server.h"

#include <pthread.h>
#include <signal.h>
#include <uv.h>

#define LOOK_MS 20

static struct service {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool runs, opened, patient;
    pc_error error;
    pc__server_options options;
    uv_loop_t loop;
    uv_async_t stop;
    uv_timer_t look;
    pc__server *server;
    double seconds;      /* how long to wait for those that have not come */
    uint64_t come_until; /* ms of the loop */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void end(void)
{
    if (uv_is_closing((uv_handle_t *)&the.stop))
        return;
    uv_close((uv_handle_t *)&the.stop, NULL);
    uv_close((uv_handle_t *)&the.look, NULL);
    if (the.server)
        pc__server_close(the.server, NULL, NULL);
}

static void look(uv_timer_t *timer)
{
    (void)timer;
    pthread_mutex_lock(&the.lock);
    const bool patient = the.patient;
    pthread_mutex_unlock(&the.lock);
    const bool come = !pc__server_missing(the.server) || uv_now(&the.loop) > the.come_until;
    if (!patient || (come && !pc__server_present(the.server)))
        end();
}

static void stop(uv_async_t *async)
{
    (void)async;
    the.come_until = uv_now(&the.loop) + (uint64_t)(1000 * the.seconds);
    uv_timer_start(&the.look, look, 0, LOOK_MS);
}

static void *serve(void *nothing)
{
    (void)nothing;
    uv_async_init(&the.loop, &the.stop, stop);
    uv_timer_init(&the.loop, &the.look);
    the.server = pc__server_open(&the.loop, &the.options);
    pthread_mutex_lock(&the.lock);
    the.error = pc__error_take();
    the.opened = true;
    pthread_cond_broadcast(&the.changed);
    pthread_mutex_unlock(&the.lock);
    if (!the.server)
        end();
    uv_run(&the.loop, UV_RUN_DEFAULT);
    uv_loop_close(&the.loop);
    return NULL;
}

static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&the.thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

pc_status pc__service_start(const pc__world *world, const char *version, double beat_limit, double seconds)
{
    the.seconds = seconds;
    the.options = (pc__server_options){.host = world->one_host ? "127.0.0.1" : "::",
                                       .port = world->port,
                                       .token = world->token,
                                       .version = version,
                                       .size = world->size,
                                       .generation = world->generation,
                                       .beat_limit = beat_limit};
    the.opened = false;
    int problem = uv_loop_init(&the.loop);
    if (!problem && (problem = -start_thread()))
        uv_loop_close(&the.loop);
    if (problem)
        return pc__fail_cause(PC_ERR_MEMORY, uv_strerror(problem), "pc_dist_init: no thread to serve the store");
    pthread_mutex_lock(&the.lock);
    while (!the.opened)
        pthread_cond_wait(&the.changed, &the.lock);
    pc_error error = the.error;
    error.site = pc__site_here(); /* the program's call, not the thread's beginning */
    pthread_mutex_unlock(&the.lock);
    the.runs = error.status == PC_OK;
    if (!the.runs)
        pthread_join(the.thread, NULL);
    return pc__error_put(&error);
}

void pc__service_stop(bool patient)
{
    if (!the.runs)
        return;
    the.runs = false;
    pthread_mutex_lock(&the.lock);
    the.patient = patient;
    pthread_mutex_unlock(&the.lock);
    uv_async_send(&the.stop);
    pthread_join(the.thread, NULL);
}
#endif

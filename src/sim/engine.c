/* engine.c: the threads of a device, and what they do with a piece of work. */
#include "sim/sim.h"

#include "device/trace.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

static void sleep_until(int64_t time)
{
    struct timespec t = {time / 1000000000, time % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        continue;
}

static pc_status run_kernel(const pc__sim_stream *s, const pc__sim_command *c)
{
    const pc_sim_options *o = &pc__sim.options;
    int64_t start = pc__now();
    if (o->launch_latency > 0)
        sleep_until(start += (int64_t)(o->launch_latency * 1e9));
    pc_status status = c->kernel.run(s->stream, c->kernel.call);
    if (o->kernel_time > 0)
        sleep_until(start + (int64_t)(o->kernel_time * 1e9));
    return status;
}

/* With a bandwidth the bytes move bit by bit over the time that they take, as on a GPU: what becomes of them meanwhile
 * shows. */
static pc_status run_copy(const pc__sim_command *c)
{
    double rate = pc__sim.options.bandwidth;
    int64_t start = pc__now();
    size_t bytes = c->copy.bytes, step = rate > 0 && bytes >= 16384 ? bytes / 16 : bytes;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = PC__MIN(step, bytes - at);
        if (rate > 0)
            sleep_until(start + (int64_t)((double)(at + n) / rate * 1e9));
        memcpy((char *)c->copy.to + at, (const char *)c->copy.from + at, n);
    }
    return PC_OK;
}

static pc_status run(const pc__sim_stream *s, const pc__sim_command *c)
{
    if (c->kind == PC__SIM_KERNEL)
        return run_kernel(s, c);
    if (c->kind == PC__SIM_COPY)
        return run_copy(c);
    c->call.function(c->call.context);
    return PC_OK;
}

/* Say in the error which call of the program queued the work that failed. */
static void name_work(pc_error *error, const pc__sim_command *c, int device)
{
    if (error->status == PC_OK || error->status == PC_ERR_LOST)
        return;
    char site[PC__SITE_TEXT], why[PC_MESSAGE_MAX];
    snprintf(why, sizeof why, "%s", error->message);
    snprintf(error->message, sizeof error->message, "%s, queued at %s, failed on sim:%d: %.300s", c->work.name,
             pc__site_text(c->work.site, site), device, why);
}

static void tell(const pc__sim_lane *lane, const pc__sim_stream *s, const pc__sim_command *c, uint64_t ticket,
                 int64_t started)
{
    static const char *const names[PC__SIM_ENGINES] = {"compute", "copy in", "copy out", "host", "link"};
    pc__trace_work_done(&(pc__trace_work){.name = c->work.name,
                                          .device = s->stream->device,
                                          .stream = s->stream->id,
                                          .ticket = ticket,
                                          .engine = names[lane->engine],
                                          .lane = lane->number,
                                          .queued = s->first->work.queued,
                                          .started = started,
                                          .ended = pc__now(),
                                          .bytes = c->kind == PC__SIM_COPY ? (int64_t)c->copy.bytes : 0,
                                          .site = c->work.site,
                                          .note = c->work.note});
}

/* The first stream of the line. The lock is held, but not while the work is done. */
static void work_on(const pc__sim_lane *lane, pc__sim_engine *engine)
{
    pc__sim_stream *s = engine->ready;
    engine->ready = s->next;
    pc__sim_command *c = pc__sim_at_hand(s);
    uint64_t ticket = s->first->work.ticket;
    pc_error_clear();
    pc_status status = lane->device->lost ? pc__error_put(&lane->device->loss) : pc__sim_fault_now(lane->device, c);
    pthread_mutex_unlock(&pc__sim.lock);
    int64_t started = pc__trace_now();
    if (status == PC_OK)
        (void)run(s, c);
    if (status == PC_OK && c->spoilt)
        pc__sim_spoil(c);
    pc_error error = pc__error_take();
    name_work(&error, c, lane->device->index);
    if (started)
        tell(lane, s, c, ticket, started);
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim_work_done(s, &error);
}

static void *engine_main(void *context)
{
    const pc__sim_lane *lane = context;
    pc__sim_engine *engine = &lane->device->engine[lane->engine];
    (void)prctl(PR_SET_TIMERSLACK, 1000);
    pthread_mutex_lock(&pc__sim.lock);
    while (!lane->device->stop)
        if (engine->ready)
            work_on(lane, engine);
        else
            pthread_cond_wait(&engine->work, &pc__sim.lock);
    pthread_mutex_unlock(&pc__sim.lock);
    return NULL;
}

/* Signals are for the program's own threads; faults stay with the thread that makes them. */
static bool start(pc__sim_lane *lane)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    static const char *const names[PC__SIM_ENGINES] = {"compute", "in", "out", "host", "link"};
    sigset_t set, before;
    sigfillset(&set);
    for (int i = 0; i < PC__COUNT(faults); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    bool fine = pthread_create(&lane->thread, NULL, engine_main, lane) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    char name[16];
    snprintf(name, sizeof name, "sim%d %s", lane->device->index % 100, names[lane->engine]);
    if (fine)
        pthread_setname_np(lane->thread, name);
    return fine;
}

static pc_status start_some(pc__sim_device *device, pc__sim_engine_kind engine, int count)
{
    for (int i = 0; i < count; i++) {
        pc__sim_lane *lane = &device->lane[device->lanes];
        *lane = (pc__sim_lane){.device = device, .engine = engine, .number = i};
        if (!start(lane))
            return pc__fail(PC_ERR_MEMORY, "sim:%d: the system gives no threads for its engines", device->index);
        device->lanes++;
    }
    return PC_OK;
}

static pc_status start_all(pc__sim_device *device)
{
    PC__TRY(start_some(device, PC__SIM_COMPUTE, pc__sim.options.kernels));
    for (pc__sim_engine_kind e = PC__SIM_COPY_IN; e <= PC__SIM_HOST; e++)
        PC__TRY(start_some(device, e, 1));
    return PC_OK;
}

pc_status pc__sim_links_open(pc__sim_device *device)
{
    if (device->has_links)
        return PC_OK;
    device->has_links = true;
    return start_some(device, PC__SIM_LINK, PC__SIM_LINKS);
}

/* A child of fork has none of the threads. */
static void hold_lock(void)
{
    pthread_mutex_lock(&pc__sim.lock);
}

static void let_lock_go(void)
{
    pthread_mutex_unlock(&pc__sim.lock);
}

static void lose_all(void)
{
    for (int i = 0; i < PC__DEVICES_MAX; i++) {
        pc__sim_device *device = &pc__sim.device[i];
        if (!device->open)
            continue;
        device->lost = device->forked = true;
        device->loss = (pc_error){.status = PC_ERR_LOST, .file = __FILE__, .line = __LINE__};
        snprintf(device->loss.message, sizeof device->loss.message,
                 "sim:%d is lost: devices do not go with a fork; use them in one process, or first after the fork", i);
    }
    pthread_mutex_unlock(&pc__sim.lock);
}

pc_status pc__sim_device_open(pc__sim_device *device)
{
    static bool told;
    if (device->open)
        return PC_OK;
    if (!told)
        told = pthread_atfork(hold_lock, let_lock_go, lose_all) == 0;
    device->index = (int)(device - pc__sim.device);
    device->stop = device->lost = device->has_links = false;
    device->lanes = 0;
    PC__TRY(pc__sim_heap_open(device));
    for (int e = 0; e < PC__SIM_ENGINES; e++)
        pthread_cond_init(&device->engine[e].work, NULL);
    pthread_cond_init(&device->injected, NULL);
    device->open = true;
    pc_status status = start_all(device);
    if (status != PC_OK)
        pc__sim_device_close(device);
    return status;
}

void pc__sim_device_close(pc__sim_device *device)
{
    if (!device->open)
        return;
    device->stop = true;
    for (int e = 0; e < PC__SIM_ENGINES; e++)
        pthread_cond_broadcast(&device->engine[e].work);
    pthread_mutex_unlock(&pc__sim.lock);
    for (int i = 0; i < device->lanes; i++)
        pthread_join(device->lane[i].thread, NULL);
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim_heap_close(device);
    device->open = false;
}

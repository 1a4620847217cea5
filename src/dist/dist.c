/* dist.c: joining the other ranks, and leaving them. */
#include <paracord/dist.h>

#include "device/trace.h"
#include "store/client.h"
#include "store/clock.h"
#include "dist/dump.h"
#include "dist/mpi.h"
#include "dist/timeline.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define USUAL_LIMIT 10.0

static struct {
    pthread_mutex_t lock; /* of joining and leaving */
    bool joined;
    pid_t process; /* which has joined, not its forks */
    pc__world world;
} the = {PTHREAD_MUTEX_INITIALIZER, false, 0, {.size = 1, .local_size = 1, .launcher = ""}};

/* A process that ends without pc_dist_end, and can say why. */
static void at_exit(void)
{
    if (!the.joined || the.process != getpid())
        return;
    char why[PC__WHY_MAX] = "it ended without pc_dist_end";
    const pc_error *error = pc_error_last();
    pc__dump_settle();
    if (error->status != PC_OK)
        snprintf(why, sizeof why, "%.200s%s%.80s", error->message, error->cause[0] ? ": " : "", error->cause);
    pc__dist_tell_error(error->status, why);
}

static pc_status join_others(const pc__world *world, double seconds)
{
    double limit;
    static bool registered;
    PC__TRY(pc__beat_limit(getenv, &limit));
    if (world->serves)
        PC__TRY(pc__service_start(world, PC_VERSION, limit, seconds));
    pc__client_tell(pc__dump_begin);
    const pc_status status = pc__client_open(world, PC_VERSION, seconds);
    if (status != PC_OK)
        pc__service_stop(false);
    else if (!registered)
        registered = atexit(at_exit) == 0;
    return status;
}

static pc_status join(double seconds)
{
    pc__world world;
    if (the.joined)
        return pc__fail(PC_ERR_STATE, "pc_dist_init: this process is rank %d already; pc_dist_end comes first",
                        the.world.rank);
    PC__TRY(pc__world_read(getenv, &world));
    if (world.has_store)
        PC__TRY(join_others(&world, seconds));
    the.world = world;
    the.joined = true;
    the.process = getpid();
    return PC_OK;
}

static void look_at_clock(void)
{
    pc__clock_measure();
    pc__timeline_rank();
}

pc_status pc_dist_init(pc_dist_options options)
{
    if (!(options.timeout_seconds >= 0) || options.timeout_seconds > 86400)
        return pc__fail(PC_ERR_ARGUMENT, "pc_dist_init: timeout_seconds is %g, not from 0 (10 s) to 86400",
                        options.timeout_seconds);
    pthread_mutex_lock(&the.lock);
    const pc_status status = join(options.timeout_seconds > 0 ? options.timeout_seconds : USUAL_LIMIT);
    pthread_mutex_unlock(&the.lock);
    if (status == PC_OK && the.world.has_store)
        look_at_clock();
    return status;
}

pc_status pc_dist_end(void)
{
    char why[PC__WHY_MAX];
    pc__mpi_leave();
    pc__dump_settle();
    if (the.joined && the.world.has_store && pc__tracing() && !pc__dist_lost(NULL, NULL))
        look_at_clock(); /* again: clocks of hosts drift apart */
    pthread_mutex_lock(&the.lock);
    const bool joined = the.joined, lost = joined && pc__dist_lost(NULL, why);
    the.joined = false;
    if (joined && the.world.has_store) {
        pc__client_close(true);
        pc__dump_settle(); /* of what was heard until then, by the rank's own number */
        pc__service_stop(!lost);
        pc__clock_forget();
    }
    the.world = (pc__world){.size = 1, .local_size = 1, .launcher = ""};
    pthread_mutex_unlock(&the.lock);
    return lost ? pc__fail(PC_ERR_LOST, "pc_dist_end: %s", why) : PC_OK;
}

int pc_dist_rank(void)
{
    return the.world.rank;
}

int pc_dist_size(void)
{
    return the.world.size;
}

int pc_dist_local_rank(void)
{
    return the.world.local_rank;
}

int pc_dist_local_size(void)
{
    return the.world.local_size;
}

int pc_dist_node_rank(void)
{
    return the.world.node_rank;
}

int pc_dist_generation(void)
{
    return the.world.generation;
}

const char *pc_dist_launcher(void)
{
    return the.world.launcher;
}

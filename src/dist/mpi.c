/* mpi.c: finding the MPI plug-in, and opening it in all ranks of a group or in none. */
#include "dist/mpi.h"

#include "base/base.h"
#include "device/check.h"
#include "device/plugin.h"
#include "device/plugin_file.h"
#include "dist/reduce.h"

#include <dlfcn.h>
#include <paracord/dist.h>
#include <stdlib.h>
#include <unistd.h>

static const pc__mpi *mpi; /* NULL: not open, for the reason */
static char reason[PC__PLUGIN_WHY];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, started, left; /* all ranks have come to MPI's beginning; it has begun; it is to end */

static pc_status fail(const char *file, int line, pc_status status, const char *cause, const char *message)
{
    return pc__fail_at(file, line, status, cause, "%s", message);
}

static const pc__mpi_host host = {
    .api_version = PC__MPI_API,
    .version = PC_VERSION,
    .ops = pc__op_names,
    .alloc = pc__alloc,
    .calloc = pc__calloc,
    .free = pc__free,
    .fail = fail,
    .error_last = pc_error_last,
    .reduce = pc__reduce_ranks,
    .lost = pc__dist_lost,
    .enter = pc__calls_enter,
    .leave = pc__calls_leave,
    .give_up = pc__calls_give_up,
    .look = pc__calls_look,
    .late = pc__calls_late,
};

/* By variables of the launcher: whose MPI the ranks were started for. */
static const char *file_of_launcher(void)
{
    static const char *const open_mpi[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK"};
    static const char *const mpich[] = {"PMI_RANK", "PMI_FD", "PMI_SIZE"};
    for (int i = 0; i < PC__COUNT(open_mpi); i++)
        if (getenv(open_mpi[i]))
            return PC__MPI_OPEN_MPI;
    for (int i = 0; i < PC__COUNT(mpich); i++)
        if (getenv(mpich[i]))
            return PC__MPI_MPICH;
    return NULL;
}

/* MPI would end the process, or be a world of one. */
static void say_nobody_has(const char *launcher)
{
    const int size = pc_dist_size();
    if (strcmp(launcher, "paracord launch") != 0)
        snprintf(
            reason, sizeof reason,
            "%s has not started this program for MPI: start it by mpirun -n %d, srun --mpi=pmix or paracord launch",
            launcher[0] ? launcher : "nobody", size);
    else if (pc_dist_local_size() < size)
        snprintf(reason, sizeof reason,
                 "paracord launch starts ranks for MPI on one host alone, and these %d are on several: start them by "
                 "mpirun -n %d or srun --mpi=pmix, or have them work on cuda",
                 size, size);
    else
        snprintf(
            reason, sizeof reason,
            "paracord launch starts ranks for MPI where it was built with PMIx and finds libpmix (Debian: libpmix-dev, "
            "libpmix2), and here it has not: start them by mpirun -n %d or srun --mpi=pmix",
            size);
}

static void load(void)
{
    pc__plugin_file found;
    pc__mpi_entry entry;
    char why[256] = "";
    const char *file = file_of_launcher();
    if (!file) {
        say_nobody_has(pc_dist_launcher());
        return;
    }
    if (!pc__plugin_find(file, PC__MPI_ENTRY, false, &found, reason)) {
        const size_t n = strlen(reason);
        snprintf(reason + n, sizeof reason - n, "; it is built where %s is installed",
                 strcmp(file, PC__MPI_MPICH) ? "Open MPI (Debian: libopenmpi-dev)" : "MPICH (Debian: libmpich-dev)");
        return;
    }
    memcpy(&entry, &found.entry, sizeof entry);
    mpi = entry(&host, why, sizeof why);
    if (mpi)
        return;
    snprintf(reason, sizeof reason, "%.160s: %s", found.path, why[0] ? why : "it gives no reason");
    dlclose(found.library);
}

static pc_status need_plugin(const pc__comm *comm)
{
    char device[PC_DEVICE_NAME_MAX];
    pthread_once(&once, load);
    if (mpi)
        return PC_OK;
    return pc__fail(PC_ERR_UNSUPPORTED, "groups of processes on %s go by MPI: %s", pc_device_name(comm->device, device),
                    reason);
}

/* MPI's own beginning waits for all ranks of the world, and has no deadline. */
static pc_status all_are_here(const pc__comm *comm)
{
    const pc_status status = pc__store_barrier("the beginning of MPI", comm->seconds > 0 ? comm->seconds : 1e9);
    if (status != PC_ERR_TIMEOUT)
        return status;
    const pc_error late = pc__error_take();
    return pc__fail(
        PC_ERR_TIMEOUT,
        "%s: MPI begins in all ranks of the world at once (pc_group_stream of the world's group begins it): "
        "%.300s",
        comm->group, late.message);
}

/* More ranks here than processors: those of the machine, as ranks may be bound to some each. */
static bool is_crowded(void)
{
    const double quota = pc__cpu_quota(""), all = (double)sysconf(_SC_NPROCESSORS_ONLN);
    return pc_dist_local_size() > (quota > 0 ? PC__MIN(quota, all) : all);
}

/* Once for all ranks of the world. */
static pc_status start(const pc__comm *comm)
{
    pc_status status = PC_OK;
    pthread_mutex_lock(&lock);
    if (left)
        status =
            pc__fail(PC_ERR_STATE, "%s: MPI has ended with pc_dist_end, and begins once in a process", comm->group);
    else if (!started)
        status = all_are_here(comm);
    tried = tried || status == PC_OK;
    if (status == PC_OK && !started)
        status = mpi->start(pc_dist_rank(), pc_dist_size(), is_crowded());
    started = started || status == PC_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

typedef struct verdict {
    pc_status status;
    char words[PC_MESSAGE_MAX];
} verdict;

/* What is wrong in one rank is told to all of the group, and all go on or none. */
static pc_status all_agree(const pc__comm *comm, int round, pc_status status)
{
    char key[PC__STORE_KEY_MAX + 1];
    verdict mine = {.status = status}, theirs = {.status = PC_OK};
    if (status != PC_OK)
        snprintf(mine.words, sizeof mine.words, "%s", pc_error_last()->message);
    const pc_error before = pc__error_take();
    const char *const format = "mpi/%.60s/%d/%d/%d.";
    snprintf(key, sizeof key, format, comm->group, comm->device.type, round, comm->rank);
    pc_status told = pc__store_set(key, &mine, status == PC_OK ? sizeof mine.status : sizeof mine);
    for (int r = 0; r < comm->size && told == PC_OK && status == PC_OK; r++) {
        snprintf(key, sizeof key, format, comm->group, comm->device.type, round, r);
        told = pc__store_get(key, &theirs, sizeof theirs, NULL, comm->seconds > 0 ? comm->seconds : 1e9);
        if (told == PC_OK && theirs.status != PC_OK)
            told = pc__fail(theirs.status, "rank %d of %s: %s", r, comm->group, theirs.words);
    }
    if (status == PC_OK)
        return told;
    pc_error_clear();
    return pc__error_put(&before);
}

/* Rank 0's wish counts for all. */
static pc_status make_id(unsigned char id[PC__ENGINE_ID])
{
    id[0] = pc__check_collectives;
    return PC_OK;
}

static pc_status open(pc__comm *comm, const unsigned char id[PC__ENGINE_ID])
{
    if (comm->size == 1) /* it has nobody to talk to */
        return PC_OK;
    PC__TRY(all_agree(comm, 0, need_plugin(comm)));
    PC__TRY(all_agree(comm, 1, start(comm)));
    PC__TRY(mpi->engine.open(comm, id));
    comm->engine = &mpi->engine;
    return PC_OK;
}

static pc_status run(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    (void)stream;
    return pc__fail(PC_ERR_STATE, "%s: %s has one rank", call->op->name, comm->group);
}

static void abort_none(pc__comm *comm, const char *why)
{
    (void)comm, (void)why;
}

static void close_none(pc__comm *comm)
{
    (void)comm;
}

const pc__engine pc__engine_mpi = {
    .name = "MPI", .on_host = true, .id = make_id, .open = open, .run = run, .abort = abort_none, .close = close_none};

/* Whether all ranks have come to the end and can end MPI together, which waits for all without a deadline. */
static bool all_can_end(void)
{
    char key[64];
    bool can = started && mpi->is_sound();
    snprintf(key, sizeof key, "mpi/end/%d.", pc_dist_rank());
    const char mine = can ? 1 : 0;
    pc_status status = pc__store_set(key, &mine, 1);
    for (int r = 0; r < pc_dist_size() && can && status == PC_OK; r++) {
        char theirs = 0;
        snprintf(key, sizeof key, "mpi/end/%d.", r);
        status = pc__store_get(key, &theirs, 1, NULL, 1e9); /* or until a rank is lost */
        can = theirs;
    }
    return can && status == PC_OK;
}

void pc__mpi_leave(void)
{
    pthread_mutex_lock(&lock);
    if (tried && !left) {
        const pc_error before = pc__error_take();
        left = true;
        if (!pc__dist_lost(NULL, NULL) && all_can_end())
            mpi->end();
        pc_error_clear();
        (void)pc__error_put(&before);
    }
    pthread_mutex_unlock(&lock);
}

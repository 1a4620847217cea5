/* wait.c: polling, and when to stop. */
#include "mpi/engine.h"

#include <sched.h>
#include <time.h>

#define POLLS 2000          /* that come first: a call between ranks of one machine is done by then */
#define FEW_POLLS 16        /* of them where ranks share processors: most waits are for one that is not running */
#define YIELDS 8            /* polls between which others may have the core: the rank that is waited for may need it */
#define BUSY 2e-3           /* seconds in which it only yields */
#define LOOK 1.0            /* seconds between looks at what other ranks say of themselves */
#define LONGEST_REST 500000 /* ns */

bool pc__mpi_crowded;

static atomic_int given_up; /* 2: `given_up_why` says it */
static char given_up_why[PC_MESSAGE_MAX];

bool pc__mpi_is_sound(void)
{
    return !atomic_load_explicit(&given_up, memory_order_acquire);
}

pc_status pc__mpi_check(int result, const char *what)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (result == MPI_SUCCESS)
        return PC_OK;
    (void)MPI_Error_string(result, words, &n);
    words[strcspn(words, "\n")] = 0;
    return pc__fail_cause(PC_ERR_BACKEND, words, "%s: MPI says %.200s", what,
                          words[0] ? words : "nothing of the cause");
}

static pc_status over(const pc__mpi_call *c, const char *why)
{
    return pc__fail(PC_ERR_STATE, "%s, number %llu of rank %d of %s: the group was given up: %.300s", c->call->op->name,
                    (unsigned long long)c->number, c->comm->rank, c->comm->group, why);
}

pc_status pc__mpi_can(const pc__mpi_call *c)
{
    if (atomic_load_explicit(&c->group->aborted, memory_order_acquire) == 2)
        return over(c, c->group->why);
    if (atomic_load_explicit(&given_up, memory_order_acquire) == 2)
        return over(c, given_up_why);
    char why[PC__WHY_MAX];
    if (!pc__mpi_host_api->lost(NULL, why))
        return PC_OK;
    return pc__fail(PC_ERR_LOST, "%s, number %llu of rank %d of %s: %s", c->call->op->name,
                    (unsigned long long)c->number, c->comm->rank, c->comm->group, why);
}

/* MPI has a request that nobody waits for any more. The memory that it may write to stays. */
static pc_status give_up(const pc__mpi_call *c, pc_status status)
{
    int none = 0;
    for (int i = 0; i < c->call->n_in + c->call->n_out; i++)
        atomic_fetch_add(&pc__call_tensor(c->call, i)->storage->references, 1);
    if (atomic_compare_exchange_strong(&given_up, &none, 1)) {
        snprintf(given_up_why, sizeof given_up_why, "%s", pc__mpi_host_api->error_last()->message);
        atomic_store(&given_up, 2);
    }
    return status;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* For a twentieth of what has been waited: late by that, and no core is burnt. */
static void rest(double waited)
{
    if (waited < BUSY && !pc__mpi_crowded)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = (long)PC__MIN(waited * 5e7, LONGEST_REST)}, NULL);
}

pc_status pc__mpi_wait(const pc__mpi_call *c, int started, MPI_Request *request, size_t *got)
{
    MPI_Status state;
    int done = 0, n = 0;
    PC__TRY(pc__mpi_check(started, c->call->op->name));
    const double start = now();
    const int most = pc__mpi_crowded ? FEW_POLLS : POLLS;
    double next_look = LOOK;
    bool polls = true;
    for (int turn = 0; !done; turn += polls) {
        const int result = MPI_Test(request, &done, &state);
        if (result != MPI_SUCCESS)
            return give_up(c, pc__mpi_check(result, c->call->op->name));
        if (done)
            break;
        if (polls) {
            if (turn % YIELDS == YIELDS - 1) {
                sched_yield(); /* takes a second and more where many share the cores */
                polls = turn < most && now() - start < BUSY;
            }
            continue;
        }
        const double waited = now() - start;
        pc_status status = pc__mpi_can(c);
        if (status == PC_OK && waited > next_look) {
            next_look = waited + LOOK;
            status = pc__mpi_host_api->look(c->comm, c->call, c->number);
        }
        if (status == PC_OK && c->comm->seconds > 0 && waited > c->comm->seconds)
            status = pc__mpi_host_api->late(c->comm, c->call, c->number);
        if (status != PC_OK)
            return give_up(c, status);
        rest(waited);
    }
    if (!got)
        return PC_OK;
    PC__TRY(pc__mpi_check(MPI_Get_count(&state, MPI_BYTE, &n), c->call->op->name));
    *got = (size_t)n;
    return PC_OK;
}

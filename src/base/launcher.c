/* launcher.c: who started this process as a rank, and how many of them share its host. */
#include "base/launcher.h"

#include <errno.h>
#include <stdlib.h>

const pc__launcher pc__launchers[PC__LAUNCHERS] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", {"TORCHELASTIC_RUN_ID", NULL}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     NULL,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, {"SLURM_JOB_ID", NULL}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_NTASKS_PER_NODE",
     "SLURM_NODEID",
     {"SLURM_JOB_ID", NULL}},
};

static bool is_set(pc__getenv get, const char *name)
{
    const char *text = name ? get(name) : NULL;
    return text && text[0];
}

/* What runs in a batch script or a shell of salloc has variables of Slurm and is no task of it: only srun makes steps. Batch
 * scripts and interactive shells are steps of numbers that end at 2^32. */
static bool is_step(pc__getenv get)
{
    enum { SPECIAL = 16 };
    const char *step = get("SLURM_STEP_ID");
    return is_set(get, "SLURM_STEP_ID") && strtoull(step, NULL, 10) < (UINT64_C(1) << 32) - SPECIAL;
}

/* srun --mpi=pmi2 sets MPICH's rank and size, but none of a host's. */
static bool is_slurms(pc__getenv get, const pc__launcher *mpich)
{
    return is_step(get) && is_set(get, "SLURM_PROCID") && !is_set(get, mpich->local_rank);
}

static bool has_started(pc__getenv get, const pc__launcher *l)
{
    if (!is_set(get, l->rank) && !is_set(get, l->size))
        return false;
    return !strcmp(l->name, "MPICH") ? !is_slurms(get, l) : !strcmp(l->name, "Slurm") ? is_step(get) : true;
}

const pc__launcher *pc__launcher_of(pc__getenv get)
{
    for (int i = 0; i < PC__LAUNCHERS; i++)
        if (has_started(get, &pc__launchers[i]))
            return &pc__launchers[i];
    return NULL;
}

/* A whole number of a variable, least..PC__RANKS_MAX; `otherwise` where it is none. */
static int number_of(pc__getenv get, const char *name, int least, int otherwise)
{
    char *end = NULL;
    errno = 0;
    const long value = is_set(get, name) ? strtol(get(name), &end, 10) : 0;
    return end && !*end && !errno && value >= least && value <= PC__RANKS_MAX ? (int)value : otherwise;
}

int pc__slurm_ranks(pc__getenv get, int node)
{
    static const char *const lists[] = {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};
    int ranks = 0;
    for (int i = 0; i < PC__COUNT(lists) && !ranks; i++)
        ranks = is_set(get, lists[i]) ? pc__slurm_tasks(get(lists[i]), node) : 0;
    return ranks;
}

int pc__ranks_of_host(pc__getenv get)
{
    for (int i = 0; i < PC__LAUNCHERS; i++) {
        const pc__launcher *l = &pc__launchers[i];
        const bool slurm = !strcmp(l->name, "Slurm");
        if (slurm && !is_step(get))
            continue;
        const int listed = slurm ? pc__slurm_ranks(get, number_of(get, l->node, 0, 0)) : 0;
        if (listed || is_set(get, l->local_size))
            return listed ? listed : number_of(get, l->local_size, 1, 1);
    }
    return 1;
}

int pc__slurm_tasks(const char *list, int node)
{
    for (const char *c = list; *c;) {
        char *end = NULL;
        const long tasks = strtol(c, &end, 10);
        long times = 1;
        if (end == c || tasks < 1 || tasks > PC__RANKS_MAX)
            return 0;
        if (!strncmp(end, "(x", 2)) {
            times = strtol(end + 2, &end, 10);
            if (times < 1 || times > PC__RANKS_MAX || *end++ != ')')
                return 0;
        }
        if (node < times)
            return (int)tasks;
        node -= (int)times;
        if (*end && *end != ',')
            return 0;
        c = *end ? end + 1 : end;
    }
    return 0;
}

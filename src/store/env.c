/* env.c: who this process is, by the variables of torchrun, Open MPI, MPICH, PMIx or Slurm. */
#include "store/env.h"

#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define USUAL_PORT 29500 /* where PyTorch's programs look for their master */

static bool is_set(pc__getenv get, const char *name)
{
    const char *text = name ? get(name) : NULL;
    return text && text[0];
}

pc_status pc__env_number(const char *name, const char *text, int least, int most, int *number)
{
    char *end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno || end == text || *end || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) || value < least ||
        value > most)
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s is \"%.64s\", which is no whole number from %d to %d: correct it, or unset it", name, text,
                        least, most);
    *number = (int)value;
    return PC_OK;
}

pc_status pc__env_address(const char *name, const char *text, char host[PC__HOST_MAX], int *port)
{
    const char *colon = strrchr(text, ':');
    const bool bracket = text[0] == '[' && colon && colon > text + 1 && colon[-1] == ']';
    const char *from = text + bracket;
    const size_t n = colon ? (size_t)(colon - from) - bracket : 0;
    if (!colon || !n || n >= PC__HOST_MAX || (!bracket && memchr(from, ':', n)))
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s is \"%.128s\", which is no HOST:PORT such as 10.0.0.1:29500 or [fd00::1]:29500", name,
                        text);
    memcpy(host, from, n);
    host[n] = 0;
    return pc__env_number(name, colon + 1, 1, 65535, port);
}

pc_status pc__beat_limit(pc__getenv get, double *seconds)
{
    *seconds = 10;
    if (!is_set(get, "PARACORD_BEAT_LIMIT"))
        return PC_OK;
    const char *text = get("PARACORD_BEAT_LIMIT");
    char *end = NULL;
    const double value = pc__number_of(text, &end);
    if (end == text || *end || !(value == 0 || (value >= 0.2 && value <= 86400)))
        return pc__fail(PC_ERR_ARGUMENT,
                        "PARACORD_BEAT_LIMIT is \"%.64s\": give seconds from 0.2 to 86400, or 0 for no limit", text);
    *seconds = value;
    return PC_OK;
}

/* A number of a variable that need not be set: `otherwise` then. */
static pc_status optional(pc__getenv get, const char *name, int most, int otherwise, int *number)
{
    *number = otherwise;
    return is_set(get, name) ? pc__env_number(name, get(name), 0, most, number) : PC_OK;
}

static pc_status must(pc__getenv get, const char *name, const char *because, int least, int *number)
{
    if (!is_set(get, name))
        return pc__fail(PC_ERR_ARGUMENT, "%s is set, but %s is not: set both, or unset both to run alone", because,
                        name);
    return pc__env_number(name, get(name), least, PC__RANKS_MAX, number);
}

static bool is_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static pc_status local_size_of_slurm(pc__getenv get, pc__world *w)
{
    w->local_size = pc__slurm_ranks(get, PC__MAX(w->node_rank, 0));
    return w->local_size ? PC_OK : optional(get, "SLURM_NTASKS_PER_NODE", PC__RANKS_MAX, 0, &w->local_size);
}

static pc_status read_local(pc__getenv get, const pc__launcher *l, pc__world *w)
{
    const bool slurm = !strcmp(l->name, "Slurm");
    PC__TRY(optional(get, l->node, PC__RANKS_MAX, -1, &w->node_rank));
    PC__TRY(optional(get, l->local_rank, PC__RANKS_MAX, -1, &w->local_rank));
    if (slurm)
        PC__TRY(local_size_of_slurm(get, w));
    else
        PC__TRY(optional(get, l->local_size, PC__RANKS_MAX, 0, &w->local_size));
    const char *master = get("MASTER_ADDR");
    if (w->local_rank < 0 && !w->local_size && (w->size == 1 || (master && is_loopback(master)))) {
        w->local_rank = w->rank;
        w->local_size = w->size;
    }
    if (w->local_rank < 0 || !w->local_size)
        return pc__fail(PC_ERR_ARGUMENT, "%s is %d, but %s is not set: set it to this rank's %s on its host", l->rank,
                        w->rank, w->local_rank < 0 ? l->local_rank : l->local_size,
                        w->local_rank < 0 ? "number" : "number of ranks");
    if (w->local_rank >= w->local_size)
        return pc__fail(PC_ERR_ARGUMENT, "%s is %d, but %s is %d: ranks on a host count from 0 to %d", l->local_rank,
                        w->local_rank, l->local_size, w->local_size, w->local_size - 1);
    if (w->local_size > w->size)
        return pc__fail(PC_ERR_ARGUMENT, "%s is %d, but %s is %d: a host has no more ranks than the world",
                        l->local_size, w->local_size, l->size, w->size);
    w->one_host = w->local_size == w->size;
    if (w->node_rank < 0)
        w->node_rank = w->one_host ? 0 : w->size % w->local_size ? -1 : w->rank / w->local_size;
    return PC_OK;
}

/* A name of the job, from which the token and, where nobody chose one, the port are made. */
static void job_of(pc__getenv get, const pc__launcher *l, char job[PC__TOKEN_MAX + 1])
{
    job[0] = 0;
    for (int i = 0; i < PC__COUNT(l->job) && !job[0]; i++)
        if (is_set(get, l->job[i])) {
            const char *step = !strcmp(l->job[i], "SLURM_JOB_ID") ? get("SLURM_STEP_ID") : NULL;
            snprintf(job, PC__TOKEN_MAX + 1, "%.80s%s%.30s", get(l->job[i]), step ? "." : "", step ? step : "");
        }
}

static pc_status read_token(pc__getenv get, const pc__launcher *l, const char *job, pc__world *w)
{
    const char *token = get("PARACORD_TOKEN");
    if (token && token[0]) {
        if (strlen(token) > PC__TOKEN_MAX)
            return pc__fail(PC_ERR_ARGUMENT, "PARACORD_TOKEN has %zu characters, more than %d: make it shorter",
                            strlen(token), PC__TOKEN_MAX);
        snprintf(w->token, sizeof w->token, "%s", token);
        return PC_OK;
    }
    if (!job[0])
        return pc__fail(PC_ERR_ARGUMENT,
                        "PARACORD_TOKEN is not set, and %s gives this job no name that its ranks share: set it to one "
                        "random text in all of them, or use paracord launch",
                        l->name);
    snprintf(w->token, sizeof w->token, "%s", job);
    return PC_OK;
}

static pc_status read_port(pc__getenv get, const char *job, pc__world *w)
{
    if (is_set(get, "PARACORD_STORE_PORT"))
        return pc__env_number("PARACORD_STORE_PORT", get("PARACORD_STORE_PORT"), 1, 65535, &w->port);
    if (is_set(get, "MASTER_PORT")) {
        PC__TRY(pc__env_number("MASTER_PORT", get("MASTER_PORT"), 1, 65534, &w->port));
        const char *agent = get("TORCHELASTIC_USE_AGENT_STORE"); /* the agent of torchrun listens there itself */
        w->port += agent && (!strcmp(agent, "True") || !strcmp(agent, "1"));
        return PC_OK;
    }
    uint32_t hash = 2166136261u; /* FNV-1a: jobs that share a host should not meet */
    for (const char *c = job; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    w->port = job[0] ? 20000 + (int)(hash % 10000) : USUAL_PORT;
    return PC_OK;
}

/* Where rank 0 is. */
static pc_status read_host(pc__getenv get, const pc__launcher *l, pc__world *w)
{
    const char *master = get("MASTER_ADDR"), *list = get("SLURM_JOB_NODELIST");
    if (w->one_host)
        snprintf(w->host, sizeof w->host, "127.0.0.1");
    else if (master && master[0]) {
        if (strlen(master) >= PC__HOST_MAX)
            return pc__fail(PC_ERR_ARGUMENT, "MASTER_ADDR has %zu characters, which no host's name has",
                            strlen(master));
        snprintf(w->host, sizeof w->host, "%s", master);
    } else if (!strcmp(l->name, "Slurm") && list && list[0]) {
        if (!pc__slurm_first_host(list, w->host))
            return pc__fail(PC_ERR_ARGUMENT,
                            "SLURM_JOB_NODELIST is \"%.128s\", which names no first host: set MASTER_ADDR to rank 0's",
                            list);
    } else if (!strcmp(l->name, "Slurm") && is_set(get, "SLURM_LAUNCH_NODE_IPADDR"))
        snprintf(w->host, sizeof w->host, "%.255s", get("SLURM_LAUNCH_NODE_IPADDR"));
    else
        return pc__fail(PC_ERR_ARGUMENT,
                        "MASTER_ADDR is not set, and the %d ranks are on several hosts: set it to rank 0's", w->size);
    return PC_OK;
}

static pc_status read_store(pc__getenv get, const pc__launcher *l, pc__world *w)
{
    char job[PC__TOKEN_MAX + 1];
    job_of(get, l, job);
    w->has_store = true;
    if (!is_set(get, "PARACORD_STORE")) {
        w->serves = w->rank == 0;
        PC__TRY(read_host(get, l, w));
        PC__TRY(read_port(get, job, w));
        return read_token(get, l, job, w);
    }
    PC__TRY(pc__env_address("PARACORD_STORE", get("PARACORD_STORE"), w->host, &w->port));
    if (!is_set(get, "PARACORD_TOKEN"))
        return pc__fail(PC_ERR_ARGUMENT, "PARACORD_STORE is set, but PARACORD_TOKEN is not: paracord launch sets both");
    return read_token(get, l, job, w);
}

static const char *name_of(pc__getenv get, const pc__launcher *l)
{
    if (l != pc__launchers)
        return l->name;
    return is_set(get, "PARACORD_STORE")        ? "paracord launch"
           : is_set(get, "TORCHELASTIC_RUN_ID") ? "torchrun"
                                                : "variables of the environment";
}

pc_status pc__world_read(pc__getenv get, pc__world *world)
{
    pc__world w = {.size = 1, .local_size = 1, .launcher = "", .one_host = true};
    const pc__launcher *l = pc__launcher_of(get);
    if (!l && is_set(get, "PMIX_RANK"))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "PMIX_RANK is %.32s, but no variable says how many ranks there are: set RANK and WORLD_SIZE, or use a "
            "launcher that does (mpirun, srun, torchrun, paracord launch)",
            get("PMIX_RANK"));
    if (l) {
        const char *size =
            !strcmp(l->name, "Slurm") && is_set(get, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : l->size;
        PC__TRY(must(get, l->rank, size, 0, &w.rank));
        PC__TRY(must(get, size, l->rank, 1, &w.size));
        if (w.rank >= w.size)
            return pc__fail(PC_ERR_ARGUMENT, "%s is %d, but %s is %d: ranks count from 0 to %d", l->rank, w.rank, size,
                            w.size, w.size - 1);
        w.launcher = name_of(get, l);
        PC__TRY(read_local(get, l, &w));
        PC__TRY(optional(
            get, is_set(get, "TORCHELASTIC_RESTART_COUNT") ? "TORCHELASTIC_RESTART_COUNT" : "SLURM_RESTART_COUNT",
            PC__RANKS_MAX, 0, &w.generation));
        if (w.size > 1 || is_set(get, "PARACORD_STORE"))
            PC__TRY(read_store(get, l, &w));
    }
    *world = w;
    return PC_OK;
}

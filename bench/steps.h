/* steps.h: the time of training steps as one recording, in one rank or in several, with buckets of
 * BENCH_BUCKET_MB, by pc_zero of stage BENCH_ZERO where that is set, with BENCH_AHEAD buckets of weights
 * ahead, and with .offload where BENCH_OFFLOAD=1, in one rank too. BENCH_REDUCE=bf16: gradients travel in
 * 16 bits. With BENCH_TENSOR=N each N neighbours have one network among them, and ranks / N networks learn
 * together. */
#ifndef PC_BENCH_STEPS_H
#define PC_BENCH_STEPS_H

#include "ranks.h"

#include <paracord.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct training {
    pc_tensor *(*loss)(void *);
    void *user;
    pc_optimizer *optimizer;
    pc_zero *zero;     /* NULL: all is this rank's */
    pc_dtype autocast; /* PC_F32: none */
} training;

static inline pc_status learn(void *user)
{
    const training *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        if (t->autocast == PC_F32)
            loss = t->loss(t->user);
        else
            PC_AUTOCAST(t->autocast)
                loss = pc_keep(t->loss(t->user));
        status = pc_backward(loss);
        if (status == PC_OK)
            status = t->zero ? pc_zero_step(t->zero, t->optimizer) : pc_optimizer_step(t->optimizer);
    }
    return status;
}

/* Milliseconds until the first step towards less loss was done, and of a step: the median of rounds of `steps`. */
static inline pc_status steps_timed(training t, pc_device device, int steps, double *first, double *median)
{
    enum { ROUNDS = 7 };
    double times[ROUNDS] = {0};
    const double begin = now_ms();
    pc_step *step = pc_step_new(learn, &t, t.optimizer);
    pc_status status = step ? pc_step_run(step) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc_device_synchronize(device);
    *first = now_ms() - begin;
    for (int round = 0; round < ROUNDS && status == PC_OK; round++) {
        const double start = now_ms();
        for (int i = 0; i < steps && status == PC_OK; i++)
            status = pc_step_run(step);
        if (status == PC_OK)
            status = pc_device_synchronize(device);
        times[round] = (now_ms() - start) / steps;
    }
    if (status == PC_OK && pc_step_why(step))
        fprintf(stderr, "not recorded: %s\n", pc_step_why(step));
    qsort(times, ROUNDS, sizeof *times, ascending);
    *median = times[ROUNDS / 2];
    pc_step_free(step);
    return status;
}

/* A training as a benchmark makes it, in every rank: its job, of so many bytes, from the command's words. */
typedef struct trained {
    size_t job_bytes;
    pc_status (*make)(void *job, char **words, int count, pc_device device, pc_group *network); /* NULL: whole */
    void (*free)(void *job);
    pc_tensor *(*loss)(void *job);
    pc_module *(*network)(void *job);
    pc_optimizer *(*optimizer)(void *job, pc_module *of); /* the network, or this rank's part of it */
    char **words;                                         /* DEVICES PRECISION ... */
    int count, steps;
} trained;

enum { STEP_MS, FIRST_MS, PEAK_MB, PINNED_MB, RESULTS };

/* How the network is trained with the other ranks. */
typedef struct together {
    pc_ddp *ddp;
    pc_zero *zero;
    pc_group *alone;          /* of a rank that is the only one */
    pc_group *network, *data; /* with BENCH_TENSOR: who has this network, and who the same part of others */
} together;

static inline int bench_tensor(void)
{
    return getenv("BENCH_TENSOR") ? atoi(getenv("BENCH_TENSOR")) : 1;
}

static inline pc_status split(together *with, const bench_rank *r)
{
    const int parts = bench_tensor();
    if (parts < 2 || !r->group)
        return PC_OK;
    const pc_status status = pc_group_split(r->group, r->rank / parts, r->rank, &with->network);
    return status == PC_OK && r->size > parts ? pc_group_split(r->group, r->rank % parts, r->rank, &with->data)
                                              : status;
}

static inline pc_status join(together *with, pc_module *network, pc_group *group)
{
    const double bucket = getenv("BENCH_BUCKET_MB") ? atof(getenv("BENCH_BUCKET_MB")) : 0;
    const int stage = getenv("BENCH_ZERO") ? atoi(getenv("BENCH_ZERO")) : 0;
    const int ahead = getenv("BENCH_AHEAD") ? atoi(getenv("BENCH_AHEAD")) : 0;
    const pc_dtype reduce = getenv("BENCH_REDUCE") && strcmp(getenv("BENCH_REDUCE"), "bf16") == 0 ? PC_BF16 : PC_F32;
    const bool offload = getenv("BENCH_OFFLOAD") && atoi(getenv("BENCH_OFFLOAD"));
    if (!group && stage && offload) {
        if (pc_group_threads(1, &with->alone) != PC_OK)
            return pc_error_last()->status;
        group = with->alone;
    }
    if (group && stage)
        with->zero = pc_zero(network, group, .bucket_mb = bucket, .stage = stage, .ahead = ahead, .offload = offload,
                             .reduce_dtype = reduce);
    else if (group)
        with->ddp = pc_ddp(network, group, .bucket_mb = bucket, .reduce_dtype = reduce);
    return !group || with->ddp || with->zero ? PC_OK : pc_error_last()->status;
}

static inline pc_status train_timed(const trained *t, void *job, const together *with, pc_device device, double *result)
{
    const pc_dtype autocast = strcmp(t->words[1], "bf16") == 0 ? PC_BF16 : PC_F32;
    pc_memory_stats memory = {0};
    pc_optimizer *optimizer = t->optimizer(job, with->zero ? pc_zero_part(with->zero) : t->network(job));
    const training steps = {
        .loss = t->loss, .user = job, .optimizer = optimizer, .zero = with->zero, .autocast = autocast};
    pc_status status =
        optimizer ? steps_timed(steps, device, t->steps, &result[FIRST_MS], &result[STEP_MS]) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc_memory_query(device, &memory);
    result[PEAK_MB] = (double)memory.peak * 1e-6;
    result[PINNED_MB] = (double)memory.pinned * 1e-6;
    pc_optimizer_free(optimizer);
    return status;
}

static inline pc_status rank_trained(bench_rank *r)
{
    const trained *t = r->user;
    together with = {0};
    void *job = calloc(1, t->job_bytes);
    if (strcmp(t->words[1], "tf32") == 0)
        pc_matmul_precision_set(PC_PRECISION_TF32);
    pc_seed(1);
    pc_status status = split(&with, r);
    if (status == PC_OK)
        status = t->make(job, t->words, t->count, r->device, with.network);
    if (status == PC_OK)
        status = join(&with, t->network(job), with.network ? with.data : r->group);
    if (status == PC_OK)
        status = train_timed(t, job, &with, r->device, r->result);
    pc_ddp_free(with.ddp);
    pc_zero_free(with.zero);
    t->free(job);
    pc_group_free(with.alone);
    pc_group_free(with.data);
    pc_group_free(with.network);
    free(job);
    return status;
}

/* The slowest rank's, as the beginning of a line of JSON. How many ranks there were; 0: an error. */
static inline int ranks_trained(trained *t, double result[RESULTS])
{
    bench_rank ranks[BENCH_RANKS] = {{0}};
    const int n = bench_ranks_run(t->words[0], ranks, rank_trained, t);
    for (int k = 0; k < RESULTS; k++)
        result[k] = 0;
    for (int i = 0; i < n && ranks[i].work; i++) /* of launched processes only this one */
        for (int k = 0; k < RESULTS; k++)
            result[k] = ranks[i].result[k] > result[k] ? ranks[i].result[k] : result[k];
    return n;
}

#endif

/* fit_ranks.c: a training in several ranks: each learns from its part of every batch. */
#include "dist/group.h"
#include "nn/optimizer.h"
#include "parallel/agree.h"
#include "parallel/zero_state.h"
#include "train/fit.h"

#include "data/gather.h"

#include <paracord/random.h>

/* Of all ranks of the group, in their order; from pc__alloc. */
static pc_status exchange_in(pc_group *group, const void *mine, size_t n, void **all)
{
    *all = pc__alloc((size_t)pc_group_size(group) * n);
    if (!*all)
        return PC_ERR_MEMORY;
    const pc_status status = pc__group_exchange(group, mine, n, *all);
    if (status == PC_OK)
        return PC_OK;
    pc__free(*all);
    *all = NULL;
    return status;
}

static pc_status exchange(const pc__fit *fit, const void *mine, size_t n, void **all)
{
    return exchange_in(fit->group, mine, n, all);
}

static pc_status first_in(pc_group *group, void *bytes, size_t n)
{
    void *all;
    if (!group)
        return PC_OK;
    PC__TRY(exchange_in(group, bytes, n, &all));
    memcpy(bytes, all, n);
    pc__free(all);
    return PC_OK;
}

pc_status pc__fit_ranks_first(const pc__fit *fit, void *bytes, size_t n)
{
    return first_in(fit->group, bytes, n);
}

pc_status pc__fit_parts_first(const pc__fit *fit, void *bytes, size_t n)
{
    PC__TRY(first_in(fit->network, bytes, n));
    return first_in(fit->group, bytes, n);
}

pc_status pc__fit_ranks_rate(const pc__fit *fit)
{
    pc_optimizer *o = fit->optimizer;
    double rates[] = {o->settings.lr, o->given_lr};
    PC__TRY(pc__fit_ranks_first(fit, rates, sizeof rates));
    o->settings.lr = rates[0];
    o->given_lr = rates[1];
    return PC_OK;
}

/* What must be the same for the ranks to make the same calls, and to come to the same weights. */
typedef struct job {
    uint64_t data;
    uint64_t seed; /* of the samples' order */
    int64_t shuffles, samples, batches, tested, epochs, early_stop, epoch, batch, accumulate, stage;
    double rate;
} job;

static pc_status compare(const job *all, int size)
{
    for (int r = 1; r < size; r++) {
        if (all[r].data != all->data || all[r].samples != all->samples || all[r].batches != all->batches)
            return pc__fail(
                PC_ERR_STATE,
                "ranks train on other data: rank 0 on %lld samples in %lld batches, rank %d on %lld in %lld%s",
                (long long)all->samples, (long long)all->batches, r, (long long)all[r].samples,
                (long long)all[r].batches, all[r].samples == all->samples ? ", or of other names" : "");
        if (all[r].shuffles != all->shuffles || all[r].seed != all->seed)
            return pc__fail(
                PC_ERR_STATE,
                "ranks go through their samples in other orders, so that some would be learnt from twice and "
                "some never: rank 0 %s with seed %llu, rank %d %s with %llu; give all loaders the same",
                all->shuffles ? "shuffled" : "in the order that they have", (unsigned long long)all->seed, r,
                all[r].shuffles ? "shuffled" : "in the order that they have", (unsigned long long)all[r].seed);
        if (all[r].accumulate != all->accumulate || all[r].stage != all->stage)
            return pc__fail(
                PC_ERR_STATE,
                "ranks learn otherwise: rank 0 from batches in %lld parts with stage %lld of ZeRO (0: none), and "
                "rank %d in %lld with %lld",
                (long long)all->accumulate, (long long)all->stage, r, (long long)all[r].accumulate,
                (long long)all[r].stage);
        if (all[r].rate != all->rate)
            return pc__fail(PC_ERR_STATE,
                            "ranks learn at other rates: rank 0 at %g and rank %d at %g; give all optimisers, or "
                            "schedules, the same",
                            all->rate, r, all[r].rate);
        if (memcmp(&all[r], all, sizeof *all) != 0)
            return pc__fail(
                PC_ERR_STATE,
                "ranks train otherwise: rank 0 for %lld epochs from batch %lld of epoch %lld on, %s test data, "
                "and rank %d for %lld from batch %lld of epoch %lld on, %s",
                (long long)all->epochs, (long long)all->batch, (long long)all->epoch + 1,
                all->tested ? "with" : "without", r, (long long)all[r].epochs, (long long)all[r].batch,
                (long long)all[r].epoch + 1, all[r].tested ? "with" : "without");
    }
    return PC_OK;
}

static pc_status meet(pc__fit *fit)
{
    uint64_t seed;
    const bool shuffles = pc__loader_shuffles(fit->train, &seed);
    const job mine = {.seed = shuffles ? seed : 0,
                      .shuffles = shuffles,
                      .data = pc_loader_fingerprint(fit->train),
                      .samples = pc_loader_count(fit->train),
                      .batches = pc_loader_batches(fit->train),
                      .tested = fit->test != NULL,
                      .epochs = fit->epochs,
                      .early_stop = fit->early_stop,
                      .epoch = fit->at.epoch,
                      .batch = fit->at.batch,
                      .accumulate = PC__MAX(fit->accumulate, 1),
                      .stage = fit->zero ? pc__zero_stage(fit->zero) : 0,
                      .rate = fit->schedule.steps ? fit->schedule.lr : pc_optimizer_lr(fit->optimizer)};
    void *all;
    PC__TRY(exchange(fit, &mine, sizeof mine, &all));
    const pc_status status = compare(all, pc_group_size(fit->group));
    pc__free(all);
    return status;
}

/* Ranks draw other zeros of dropout and the like, the first those of a training alone. */
static uint64_t seed_of(const pc__fit *fit)
{
    return (uint64_t)pc_group_rank(fit->group) * 0x9e3779b97f4a7c15u;
}

/* All parameters that are shared out are rank 0's since they were. */
static pc_status train_together(pc__fit *fit)
{
    if (fit->zero)
        return pc_zero_share_buffers(fit->zero);
    fit->ddp = pc_ddp(fit->net, fit->group, .reduce_dtype = fit->reduce_dtype);
    return fit->ddp ? PC_OK : pc_error_last()->status;
}

pc_status pc__fit_ranks_join(pc__fit *fit)
{
    if (!fit->group)
        return PC_OK;
    pc_generator generator = pc_generator_get();
    PC__TRY(meet(fit));
    PC__TRY(pc__fit_ranks_first(fit, &generator, sizeof generator));
    PC__TRY(train_together(fit));
    fit->joined = true;
    generator.seed += seed_of(fit);
    pc_generator_set(generator);
    fit->tally.group = fit->group;
    pc__loader_shared(fit->train, &fit->was_rank, &fit->was_ranks);
    return pc_loader_share(fit->train, pc_group_rank(fit->group), pc_group_size(fit->group));
}

static void end_sharing(pc__fit *fit)
{
    pc_generator generator = pc_generator_get();
    generator.seed -= seed_of(fit);
    pc_generator_set(generator);
    if (pc_loader_share(fit->train, fit->was_rank, fit->was_ranks) != PC_OK)
        pc_error_clear();
}

void pc__fit_ranks_leave(pc__fit *fit)
{
    pc_error before = pc__error_take();
    pc_ddp_free(fit->ddp);
    fit->ddp = NULL;
    if (fit->joined)
        end_sharing(fit);
    fit->joined = false;
    if (pc__fit_whole(fit, false) != PC_OK) /* an error may have ended it where they were */
        pc_error_clear();
    (void)(before.status == PC_OK ? PC_OK : pc__error_put(&before));
}

pc_status pc__fit_ranks_buffers(const pc__fit *fit)
{
    if (fit->group && fit->zero)
        return pc_zero_share_buffers(fit->zero);
    return fit->ddp ? pc_ddp_share_buffers(fit->ddp) : PC_OK;
}

typedef struct finding {
    pc__cause cause;
    char what[PC__FIT_WORDS];
} finding;

static pc_status words_in(pc_group *group, const char *who, pc__cause *cause, char what[PC__FIT_WORDS])
{
    finding mine = {.cause = *cause}, *all;
    snprintf(mine.what, sizeof mine.what, "%.280s (in %s %d)", what, who, pc_group_rank(group));
    PC__TRY(exchange_in(group, &mine, sizeof mine, (void **)&all));
    int first = 0;
    for (int r = pc_group_size(group) - 1; r >= 0; r--)
        first = all[r].cause ? r : first;
    *cause = all[first].cause;
    memcpy(what, all[first].what, PC__FIT_WORDS);
    pc__free(all);
    return PC_OK;
}

pc_status pc__fit_ranks_words(pc__fit *fit, pc__cause *cause, char what[PC__FIT_WORDS])
{
    if (!fit->group)
        return PC_OK;
    PC__TRY(words_in(fit->group, "rank", cause, what));
    fit->agreed = true;
    return PC_OK;
}

pc_status pc__fit_parts_words(const pc__fit *fit, pc__cause *cause, char what[PC__FIT_WORDS])
{
    return fit->network ? words_in(fit->network, "part", cause, what) : PC_OK;
}

pc_status pc__fit_parts_agree(pc__fit *fit, pc_status status)
{
    if (!fit->network)
        return status;
    status = pc__agree_on_success(fit->network, status);
    fit->parts_agreed = status != PC_OK;
    return status;
}

pc_status pc__fit_ranks_end(pc__fit *fit, pc_status status)
{
    char last = 0;
    if (status == PC_OK)
        status = pc__fit_parts_first(fit, &last, sizeof last);
    if (status == PC_OK)
        return PC_OK;
    if (fit->group && !fit->agreed)
        pc__group_fail(fit->group);
    if (fit->network && !fit->parts_agreed)
        pc__group_fail(fit->network);
    return status;
}

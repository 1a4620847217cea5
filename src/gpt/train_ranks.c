/* train_ranks.c: a training in several ranks: each learns from its rows of every batch. */
#include "dist/group.h"
#include "gpt/train.h"

#include <paracord/random.h>

/* This rank's part, which is one larger than others' where the batch cannot be cut into equal ones. */
static void share(pc__gpt_training *t)
{
    t->first = (int)((int64_t)t->all * t->rank / t->ranks);
    t->o.batch = (int)((int64_t)t->all * (t->rank + 1) / t->ranks) - t->first;
    t->weight = (double)t->o.batch * t->ranks / t->all;
}

pc_status pc__gpt_ranks_begin(pc__gpt_training *t)
{
    t->ranks = t->o.group ? pc_group_size(t->o.group) : 1;
    t->rank = t->o.group ? pc_group_rank(t->o.group) : 0;
    t->all = t->o.batch;
    t->weight = 1;
    if (t->all > 0 && t->all < t->ranks)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: a batch of %d is too small for %d ranks", t->all, t->ranks);
    if (t->all > 0)
        share(t);
    return PC_OK;
}

/* All begin anew, or all go on: else steps of some would be mixed with others of the rest. */
pc_status pc__gpt_ranks_agree_start(pc__gpt_training *t, bool *resumed)
{
    if (t->ranks == 1)
        return PC_OK;
    bool *all = pc__alloc((size_t)t->ranks * sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = pc__group_exchange(t->o.group, resumed, sizeof *resumed, all);
    for (int r = 1; r < t->ranks && status == PC_OK; r++)
        if (all[r] != all[0])
            status = pc__fail(PC_ERR_FILE,
                              "rank %d goes on from the checkpoint in %s, which rank %d does not have: the folder has "
                              "to be where all ranks see it",
                              all[0] ? 0 : r, t->o.out, all[0] ? r : 0);
    pc__free(all);
    return status;
}

/* Where each chose what fits its device, the smallest. */
pc_status pc__gpt_ranks_agree_batch(pc__gpt_training *t)
{
    if (t->all > 0)
        return PC_OK;
    int *all = pc__alloc((size_t)t->ranks * sizeof *all), least = t->o.batch;
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = t->ranks > 1 ? pc__group_exchange(t->o.group, &least, sizeof least, all) : PC_OK;
    for (int r = 0; t->ranks > 1 && r < t->ranks && status == PC_OK; r++)
        least = PC__MIN(least, all[r]);
    pc__free(all);
    t->all = least * t->ranks;
    share(t);
    return status;
}

pc_status pc__gpt_ranks_join(pc__gpt_training *t)
{
    if (t->ranks == 1)
        return PC_OK;
    if (t->o.zero)
        t->zero = pc_zero(t->gpt, t->o.group, .stage = t->o.zero);
    else
        t->ddp = pc_ddp(t->gpt, t->o.group);
    return t->ddp || t->zero ? PC_OK : pc_error_last()->status;
}

pc_status pc__gpt_ranks_step(pc__gpt_training *t)
{
    return t->zero ? pc_zero_step(t->zero, t->optimizer) : pc_optimizer_step(t->optimizer);
}

pc_status pc__gpt_ranks_whole(pc__gpt_training *t, bool whole)
{
    if (!t->zero)
        return PC_OK;
    return whole ? pc_zero_gather(t->zero) : pc_zero_release(t->zero);
}

/* Ranks draw other zeros of dropout, the first those of a training alone. */
void pc__gpt_ranks_seed(const pc__gpt_training *t)
{
    pc_generator generator = pc_generator_get();
    generator.seed += (uint64_t)t->rank * 0x9e3779b97f4a7c15u;
    pc_generator_set(generator);
}

pc_status pc__gpt_ranks_mean(pc__gpt_training *t, double *number)
{
    if (t->ranks == 1)
        return PC_OK;
    double sum = 0, *all = pc__alloc((size_t)t->ranks * sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = pc__group_exchange(t->o.group, number, sizeof *number, all);
    for (int r = 0; r < t->ranks; r++)
        sum += all[r];
    pc__free(all);
    *number = sum / t->ranks;
    return status;
}

pc_status pc__gpt_ranks_stop(pc__gpt_training *t, bool asked, bool now, bool *stop)
{
    t->stopping |= asked;
    *stop = t->stopping;
    if (t->ranks == 1)
        return PC_OK;
    double some = t->stopping;
    *stop = false;
    if (now)
        PC__TRY(pc__gpt_ranks_mean(t, &some));
    *stop = now && some > 0;
    return PC_OK;
}

void pc__gpt_ranks_fail(pc__gpt_training *t, pc_status status)
{
    if (status != PC_OK && t->ranks > 1)
        pc__group_fail(t->o.group);
}

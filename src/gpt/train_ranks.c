/* train_ranks.c: a training in several ranks: each learns from its rows of every batch. */
#include "dist/group.h"
#include "gpt/train.h"

#include <paracord/random.h>

pc_status pc__gpt_ranks_begin(pc__gpt_training *t)
{
    t->ranks = t->o.group ? pc_group_size(t->o.group) : 1;
    t->rank = t->o.group ? pc_group_rank(t->o.group) : 0;
    if (t->o.batch > 0 && t->o.batch % t->ranks)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: a batch of %d cannot be cut into %d equal parts; take %d",
                        t->o.batch, t->ranks, (t->o.batch / t->ranks + 1) * t->ranks);
    if (t->o.batch > 0)
        t->o.batch /= t->ranks;
    return PC_OK;
}

/* Where each chose what fits its device, the smallest. */
pc_status pc__gpt_ranks_agree_batch(pc__gpt_training *t)
{
    if (t->ranks == 1)
        return PC_OK;
    int *all = pc__alloc((size_t)t->ranks * sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = pc__group_exchange(t->o.group, &t->o.batch, sizeof t->o.batch, all);
    for (int r = 0; r < t->ranks && status == PC_OK; r++)
        t->o.batch = PC__MIN(t->o.batch, all[r]);
    pc__free(all);
    return status;
}

pc_status pc__gpt_ranks_join(pc__gpt_training *t)
{
    if (t->ranks == 1)
        return PC_OK;
    t->ddp = pc_ddp(t->gpt, t->o.group);
    return t->ddp ? PC_OK : pc_error_last()->status;
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
    char why[PC_MESSAGE_MAX];
    if (status == PC_OK || t->ranks < 2)
        return;
    snprintf(why, sizeof why, "rank %d failed: %.*s", t->rank, PC_MESSAGE_MAX - 32, pc_error_last()->message);
    pc__group_abort(t->o.group, why);
}

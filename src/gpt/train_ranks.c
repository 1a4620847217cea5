/* train_ranks.c: a training in several ranks: each copy of the network, of one rank or of several that have its parts, learns
 * from its rows of every batch. */
#include "dist/group.h"
#include "gpt/train.h"
#include "store/store.h"

#include <paracord/dist.h>
#include <paracord/random.h>

/* This copy's part, which is one larger than others' where the batch cannot be cut into equal ones. */
static void share(pc__gpt_training *t)
{
    t->first = (int)((int64_t)t->all * t->copy / t->copies);
    t->o.batch = (int)((int64_t)t->all * (t->copy + 1) / t->copies) - t->first;
    t->weight = (double)t->o.batch * t->copies / t->all;
}

/* Each copy has a row of it at least. */
static pc_status cut_batch(pc__gpt_training *t)
{
    if (t->all < t->copies && t->network)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_gpt_train: a batch of %d is too small for %d copies of the network, each of %d ranks",
                        t->all, t->copies, t->o.tensor_parallel);
    if (t->all < t->copies)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: a batch of %d is too small for %d ranks", t->all, t->ranks);
    share(t);
    return PC_OK;
}

/* Neighbours have the parts of one network: where a machine has several devices, these are the ones that talk most. */
static pc_status split(pc__gpt_training *t)
{
    const int parts = t->o.tensor_parallel;
    if (t->ranks % parts)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_gpt_train: %d rank%s cannot be put together into networks of %d (tensor_parallel); take a "
                        "multiple of %d ranks, or a number that divides %d: checkpoints go on with any",
                        t->ranks, t->ranks == 1 ? "" : "s", parts, parts, t->ranks);
    t->copies = t->ranks / parts;
    t->copy = t->rank / parts;
    if (parts == 1)
        t->data = t->ranks > 1 ? t->o.group : NULL;
    else
        PC__TRY(pc_group_split(t->o.group, t->copy, t->rank, &t->network));
    return parts > 1 && t->copies > 1 ? pc_group_split(t->o.group, t->rank % parts, t->rank, &t->data) : PC_OK;
}

pc_status pc__gpt_ranks_begin(pc__gpt_training *t)
{
    t->ranks = t->o.group ? pc_group_size(t->o.group) : 1;
    t->rank = t->o.group ? pc_group_rank(t->o.group) : 0;
    t->all = t->o.batch;
    t->weight = 1;
    if (t->o.tensor_parallel > 1 && t->o.group && !t->o.group->place && t->ranks == pc_dist_size())
        PC__TRY(pc_dist_need_multiple(t->o.tensor_parallel)); /* first, for a launcher that could do with fewer ranks */
    PC__TRY(split(t));
    return t->all > 0 ? cut_batch(t) : PC_OK;
}

static pc_status other_start(const pc__gpt_training *t, const pc__gpt_standing *first, const pc__gpt_standing *other,
                             int rank)
{
    if (!first->there != !other->there)
        return pc__fail(PC_ERR_FILE,
                        "rank %d goes on from the checkpoint in %s, which rank %d does not have: the folder has to be "
                        "where all ranks see it",
                        first->there ? 0 : rank, t->o.out, first->there ? rank : 0);
    return pc__fail(PC_ERR_STATE,
                    "rank 0 goes on from a checkpoint in %s of step %lld, and rank %d from another one, of step %lld: "
                    "the folder has to be one that all ranks see",
                    t->o.out, (long long)first->step, rank, (long long)other->step);
}

/* All begin anew, or all go on from one file: else steps of some would be mixed with others of the rest. */
static pc_status compare_starts(const pc__gpt_training *t, const pc__gpt_standing *at)
{
    if (t->ranks == 1)
        return PC_OK;
    pc__gpt_standing *all = pc__alloc((size_t)t->ranks * sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = pc__group_exchange(t->o.group, at, sizeof *at, all);
    for (int r = 1; r < t->ranks && status == PC_OK; r++)
        if (memcmp(&all[r], &all[0], sizeof *all) != 0)
            status = other_start(t, &all[0], &all[r], r);
    pc__free(all);
    return status;
}

/* What fits now, in these ranks, may be another batch than what fitted then, and of another one it would be another
 * training. */
pc_status pc__gpt_ranks_agree_start(pc__gpt_training *t, const pc__gpt_standing *at)
{
    PC__TRY(compare_starts(t, at));
    if (t->all > 0 || !at->batch)
        return PC_OK;
    t->all = t->o.batch = (int)at->batch;
    return cut_batch(t);
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
    t->all = least * t->copies;
    share(t);
    return status;
}

/* No error: a job that has lost all copies but one goes on. */
static void warn_of_nothing_shared(const pc__gpt_training *t)
{
    if (!t->o.zero || t->rank)
        return;
    if (t->network)
        pc__log(PC_LOG_WARNING,
                "--zero %d shares out nothing: it does so over copies of the network, and all %d ranks have one "
                "(--tensor-parallel %d); take twice as many ranks or more, or --offload, or leave it out",
                t->o.zero, t->ranks, t->o.tensor_parallel);
    else
        pc__log(PC_LOG_WARNING,
                "--zero %d shares out nothing: one rank trains alone and has all of it; take several devices "
                "(--devices, paracord launch), or --offload, or leave it out",
                t->o.zero);
}

pc_status pc__gpt_ranks_join(pc__gpt_training *t)
{
    if (!t->data && !t->o.offload) {
        warn_of_nothing_shared(t);
        return PC_OK;
    }
    if (!t->data)
        PC__TRY(pc_group_threads(1, &t->own));
    if (!t->o.group)
        t->o.group = t->own;
    pc_group *over = t->data ? t->data : t->own;
    const pc_dtype reduce = strcmp(t->o.reduce, "bf16") == 0 ? PC_BF16 : PC_F32;
    if (t->o.zero)
        t->zero = pc_zero(t->gpt, over, .stage = t->o.zero, .offload = t->o.offload, .reduce_dtype = reduce);
    else
        t->ddp = pc_ddp(t->gpt, over, .reduce_dtype = reduce);
    return t->ddp || t->zero ? PC_OK : pc_error_last()->status;
}

pc_status pc__gpt_ranks_step(pc__gpt_training *t)
{
    return t->zero ? pc_zero_step(t->zero, t->optimizer) : pc_optimizer_step(t->optimizer);
}

/* The first copy's ranks put it together, in the first of them, on its device where that has room. */
static pc_status join(pc__gpt_training *t)
{
    PC__TRY(pc__gpt_join(t->gpt, &t->joined));
    return t->joined && pc__gpt_fits(t, t->joined) ? pc_module_to(t->joined, t->device, PC_F32) : PC_OK;
}

pc_status pc__gpt_ranks_whole(pc__gpt_training *t, bool whole)
{
    pc_module_free(t->joined);
    t->joined = NULL;
    if (t->zero)
        PC__TRY(whole ? pc_zero_gather(t->zero) : pc_zero_release(t->zero));
    return whole && t->network && t->copy == 0 ? join(t) : PC_OK;
}

pc_module *pc__gpt_ranks_network(const pc__gpt_training *t)
{
    return t->network ? t->joined : t->gpt;
}

/* Copies draw other zeros of dropout, the first those of a training alone; what is whole in ranks of one copy draws alike. */
void pc__gpt_ranks_seed(const pc__gpt_training *t)
{
    pc_generator generator = pc_generator_get();
    generator.seed += (uint64_t)t->copy * 0x9e3779b97f4a7c15u;
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
    if (status == PC_OK || t->ranks < 2)
        return;
    pc__group_fail(t->o.group);
    if (t->network)
        pc__group_fail_as(t->network, t->rank);
    if (t->network && t->data)
        pc__group_fail_as(t->data, t->rank);
    /* a launch may be on its way with calls of groups that are freed next; they fail by now */
    pc_error before = pc__error_take();
    if (pc_device_synchronize(t->device) != PC_OK)
        pc_error_clear();
    (void)pc__error_put(&before);
}

void pc__gpt_ranks_free(pc__gpt_training *t)
{
    pc_module_free(t->joined);
    pc_group_free(t->network);
    pc_group_free(t->own);
    if (t->data != t->o.group)
        pc_group_free(t->data);
}

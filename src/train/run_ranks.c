/* run_ranks.c: a run in several ranks: the first one writes, reads and tells. */
#include "dist/group.h"
#include "train/checkpoint.h"
#include "train/need.h"
#include "train/run.h"

#include <paracord/dist.h>
#include <paracord/memory.h>

static int ranks_of(const pc__run *run)
{
    return run->fit.group ? pc_group_size(run->fit.group) : 1;
}

void pc__run_in_ranks(pc__run *run)
{
    const pc_train_callbacks *c = run->s.callbacks;
    run->fit.group = run->s.group && pc_group_size(run->s.group) > 1 ? run->s.group : NULL;
    if (pc__fit_speaks(&run->fit))
        return;
    run->s.report = NULL;
    if (c)
        run->only_stops = (pc_train_callbacks){.context = c->context, .stop = c->stop};
    run->s.callbacks = &run->only_stops;
}

pc_status pc__run_share_out(pc__run *run)
{
    if (!run->s.zero)
        return PC_OK;
    if (!run->fit.group) { /* no error: a job that has lost all ranks but one goes on */
        pc__log(PC_LOG_WARNING,
                "--zero %d shares out nothing: one rank trains alone and has all of it; take several devices "
                "(--devices, paracord launch), or leave it out",
                run->s.zero);
        return PC_OK;
    }
    run->zero = pc_zero(run->fit.net, run->fit.group, .stage = run->s.zero, .reduce_dtype = run->fit.reduce_dtype);
    return run->zero ? PC_OK : pc_error_last()->status;
}

pc_status pc__run_agree_start(pc__run *run)
{
    bool resumed = run->resumed;
    PC__TRY(pc__fit_ranks_first(&run->fit, &resumed, sizeof resumed));
    if (resumed && !run->resumed)
        PC__TRY(pc__checkpoint_load(run->checkpoint, &run->fit, run->settings));
    run->resumed = resumed;
    return PC_OK;
}

int pc__run_part(const pc__run *run)
{
    return (run->s.batch + ranks_of(run) - 1) / ranks_of(run);
}

int pc__run_at_once(const pc__run *run)
{
    const int part = pc__run_part(run), parts = pc__fit_parts(&run->fit, run->s.batch);
    return (part + parts - 1) / parts;
}

static int64_t least_of(const pc__run *run, int64_t batch)
{
    return PC__MAX(1, batch / ranks_of(run)) / pc__fit_parts(&run->fit, batch);
}

int64_t pc__run_least_part(const pc__run *run)
{
    const int64_t pictures = pc_loader_count(run->fit.train), last = pictures % run->s.batch;
    const int64_t first = pictures > last ? least_of(run, run->s.batch) : INT64_MAX;
    return last ? PC__MIN(first, least_of(run, last)) : first;
}

int64_t pc__run_cache(const pc__run *run)
{
    const pc_group *group = run->fit.group;
    const int64_t all = pc__need_cache(run), left = pc_memory_left();
    const int here = !group ? 1 : group->place ? group->size : PC__MAX(1, pc_dist_local_size());
    if (here == 1 || all < 0 || (all == 0 && left == INT64_MAX))
        return all;
    return PC__MAX(1, (all ? all : left / 2) / here);
}

bool pc__run_sets_threads(const pc__run *run)
{
    return run->s.threads && (!run->fit.group || !run->fit.group->place || pc__fit_speaks(&run->fit));
}

/* pipeline.c: making a pipeline, and a step of it. */
#include "parallel/pipeline.h"

#include "device/graph.h"
#include "nn/module.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>

enum { WORDS = 256, PER_STAGE = 4 };

static pc_status check(const pc_pipeline *p)
{
    if (p->stages > PC_PIPELINE_STAGES)
        return pc__fail(PC_ERR_ARGUMENT, "pc_pipeline_new: a group of %d ranks; a pipeline has %d stages at most",
                        p->stages, PC_PIPELINE_STAGES);
    if (p->options.microbatches < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_pipeline_new: %d microbatches; it is 0 (four for each stage) or more",
                        p->options.microbatches);
    if (!pc__pipeline_has_schedule(p->options.schedule))
        return pc__fail(PC_ERR_ARGUMENT, "pc_pipeline_new: there is no schedule %d", (int)p->options.schedule);
    if (!p->loss && p->stage == p->stages - 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_pipeline_new: the last stage needs a loss function");
    return PC_OK;
}

/* What all ranks must have alike, and what is wrong in one of them. */
typedef struct plan {
    pc_status status;
    int microbatches, schedule, share_loss;
    char words[WORDS];
} plan;

static pc_status compare(const pc_pipeline *p, const plan *all)
{
    for (int r = 0; r < p->stages; r++)
        if (all[r].status != PC_OK)
            return r == p->stage ? all[r].status : pc__fail(all[r].status, "rank %d: %s", r, all[r].words);
    for (int r = 1; r < p->stages; r++)
        if (all[r].microbatches != all->microbatches || all[r].schedule != all->schedule ||
            all[r].share_loss != all->share_loss)
            return pc__fail(PC_ERR_STATE,
                            "pc_pipeline_new: rank 0 has %d microbatches, schedule %d, share_loss %d, and rank %d has "
                            "%d, %d, %d; all ranks give the same options",
                            all->microbatches, all->schedule, all->share_loss, r, all[r].microbatches, all[r].schedule,
                            all[r].share_loss);
    return PC_OK;
}

static pc_status agree(pc_pipeline *p)
{
    plan *all = pc__calloc((size_t)p->stages, sizeof *all);
    if (!all)
        return pc__pipeline_end(p, PC_ERR_MEMORY);
    plan mine = {.status = check(p),
                 .microbatches = p->options.microbatches,
                 .schedule = (int)p->options.schedule,
                 .share_loss = p->options.share_loss};
    if (mine.status != PC_OK)
        snprintf(mine.words, sizeof mine.words, "%.*s", WORDS - 1, pc_error_last()->message);
    pc_status status = mine.status;
    if (p->stages > 1) {
        status = pc__pipeline_end(p, pc__group_exchange(p->group, &mine, sizeof mine, all));
        if (status == PC_OK)
            status = compare(p, all);
    }
    pc__free(all);
    return status;
}

static pc_status first_place(void *context, const char *name, pc__named *tensor)
{
    pc_device *device = context;
    (void)name;
    if (device->index < 0)
        *device = pc_tensor_device(tensor->object);
    return PC_OK;
}

/* Where its parameters and buffers are. */
static pc_device device_of(pc_module *module)
{
    pc_device device = {.index = -1};
    (void)pc__module_each_state(module, first_place, &device);
    return device.index < 0 ? pc_device_current() : device;
}

static pc_status open(pc_pipeline *p)
{
    PC__TRY(agree(p));
    p->microbatch = pc__calloc((size_t)p->options.microbatches, sizeof *p->microbatch);
    if (!p->microbatch)
        return pc__pipeline_end(p, PC_ERR_MEMORY);
    if (p->stages > 1 && !pc_group_stream(p->group, p->device)) /* all ranks open it at once */
        return pc__pipeline_end(p, pc_error_last()->status);
    return PC_OK;
}

pc_pipeline *pc_pipeline_new(pc_module *stage, pc_group *group, pc_pipeline_loss_fn loss, void *context,
                             pc_pipeline_options options)
{
    PC__NEED_OR(NULL, stage);
    PC__NEED_OR(NULL, group);
    pc_pipeline *p = pc__calloc(1, sizeof *p);
    if (!p && group->size > 1)
        pc__group_abort(group, "pc_pipeline_new: a rank has no memory");
    if (!p)
        return NULL;
    *p = (pc_pipeline){.module = stage,
                       .group = group,
                       .loss = loss,
                       .context = context,
                       .options = options,
                       .device = device_of(stage),
                       .stage = group->rank,
                       .stages = group->size};
    if (!options.microbatches)
        p->options.microbatches = PER_STAGE * group->size;
    if (open(p) == PC_OK)
        return p;
    pc_pipeline_free(p);
    return NULL;
}

/* What is left of a step. */
static void clear(pc_pipeline *p)
{
    for (int m = 0; p->microbatch && m < p->options.microbatches; m++) {
        pc_tensor_free(p->microbatch[m].in);
        pc_tensor_free(p->microbatch[m].out);
        p->microbatch[m].in = p->microbatch[m].out = NULL;
    }
    pc_tensor_free(p->mean);
    p->mean = p->x = p->target = NULL;
}

void pc_pipeline_free(pc_pipeline *pipeline)
{
    if (!pipeline)
        return;
    clear(pipeline);
    pc__pipeline_untie(pipeline);
    pc__free(pipeline->microbatch);
    pc__free(pipeline);
}

pc_status pc__pipeline_end(pc_pipeline *p, pc_status status)
{
    char why[PC_MESSAGE_MAX];
    if (status == PC_OK)
        return status;
    snprintf(why, sizeof why, "%s", pc_error_last()->message);
    if (p->stages > 1)
        pc__group_abort(p->group, why);
    for (int i = 0; i < p->tied_count; i++)
        pc__group_abort(p->tied[i].group, why);
    if (p->options.ddp && pc_group_size(pc__ddp_group(p->options.ddp)) > 1)
        pc__group_abort(pc__ddp_group(p->options.ddp), why);
    return status;
}

static pc_status begin(pc_pipeline *p)
{
    if (!pc_grad_enabled())
        return pc__fail(PC_ERR_STATE, "stage %d: pc_pipeline_step inside PC_NO_GRAD has no backward passes", p->stage);
    if (p->stage)
        return PC_OK;
    if (!p->x || !p->x->ndim)
        return pc__fail(PC_ERR_ARGUMENT, "stage 0: pc_pipeline_step: the first stage needs x, [samples, ...]");
    const long long n = p->x->shape[0];
    if (p->knows_forms && n != p->batch)
        return pc__fail(PC_ERR_SHAPE,
                        "stage 0: pc_pipeline_step: a batch of %lld samples, and the first one had %lld; in front of "
                        "one of another size all ranks call pc_pipeline_forget_shapes",
                        n, (long long)p->batch);
    if (n < p->options.microbatches)
        return pc__fail(PC_ERR_SHAPE, "stage 0: pc_pipeline_step: %lld samples are too few for %d microbatches", n,
                        p->options.microbatches);
    p->batch = n;
    return PC_OK;
}

static pc_status share_loss(pc_pipeline *p)
{
    pc_status status = PC_OK;
    if (!p->options.share_loss || p->stages == 1)
        return PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            if (!p->mean)
                p->mean = pc_tensor_retain(pc_empty(PC_SHAPE_SCALAR, PC_F32, p->device));
            status = p->mean ? pc_group_broadcast(p->group, p->mean, p->stages - 1) : pc_error_last()->status;
        }
    }
    return status;
}

pc_status pc_pipeline_step(pc_pipeline *pipeline, pc_tensor *x, pc_tensor *target, pc_tensor **mean)
{
    PC__NEED(pipeline);
    pc_pipeline *p = pipeline;
    if (mean)
        *mean = NULL;
    if (p->stages > 1 && !p->knows_forms)
        PC__TRY(pc__graph_allows(pc_stream_current(p->device), "pc_pipeline_step",
                                 "the first step, in which the host reads shapes"));
    p->x = x;
    p->target = target;
    pc_status status = begin(p);
    if (status == PC_OK)
        status = pc__pipeline_run(p);
    if (status == PC_OK)
        status = share_loss(p);
    if (status == PC_OK && mean && p->mean) {
        *mean = pc__hand_out(p->mean);
        p->mean = NULL;
        status = *mean ? PC_OK : pc_error_last()->status;
    }
    p->knows_forms = status == PC_OK;
    clear(p);
    if (p->options.ddp)
        pc__ddp_hold(p->options.ddp, false);
    return pc__pipeline_end(p, status);
}

void pc_pipeline_forget_shapes(pc_pipeline *pipeline)
{
    PC__NEED_OR(, pipeline);
    pipeline->knows_forms = false;
}

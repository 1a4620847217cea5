/* pipeline_update.c: the optimiser's step of all stages together: one norm, and copies of a parameter that stay equal. */
#include "parallel/norm.h"
#include "parallel/pipeline.h"

#include "autograd/leaf_watch.h"
#include "nn/optimizer.h"
#include "ops/table.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* What a rank has of a parameter. */
typedef struct copy {
    int is_here, trained, dtype, ndim;
    int64_t shape[PC_MAX_DIMS];
} copy;

static copy copy_of(const pc_tensor *t)
{
    copy c = {.is_here = t != NULL};
    if (t) {
        c.trained = pc_requires_grad(t) && pc_is_leaf(t);
        c.dtype = t->dtype;
        c.ndim = t->ndim;
        memcpy(c.shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    }
    return c;
}

/* The same verdict in all ranks. *holders: how many have it. */
static pc_status compare(const copy *all, int ranks, int *holders)
{
    int first = -1;
    *holders = 0;
    for (int r = 0; r < ranks; r++) {
        if (!all[r].is_here)
            continue;
        ++*holders;
        first = first < 0 ? r : first;
        if (!all[r].trained)
            return pc__fail(PC_ERR_ARGUMENT,
                            "pc_pipeline_tie: rank %d's tensor is no parameter that collects gradients", r);
        if (memcmp(&all[r], &all[first], sizeof *all) != 0)
            return pc__fail(
                PC_ERR_SHAPE, "pc_pipeline_tie: rank %d has %s %s, and rank %d %s %s; copies have one shape and dtype",
                first, pc_dtype_name((pc_dtype)all[first].dtype), pc__shape_format(all[first].ndim, all[first].shape).s,
                r, pc_dtype_name((pc_dtype)all[r].dtype), pc__shape_format(all[r].ndim, all[r].shape).s);
    }
    return PC_OK;
}

static pc_status join(pc_pipeline *p, pc_tensor *parameter)
{
    pc_group *group;
    pc_status status = PC_OK;
    PC__TRY(pc__grow((void **)&p->tied, &p->tied_room, p->tied_count, sizeof *p->tied));
    PC__TRY(pc_group_split(p->group, parameter ? 0 : -1, 0, &group));
    if (!group)
        return PC_OK;
    p->tied[p->tied_count++] = (pc__tied){.parameter = pc_tensor_retain(parameter), .group = group};
    PC_NO_GRAD {
        status = pc_group_broadcast(group, parameter, 0);
    }
    return status;
}

pc_status pc_pipeline_tie(pc_pipeline *pipeline, pc_tensor *parameter)
{
    PC__NEED(pipeline);
    pc_pipeline *p = pipeline;
    int holders = 0;
    const copy mine = copy_of(parameter);
    copy *all = pc__calloc((size_t)p->stages, sizeof *all);
    pc_status status = PC_OK;
    if (!all)
        return pc__pipeline_end(p, PC_ERR_MEMORY);
    if (p->stages > 1)
        status = pc__pipeline_end(p, pc__group_exchange(p->group, &mine, sizeof mine, all));
    else
        *all = mine;
    if (status == PC_OK)
        status = compare(all, p->stages, &holders);
    pc__free(all);
    if (status != PC_OK || holders < 2)
        return status;
    return pc__pipeline_end(p, join(p, parameter));
}

void pc__pipeline_untie(pc_pipeline *p)
{
    for (int i = 0; i < p->tied_count; i++) {
        pc_tensor_free(p->tied[i].parameter);
        pc_group_free(p->tied[i].group);
    }
    pc__free(p->tied);
}

/* [1], above 0 where a gradient has come to this copy, or to pc_ddp's of it. *given: to this one, as far as the host knows. */
static pc_tensor *number_of(const pc_tensor *leaf, bool *given)
{
    const pc__leaf_watch *watch = leaf->watch;
    const bool lacks = watch && !watch->given && watch->others;
    *given = leaf->grad && !lacks;
    return leaf->grad && lacks ? pc_clone(pc__as_dtype(watch->others, PC_F32))
                               : pc_full(PC_SHAPE(1), *given, PC_F32, pc_tensor_device(leaf));
}

/* Above 0 where one of the copies has a gradient: else no step moves them, as without pc_pipeline_tie. */
static pc_status ask_all(pc__tied *t)
{
    pc_tensor *number = number_of(t->parameter, &t->given);
    PC__TRY(number ? pc_group_all_reduce(t->group, number, PC_GROUP_MAX) : pc_error_last()->status);
    t->number = pc_tensor_retain(number);
    return PC_OK;
}

/* The sum of all copies' gradients, in each: where pc_ddp has put zeros in the place of none it is one, too. */
static pc_status add_up(pc__tied *t)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *leaf = t->parameter;
            status = ask_all(t);
            if (status == PC_OK && !leaf->grad)
                status = pc__leaf_adds(
                    leaf, pc_zeros(pc_tensor_shape(leaf), (pc_dtype)leaf->dtype, pc_tensor_device(leaf)), true);
            if (status == PC_OK)
                status = pc_group_all_reduce(t->group, leaf->grad, PC_GROUP_SUM);
        }
    }
    return status;
}

static bool steps(const pc_optimizer *o, const pc_tensor *parameter)
{
    for (int i = 0; i < o->count; i++)
        if (o->parameters[i] == parameter)
            return true;
    return false;
}

/* For the optimiser: of tied parameters the numbers above, of others what their watches have; and whose gradients the norm
 * has of the lowest rank that has a copy. */
static pc_status tell(const pc_pipeline *p, pc_optimizer *o)
{
    const size_t count = (size_t)PC__MAX(o->count, 1);
    o->others = pc__calloc(count, sizeof *o->others);
    bool *elsewhere = o->others ? pc__calloc(count, sizeof *elsewhere) : NULL;
    o->elsewhere = elsewhere;
    if (!elsewhere)
        return PC_ERR_MEMORY;
    for (int i = 0; i < o->count; i++) {
        const pc__leaf_watch *watch = o->parameters[i]->watch;
        o->others[i] = watch && !watch->given ? watch->others : NULL;
        for (int k = 0; k < p->tied_count; k++) {
            const pc__tied *t = &p->tied[k];
            if (t->parameter != o->parameters[i])
                continue;
            o->others[i] = t->given ? NULL : t->number;
            elsewhere[i] |= pc_group_rank(t->group) > 0;
        }
    }
    return PC_OK;
}

static void forget(pc_pipeline *p, pc_optimizer *o)
{
    pc__free(o->others);
    pc__free((bool *)o->elsewhere);
    o->others = NULL;
    o->elsewhere = NULL;
    for (int i = 0; i < p->tied_count; i++) {
        pc_tensor_free(p->tied[i].number);
        p->tied[i].number = NULL;
    }
}

/* In the place of the optimiser's own way to a norm of several ranks (pc_tensor_parallel_clip's), which comes first. */
typedef struct stage_norm {
    const pc_pipeline *pipeline;
    pc_status (*own)(pc_optimizer *o); /* NULL: the stage is whole */
    void *whole;
} stage_norm;

static pc_status whole_norm(pc_optimizer *o)
{
    stage_norm *n = o->whole;
    o->whole = n->whole;
    const pc_status status = n->own ? n->own(o) : PC_OK;
    o->whole = n;
    return status == PC_OK ? pc__norm_of_all(n->pipeline->group, o->clip, o->clip_norm) : status;
}

static pc_status step(pc_pipeline *p, pc_optimizer *o)
{
    stage_norm n = {.pipeline = p, .own = o->whole_norm, .whole = o->whole};
    if (p->stages > 1) {
        o->whole_norm = whole_norm;
        o->whole = &n;
    }
    const pc_status status = pc_optimizer_step(o);
    o->whole_norm = n.own;
    o->whole = n.whole;
    return status;
}

pc_status pc_pipeline_update(pc_pipeline *pipeline, pc_optimizer *optimizer)
{
    PC__NEED(pipeline);
    PC__NEED(optimizer);
    pc_status status = pc__optimizer_clips_whole(optimizer);
    for (int i = 0; i < pipeline->tied_count && status == PC_OK; i++)
        if (steps(optimizer, pipeline->tied[i].parameter)) /* else it is another update that uses the sum up */
            status = add_up(&pipeline->tied[i]);
    if (status == PC_OK && pipeline->tied_count)
        status = tell(pipeline, optimizer);
    if (status == PC_OK)
        status = step(pipeline, optimizer);
    forget(pipeline, optimizer);
    return pc__pipeline_end(pipeline, status);
}

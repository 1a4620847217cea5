/* ddp.c: data parallel training: when which bucket is reduced. */
#include "dist/agree.h"
#include "dist/buckets.h"

#include "nn/module.h"

#include <paracord/autograd.h>
#include <paracord/data_parallel.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

struct pc_ddp {
    pc__leaf_set set; /* first: what a walk sees */
    pc_module *module;
    pc_group *group;
    pc_tensor **parameter; /* a reference each */
    int count, room;
    pc__buckets buckets;
    int next; /* the bucket that is reduced next: all ranks have the same order */
    bool sync;
};

static pc_ddp *ddp_of(pc__leaf_set *set)
{
    return (pc_ddp *)set;
}

/* Steps that were recorded do what backward passes did then: they are recorded anew. */
static void changed(const pc_ddp *d)
{
    d->module->version++;
}

static pc_status take(void *context, const char *name, pc__named *parameter)
{
    pc_ddp *d = context;
    pc_tensor *t = parameter->object;
    if (!pc_requires_grad(t))
        return PC_OK;
    for (int i = 0; i < d->count; i++)
        if (d->parameter[i] == t) /* under two names */
            return PC_OK;
    if (t->watch)
        return pc__fail(PC_ERR_STATE, "pc_ddp_new: the parameter %s is in another pc_ddp; free that first", name);
    PC__TRY(pc__grow((void **)&d->parameter, &d->room, d->count, sizeof *d->parameter));
    d->parameter[d->count++] = pc_tensor_retain(t);
    return PC_OK;
}

static pc_status begin(pc__leaf_set *set)
{
    pc_ddp *d = ddp_of(set);
    for (int i = 0; i < d->count; i++)
        d->buckets.watch[i].awaited = 0;
    for (int i = 0; i < d->buckets.count; i++)
        d->buckets.bucket[i].left = d->buckets.bucket[i].last - d->buckets.bucket[i].first + 1;
    d->next = 0;
    return PC_OK;
}

/* Those that are full, as far as all before them are. */
static pc_status reduce_full(pc_ddp *d)
{
    while (d->sync && d->next < d->buckets.count && !d->buckets.bucket[d->next].left)
        PC__TRY(pc_group_all_reduce(d->group, d->buckets.bucket[d->next++].flat, PC_GROUP_MEAN));
    return PC_OK;
}

/* What has no gradient in this rank may have one in another: zeros go in its place. */
static pc_status complete(pc_ddp *d, int i)
{
    pc_tensor *leaf = d->parameter[i], *place = d->buckets.watch[i].place;
    if (leaf->grad || !d->sync)
        return PC_OK;
    PC__TRY(pc_fill(place, 0));
    return pc__leaf_gets(leaf, place);
}

static pc_status ready(pc__leaf_set *set, pc__leaf_watch *watch)
{
    pc_ddp *d = ddp_of(set);
    PC__TRY(complete(d, watch->number));
    d->buckets.bucket[d->buckets.of[watch->number]].left--;
    return reduce_full(d);
}

static pc_status end(pc__leaf_set *set)
{
    pc_ddp *d = ddp_of(set);
    for (int i = 0; i < d->count; i++)
        PC__TRY(complete(d, i));
    for (int i = 0; i < d->buckets.count; i++)
        d->buckets.bucket[i].left = 0;
    return reduce_full(d);
}

static pc_status spread(void *context, const char *name, pc__named *parameter)
{
    (void)name;
    return pc_group_broadcast(((pc_ddp *)context)->group, parameter->object, 0);
}

/* Parameters that are not trained, too. */
static pc_status share(pc_ddp *d, bool parameters)
{
    pc_status status = parameters ? pc__module_visit(d->module, spread, d) : PC_OK;
    const int buffers = pc__module_buffer_count(d->module);
    for (int i = 0; i < buffers && status == PC_OK; i++)
        status = pc_group_broadcast(d->group, pc__module_buffer_at(d->module, i), 0);
    return status;
}

static pc_status prepare(pc_ddp *d, pc_ddp_options options)
{
    const double mb = 1 << 20;
    PC__TRY(pc__module_visit(d->module, take, d));
    if (!d->count)
        return pc__fail(PC_ERR_ARGUMENT, "pc_ddp_new: no parameter of the module collects gradients");
    PC__TRY(pc__agree_on_module(d->group, d->module));
    PC__TRY(pc__buckets_make(&d->buckets, d->parameter, d->count, (options.bucket_mb > 0 ? options.bucket_mb : 25) * mb,
                             1));
    PC__TRY(share(d, true));
    for (int i = 0; i < d->count; i++) {
        d->buckets.watch[i].set = &d->set;
        d->buckets.watch[i].number = i;
        d->parameter[i]->watch = &d->buckets.watch[i];
    }
    changed(d);
    return PC_OK;
}

pc_ddp *pc_ddp_new(pc_module *module, pc_group *group, pc_ddp_options options)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, group);
    if (!(options.bucket_mb >= 0))
        return pc__null(PC_ERR_ARGUMENT, "pc_ddp_new: a bucket of %g MB; it is 0 (the usual) or more",
                        options.bucket_mb);
    pc_ddp *d = pc__calloc(1, sizeof *d);
    if (!d)
        return NULL;
    *d = (pc_ddp){.set = {.begin = begin, .ready = ready, .end = end}, .module = module, .group = group, .sync = true};
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = prepare(d, options);
        }
    }
    if (status == PC_OK)
        return d;
    pc_ddp_free(d);
    return NULL;
}

void pc_ddp_free(pc_ddp *ddp)
{
    if (!ddp)
        return;
    if (ddp->count)
        changed(ddp);
    for (int i = 0; i < ddp->count; i++) {
        pc_tensor *t = ddp->parameter[i];
        if (t->watch && t->watch->set == &ddp->set)
            t->watch = NULL;
        pc_tensor_free(t);
    }
    pc__buckets_free(&ddp->buckets, ddp->count);
    pc__free(ddp->parameter);
    pc__free(ddp);
}

void pc_ddp_set_sync(pc_ddp *ddp, bool on)
{
    PC__NEED_OR(, ddp);
    if (ddp->sync != on)
        changed(ddp);
    ddp->sync = on;
}

pc_status pc_ddp_share_buffers(pc_ddp *ddp)
{
    PC__NEED(ddp);
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = share(ddp, false);
    }
    return status;
}

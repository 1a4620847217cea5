/* reducer.c: which bucket is reduced when. */
#include "parallel/reducer.h"

#include "parallel/agree.h"
#include "parallel/lacking.h"
#include "nn/module.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>

static pc_status take(void *context, const char *name, pc__named *parameter)
{
    pc__reducer *r = context;
    pc_tensor *t = parameter->object;
    if (!pc_requires_grad(t))
        return PC_OK;
    for (int i = 0; i < r->count; i++)
        if (r->parameter[i] == t) /* under two names */
            return PC_OK;
    if (t->watch)
        return pc__fail(PC_ERR_STATE, "%s: the parameter %s is in another pc_ddp or pc_zero; free that first",
                        r->how.who, name);
    PC__TRY(pc__grow((void **)&r->parameter, &r->room, r->count, sizeof *r->parameter));
    PC__TRY(pc__grow((void **)&r->name, &r->name_room, r->count, sizeof *r->name));
    snprintf(r->name[r->count].name, sizeof r->name->name, "%s", name);
    r->parameter[r->count++] = pc_tensor_retain(t);
    return PC_OK;
}

/* Its memory, and the gradients in it. */
static void drop_bucket(pc__reducer *r, int b)
{
    for (int i = r->buckets.bucket[b].first; i <= r->buckets.bucket[b].last; i++)
        pc_zero_grad(r->parameter[i]);
    pc__bucket_close(&r->buckets, b);
}

/* A pass that failed may have left gradients. */
static pc_status begin(pc__leaf_set *set)
{
    pc__reducer *r = (pc__reducer *)set;
    for (int i = 0; i < r->count && r->how.passed; i++)
        pc_zero_grad(r->parameter[i]);
    for (int b = 0; b < r->buckets.count && r->how.briefly; b++)
        pc__bucket_close(&r->buckets, b);
    for (int i = 0; i < r->count; i++)
        r->buckets.watch[i].awaited = 0;
    for (int i = 0; i < r->buckets.count; i++)
        r->buckets.bucket[i].left = r->buckets.bucket[i].last - r->buckets.bucket[i].first + 1;
    r->next = 0;
    r->walking = true;
    return PC_OK;
}

static pc_status place(pc__leaf_set *set, pc__leaf_watch *watch)
{
    pc__reducer *r = (pc__reducer *)set;
    return pc__bucket_open(&r->buckets, r->buckets.of[watch->number]);
}

static bool reduces(const pc__reducer *r)
{
    return r->sync && !r->held;
}

/* Those that are full, as far as all before them are. */
static pc_status reduce_full(pc__reducer *r)
{
    while (reduces(r) && r->next < r->buckets.count && !r->buckets.bucket[r->next].left) {
        PC__TRY(r->how.reduce(r, r->next));
        if (r->how.briefly)
            drop_bucket(r, r->next);
        r->next++;
    }
    return PC_OK;
}

/* What has no gradient in this rank may have one in another: zeros go in its place. */
static pc_status complete(pc__reducer *r, int i)
{
    pc_tensor *leaf = r->parameter[i];
    if (leaf->grad || !reduces(r))
        return PC_OK;
    PC__TRY(pc__bucket_open(&r->buckets, r->buckets.of[i]));
    PC__TRY(pc_fill(r->buckets.watch[i].place, 0));
    PC__TRY(pc__lacking_note(r, i));
    return pc_requires_grad(leaf) ? pc__leaf_gets(leaf, r->buckets.watch[i].place) : PC_OK;
}

static pc_status ready(pc__leaf_set *set, pc__leaf_watch *watch)
{
    pc__reducer *r = (pc__reducer *)set;
    PC__TRY(complete(r, watch->number));
    r->buckets.bucket[r->buckets.of[watch->number]].left--;
    return reduce_full(r);
}

static pc_status end(pc__leaf_set *set)
{
    pc__reducer *r = (pc__reducer *)set;
    r->walking = false;
    for (int b = r->next; b < r->buckets.count; b++) {
        if (b < r->next) /* it was full, and waited for those in front of it */
            continue;
        for (int i = r->buckets.bucket[b].first; i <= r->buckets.bucket[b].last; i++)
            PC__TRY(complete(r, i));
        r->buckets.bucket[b].left = 0;
        PC__TRY(reduce_full(r));
    }
    return r->how.passed ? r->how.passed(r) : PC_OK;
}

pc_status pc__reducer_open(pc__reducer *reducer, pc_module *module, pc_group *group, pc__reduction how,
                           double bucket_mb)
{
    const double usual = 25, mb = 1 << 20;
    *reducer = (pc__reducer){.set = {.begin = begin, .place = place, .ready = ready, .end = end},
                             .how = how,
                             .module = module,
                             .group = group,
                             .sync = true};
    if (!(bucket_mb >= 0))
        return pc__fail(PC_ERR_ARGUMENT, "%s: a bucket of %g MB; it is 0 (the usual) or more", how.who, bucket_mb);
    PC__TRY(pc__module_visit(module, take, reducer));
    const double size = bucket_mb > 0 ? bucket_mb : usual;
    PC__TRY(pc__agree_on_manner(group, (pc__manner){.bucket_mb = size,
                                                    .stage = how.stage,
                                                    .ahead = how.ahead,
                                                    .dtype = how.dtype ? how.dtype : PC_F32}));
    PC__TRY(pc__agree_on_module(group, module));
    if (!reducer->count)
        return pc__fail(PC_ERR_ARGUMENT, "%s: no parameter of the module collects gradients", how.who);
    PC__TRY(pc__buckets_make(&reducer->buckets, reducer->parameter, reducer->count, size * mb, how.parts, !how.stage));
    PC__TRY(pc__lacking_open(reducer, how.stage > 0));
    for (int b = 0; b < reducer->buckets.count && !how.briefly; b++)
        PC__TRY(pc__bucket_open(&reducer->buckets, b));
    return PC_OK;
}

static pc_status spread(void *context, const char *name, pc__named *parameter)
{
    (void)name;
    return pc_group_broadcast(((pc__reducer *)context)->group, parameter->object, 0);
}

pc_status pc__reducer_share(pc__reducer *reducer, bool parameters)
{
    pc_status status = parameters ? pc__module_each(reducer->module, spread, reducer) : PC_OK;
    const int buffers = pc__module_buffer_count(reducer->module);
    for (int i = 0; i < buffers && status == PC_OK; i++)
        status = pc_group_broadcast(reducer->group, pc__module_buffer_at(reducer->module, i), 0);
    return status;
}

void pc__reducer_start(pc__reducer *reducer)
{
    for (int i = 0; i < reducer->count; i++) {
        reducer->buckets.watch[i].set = &reducer->set;
        reducer->buckets.watch[i].number = i;
        reducer->parameter[i]->watch = &reducer->buckets.watch[i];
    }
    reducer->module->version++;
}

void pc__reducer_close(pc__reducer *reducer)
{
    if (reducer->count)
        reducer->module->version++;
    for (int i = 0; i < reducer->count; i++) {
        pc_tensor *t = reducer->parameter[i];
        if (t->watch && t->watch->set == &reducer->set)
            t->watch = NULL;
        pc_tensor_free(t);
    }
    pc__lacking_close(reducer);
    pc__buckets_free(&reducer->buckets);
    pc__free(reducer->parameter);
    pc__free(reducer->name);
}

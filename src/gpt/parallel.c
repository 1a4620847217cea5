/* parallel.c: GPTs that are cut up among ranks: made of whole ones, and whole ones of them. */
#include "gpt/model.h"

#include "dist/group.h"
#include "parallel/cut.h"

#include <paracord/no_grad.h>

pc_status pc__gpt_whole(const pc_gpt_options *o, const char *who)
{
    if (!pc__gpt_is_cut(o))
        return PC_OK;
    return pc__fail(
        PC_ERR_UNSUPPORTED,
        "%s: the network is cut up among %d ranks, and this is for whole ones; pc_gpt_save puts it together, "
        "and pc_gpt_open opens what that wrote",
        who, pc_group_size(o->group));
}

pc_tensor *pc_gpt_parallel_loss(const pc_module *gpt, pc_tensor *logits, pc_tensor *targets)
{
    PC__NEED_OR(NULL, gpt);
    PC__NEED_OR(NULL, logits);
    PC__NEED_OR(NULL, targets);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_parallel_loss");
    if (!o)
        return NULL;
    if (!pc__gpt_is_cut(o))
        return pc_gpt_loss(logits, targets);
    return pc_fn_parallel_cross_entropy(logits, targets, o->group,
                                        (pc_parallel_cross_entropy_options){.classes = o->vocabulary});
}

pc_module *pc_gpt_cut(const pc_module *gpt, pc_group *group)
{
    PC__NEED_OR(NULL, gpt);
    PC__NEED_OR(NULL, group);
    const pc_gpt_options *whole = pc__gpt_of(gpt, "pc_gpt_cut");
    if (!whole || pc__gpt_whole(whole, "pc_gpt_cut") != PC_OK)
        return NULL;
    pc_gpt_options o = *whole;
    o.group = group;
    if (pc__gpt_check(&o) != PC_OK)
        return NULL;
    const pc_tensor *any = pc__module_own(pc__gpt_part(gpt, PC__GPT_TOKENS), "weight");
    pc_module *part = pc__gpt_make(&o, false);
    if (part)
        *pc__gpt_ends_of(part) = *pc__gpt_ends_of(gpt);
    if (part && pc_module_to(part, pc_tensor_device(any), (pc_dtype)any->dtype) == PC_OK &&
        pc_tensor_parallel_cut(part, gpt) == PC_OK)
        return part;
    pc_module_free(part);
    return NULL;
}

pc_status pc__gpt_share_status(const pc_gpt_options *o, pc_status status)
{
    pc_status *all = pc__alloc((size_t)o->group->size * sizeof *all);
    pc_status met = all ? pc__group_exchange(o->group, &status, sizeof status, all) : PC_ERR_MEMORY;
    for (int r = 0; met == PC_OK && status == PC_OK && r < o->group->size; r++)
        if (all[r] != PC_OK)
            met = pc__fail(all[r], "rank %d of %s could not do its part of saving the network, and says why", r,
                           o->group->name);
    pc__free(all);
    return status != PC_OK ? status : met;
}

pc_status pc__gpt_join(const pc_module *gpt, pc_module **whole)
{
    pc_gpt_options o = *(const pc_gpt_options *)pc_module_data(gpt);
    const bool first = o.group->rank == 0;
    pc_group *group = o.group;
    o.group = NULL;
    *whole = first ? pc__gpt_make(&o, false) : NULL;
    if (*whole)
        *pc__gpt_ends_of(*whole) = *pc__gpt_ends_of(gpt);
    o.group = group;
    pc_status status = first && !*whole ? pc_error_last()->status : PC_OK;
    status = pc__gpt_share_status(&o, status);
    if (status == PC_OK)
        status = pc_tensor_parallel_join((pc_module *)gpt, *whole);
    if (status == PC_OK)
        return PC_OK;
    pc_module_free(*whole);
    *whole = NULL;
    return status;
}

static pc_status count(void *context, const char *name, pc__named *parameter)
{
    const pc_tensor *t = parameter->object;
    const pc__cut *cut = parameter->cut;
    (void)name;
    *(int64_t *)context += cut ? pc_tensor_count(t) / t->shape[cut->dim] * cut->size : pc_tensor_count(t);
    return PC_OK;
}

int64_t pc__gpt_elements(const pc_module *gpt)
{
    int64_t all = 0;
    (void)pc__module_each((pc_module *)gpt, count, &all);
    return all;
}

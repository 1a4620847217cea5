/* cut_clip.c: the norm of the gradients of a network that is cut up among ranks. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "nn/optimizer.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/tensor_parallel.h>

/* Gradients that all ranks have alike, and the group of the others. */
typedef struct search {
    pc_group *group;
    pc_tensor **same;
    int count, room;
} search;

static pc_status sort(void *context, const char *name, pc__named *parameter)
{
    search *s = context;
    (void)name;
    if (parameter->cut)
        s->group = parameter->cut->group;
    pc_tensor *gradient = parameter->cut ? NULL : pc_grad(parameter->object);
    for (int i = 0; gradient && i < s->count; i++) /* under two names */
        if (s->same[i] == gradient)
            return PC_OK;
    if (!gradient)
        return PC_OK;
    PC__TRY(pc__grow((void **)&s->same, &s->room, s->count, sizeof *s->same));
    s->same[s->count++] = gradient;
    return PC_OK;
}

/* The squares of what is cut, of all ranks, and those of the rest once. */
pc_status pc__cut_norm(pc_group *group, pc_tensor **gradients, int count, pc_tensor *clip, double most)
{
    const pc_device device = pc_tensor_device(clip);
    pc_tensor *same = pc_zeros(PC_SHAPE(2), PC_F64, device), *norm = pc_slice(clip, 0, 0, 1, 1);
    if (!same)
        return pc_error_last()->status;
    if (count)
        PC__TRY(pc__gradient_norm(same, gradients, count, most));
    pc_tensor *once = pc_square(pc_slice(same, 0, 0, 1, 1));
    pc_tensor *cut = pc_clamp(pc_sub(pc_square(norm), once), 0, INFINITY);
    if (!cut)
        return pc_error_last()->status;
    PC__TRY(pc_group_all_reduce(group, cut, PC_GROUP_SUM));
    pc_tensor *all = pc_sqrt(pc_add(cut, once));
    pc_tensor *factor = pc_clamp(pc_div(pc_full(PC_SHAPE(1), most, PC_F64, device), pc_add_scalar(all, 1e-6)), 0, 1);
    PC__TRY(pc_copy(norm, all));
    return pc_copy(pc_slice(clip, 0, 1, 2, 1), factor);
}

static pc_status whole_norm(void *context, pc_tensor *clip, double most)
{
    search s = {0};
    pc_status status = pc__module_each(context, sort, &s);
    PC_SCOPE {
        PC_NO_GRAD {
            if (status == PC_OK && s.group && s.group->size > 1)
                status = pc__cut_norm(s.group, s.same, s.count, clip, most);
        }
    }
    pc__free(s.same);
    return status;
}

pc_status pc_tensor_parallel_clip(pc_module *module, pc_optimizer *optimizer, double norm)
{
    PC__NEED(module);
    PC__NEED(optimizer);
    PC__TRY(pc_optimizer_set_clip(optimizer, PC_CLIP_NORM, norm));
    optimizer->whole_norm = whole_norm;
    optimizer->whole = module;
    return PC_OK;
}

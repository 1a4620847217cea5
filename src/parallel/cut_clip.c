/* cut_clip.c: the norm of the gradients of a network that is cut up among ranks. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "nn/optimizer.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/tensor_parallel.h>

/* The square of their norm, float64 [1]. */
static pc_tensor *squares(pc_tensor **gradients, int count, pc_device device, double most)
{
    pc_tensor *clip = pc_zeros(PC_SHAPE(2), PC_F64, device);
    if (!clip || (count && pc__gradient_norm(clip, gradients, count, most) != PC_OK))
        return NULL;
    return pc_square(pc_slice(clip, 0, 0, 1, 1));
}

/* The squares of what is cut, of all ranks, and those of the rest once: each by itself, since of a sum that is infinite
 * nothing can be taken away again. */
pc_status pc__cut_norm(pc_group *group, const pc__cut_gradients *g, pc_tensor *clip, double most)
{
    const pc_device device = pc_tensor_device(clip);
    pc_tensor *norm = pc_slice(clip, 0, 0, 1, 1), *once = squares(g->same, g->sames, device, most);
    pc_tensor *cut = once ? squares(g->part, g->parts, device, most) : NULL;
    if (!cut)
        return pc_error_last()->status;
    PC__TRY(pc_group_all_reduce(group, cut, PC_GROUP_SUM));
    pc_tensor *all = pc_sqrt(pc_add(cut, once));
    pc_tensor *factor = pc_clamp(pc_div(pc_full(PC_SHAPE(1), most, PC_F64, device), pc_add_scalar(all, 1e-6)), 0, 1);
    PC__TRY(pc_copy(norm, all));
    return pc_copy(pc_slice(clip, 0, 1, 2, 1), factor);
}

/* Of the ranks among which parameters are cut. */
static pc_status find_group(void *group, const char *name, pc__named *parameter)
{
    (void)name;
    if (parameter->cut && parameter->cut->group->size > 1)
        *(pc_group **)group = parameter->cut->group;
    return PC_OK;
}

/* What is cut from the front of the list on, the rest from its end on. */
static pc__cut_gradients sort(const pc_optimizer *o, pc_tensor **list)
{
    pc__cut_gradients g = {.part = list, .same = list + o->count};
    for (int i = 0; i < o->count; i++) {
        pc_tensor *gradient = o->elsewhere && o->elsewhere[i] ? NULL : pc_grad(o->parameters[i]);
        if (gradient && o->cut[i].group)
            g.part[g.parts++] = gradient;
        else if (gradient)
            *--g.same = gradient, g.sames++;
    }
    return g;
}

static pc_status whole_norm(pc_optimizer *o)
{
    pc_group *group = NULL;
    PC__TRY(pc__module_each(o->whole, find_group, &group));
    pc_tensor **list = group ? pc__alloc((size_t)PC__MAX(o->count, 1) * sizeof *list) : NULL;
    if (!list)
        return group ? PC_ERR_MEMORY : PC_OK;
    const pc__cut_gradients gradients = sort(o, list);
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = pc__cut_norm(group, &gradients, o->clip, o->clip_norm);
        }
    }
    pc__free(list);
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

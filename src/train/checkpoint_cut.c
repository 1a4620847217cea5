/* checkpoint_cut.c: parts of parameters into a checkpoint of whole ones, and back. */
#include "train/checkpoint_cut.h"

#include "dist/group.h"
#include "nn/optimizer.h"
#include "parallel/zero_state.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

typedef struct search {
    const pc_tensor *parameter; /* NULL: any */
    const pc__cut *cut;
} search;

static pc_status look(void *context, const char *name, pc__named *p)
{
    search *s = context;
    (void)name;
    if (p->cut && p->cut->group->size > 1 && (!s->parameter || p->object == s->parameter))
        s->cut = p->cut;
    return PC_OK;
}

/* The optimiser knows of its own parameters, whichever network has them; with zero these are pieces, which say nothing of
 * cuts. */
static const pc__cut *find(const pc_tensor *parameter, pc_module *net, const pc_optimizer *o, const pc_zero *zero)
{
    search s = {.parameter = parameter};
    for (int i = 0; i < o->count; i++)
        if (o->cut[i].group && (!parameter || o->parameters[i] == parameter))
            return &o->cut[i];
    if (zero)
        (void)!pc__module_each((pc_module *)pc__zero_module(zero), look, &s);
    if (!s.cut)
        (void)!pc__module_each(net, look, &s);
    return s.cut;
}

pc_group *pc__checkpoint_network(pc_module *net, const pc_optimizer *optimizer, const pc_zero *zero)
{
    const pc__cut *cut = find(NULL, net, optimizer, zero);
    return cut ? cut->group : NULL;
}

const pc__cut *pc__checkpoint_cut_of(const pc__fit *fit, const pc_tensor *parameter)
{
    return fit->network && parameter ? find(parameter, fit->net, fit->optimizer, fit->zero) : NULL;
}

const pc_tensor *pc__checkpoint_whole(const pc__cut *cut, const pc_tensor *t)
{
    pc_shape shape = pc_tensor_shape(t), ones = shape;
    shape.dim[cut->dim] = cut->size;
    for (int i = 0; i < ones.ndim; i++)
        ones.dim[i] = 1;
    return pc_expand(pc_zeros(ones, (pc_dtype)t->dtype, PC_DEVICE_CPU), shape);
}

pc_tensor *pc__checkpoint_join(const pc__cut *cut, pc_tensor *t, pc_device device)
{
    pc_tensor *all = t;
    if (cut)
        PC_NO_GRAD {
            all = pc__cut_join(cut, pc_to(t, device, (pc_dtype)t->dtype, false));
        }
    return all;
}

static pc_status take(const pc__checkpoint_tensor *is, const pc__cut *cut, pc_tensor *t, const pc_tensor *like)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        pc_tensor *whole = pc_from_data(is->numbers, pc_tensor_shape(like), (pc_dtype)t->dtype, PC_DEVICE_CPU);
        status = whole ? pc__cut_take(cut, t, whole) : pc_error_last()->status;
    }
    return status;
}

pc_status pc__checkpoint_take_part(const char *path, const pc__checkpoint_file *file, size_t *at, const pc__cut *cut,
                                   pc_tensor *t, const char *name)
{
    pc__checkpoint_tensor is;
    const size_t here = *at;
    pc_status status = PC_OK;
    if (!cut)
        return pc__checkpoint_take(path, file, at, t, name);
    PC_SCOPE {
        const pc_tensor *like = pc__checkpoint_whole(cut, t);
        if (!like)
            status = pc_error_last()->status;
        else if (pc__checkpoint_fits(file, at, like, &is))
            status = take(&is, cut, t, like);
        else
            status = pc__checkpoint_misfit(path, file, here, like, name);
    }
    return status;
}

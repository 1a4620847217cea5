/* optimizer_lacking.c: steps of parameters of which this rank has no gradient, and zeros in its place. Where other ranks have
 * one it is the step of all of them; else nothing of the parameter moves, neither by its momentum nor by a decay. Which of
 * the two it is the device alone knows, so that no host waits and steps can be recorded. */
#include "nn/optimizer.h"

#include "tensor/leaf_watch.h"

#include <paracord/ops.h>

/* Of the parameter in place k; NULL: this rank has a gradient. */
static pc_tensor *others_of(const pc_optimizer *o, int k)
{
    const int i = o->lined[k];
    const pc__leaf_watch *watch = o->parameters[i]->watch;
    if (o->others)
        return o->others[i];
    return watch && !watch->given ? watch->others : NULL;
}

bool pc__optimizer_lacks(const pc_optimizer *o, int used)
{
    for (int k = 0; k < used; k++)
        if (others_of(o, k))
            return true;
    return false;
}

/* The place of list s: the parameter, then its slots; gradients lie between. */
static int place_of(int s, int used, int k)
{
    return s ? (1 + s) * used + k : k;
}

pc_status pc__optimizer_line_up_copies(pc_optimizer *o, int used, pc_tensor **kept)
{
    for (int i = 0; i < (1 + o->slots) * used; i++) {
        const int s = i / used, k = i % used;
        if (!others_of(o, k))
            continue;
        pc_tensor **place = &o->work[place_of(s, used, k)];
        kept[i] = *place;
        *place = pc_clone(*place);
        if (!*place)
            return pc_error_last()->status;
    }
    return PC_OK;
}

/* Bool, and of a shape that fits the parameter and its slots: no [1] fits []. */
static pc_tensor *is_stepped(const pc_optimizer *o, int k)
{
    pc_tensor *number = others_of(o, k);
    return pc_cast(o->work[k]->ndim ? number : pc_reshape(number, PC_SHAPE_SCALAR), PC_BOOL);
}

pc_status pc__optimizer_choose(const pc_optimizer *o, int used, pc_tensor *const *kept)
{
    for (int i = 0; i < (1 + o->slots) * used; i++) {
        const int s = i / used, k = i % used;
        if (!kept[i])
            continue;
        pc_tensor *stepped = o->work[place_of(s, used, k)];
        pc_tensor *now = pc_where(is_stepped(o, k), stepped, kept[i]);
        PC__TRY(now ? pc_copy(kept[i], now) : pc_error_last()->status);
    }
    return PC_OK;
}

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

/* Of the parameter in place k and its slots, one after the other, so that one result at a time takes memory. */
static pc_status choose(const pc_optimizer *o, int used, int k, pc_tensor *const *kept)
{
    pc_tensor *by = is_stepped(o, k);
    pc_status status = by ? PC_OK : pc_error_last()->status;
    for (int s = 0; s <= o->slots && status == PC_OK; s++)
        PC_SCOPE {
            pc_tensor *was = kept[s * used + k], *now = pc_where(by, o->work[place_of(s, used, k)], was);
            status = now ? pc_copy(was, now) : pc_error_last()->status;
        }
    return status;
}

pc_status pc__optimizer_choose(const pc_optimizer *o, int used, pc_tensor *const *kept)
{
    for (int k = 0; k < used; k++)
        if (kept[k])
            PC__TRY(choose(o, used, k, kept));
    return PC_OK;
}

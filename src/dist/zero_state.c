/* zero_state.c: what an optimiser keeps of the pieces, as tensors of whole parameters, for checkpoints that any number of
 * ranks reads. */
#include "dist/zero.h"
#include "dist/zero_state.h"

#include "dist/group.h"
#include "nn/optimizer.h"
#include "ops/table.h"

#include <paracord/no_grad.h>

/* Elements of this rank's part of its bucket, in memory like that. */
static pc_tensor *place_of(const pc_zero *z, const pc__piece *p, pc_tensor *part)
{
    const int64_t begin = p->gradient->offset - z->own[p->bucket]->offset;
    return pc_reshape(pc_slice(part, 0, begin, begin + pc_tensor_count(p->gradient), 1), pc_tensor_shape(p->gradient));
}

/* Slot `slot` of bucket b's pieces, to or from memory like the part. Pieces are the optimiser's parameters, in order. */
static pc_status copy_pieces(const pc_zero *z, const pc_optimizer *o, int slot, int b, pc_tensor *part, bool to_part)
{
    pc_status status = PC_OK;
    for (int i = 0; i < z->piece_count && status == PC_OK; i++) {
        if (z->pieces[i].bucket != b)
            continue;
        pc_tensor *state = o->state[slot * o->count + i], *place = place_of(z, &z->pieces[i], part);
        status = !place ? pc_error_last()->status : to_part ? pc_copy(place, state) : pc_copy(state, place);
    }
    return status;
}

static pc_status collect(const pc_zero *z, const pc_optimizer *o, int slot, int b, pc_tensor **whole)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    const pc_dtype dtype = pc__bucket_dtype(buckets, b);
    pc_tensor *part = pc__bucket_part(buckets, b, z->reducer.group->size, dtype),
              *all = pc__bucket_part(buckets, b, 1, dtype);
    pc_status status = part && all ? pc_fill(part, 0) : pc_error_last()->status;
    if (status == PC_OK)
        status = copy_pieces(z, o, slot, b, part, true);
    if (status == PC_OK)
        status = pc_group_all_gather(z->reducer.group, all, part);
    for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last && whole && status == PC_OK; i++) {
        pc_tensor *view = pc__bucket_view(buckets, i, all);
        whole[slot * z->reducer.count + i] = pc_tensor_retain(pc_clone(pc_to(view, PC_DEVICE_CPU, dtype, false)));
        status = whole[slot * z->reducer.count + i] ? PC_OK : pc_error_last()->status;
        pc_tensor_free(view);
    }
    pc_tensor_free(part);
    pc_tensor_free(all);
    return status;
}

static pc_status put(const pc_zero *z, const pc_optimizer *o, int slot, int b, pc_tensor *const *whole)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    pc_tensor *all = pc__bucket_part(buckets, b, 1, pc__bucket_dtype(buckets, b));
    pc_status status = all ? PC_OK : pc_error_last()->status;
    for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last && status == PC_OK; i++) {
        pc_tensor *view = pc__bucket_view(buckets, i, all);
        status = view ? pc_copy(view, whole[slot * z->reducer.count + i]) : pc_error_last()->status;
        pc_tensor_free(view);
    }
    if (status == PC_OK) {
        const int64_t part = pc_tensor_count(z->own[b]), begins = part * z->reducer.group->rank;
        status = copy_pieces(z, o, slot, b, pc_slice(all, 0, begins, begins + part, 1), false);
    }
    pc_tensor_free(all);
    return status;
}

static pc_status each(const pc_zero *z, const pc_optimizer *o, pc_tensor **to, pc_tensor *const *from)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int slot = 0; slot < o->slots; slot++)
            for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
                PC_SCOPE {
                    status = from ? put(z, o, slot, b, from) : collect(z, o, slot, b, to);
                }
    }
    return status;
}

int pc__zero_parameters(const pc_zero *zero)
{
    return zero->reducer.count;
}

pc_tensor *pc__zero_parameter(const pc_zero *zero, int i, const char **name)
{
    *name = zero->reducer.name[i].name;
    return zero->reducer.parameter[i];
}

pc_status pc__zero_state_collect(pc_zero *zero, const pc_optimizer *of_part, pc_tensor **whole)
{
    return each(zero, of_part, whole, NULL);
}

pc_status pc__zero_state_put(pc_zero *zero, const pc_optimizer *of_part, pc_tensor *const *whole)
{
    return each(zero, of_part, NULL, whole);
}

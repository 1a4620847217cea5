/* zero_state.c: for checkpoints: what ranks have pieces of, as a whole, a bucket at a time. */
#include "parallel/zero.h"

#include "dist/group.h"
#include "nn/optimizer.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

int pc__zero_parameters(const pc_zero *zero)
{
    return zero->reducer.count;
}

pc_tensor *pc__zero_parameter(const pc_zero *zero, int i, const char **name)
{
    *name = zero->reducer.name[i].name;
    return zero->reducer.parameter[i];
}

int pc__zero_pieces(const pc_zero *zero, const pc__piece **pieces)
{
    *pieces = zero->pieces;
    return zero->piece_count;
}

int pc__zero_stage(const pc_zero *zero)
{
    return zero->stage;
}

bool pc__zero_has(const pc_zero *zero, const pc_optimizer *optimizer)
{
    return optimizer->count == zero->piece_count && optimizer->parameters[0] == zero->pieces[0].weights;
}

const pc_group *pc__zero_group(const pc_zero *zero)
{
    return zero->reducer.group;
}

const pc_module *pc__zero_module(const pc_zero *zero)
{
    return zero->reducer.module;
}

/* Where a piece is in `flat`, which has the bucket's elements from `begins` on. */
static pc_tensor *place_of(const pc_zero *z, const pc__piece *piece, pc_tensor *flat, int64_t begins)
{
    const int64_t from = z->reducer.buckets.offset[piece->parameter] + piece->begin - begins;
    return pc_slice(flat, 0, from, from + pc_tensor_count(piece->weights), 1);
}

static pc_tensor *as_line(pc_tensor *t)
{
    return pc_reshape(t, PC_SHAPE(pc_tensor_count(t)));
}

static pc_status each_of(const pc_zero *z, int b, pc_tensor *whole, pc__zero_each each, void *context)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    pc_status status = PC_OK;
    for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last && status == PC_OK; i++) {
        pc_tensor *view = pc__bucket_view(buckets, i, whole);
        status = view ? each(context, i, view) : pc_error_last()->status;
        pc_tensor_free(view);
    }
    return status;
}

static pc_status put_together(const pc_zero *z, int b, pc_tensor *const *pieces, pc_tensor *part, pc_tensor *whole)
{
    const int64_t begins = pc_tensor_count(part) * z->reducer.group->rank;
    PC__TRY(pc_fill(part, 0));
    for (int i = 0; i < z->piece_count; i++)
        if (z->pieces[i].bucket == b)
            PC__TRY(pc_copy(place_of(z, &z->pieces[i], part, begins), as_line(pieces[i])));
    return pc_group_all_gather(z->reducer.group, whole, part);
}

static pc_status gather(const pc_zero *z, int b, pc_tensor *const *pieces, pc__zero_each each, void *context)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    const pc_dtype dtype = pc__bucket_dtype(buckets, b);
    pc_tensor *part = pc__bucket_part(buckets, b, z->reducer.group->size, dtype);
    pc_tensor *whole = pc__bucket_part(buckets, b, 1, dtype);
    pc_status status = part && whole ? put_together(z, b, pieces, part, whole) : pc_error_last()->status;
    if (status == PC_OK)
        status = each_of(z, b, whole, each, context);
    pc_tensor_free(part);
    pc_tensor_free(whole);
    return status;
}

static pc_status cut(const pc_zero *z, int b, pc_tensor *const *pieces, pc__zero_each each, void *context)
{
    pc_tensor *whole = pc__bucket_part(&z->reducer.buckets, b, 1, pc__bucket_dtype(&z->reducer.buckets, b));
    pc_status status = whole ? each_of(z, b, whole, each, context) : pc_error_last()->status;
    for (int i = 0; i < z->piece_count && status == PC_OK; i++)
        if (z->pieces[i].bucket == b)
            status = pc_copy(as_line(pieces[i]), place_of(z, &z->pieces[i], whole, 0));
    pc_tensor_free(whole);
    return status;
}

typedef pc_status (*bucket_fn)(const pc_zero *z, int b, pc_tensor *const *pieces, pc__zero_each each, void *context);

static pc_status by_buckets(const pc_zero *z, bucket_fn one, pc_tensor *const *pieces, pc__zero_each each,
                            void *context)
{
    pc_status status = PC_OK;
    for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
        PC_NO_GRAD {
            PC_SCOPE {
                status = one(z, b, pieces, each, context);
            }
        }
    return status;
}

pc_status pc__zero_gather_pieces(const pc_zero *zero, pc_tensor *const *pieces, pc__zero_each each, void *context)
{
    return by_buckets(zero, gather, pieces, each, context);
}

pc_status pc__zero_cut_pieces(const pc_zero *zero, pc_tensor *const *pieces, pc__zero_each each, void *context)
{
    return by_buckets(zero, cut, pieces, each, context);
}

/* In stage 3 a rank has its pieces alone, and nobody has to be told. */
pc_status pc__zero_set_weights(pc_zero *zero, pc__zero_each each, void *context)
{
    pc_status status = PC_OK;
    if (zero->stage < 3 || zero->gathered) {
        PC_NO_GRAD {
            for (int i = 0; i < zero->reducer.count && status == PC_OK; i++)
                status = each(context, i, zero->reducer.parameter[i]);
        }
        return status;
    }
    pc_tensor **pieces = pc__alloc(PC__MAX(1, (size_t)zero->piece_count) * sizeof(*pieces));
    if (!pieces)
        return PC_ERR_MEMORY;
    for (int i = 0; i < zero->piece_count; i++)
        pieces[i] = zero->pieces[i].weights;
    status = pc__zero_cut_pieces(zero, pieces, each, context);
    pc__free(pieces);
    return status == PC_OK ? pc__zero_spread(zero) : status;
}

/* zero.c: data parallel training whose optimiser's state is shared out: stage 1 of ZeRO. Parameters lie in buckets as their
 * gradients do; each rank has a part of every bucket. */
#include "dist/reducer.h"

#include "dist/group.h"
#include "nn/module.h"
#include "nn/optimizer.h"

#include <paracord/autograd.h>
#include <paracord/data_parallel.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* What a rank has of a parameter. */
typedef struct piece {
    pc_tensor *weights, *gradient; /* views: of the parameters' bucket, of the reduced gradients' part */
} piece;

struct pc_zero {
    pc__reducer reducer; /* first */
    pc_module *part;
    pc_tensor **weights; /* by bucket: where its parameters lie */
    pc_tensor **own;     /* by bucket: the reduced gradients of this rank's part */
    piece *pieces;
    int piece_count, piece_room;
};

static pc_status reduce(pc__reducer *r, int bucket)
{
    const pc_zero *z = (const pc_zero *)r;
    return pc_group_reduce_scatter(r->group, z->own[bucket], r->buckets.bucket[bucket].flat, PC_GROUP_MEAN);
}

/* Gradients are those of the pieces from here on. */
static pc_status passed(pc__reducer *r)
{
    const pc_zero *z = (const pc_zero *)r;
    for (int i = 0; i < r->count; i++)
        pc_zero_grad(r->parameter[i]);
    for (int i = 0; i < z->piece_count; i++)
        if (!z->pieces[i].weights->grad)
            PC__TRY(pc__leaf_gets(z->pieces[i].weights, z->pieces[i].gradient));
    return PC_OK;
}

/* The parameter's numbers go where its bucket has them. */
static pc_status lay(pc_tensor *parameter, pc_tensor *place)
{
    PC__TRY(pc_copy(place, parameter));
    pc__storage *before = parameter->storage;
    pc__storage_retain(place->storage);
    parameter->storage = place->storage;
    parameter->offset = place->offset;
    memcpy(parameter->strides, place->strides, sizeof parameter->strides);
    pc__storage_drop(before);
    return PC_OK;
}

static pc_tensor *flat_like(const pc_tensor *t, int parts)
{
    const int64_t n = pc_tensor_count(t) / parts;
    return pc_tensor_retain(pc_zeros(pc_shape_of(1, &n), (pc_dtype)t->dtype, pc_tensor_device(t)));
}

static pc_status lay_all(pc_zero *z)
{
    z->weights = pc__calloc((size_t)z->reducer.buckets.count, sizeof(pc_tensor *));
    z->own = pc__calloc((size_t)z->reducer.buckets.count, sizeof(pc_tensor *));
    if (!z->weights || !z->own)
        return PC_ERR_MEMORY;
    for (int b = 0; b < z->reducer.buckets.count; b++) {
        const pc__bucket *bucket = &z->reducer.buckets.bucket[b];
        z->weights[b] = flat_like(bucket->flat, 1);
        z->own[b] = flat_like(bucket->flat, z->reducer.group->size);
        if (!z->weights[b] || !z->own[b])
            return pc_error_last()->status;
        for (int i = bucket->first; i <= bucket->last; i++) {
            pc_tensor *place =
                pc__bucket_view(z->weights[b], z->reducer.parameter[i], z->reducer.buckets.watch[i].place->offset);
            pc_status status = place ? lay(z->reducer.parameter[i], place) : pc_error_last()->status;
            pc_tensor_free(place);
            PC__TRY(status);
        }
    }
    return PC_OK;
}

/* Numbers from..to of the bucket, as [n, 1, ...]. */
static pc_tensor *column(pc_tensor *flat, int64_t offset, int64_t n, int ndim)
{
    const int64_t shape[PC_MAX_DIMS] = {n, 1, 1, 1, 1, 1, 1, 1};
    pc__meta meta;
    pc__meta_contiguous(&meta, (pc_dtype)flat->dtype, PC__MAX(ndim, 1), shape);
    meta.view_of = flat;
    meta.offset = offset;
    return pc__tensor_unscoped(&meta, pc_tensor_device(flat));
}

/* What this rank has of parameter i of bucket b, if anything. */
static pc_status cut(pc_zero *z, int b, int i)
{
    const pc_tensor *t = z->reducer.parameter[i];
    const int64_t part = pc_tensor_count(z->own[b]), begins = part * z->reducer.group->rank;
    const int64_t from = PC__MAX(t->offset, begins), to = PC__MIN(t->offset + pc_tensor_count(t), begins + part);
    if (from >= to)
        return PC_OK;
    PC__TRY(pc__grow((void **)&z->pieces, &z->piece_room, z->piece_count, sizeof *z->pieces));
    piece *p = &z->pieces[z->piece_count++];
    *p = (piece){.weights = column(z->weights[b], from, to - from, t->ndim),
                 .gradient = column(z->own[b], from - begins, to - from, t->ndim)};
    if (!p->weights || !p->gradient)
        return pc_error_last()->status;
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    PC__TRY(pc_module_add_parameter(z->part, number, p->weights));
    char *name = z->part->parameters[z->part->parameter_count - 1].name; /* the parameter's own, with dots; its end */
    const size_t length = strlen(z->reducer.name[i].name);
    snprintf(name, PC__NAME_MAX, "%s",
             z->reducer.name[i].name + (length < PC__NAME_MAX ? 0 : length + 1 - PC__NAME_MAX));
    return PC_OK;
}

static pc_status cut_all(pc_zero *z)
{
    z->part = pc_module_list_new(NULL, 0);
    if (!z->part)
        return pc_error_last()->status;
    z->part->is_part = true;
    for (int b = 0; b < z->reducer.buckets.count; b++)
        for (int i = z->reducer.buckets.bucket[b].first; i <= z->reducer.buckets.bucket[b].last; i++)
            PC__TRY(cut(z, b, i));
    int some = z->piece_count > 0, *all = pc__alloc((size_t)z->reducer.group->size * sizeof *all);
    pc_status status = all ? pc__group_exchange(z->reducer.group, &some, sizeof some, all) : PC_ERR_MEMORY;
    for (int r = 0; r < z->reducer.group->size && status == PC_OK; r++)
        if (!all[r])
            status = pc__fail(PC_ERR_ARGUMENT,
                              "pc_zero_new: the network has too few numbers for %d ranks: rank %d would have "
                              "none",
                              z->reducer.group->size, r);
    pc__free(all);
    return status;
}

static pc_status prepare(pc_zero *z, pc_module *module, pc_group *group, pc_zero_options options)
{
    const pc__reduction how = {.who = "pc_zero_new", .parts = group->size, .reduce = reduce, .passed = passed};
    PC__TRY(pc__reducer_open(&z->reducer, module, group, how, options.bucket_mb));
    PC__TRY(lay_all(z));
    PC__TRY(cut_all(z));
    PC__TRY(pc__reducer_share(&z->reducer, true));
    pc__reducer_start(&z->reducer);
    return PC_OK;
}

pc_zero *pc_zero_new(pc_module *module, pc_group *group, pc_zero_options options)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, group);
    pc_zero *z = pc__calloc(1, sizeof *z);
    pc_status status = z ? PC_OK : PC_ERR_MEMORY;
    PC_SCOPE {
        PC_NO_GRAD {
            if (status == PC_OK)
                status = prepare(z, module, group, options);
        }
    }
    if (status == PC_OK)
        return z;
    pc_zero_free(z);
    return NULL;
}

void pc_zero_free(pc_zero *zero)
{
    if (!zero)
        return;
    for (int i = 0; i < zero->piece_count; i++) {
        pc_tensor_free(zero->pieces[i].weights);
        pc_tensor_free(zero->pieces[i].gradient);
    }
    for (int b = 0; b < zero->reducer.buckets.count; b++) {
        pc_tensor_free(zero->weights ? zero->weights[b] : NULL);
        pc_tensor_free(zero->own ? zero->own[b] : NULL);
    }
    pc_module_free(zero->part);
    pc__reducer_close(&zero->reducer);
    pc__free(zero->weights);
    pc__free(zero->own);
    pc__free(zero->pieces);
    pc__free(zero);
}

pc_module *pc_zero_part(pc_zero *zero)
{
    PC__NEED_OR(NULL, zero);
    return zero->part;
}

/* Of the parts' norms the norm of all, and the factor that goes with it. */
static pc_status whole_norm(void *context, pc_tensor *clip, double most)
{
    const pc_zero *z = context;
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *norm = pc_slice(clip, 0, 0, 1, 1), *squares = pc_mul(norm, norm);
            status = pc_group_all_reduce(z->reducer.group, squares, PC_GROUP_SUM);
            pc_tensor *all = status == PC_OK ? pc_sqrt(squares) : NULL;
            pc_tensor *factor = pc_clamp(
                pc_div(pc_full(PC_SHAPE(1), most, PC_F32, pc_tensor_device(clip)), pc_add_scalar(all, 1e-6)), 0, 1);
            if (status == PC_OK)
                status = pc_copy(norm, all);
            if (status == PC_OK)
                status = pc_copy(pc_slice(clip, 0, 1, 2, 1), factor);
        }
    }
    return status;
}

static pc_status gather(pc_zero *z)
{
    pc_status status = PC_OK;
    for (int b = 0; b < z->reducer.buckets.count && status == PC_OK; b++)
        PC_SCOPE {
            const int64_t part = pc_tensor_count(z->own[b]), begins = part * z->reducer.group->rank;
            status = pc_group_all_gather(z->reducer.group, z->weights[b],
                                         pc_slice(z->weights[b], 0, begins, begins + part, 1));
        }
    return status;
}

pc_status pc_zero_step(pc_zero *zero, pc_optimizer *optimizer)
{
    PC__NEED(zero);
    PC__NEED(optimizer);
    optimizer->whole_norm = zero->reducer.group->size > 1 ? whole_norm : NULL;
    optimizer->whole = zero;
    PC__TRY(pc_optimizer_step(optimizer));
    return gather(zero);
}

/* zero_part.c: what a rank has of the parameters: pieces of them, as a module, so that optimisers, groups and schedules
 * know nothing of ranks. */
#include "parallel/zero.h"

#include "dist/group.h"
#include "parallel/cut.h"
#include "nn/module.h"
#include "ops/table.h"

/* Elements from..to of flat, as [n, 1, ...]. */
static pc_tensor *column(pc_tensor *flat, int64_t offset, int64_t n, int ndim)
{
    const int64_t shape[PC_MAX_DIMS] = {n, 1, 1, 1, 1, 1, 1, 1};
    pc__meta meta;
    pc__meta_contiguous(&meta, (pc_dtype)flat->dtype, PC__MAX(ndim, 1), shape);
    meta.view_of = flat;
    meta.offset = flat->offset + offset;
    return pc__tensor_unscoped(&meta, pc_tensor_device(flat));
}

/* Elements of a bucket: of the rank's part from `begins` on; of a parameter's there from..to, none where from >= to. */
typedef struct span {
    int64_t begins, from, to;
} span;

static span span_of(const pc_zero *z, int i, int rank)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    const int64_t part = buckets->bucket[buckets->of[i]].count / z->reducer.group->size, begins = part * rank;
    const int64_t offset = buckets->offset[i], end = offset + pc_tensor_count(z->reducer.parameter[i]);
    return (span){begins, PC__MAX(offset, begins), PC__MIN(end, begins + part)};
}

/* What this rank has of parameter i of bucket b, if anything. */
static pc_status cut(pc_zero *z, int b, int i)
{
    const pc_tensor *t = z->reducer.parameter[i];
    const span s = span_of(z, i, z->reducer.group->rank);
    if (s.from >= s.to)
        return PC_OK;
    PC__TRY(pc__grow((void **)&z->pieces, &z->piece_room, z->piece_count, sizeof *z->pieces));
    pc__piece *p = &z->pieces[z->piece_count++];
    *p = (pc__piece){.weights = column(z->weights[b].own, s.from - s.begins, s.to - s.from, t->ndim),
                     .gradient = column(z->own[b], s.from - s.begins, s.to - s.from, t->ndim),
                     .bucket = b,
                     .parameter = i,
                     .begin = s.from - z->reducer.buckets.offset[i]};
    if (!p->weights || !p->gradient)
        return pc_error_last()->status;
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    PC__TRY(pc_module_add_parameter(z->part, number, p->weights));
    z->part->parameters[z->part->parameter_count - 1].full = z->reducer.name[i].name;
    return PC_OK;
}

/* Of a network that is cut up among ranks of another group. */
static pc_status note_cut(void *context, const char *name, pc__named *parameter)
{
    pc_zero *z = context;
    (void)name;
    if (!parameter->cut)
        return PC_OK;
    if (pc_group_size(parameter->cut->group) > 1)
        z->network = parameter->cut->group;
    for (int i = 0; i < z->piece_count; i++)
        if (z->reducer.parameter[z->pieces[i].parameter] == parameter->object)
            z->pieces[i].cut = parameter->cut;
    return PC_OK;
}

static bool has_some(const pc_zero *z, int rank)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    for (int i = 0; i < buckets->parameters; i++)
        if (span_of(z, i, rank).from < span_of(z, i, rank).to)
            return true;
    return false;
}

/* Each rank has to have something to step. All of them see it. */
pc_status pc__zero_check(const pc_zero *z)
{
    const int size = z->reducer.group->size;
    for (int r = 0; r < size; r++)
        if (!has_some(z, r))
            return pc__fail(PC_ERR_ARGUMENT,
                            "pc_zero_new: the network has too few numbers for %d ranks: rank %d would have none", size,
                            r);
    return PC_OK;
}

pc_status pc__zero_cut(pc_zero *z)
{
    const pc__buckets *buckets = &z->reducer.buckets;
    z->own = pc__calloc((size_t)buckets->count, sizeof *z->own);
    z->part = pc_module_list_new(NULL, 0);
    if (!z->own || !z->part)
        return PC_ERR_MEMORY;
    z->part->is_part = true;
    z->part->hosted = z->offload;
    for (int b = 0; b < buckets->count; b++) {
        z->own[b] = pc__bucket_part(buckets, b, z->reducer.group->size, pc__bucket_dtype(buckets, b));
        if (!z->own[b])
            return pc_error_last()->status;
        PC__TRY(pc_fill(z->own[b], 0));
        for (int i = buckets->bucket[b].first; i <= buckets->bucket[b].last; i++)
            PC__TRY(cut(z, b, i));
    }
    z->others = pc__calloc((size_t)z->piece_count, sizeof *z->others);
    return z->others ? pc__module_each(z->reducer.module, note_cut, z) : PC_ERR_MEMORY;
}

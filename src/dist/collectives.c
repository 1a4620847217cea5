/* collectives.c: the public calls: arguments of this rank, memory without gaps, and the op. */
#include "dist/group.h"

#include "device/backend.h"
#include "dist/journal.h"
#include "ops/table.h"

#include <paracord/no_grad.h>

typedef struct request {
    const char *who;
    pc_group *group;
    int op;
    pc_tensor *to, *from; /* from NULL: in place */
    int reduction, peer;
} request;

static pc_status check_peer(const request *q)
{
    if (q->peer >= 0 && q->peer < q->group->size)
        return PC_OK;
    return pc__fail(PC_ERR_RANGE, "%s: there is no rank %d in %s; ranks are 0 to %d", q->who, q->peer, q->group->name,
                    q->group->size - 1);
}

static pc_status check_reduction(const request *q)
{
    const pc_dtype dtype = (pc_dtype)q->to->dtype;
    if (q->reduction < PC_GROUP_SUM || q->reduction > PC_GROUP_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d is no reduction", q->who, q->reduction);
    if (dtype == PC_BOOL && q->reduction <= PC_GROUP_MEAN)
        return pc__fail(PC_ERR_DTYPE, "%s: bool has no sum; use PC_GROUP_MAX (any) or PC_GROUP_MIN (all)", q->who);
    if (!pc__is_float(dtype) && q->reduction == PC_GROUP_MEAN)
        return pc__fail(PC_ERR_DTYPE, "%s: %s has no mean; sum it, or cast it to float32", q->who,
                        pc_dtype_name(dtype));
    return PC_OK;
}

/* The larger one has `times` as many elements. */
static pc_status check_counts(const request *q, const pc_tensor *larger, const pc_tensor *smaller, int times)
{
    if (larger->dtype != smaller->dtype)
        return pc__fail(PC_ERR_DTYPE, "%s: one tensor is %s and the other %s", q->who,
                        pc_dtype_name((pc_dtype)larger->dtype), pc_dtype_name((pc_dtype)smaller->dtype));
    if (pc_tensor_count(larger) != times * pc_tensor_count(smaller))
        return pc__fail(PC_ERR_SHAPE, "%s: %s has to have %d times as many elements as %s", q->who,
                        PC__SHAPE_OF(larger), times, PC__SHAPE_OF(smaller));
    return PC_OK;
}

static pc_status call(const request *q, pc__group_end *end, pc_tensor *to, pc_tensor *from)
{
    pc__collective attributes = {.comm = &end->comm, .reduction = q->reduction, .peer = q->peer};
    pc_status status = PC_OK;
    attributes.entry = pc__journal_queue(end->stream, q->op, to, from, &attributes);
    PC_WITH_STREAM(end->stream->backend->immediate ? pc_stream_current(end->comm.device) : end->stream) {
        status = pc__call_in_place(q->op, to, &from, from != NULL, &attributes, sizeof attributes);
    }
    if (attributes.entry && (status != PC_OK || end->stream->recording))
        pc__journal_set(attributes.entry, status != PC_OK ? PC__CALL_FAILED : PC__CALL_RECORDED);
    return status;
}

/* A part in its place. */
static bool is_there(const pc_tensor *from, const pc_tensor *to)
{
    return from->storage == to->storage && from->offset == to->offset && pc__is_contiguous(from) &&
           pc__is_contiguous(to);
}

/* What a rank gets of itself. */
static pc_status run_alone(const request *q)
{
    return q->from && !is_there(q->from, q->to) ? pc_copy(q->to, pc_reshape(q->from, pc_tensor_shape(q->to))) : PC_OK;
}

static pc_status run_whole(const request *q, pc__group_end *end)
{
    const bool in_place = !q->from;
    const bool whole = in_place ? pc__is_dense(q->to) : pc__is_contiguous(q->to);
    pc_tensor *from = in_place ? NULL : pc_contiguous(q->from);
    pc_tensor *to = whole ? q->to : pc_contiguous(q->to);
    if (!to || (!in_place && !from))
        return pc_error_last()->status;
    PC__TRY(call(q, end, to, from));
    return whole ? PC_OK : pc_copy(q->to, to);
}

/* What is empty here is so everywhere, but for those whose part is another rank's. */
static pc_status run(const request *q)
{
    const pc_device device = pc_tensor_device(q->to);
    if (q->from && !pc_device_equal(device, pc_tensor_device(q->from))) {
        char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX];
        return pc__fail(PC_ERR_DEVICE, "%s: the tensors are on %s and %s; move one with pc_to", q->who,
                        pc_device_name(device, a), pc_device_name(pc_tensor_device(q->from), b));
    }
    if (!pc_tensor_count(q->to) && (!q->from || !pc_tensor_count(q->from)))
        return PC_OK;
    const bool alone = q->group->size == 1;
    pc__group_end *end = alone ? NULL : pc__group_end_of(q->group, device);
    if (!alone && !end)
        return pc_error_last()->status;
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = alone ? run_alone(q) : run_whole(q, end);
        }
    }
    return status;
}

pc_status pc_group_all_reduce(pc_group *group, pc_tensor *t, pc_group_op reduction)
{
    PC__NEED(group);
    PC__NEED(t);
    const request q = {"pc_group_all_reduce", group, PC__OP_all_reduce, t, NULL, (int)reduction, 0};
    PC__TRY(check_reduction(&q));
    return run(&q);
}

pc_status pc_group_broadcast(pc_group *group, pc_tensor *t, int root)
{
    PC__NEED(group);
    PC__NEED(t);
    const request q = {"pc_group_broadcast", group, PC__OP_broadcast, t, NULL, 0, root};
    PC__TRY(check_peer(&q));
    return run(&q);
}

pc_status pc_group_reduce(pc_group *group, pc_tensor *t, pc_group_op reduction, int root)
{
    PC__NEED(group);
    PC__NEED(t);
    const request q = {"pc_group_reduce", group, PC__OP_reduce, t, NULL, (int)reduction, root};
    PC__TRY(check_reduction(&q));
    PC__TRY(check_peer(&q));
    return run(&q);
}

pc_status pc_group_all_gather(pc_group *group, pc_tensor *to, pc_tensor *from)
{
    PC__NEED(group);
    PC__NEED(to);
    PC__NEED(from);
    const request q = {"pc_group_all_gather", group, PC__OP_all_gather, to, from, 0, 0};
    PC__TRY(check_counts(&q, to, from, group->size));
    return run(&q);
}

pc_status pc_group_reduce_scatter(pc_group *group, pc_tensor *to, pc_tensor *from, pc_group_op reduction)
{
    PC__NEED(group);
    PC__NEED(to);
    PC__NEED(from);
    const request q = {"pc_group_reduce_scatter", group, PC__OP_reduce_scatter, to, from, (int)reduction, 0};
    PC__TRY(check_reduction(&q));
    PC__TRY(check_counts(&q, from, to, group->size));
    return run(&q);
}

/* Of a rank whose part is empty: a tensor without elements stands for it. */
static pc_status run_rooted(request *q, pc_tensor **absent)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        const pc_tensor *there = *absent == q->to ? q->from : q->to;
        pc_tensor *nothing =
            pc_empty(pc_shape_of(1, (const int64_t[]){0}), (pc_dtype)there->dtype, pc_tensor_device(there));
        *absent = nothing;
        status = nothing ? run(q) : pc_error_last()->status;
    }
    return status;
}

pc_status pc_group_gather(pc_group *group, pc_tensor *to, pc_tensor *from, int root)
{
    PC__NEED(group);
    PC__NEED(from);
    request q = {"pc_group_gather", group, PC__OP_gather_to, NULL, from, 0, root};
    PC__TRY(check_peer(&q));
    if (group->rank != root)
        return run_rooted(&q, &q.to);
    PC__NEED(to);
    q.to = to;
    PC__TRY(check_counts(&q, to, from, group->size));
    return run(&q);
}

pc_status pc_group_scatter(pc_group *group, pc_tensor *to, pc_tensor *from, int root)
{
    PC__NEED(group);
    PC__NEED(to);
    request q = {"pc_group_scatter", group, PC__OP_scatter, to, NULL, 0, root};
    PC__TRY(check_peer(&q));
    if (group->rank != root)
        return run_rooted(&q, &q.from);
    PC__NEED(from);
    q.from = from;
    PC__TRY(check_counts(&q, from, to, group->size));
    return run(&q);
}

pc_status pc_group_all_to_all(pc_group *group, pc_tensor *to, pc_tensor *from)
{
    PC__NEED(group);
    PC__NEED(to);
    PC__NEED(from);
    const request q = {"pc_group_all_to_all", group, PC__OP_all_to_all, to, from, 0, 0};
    PC__TRY(check_counts(&q, to, from, 1));
    if (pc_tensor_count(to) % group->size)
        return pc__fail(PC_ERR_SHAPE, "pc_group_all_to_all: %s has no whole number of elements for each of %d ranks",
                        PC__SHAPE_OF(to), group->size);
    return run(&q);
}

static pc_status between_two(request q)
{
    PC__TRY(check_peer(&q));
    if (q.peer == q.group->rank)
        return pc__fail(PC_ERR_ARGUMENT, "%s: rank %d is this one; pc_copy copies", q.who, q.peer);
    return run(&q);
}

pc_status pc_group_send(pc_group *group, pc_tensor *t, int to)
{
    PC__NEED(group);
    PC__NEED(t);
    return between_two((request){"pc_group_send", group, PC__OP_send, t, NULL, 0, to});
}

pc_status pc_group_receive(pc_group *group, pc_tensor *t, int from)
{
    PC__NEED(group);
    PC__NEED(t);
    return between_two((request){"pc_group_receive", group, PC__OP_receive, t, NULL, 0, from});
}

pc_status pc_group_barrier(pc_group *group)
{
    PC__NEED(group);
    char mine = 0, *all = pc__alloc((size_t)group->size);
    if (!all)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    for (int i = 0; i < PC_DEVICE_TYPES && status == PC_OK; i++)
        if (group->end[i].stream)
            status = pc_stream_synchronize(group->end[i].stream);
    if (status == PC_OK)
        status = pc__group_exchange(group, &mine, 1, all);
    pc__free(all);
    return status;
}

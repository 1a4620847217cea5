/* nccl_calls.c: which of NCCL's calls an op is. */
#include "cuda/dist/nccl.h"
#include "ops/table.h"

#if PC__HAVE_NCCL

typedef struct operands {
    ncclComm_t comm;
    cudaStream_t queue;
    ncclDataType_t type;
    ncclRedOp_t reduction;
    const char *from; /* of calls in place what `to` is */
    char *to;
    size_t count, bytes; /* of what is given or got once */
    int size, rank, peer;
} operands;

static ncclDataType_t type_of(pc_dtype dtype)
{
    static const ncclDataType_t types[PC_DTYPE_COUNT] = {
        [PC_BOOL] = ncclUint8,  [PC_U8] = ncclUint8,      [PC_I32] = ncclInt32,   [PC_I64] = ncclInt64,
        [PC_F16] = ncclFloat16, [PC_BF16] = ncclBfloat16, [PC_F32] = ncclFloat32, [PC_F64] = ncclFloat64};
    return types[dtype];
}

static ncclRedOp_t reduction_of(int reduction)
{
    static const ncclRedOp_t reductions[] = {
        [PC_GROUP_SUM] = ncclSum, [PC_GROUP_MEAN] = ncclAvg, [PC_GROUP_MIN] = ncclMin, [PC_GROUP_MAX] = ncclMax};
    return reductions[reduction];
}

/* Sends and receives that go together; one of them that fails ends the group all the same. */
static ncclResult_t exchange(const operands *o, bool gives, bool takes, bool to_all, bool from_all)
{
    ncclResult_t result = pc__nccl.GroupStart();
    for (int r = 0; r < o->size && result == ncclSuccess; r++) {
        const size_t part = (size_t)r * o->bytes;
        if (gives && (to_all || r == o->peer))
            result = pc__nccl.Send(o->from + (to_all ? part : 0), o->count, o->type, r, o->comm, o->queue);
        if (result == ncclSuccess && takes && (from_all || r == o->peer))
            result = pc__nccl.Recv(o->to + (from_all ? part : 0), o->count, o->type, r, o->comm, o->queue);
    }
    const ncclResult_t ended = pc__nccl.GroupEnd();
    return result == ncclSuccess ? ended : result;
}

static ncclResult_t queue(const operands *o, int op)
{
    const bool is_root = o->rank == o->peer;
    switch (op) {
    case PC__OP_all_reduce:
        return pc__nccl.AllReduce(o->from, o->to, o->count, o->type, o->reduction, o->comm, o->queue);
    case PC__OP_broadcast:
        return pc__nccl.Broadcast(o->from, o->to, o->count, o->type, o->peer, o->comm, o->queue);
    case PC__OP_reduce:
        return pc__nccl.Reduce(o->from, o->to, o->count, o->type, o->reduction, o->peer, o->comm, o->queue);
    case PC__OP_all_gather:
        return pc__nccl.AllGather(o->from, o->to, o->count, o->type, o->comm, o->queue);
    case PC__OP_reduce_scatter:
        return pc__nccl.ReduceScatter(o->from, o->to, o->count, o->type, o->reduction, o->comm, o->queue);
    case PC__OP_gather_to:
        return exchange(o, true, is_root, false, true);
    case PC__OP_scatter:
        return exchange(o, is_root, true, true, false);
    case PC__OP_all_to_all:
        return exchange(o, true, true, true, true);
    case PC__OP_send:
        return pc__nccl.Send(o->from, o->count, o->type, o->peer, o->comm, o->queue);
    default:
        return pc__nccl.Recv(o->to, o->count, o->type, o->peer, o->comm, o->queue);
    }
}

/* Elements that one rank gives or gets at once: of the smaller tensor, or of a rank's part. */
static int64_t count_of(const pc_call *call, int size)
{
    const pc_tensor *to = call->out[0], *from = call->n_in ? call->in[0] : to;
    const int64_t a = pc__count(to->ndim, to->shape), b = pc__count(from->ndim, from->shape);
    switch (call->op->index) {
    case PC__OP_all_to_all:
        return a / size;
    case PC__OP_all_gather:
    case PC__OP_gather_to:
        return b;
    default:
        return a;
    }
}

ncclResult_t pc__nccl_queue(ncclComm_t comm, int size, int rank, cudaStream_t stream, const pc_call *call)
{
    const pc__collective *a = call->attributes;
    const pc_tensor *to = call->out[0], *from = call->n_in ? call->in[0] : to;
    const size_t count = (size_t)count_of(call, size);
    const operands o = {.comm = comm,
                        .queue = stream,
                        .type = type_of((pc_dtype)to->dtype),
                        .reduction = reduction_of(a->reduction),
                        .from = pc__data(from),
                        .to = pc__data(to),
                        .count = count,
                        .bytes = count * pc_dtype_size((pc_dtype)to->dtype),
                        .size = size,
                        .rank = rank,
                        .peer = a->peer};
    return queue(&o, call->op->index);
}

#endif

/* run.c: the calls that move data, in pieces. */
#include "mpi/engine.h"

#include "ops/table.h"

pc_status pc__mpi_type(size_t n, size_t part, MPI_Datatype *type, int *count)
{
    MPI_Datatype piece;
    *type = MPI_BYTE;
    *count = (int)n;
    if (n == part)
        return PC_OK;
    *count = 1;
    PC__TRY(pc__mpi_check(MPI_Type_contiguous((int)n, MPI_BYTE, &piece), "a type of MPI"));
    int result = MPI_Type_create_resized(piece, 0, (MPI_Aint)part, type);
    (void)MPI_Type_free(&piece);
    if (result == MPI_SUCCESS)
        result = MPI_Type_commit(type);
    return pc__mpi_check(result, "a type of MPI");
}

void pc__mpi_type_free(MPI_Datatype *type)
{
    if (*type != MPI_BYTE && pc__mpi_is_sound())
        (void)MPI_Type_free(type);
}

/* Bytes `at` to `at` + `n` of each part go where they belong. */
static pc_status move_parts(const pc__mpi_call *c, size_t part, size_t at, size_t n)
{
    MPI_Request request;
    MPI_Datatype type;
    int count, started;
    const MPI_Comm comm = c->group->comm;
    const int root = c->attributes->peer, bytes = (int)n;
    const bool in_its_place =
        c->from == c->to + (size_t)c->comm->rank * part; /* MPI takes no two names of one memory */
    PC__TRY(pc__mpi_type(n, part, &type, &count));
    switch (c->call->op->index) {
    case PC__OP_all_gather:
        started = MPI_Iallgather(in_its_place ? MPI_IN_PLACE : (const void *)(c->from + at), bytes, MPI_BYTE,
                                 c->to + at, count, type, comm, &request);
        break;
    case PC__OP_gather_to:
        started = MPI_Igather(c->from + at, bytes, MPI_BYTE, c->to_bytes ? c->to + at : NULL, count, type, root, comm,
                              &request);
        break;
    case PC__OP_scatter:
        started = MPI_Iscatter(c->from_bytes ? c->from + at : NULL, count, type, c->to + at, bytes, MPI_BYTE, root,
                               comm, &request);
        break;
    default:
        started = MPI_Ialltoall(c->from + at, count, type, c->to + at, count, type, comm, &request);
    }
    const pc_status status = pc__mpi_wait(c, started, &request, NULL);
    pc__mpi_type_free(&type);
    return status;
}

static pc_status in_parts(const pc__mpi_call *c, size_t part)
{
    const size_t piece = PC__MAX((size_t)PC__MPI_PIECE / (size_t)c->comm->size, 4096);
    for (size_t at = 0; at < part; at += piece)
        PC__TRY(move_parts(c, part, at, PC__MIN(piece, part - at)));
    return PC_OK;
}

/* One to all, or one to one. */
static pc_status move_whole(const pc__mpi_call *c, size_t at, int n)
{
    MPI_Request request;
    int started;
    size_t got = (size_t)n;
    const int peer = c->attributes->peer;
    const MPI_Comm comm = c->group->comm;
    const bool receives = c->call->op->index == PC__OP_receive;
    if (c->call->op->index == PC__OP_broadcast)
        started = MPI_Ibcast(c->to + at, n, MPI_BYTE, peer, comm, &request);
    else if (receives)
        started = MPI_Irecv(c->to + at, n, MPI_BYTE, peer, PC__MPI_TAG, comm, &request);
    else
        started = MPI_Isend(c->to + at, n, MPI_BYTE, peer, PC__MPI_TAG, comm, &request);
    PC__TRY(pc__mpi_wait(c, started, &request, receives ? &got : NULL));
    if (got == (size_t)n)
        return PC_OK;
    return pc__fail(PC_ERR_STATE,
                    "receive of %s: rank %d gets %zu bytes here, and rank %d sends %zu; both must be the same",
                    c->comm->group, c->comm->rank, at + (size_t)n, peer, at + got);
}

static pc_status whole(const pc__mpi_call *c)
{
    for (size_t at = 0; at < c->to_bytes; at += PC__MPI_PIECE)
        PC__TRY(move_whole(c, at, (int)PC__MIN(c->to_bytes - at, (size_t)PC__MPI_PIECE)));
    return PC_OK;
}

static pc_status move(const pc__mpi_call *c)
{
    if (c->group->checked)
        PC__TRY(pc__mpi_compare(c));
    switch (c->call->op->index) {
    case PC__OP_all_reduce:
    case PC__OP_reduce:
        return pc__mpi_all_reduce(c);
    case PC__OP_reduce_scatter:
        return pc__mpi_reduce_scatter(c);
    case PC__OP_all_gather:
    case PC__OP_gather_to:
        return in_parts(c, c->from_bytes);
    case PC__OP_scatter:
        return in_parts(c, c->to_bytes);
    case PC__OP_all_to_all:
        return in_parts(c, c->to_bytes / (size_t)c->comm->size);
    default:
        return whole(c);
    }
}

static size_t bytes_of(const pc_tensor *t)
{
    return (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size((pc_dtype)t->dtype);
}

pc_status pc__mpi_run(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    (void)stream;
    pc__mpi_group *g = comm->implementation;
    const pc_tensor *to = call->out[0], *from = call->n_in ? call->in[0] : to;
    const bool pair = call->op->index == PC__OP_send || call->op->index == PC__OP_receive;
    const pc__mpi_call c = {.group = g,
                            .comm = comm,
                            .call = call,
                            .attributes = call->attributes,
                            .to = pc__data(to),
                            .from = pc__data(from),
                            .to_bytes = bytes_of(to),
                            .from_bytes = bytes_of(from),
                            .number = pair ? g->number : ++g->number};
    PC__TRY(pc__mpi_can(&c));
    pc__mpi_host_api->enter(comm, call, c.number);
    const pc_status status = move(&c);
    if (status == PC_OK)
        pc__mpi_host_api->leave(comm, c.number);
    else {
        comm->engine->abort(comm, pc__mpi_host_api->error_last()->message);
        pc__mpi_host_api->give_up(comm);
    }
    return status;
}

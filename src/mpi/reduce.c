/* reduce.c: reductions. Each rank gets a share of the elements from all ranks, reduces that, and hands on the result: every
 * rank sends and receives as much as in a ring, and each element is reduced once, in the order of ranks. What is small goes
 * whole to all who need the result. */
#include "mpi/engine.h"

#include "ops/table.h"

enum { SMALL = 16 << 10 }; /* bytes: below, a second round costs more than what it saves */

static pc_status scratch_of(const pc__mpi_call *c, size_t bytes)
{
    pc__mpi_group *g = c->group;
    if (g->room >= bytes)
        return PC_OK;
    pc__free(g->scratch);
    g->scratch = pc__alloc(bytes);
    g->room = g->scratch ? bytes : 0;
    return g->scratch ? PC_OK : PC_ERR_MEMORY;
}

/* `to` becomes the reduction of what all ranks have brought to the scratch memory, n elements of each. */
static void reduce_scratch(const pc__mpi_call *c, char *to, int64_t n, size_t element)
{
    void *target = to;
    for (int r = 0; r < c->comm->size; r++)
        c->group->from[r] = c->group->scratch + (size_t)r * (size_t)n * element;
    pc__mpi_host_api->reduce((pc_dtype)c->call->out[0]->dtype, (pc_group_op)c->attributes->reduction, &target, 1,
                             c->group->from, c->comm->size, n);
}

static bool to_root(const pc__mpi_call *c)
{
    return c->call->op->index == PC__OP_reduce;
}

static pc_status small(const pc__mpi_call *c, char *data, int64_t n, size_t element)
{
    MPI_Request request;
    const int bytes = (int)((size_t)n * element), root = c->attributes->peer;
    const bool takes = !to_root(c) || c->comm->rank == root;
    if (takes)
        PC__TRY(scratch_of(c, (size_t)c->comm->size * (size_t)bytes));
    char *all = c->group->scratch;
    const int started = to_root(c)
                            ? MPI_Igather(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, root, c->group->comm, &request)
                            : MPI_Iallgather(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, c->group->comm, &request);
    PC__TRY(pc__mpi_wait(c, started, &request, NULL));
    if (takes)
        reduce_scratch(c, data, n, element);
    return PC_OK;
}

/* A share of n elements for each rank. */
static pc_status shared(const pc__mpi_call *c, char *data, int64_t n, size_t element)
{
    MPI_Request request;
    const MPI_Comm comm = c->group->comm;
    const int bytes = (int)((size_t)n * element), root = c->attributes->peer;
    char *all = c->group->scratch, *own = data + (size_t)c->comm->rank * (size_t)bytes;
    int started = MPI_Ialltoall(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
    PC__TRY(pc__mpi_wait(c, started, &request, NULL));
    reduce_scratch(c, own, n, element);
    if (!to_root(c))
        started = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, data, bytes, MPI_BYTE, comm, &request);
    else if (c->comm->rank == root)
        started = MPI_Igather(MPI_IN_PLACE, 0, MPI_BYTE, data, bytes, MPI_BYTE, root, comm, &request);
    else
        started = MPI_Igather(own, bytes, MPI_BYTE, NULL, 0, MPI_BYTE, root, comm, &request);
    return pc__mpi_wait(c, started, &request, NULL);
}

/* Elements of a share: together they fill a piece. */
static int64_t share_of(const pc__mpi_call *c, size_t element)
{
    return (int64_t)(PC__MAX((size_t)PC__MPI_PIECE / (size_t)c->comm->size, 64) / element);
}

pc_status pc__mpi_all_reduce(const pc__mpi_call *c)
{
    const size_t element = pc_dtype_size((pc_dtype)c->call->out[0]->dtype);
    const int64_t most = share_of(c, element);
    int64_t left = (int64_t)(c->to_bytes / element);
    char *data = c->to;
    while (left > 0) {
        const int64_t share = PC__MIN(left / c->comm->size, most);
        if (!share || (size_t)left * element <= SMALL)
            return small(c, data, left, element);
        PC__TRY(scratch_of(c, (size_t)share * (size_t)c->comm->size * element));
        PC__TRY(shared(c, data, share, element));
        left -= share * c->comm->size;
        data += (size_t)share * (size_t)c->comm->size * element;
    }
    return PC_OK;
}

static pc_status scatter_piece(const pc__mpi_call *c, size_t at, size_t n, size_t element)
{
    MPI_Request request;
    MPI_Datatype type;
    int count;
    PC__TRY(scratch_of(c, n * (size_t)c->comm->size));
    PC__TRY(pc__mpi_type(n, c->to_bytes, &type, &count));
    const int started =
        MPI_Ialltoall(c->from + at, count, type, c->group->scratch, (int)n, MPI_BYTE, c->group->comm, &request);
    const pc_status status = pc__mpi_wait(c, started, &request, NULL);
    pc__mpi_type_free(&type);
    if (status == PC_OK)
        reduce_scratch(c, c->to + at, (int64_t)(n / element), element);
    return status;
}

pc_status pc__mpi_reduce_scatter(const pc__mpi_call *c)
{
    const size_t element = pc_dtype_size((pc_dtype)c->call->out[0]->dtype);
    const size_t piece = (size_t)share_of(c, element) * element;
    for (size_t at = 0; at < c->to_bytes; at += piece)
        PC__TRY(scatter_piece(c, at, PC__MIN(piece, c->to_bytes - at), element));
    return PC_OK;
}

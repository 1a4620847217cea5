/* plugin.c: the one function that the library calls, and the library's functions by the names that they have there. */
#include "mpi/engine.h"

#include "ops/names.h"

#include <stdarg.h>

const pc__mpi_host *pc__mpi_host_api;

void *pc__alloc(size_t bytes)
{
    return pc__mpi_host_api->alloc(bytes);
}

void *pc__calloc(size_t count, size_t size)
{
    return pc__mpi_host_api->calloc(count, size);
}

void pc__free(void *block)
{
    pc__mpi_host_api->free(block);
}

pc_status pc__fail_at(const char *file, int line, pc_status status, const char *cause, const char *format, ...)
{
    char message[PC_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return pc__mpi_host_api->fail(file, line, status, cause, message);
}

/* Tags tell groups apart that are made at the same time by the same ranks. */
static int tag_of(const pc__comm *comm)
{
    uint32_t hash = 2166136261u ^ (uint32_t)comm->device.type; /* FNV-1a */
    for (const char *c = comm->group; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (int)(hash % 32768); /* MPI promises that many */
}

static pc_status create(pc__mpi_group *g, const pc__comm *comm)
{
    MPI_Group world = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    int result = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (result == MPI_SUCCESS)
        result = MPI_Group_incl(world, comm->size, comm->members, &some);
    if (result == MPI_SUCCESS)
        result = MPI_Comm_create_group(MPI_COMM_WORLD, some, tag_of(comm), &g->comm);
    if (result == MPI_SUCCESS)
        result = MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    if (some != MPI_GROUP_NULL)
        (void)MPI_Group_free(&some);
    if (world != MPI_GROUP_NULL)
        (void)MPI_Group_free(&world);
    return pc__mpi_check(result, comm->group);
}

static void release(pc__mpi_group *g)
{
    if (!pc__mpi_is_sound())
        return; /* MPI may still write to it */
    if (g->comm != MPI_COMM_NULL && pc__mpi_runs())
        (void)MPI_Comm_free(&g->comm);
    pc__free(g->scratch);
    pc__free(g->from);
    pc__free(g);
}

static pc_status open(pc__comm *comm, const unsigned char id[PC__ENGINE_ID])
{
    pc__mpi_group *g = pc__calloc(1, sizeof *g);
    if (!g)
        return PC_ERR_MEMORY;
    g->comm = MPI_COMM_NULL;
    g->checked = id[0] != 0;
    g->from = pc__calloc((size_t)comm->size, sizeof *g->from);
    const pc_status status = !g->from              ? PC_ERR_MEMORY
                             : !pc__mpi_is_sound() ? pc__fail(PC_ERR_STATE, "%s: MPI was given up", comm->group)
                                                   : create(g, comm);
    if (status != PC_OK) {
        release(g);
        return status;
    }
    comm->implementation = g;
    return PC_OK;
}

static void abort_group(pc__comm *comm, const char *why)
{
    pc__mpi_group *g = comm->implementation;
    int none = 0;
    if (!g || !atomic_compare_exchange_strong(&g->aborted, &none, 1))
        return;
    snprintf(g->why, sizeof g->why, "%s", why);
    atomic_store(&g->aborted, 2);
}

static void close(pc__comm *comm)
{
    release(comm->implementation);
    comm->implementation = NULL;
}

static const pc__mpi plugin = {
    .engine = {.name = "MPI", .on_host = true, .open = open, .run = pc__mpi_run, .abort = abort_group, .close = close},
    .start = pc__mpi_start,
    .is_sound = pc__mpi_is_sound,
    .end = pc__mpi_end,
};

PC_API const pc__mpi *pc__mpi_plugin(const pc__mpi_host *host, char *why, size_t n);
const pc__mpi *pc__mpi_plugin(const pc__mpi_host *host, char *why, size_t n)
{
    if (host->api_version != PC__MPI_API)
        snprintf(why, n, "it was built for interface %u, this library has %u", PC__MPI_API, host->api_version);
    else if (strcmp(host->version, PC_VERSION) != 0)
        snprintf(why, n, "it belongs to Paracord %s, this library is %s", PC_VERSION, host->version);
    else if (strcmp(host->ops, pc__op_names) != 0)
        snprintf(why, n, "it was built with other ops than this library: build both together");
    else {
        pc__mpi_host_api = host;
        return &plugin;
    }
    return NULL;
}

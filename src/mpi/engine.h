/* engine.h: the inside of the MPI plug-in: the engine of groups between processes, on memory of the host (tensors on cpu and
 * sim). MPI moves bytes and nothing else. Numbers are added by src/dist/reduce.c, in the order of ranks, as between threads:
 * the same bits on every rank, in every run, for every implementation of MPI, network and way that the data takes.
 *
 * Nothing here waits without looking: requests are polled, each piece of a call has the group's deadline, and a lost rank or
 * an abort ends the wait. A request that was given up cannot be taken back: MPI may still write to its memory when it is
 * called again. So from then on this process calls MPI no more, in any group. */
#ifndef PC__MPI_ENGINE_H
#define PC__MPI_ENGINE_H

#include "dist/mpi.h"

#include <mpi.h>
#include <stdatomic.h>

/* A rank's end of a group. */
typedef struct pc__mpi_group {
    MPI_Comm comm;
    bool checked;       /* calls are compared before they are made */
    uint64_t number;    /* of the last collective */
    char *scratch;      /* what others bring to a reduction */
    size_t room;        /* of it, in bytes */
    const void **from;  /* as many as ranks */
    atomic_int aborted; /* 2: `why` says it */
    char why[PC_MESSAGE_MAX];
} pc__mpi_group;

/* A call under way. */
typedef struct pc__mpi_call {
    pc__mpi_group *group;
    const pc__comm *comm;
    const pc_call *call;
    const pc__collective *attributes;
    char *to;
    const char *from; /* of calls in place what `to` is */
    size_t to_bytes, from_bytes;
    uint64_t number;
} pc__mpi_call;

enum {
    PC__MPI_TAG = 1,        /* of what is sent from one rank to another */
    PC__MPI_TAG_CALLS = 2,  /* of the calls that are compared */
    PC__MPI_PIECE = 4 << 20 /* bytes that go at once: few enough for a cache and for MPI's counts */
};

extern const pc__mpi_host *pc__mpi_host_api;

/* --- init.c --- */
int pc__mpi_init(int *level); /* MPI's error, and for how many threads it works */

/* --- world.c: MPI's beginning and end --- */
pc_status pc__mpi_start(int rank, int size, bool crowded);
void pc__mpi_end(void);
bool pc__mpi_runs(void);

/* --- wait.c --- */

/* From the start on: ranks of this machine share processors, and who waits leaves them to the others soon. */
extern bool pc__mpi_crowded;

/* What MPI says of something that has not worked. */
pc_status pc__mpi_check(int result, const char *what);

/* The words of why this call cannot be done, or go on; PC_OK where it can. */
pc_status pc__mpi_can(const pc__mpi_call *c);

/* Until the request is done. *got (may be NULL): the bytes that came. */
pc_status pc__mpi_wait(const pc__mpi_call *c, int started, MPI_Request *request, size_t *got);

bool pc__mpi_is_sound(void);

/* --- the calls --- */
pc_status pc__mpi_run(pc__comm *comm, pc_stream *stream, const pc_call *call);
pc_status pc__mpi_compare(const pc__mpi_call *c);    /* compare.c */
pc_status pc__mpi_all_reduce(const pc__mpi_call *c); /* reduce.c: and reduce */
pc_status pc__mpi_reduce_scatter(const pc__mpi_call *c);

/* Of memory in as many parts of `part` bytes as ranks: a type that is `n` bytes of each, one behind the other. Its number of
 * elements for a part is in *count. Let go by pc__mpi_type_free. */
pc_status pc__mpi_type(size_t n, size_t part, MPI_Datatype *type, int *count);
void pc__mpi_type_free(MPI_Datatype *type);

#endif

/* mpi.h: the engine between processes for tensors in the host's memory, which is a plug-in: MPI's implementations differ in
 * their binary interfaces, and a library that needs one of them could not be used without it. What libparacord and the
 * plug-in give each other. */
#ifndef PC__DIST_MPI_H
#define PC__DIST_MPI_H

#include "dist/calls.h"

#define PC__MPI_API 1
#define PC__MPI_ENTRY "pc__mpi_plugin"
#define PC__MPI_OPEN_MPI "libparacord-mpi-openmpi.so"
#define PC__MPI_MPICH "libparacord-mpi-mpich.so"

/* The library's internal functions, which are not exported. */
typedef struct pc__mpi_host {
    unsigned api_version; /* PC__MPI_API; what follows may differ when it does */
    const char *version;  /* PC_VERSION: structures are shared, so both must be of one version */
    const char *ops;      /* pc__op_names */
    void *(*alloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t size);
    void (*free)(void *block);
    pc_status (*fail)(const char *file, int line, pc_status status, const char *cause, const char *message);
    const pc_error *(*error_last)(void);
    void (*reduce)(pc_dtype dtype, pc_group_op reduction, void *const *to, int targets, const void *const *from,
                   int sources, int64_t count);
    bool (*lost)(int *rank, char why[PC__WHY_MAX]);
    void (*enter)(const pc__comm *comm, const pc_call *call, uint64_t number);
    void (*leave)(const pc__comm *comm, uint64_t number);
    void (*give_up)(const pc__comm *comm);
    pc_status (*look)(const pc__comm *comm, const pc_call *call, uint64_t number);
    pc_status (*late)(const pc__comm *comm, const pc_call *call, uint64_t number);
} pc__mpi_host;

typedef struct pc__mpi {
    pc__engine engine; /* id[0] of open: calls are compared before they are made */

    /* Begin MPI, once a process, where it has not begun; all ranks of the world call it at about the same time. It must find
     * this rank and size. `crowded`: ranks of this machine share processors. */
    pc_status (*start)(int rank, int size, bool crowded);

    /* False where calls were given up: what MPI has begun, it may then go on with for ever. */
    bool (*is_sound)(void);

    /* All ranks have come here, and all are sound. */
    void (*end)(void);
} pc__mpi;

/* The plug-in's one exported function: NULL, with the reason in why, when it does not fit the library. */
typedef const pc__mpi *(*pc__mpi_entry)(const pc__mpi_host *host, char *why, size_t n);

/* The engine; what is missing is told when it is opened. */
extern const pc__engine pc__engine_mpi;

/* The process leaves its world. MPI ends with it where all ranks can end it. */
void pc__mpi_leave(void);

#endif

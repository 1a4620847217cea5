/* launch.h: starting a job of several ranks, on this host or on several, and seeing it through.
 *
 *     const char *const command[] = {"./train", "--epochs", "5", NULL};
 *     int status;
 *     if (pc_launch(command, PC_OPTIONS(pc_launch_options, .ranks = 4, .out = stdout, .err = stderr), &status) != PC_OK)
 *         return pc_report(stderr);
 *     return status;
 *
 * docs/launch.md has what ranks get and what is told of their ends; `paracord launch` is this function.
 *
 * Where PARACORD_DIST_DUMP names a folder, ranks that hear of a lost one have half a second to write down their last calls
 * before they are stopped (calls.h reads them), and SIGUSR1 to this process has them write while they go on. PARACORD_TRACE is
 * for the ranks: a timeline that it has begun of this process goes.
 */
#ifndef PARACORD_TOOLS_LAUNCH_H
#define PARACORD_TOOLS_LAUNCH_H

#include <paracord/error.h>

PC_BEGIN

typedef enum pc_launch_bind {
    PC_LAUNCH_BIND_NUMA, /* each rank to cores of its own, near its GPU, where there are enough of them */
    PC_LAUNCH_BIND_NONE
} pc_launch_bind;

typedef struct pc_launch_options {
    int ranks;              /* on this host; 0: 1 */
    int nodes;              /* hosts, on each of which this function is called; 0: 1 */
    int node_rank;          /* which of them this is, from 0 */
    const char *master;     /* "HOST:PORT" at which node 0 serves the store; needed for several nodes */
    int max_restarts;       /* how often all ranks are started again when one has failed */
    int min_ranks;          /* the job goes on with as few ranks of all hosts; 0: with all or none */
    pc_launch_bind bind;    /* which CPUs ranks may use */
    double timeout_seconds; /* how long hosts wait for each other; 0: 60 */
    FILE *out, *err;        /* for what ranks write, and for what is told of them; neither is NULL */
    int reserved_;
} pc_launch_options;

/* Start options.ranks processes of `command` (a program, its arguments, NULL; found by PATH) with the variables of torchrun,
 * and wait for their end. What they write comes out line by line, with "[rank] " in front, into the descriptors of
 * `out` and `err`; while nobody reads these the job goes on, until ranks wait for room. When one of them fails, or
 * gives no sign of life for PARACORD_BEAT_LIMIT seconds (10) once it has called pc_dist_init, all are stopped (SIGTERM, after
 * 5 s SIGKILL), with whatever they have started, and started again while restarts are left.
 *
 * With min_ranks above 0 the job is elastic: the next start leaves out the place (the GPU) of a rank that has failed twice
 * within 600 s, a host that does not come back within timeout_seconds, and what failed when no restart is left, while so
 * many ranks remain. Programs then have another world: docs/launch.md. Of pc_gpt_train with tensor_parallel a start has a
 * multiple of that many ranks, and other places are idle. Node 0's max_restarts and min_ranks count.
 *
 * *status is 0, or the exit status of the first rank that failed (128 + the signal that ended it); never 0 where what ranks wrote
 * could not all be written.
 *
 * While this runs it has SIGINT, SIGTERM and SIGHUP of the process, which it forwards, and all its child processes:
 * the program has none of its own. Not for programs with other threads that fork. Ranks that call MPI_Init find each other
 * where libpmix is, on one host, in the first job of a process. Errors: PC_ERR_ARGUMENT (options that do
 * not fit together; several nodes without PARACORD_TOKEN), PC_ERR_NOT_FOUND and PC_ERR_FILE (the command), PC_ERR_BACKEND (a
 * port in use), PC_ERR_TIMEOUT (nodes that do not come), PC_ERR_STATE (a node of another job or version), PC_ERR_LOST (node 0
 * is gone), PC_ERR_UNSUPPORTED (a build without libuv), PC_ERR_MEMORY. */
PC_API pc_status pc_launch(const char *const *command, pc_launch_options options, int *status);

PC_END
#endif

/* dist.h: ranks: which of the processes of a job this one is, and how many there are.
 *
 *     if (pc_dist_init((pc_dist_options){0}) != PC_OK)
 *         return pc_report(stderr);
 *     printf("rank %d of %d\n", pc_dist_rank(), pc_dist_size());
 *     ...
 *     pc_dist_end();
 *
 * The same program runs alone (a world of one), under `paracord launch -n 4 -- ./program`, torchrun, mpirun (Open MPI,
 * MPICH), prterun and srun, which say in variables of the environment who is who. docs/launch.md has them.
 *
 * Ranks find each other through a small store of values, which `paracord launch` serves. Under other launchers rank 0
 * serves it, at MASTER_PORT (at the next port where torchrun has that one for itself, or at PARACORD_STORE_PORT). It listens
 * on loopback alone unless the job has several hosts. Who connects must know the token: PARACORD_TOKEN, or what names the
 * job to all its ranks (TORCHELASTIC_RUN_ID, SLURM_JOB_ID, the namespace of Open MPI or PMIx). A job's name keeps jobs
 * apart that meet by accident, on one port of one machine; it is no secret. PARACORD_TOKEN, set to a random text, also keeps
 * others out who can reach the port, though not those who can read the network's traffic: it crosses that as it is.
 */
#ifndef PARACORD_DIST_H
#define PARACORD_DIST_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_dist_options {
    double timeout_seconds; /* how long to try to reach the store; 0: 10 s */
    int reserved_;
} pc_dist_options;

/* Find out who this process is, and join the others: serve the store (rank 0, where no launcher of ours does) or connect to
 * it, and begin to tell it every second that this rank is alive. Does not wait for ranks that have not come yet. Once a
 * process, from one thread, before the other functions here. Errors:
 * PC_ERR_ARGUMENT: a variable has a value that makes no sense, or one of a set is missing (the message names it);
 * PC_ERR_STATE: called before; another process has this rank; the store belongs to another start, another token, another
 * version of Paracord or another size of the world, or what is at that address is no store; PC_ERR_TIMEOUT: nobody serves
 * the store there, or what listens there says nothing in all that time;
 * PC_ERR_BACKEND: the port is in use, or the address is not this machine's; PC_ERR_UNSUPPORTED: more than one rank, and this
 * build has no libuv; PC_ERR_MEMORY. */
PC_API pc_status pc_dist_init(pc_dist_options options);

/* Leave in good order: a rank that goes without it is lost, and the others are told. Where rank 0 serves the store, it waits
 * for the others to leave, for as long as all of them are alive, and for those that have not come yet up to the timeout of
 * pc_dist_init; where groups have worked by MPI, which ends with this, all wait for each other. The functions below are of a
 * world of one then. Without pc_dist_init it does nothing. PC_ERR_LOST: another rank or the store was lost before; this one
 * has left all the same. */
PC_API pc_status pc_dist_end(void);

/* This process's rank, 0 to size - 1, and the number of ranks. 0 and 1 before pc_dist_init. */
PC_API int pc_dist_rank(void);
PC_API int pc_dist_size(void);

/* The same among the ranks of this host, and the number of the host (-1: the launcher does not tell). */
PC_API int pc_dist_local_rank(void);
PC_API int pc_dist_local_size(void);
PC_API int pc_dist_node_rank(void);

/* How often the job was started again after a failure: 0 for the first start. */
PC_API int pc_dist_generation(void);

/* This program can do with a multiple of so many ranks alone, as one whose networks are cut up among N neighbours
 * (tensor_parallel.h) does. Behind pc_dist_init, in front of other work, so that `paracord launch --elastic` knows when it
 * has to go on with fewer ranks: it takes the largest multiple then (of two programs in one job the last word counts). How
 * many ranks there are now is not checked. Does nothing in a world of one or under another launcher. PC_ERR_ARGUMENT: less than
 * 1; PC_ERR_LOST: the store is gone. */
PC_API PC_MUST_USE pc_status pc_dist_need_multiple(int ranks);

/* Who started this process: "paracord launch", "torchrun", "Open MPI", "MPICH", "PMIx", "Slurm"; "" for nobody. */
PC_API const char *pc_dist_launcher(void);

PC_END
#endif

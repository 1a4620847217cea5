/* launcher.h: the variables by which launchers tell a process which of several ranks it is. */
#ifndef PC__LAUNCHER_H
#define PC__LAUNCHER_H

#include "base/base.h"

#define PC__RANKS_MAX (1 << 20)

typedef char *(*pc__getenv)(const char *name); /* getenv, but in tests */

/* The variables of a launcher; NULL where it has none for that. */
typedef struct pc__launcher {
    const char *name, *rank, *size, *local_rank, *local_size, *node;
    const char *job[2]; /* what names the job to all of its ranks */
} pc__launcher;

enum { PC__LAUNCHERS = 4 };

/* In the order in which they are tried: what starts the process last is what other launchers' variables are inherited
 * through. The first is torchrun. */
extern const pc__launcher pc__launchers[PC__LAUNCHERS];

/* The first of which any of rank and size is set; NULL: nobody started this process as a rank. */
const pc__launcher *pc__launcher_of(pc__getenv get);

/* How many ranks of the job are on this host, by the first variable of them that is set; 1 where none is, or it is no
 * number of ranks. */
int pc__ranks_of_host(pc__getenv get);

/* The same by the lists of Slurm, of its node `node`; 0: there is none, or it does not say. */
int pc__slurm_ranks(pc__getenv get, int node);

/* How many tasks node `node` has, of a list such as "4(x2),3"; 0: the list does not say. */
int pc__slurm_tasks(const char *list, int node);

#endif

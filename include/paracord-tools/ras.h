/* ras.h: what a running job of NCCL says of its ranks: who is missing, dead, failed, or behind the others.
 *
 *     pc_ras *r = pc_ras();                             // localhost:28028, or NCCL_RAS_ADDR
 *     for (int i = 0; r && i < r->rank_count; i++)
 *         printf("rank %d on %s\n", r->ranks[i].rank, r->ranks[i].host);
 *     pc_ras_free(r);
 *
 * NCCL 2.24 and later listen in every process, and whoever is asked collects from all of the job (NVIDIA NCCL User Guide,
 * Troubleshooting, RAS). Asking disturbs no rank, and needs neither NCCL nor a GPU here. Counts are of calls that ranks
 * have launched, at slightly different moments: in a job that runs they differ now and then, in one that hangs they stay
 * as they are from one question to the next (pc_ras_moved).
 */
#ifndef PARACORD_TOOLS_RAS_H
#define PARACORD_TOOLS_RAS_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_ras_options {
    int reserved_;
    const char *address; /* "HOST", "HOST:PORT" or "[ADDRESS]:PORT"; NULL: NCCL_RAS_ADDR, else localhost:28028 */
    int timeout;         /* seconds that a process waits for others; all ends after three times as many, and 2; 0: 5 */
} pc_ras_options;

/* Communicators of the same size and state, as NCCL lists them. */
typedef struct pc_ras_group {
    int number, communicators, nodes;
    int ranks;                   /* of each */
    char status[24], errors[24]; /* "RUNNING", "INIT", "FINALIZE", "ABORT"; "OK", "MISMATCH", "INCOMPLETE", "ERROR" */
} pc_ras_group;

typedef enum pc_ras_state {
    PC_RAS_DEAD,    /* its process has not been reached for a minute */
    PC_RAS_MISSING, /* no answer in time: stopped, hung in the kernel, or ended */
    PC_RAS_FAILED,  /* it reports an error, words has it */
    PC_RAS_BEHIND,  /* it has launched fewer calls than others */
    PC_RAS_AHEAD,   /* more than the rest */
    PC_RAS_DIFFERS  /* another status than the rest, words has it */
} pc_ras_state;

/* One that is not as the others. NCCL names single ranks only where they are fewer than half. */
typedef struct pc_ras_rank {
    pc_ras_state state;
    int rank;               /* in the communicator; -1: a process as a whole */
    long long process;      /* its number on its host; -1: unknown */
    long long calls, most;  /* launched by it, and by those that are ahead; -1: not said */
    char communicator[48];  /* "#0-0 (27a079b828ff1a75)"; "": all */
    char host[64], gpu[32]; /* "": unknown */
    char operation[32];     /* which calls were counted, "AllReduce"; "": all collectives */
    char words[64];
} pc_ras_rank;

/* So many ranks have launched so many calls: a communicator whose ranks differ has several. */
typedef struct pc_ras_count {
    char communicator[48], operation[32];
    int ranks;
    long long calls;
} pc_ras_count;

typedef struct pc_ras {
    char address[128];
    char version[32];           /* of NCCL; "": unknown */
    int nodes, processes, gpus; /* of the job; -1: not said */
    int timeouts;               /* of processes that waited for others while they were asked */
    bool complete;              /* the answer came to its end */
    pc_ras_group *groups;
    pc_ras_rank *ranks;
    pc_ras_count *counts;
    int group_count, rank_count, count_count;
    const char *text; /* all that NCCL said; the lists have at most 16,384 each */
} pc_ras;

/* Ask. NULL with an error that names cause and way out: PC_ERR_NOT_FOUND (nobody listens there, no such host),
 * PC_ERR_TIMEOUT (nothing came in time), PC_ERR_STATE (something else listens there), PC_ERR_ARGUMENT (an address that is
 * none), PC_ERR_BACKEND (the system), PC_ERR_MEMORY. An answer that ends early is no error: `complete` is false. The caller
 * owns it. Any thread. */
PC_API PC_MUST_USE pc_ras *pc_ras_new(pc_ras_options options);
#define pc_ras(...) pc_ras_new(PC_OPTIONS(pc_ras_options, __VA_ARGS__))
PC_API void pc_ras_free(pc_ras *ras);

/* What NCCL says, read from `text`: what pc_ras_new does with an answer. Lines that are not understood are passed over, as
 * versions differ. NULL: PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_ras *pc_ras_read(const char *text);

/* Between two answers of one job, the first before the second, some rank that was counted has launched more calls. */
PC_API bool pc_ras_moved(const pc_ras *first, const pc_ras *second);

PC_END
#endif

/* parts.h: what the files of the launcher share. Everything runs in one loop of libuv, in one thread; what
 * comes out is written by others (writer.c).
 *
 * Each host has an agent, which starts, watches and ends its ranks. Node 0 also has the job, which decides: it serves the
 * store, gathers the agents and tells them what to do. To its own agent the job talks by calls, to others by frames. */
#ifndef PC__LAUNCH_PARTS_H
#define PC__LAUNCH_PARTS_H

#include "base/base.h"
#include "store/env.h"
#include "store/server.h"

#include <paracord-tools/launch.h>

#include <sys/types.h>
#include <uv.h>

#define PC__STOP_LIMIT_MS 5000 /* from SIGTERM to SIGKILL */

typedef struct pc__launch pc__launch;

/* Between job and agents. */
typedef enum pc__say {
    PC__SAY_READY,     /* agent: u32 ranks, text host */
    PC__SAY_START,     /* job: pc__start */
    PC__SAY_ENDED,     /* agent: u32 rank, u32 status, text what happened; a rank has ended, well or not */
    PC__SAY_ALL_ENDED, /* agent: nothing of this start is left */
    PC__SAY_STOP,      /* job: u32 rank which is to be killed at once (~0: none); all others are asked first */
    PC__SAY_SIGNAL,    /* both: u32 number; somebody has asked for the end */
    PC__SAY_END        /* job: u32 status, text; it is over */
} pc__say;

/* Ranks of a host are numbered among those that the start has; each has a place of the host, which is the number of its GPU
 * and of its cores. Where no place is left out these are the same. */
typedef struct pc__start {
    int generation, size, base; /* of the world, and the first rank of this host */
    int ranks, *places;         /* of this host */
    int node, nodes;            /* number among the hosts of this start, and how many those are */
    int master_port;
    char master[PC__HOST_MAX], run[40];
} pc__start;

typedef struct pc__writer pc__writer;

/* A stream of a rank, cut into lines. */
typedef struct pc__lines {
    uv_pipe_t pipe;
    pc__writer *to;
    char label[16];
    char *text;
    size_t length, capacity;
    bool open, closing, paused; /* paused: not read, as so much waits to be written */
    pc__launch *launch;
} pc__lines;

typedef struct pc__process {
    pid_t id; /* also its process group; 0: none */
    int rank;
    bool runs, hung;        /* hung: it was ended as it had been stopped for too long */
    uint64_t stopped_since; /* ms; 0: it is not */
    pc__lines lines[2];
} pc__process;

/* Where a rank runs. */
typedef struct pc__slot {
    bool out; /* the next start goes without it */
    bool failed;
    uint64_t failed_at; /* ms */
} pc__slot;

typedef struct pc__node {
    bool here, ready, busy;  /* connected; waits for a start; has processes */
    bool out;                /* nobody waits for it */
    int places, ranks, base; /* ranks of this start, of which `base` is the first */
    pc__slot *slots;
    char host[64];
} pc__node;

typedef enum pc__phase { PC__GATHERING, PC__RUNNING, PC__STOPPING, PC__OVER } pc__phase;

struct pc__launch {
    const char *const *command;
    pc_launch_options options;
    char **cpus; /* of each local rank, cpu_set_t; NULL: no binding */
    char path[4096], token[PC__TOKEN_MAX + 1], store[PC__HOST_MAX + 16], host[64];
    uv_loop_t loop;
    uv_signal_t signals[5];
    pc__writer *out, *err; /* one for both where they are one file */
    uv_async_t wake;
    bool unwritten; /* what ranks write cannot be written any more, which has been told */
    int signalled;  /* the first; 0: none */
    bool over;
    int status;
    pc_error error; /* what pc_launch fails with */
    void *pmix;

    /* the agent */
    pc__process *processes;
    pc__start start;
    bool busy, stopping;
    double beat_limit;                     /* seconds; 0: none */
    uint64_t stop_at, ended_at, looked_at; /* ms; when SIGKILL is due; since when no rank runs; for stopped ones */
    uv_timer_t agent_timer;
    struct pc__link *link; /* to node 0; NULL on node 0 */

    /* the job */
    pc__server *server;
    pc__node *nodes;
    pc__phase phase;
    int restarts, generation, size;
    int multiple;                             /* of so many ranks; 0: nobody has said that the program wants that */
    uint64_t gather_until, told_at, stop_due; /* stop_due: the others are stopped then; 0: not yet */
    int stop_kill;                            /* the rank that is killed at once then */
    uv_timer_t job_timer;
    int culprit, culprit_status;     /* rank, -1: none or a node */
    int culprit_node, culprit_place; /* -1: the node itself */
    bool has_culprit, culprit_known, culprit_told;
    char culprit_said[PC__WHY_MAX], culprit_end[PC__WHY_MAX];
    int failed, failed_status; /* the rank that ended badly first, which may not be the culprit; -1: none */
    char failed_end[PC__WHY_MAX];
};

/* launch.c. Sentences go to options.err as "paracord launch: ...". */
void pc__launch_tell(pc__launch *launch, const char *format, ...) PC_PRINTF(2, 3);
void pc__launch_interrupt(pc__launch *launch, int number); /* as if that signal had come */
void pc__launch_over(pc__launch *launch, int status);      /* the loop ends when all is closed */

/* agent.c */
pc_status pc__agent_begin(pc__launch *launch);
void pc__agent_hear(pc__launch *launch, pc__body *body);
void pc__agent_signal(pc__launch *launch, int number);
void pc__agent_children(pc__launch *launch); /* a child has ended */
void pc__agent_stop(pc__launch *launch, int kill_rank);
void pc__agent_say(pc__launch *launch, pc__text *body); /* to the job, wherever that is */
void pc__agent_close(pc__launch *launch);

/* job.c */
pc_status pc__job_begin(pc__launch *launch);
void pc__job_hear(pc__launch *launch, int node, pc__body *body);
void pc__job_say(pc__launch *launch, int node, pc__text *body);
void pc__job_close(pc__launch *launch);

/* job_end.c: who has failed, and what is told of it. */
void pc__job_lost(void *launch, int rank, bool silent, const char *why);
void pc__job_rank_ended(pc__launch *launch, int rank, int status, const char *how);
void pc__job_node_lost(pc__launch *launch, int node, const char *why);
void pc__job_tell_culprit(pc__launch *launch);
void pc__job_stop(pc__launch *launch, int kill_rank);
void pc__job_stop_soon(pc__launch *launch, int kill_rank); /* once ranks have written their last calls, where they do */
void pc__job_ask_dump(pc__launch *launch);                 /* of all ranks, which go on */

/* start.c: begin when all nodes are ready that are not left out. */
void pc__job_start(pc__launch *launch);

/* elastic.c: which places the next start has. Behind a start that failed: whether there is another one, which is told. Whether
 * the job goes on without the nodes that have not come in time. */
bool pc__job_take_node(pc__launch *launch, int node, int ranks);
void pc__job_divide(pc__launch *launch); /* how many ranks of the next start each node has, the first of its places */
void pc__job_find_place(const pc__launch *launch, int rank, int *node, int *place);
bool pc__job_goes_on(pc__launch *launch);
bool pc__job_goes_without(pc__launch *launch);

/* link.c: an agent's connection to node 0. */
pc_status pc__link_begin(pc__launch *launch);
void pc__link_say(pc__launch *launch, pc__text *body);
void pc__link_close(pc__launch *launch);

/* spawn.c: the program as `path`; a process of it. False with an error. */
pc_status pc__spawn_find(pc__launch *launch);
bool pc__spawn(pc__launch *launch, pc__process *process, int place, char **environment, const int files[2]);

/* variables.c: the environment of a rank of this host: texts from pc__alloc, NULL at the end. */
char **pc__variables(pc__launch *launch, int local_rank);
void pc__variables_free(char **variables);

/* folder.c: see there. False where no folder can be made. `fresh` makes an empty one of that name in it. */
#define PC__FOLDER_MAX 96
typedef struct pc__folder {
    char path[PC__FOLDER_MAX];
    int lock;
} pc__folder;
bool pc__folder_begin(pc__folder *folder);
void pc__folder_fresh(const pc__folder *folder, const char *name, char path[PC__FOLDER_MAX]);
void pc__folder_end(pc__folder *folder);

/* pmix.c: ranks as processes of one MPI_COMM_WORLD, where libpmix is there. All do nothing where it is not. */
void pc__pmix_begin(pc__launch *launch);
bool pc__pmix_start(pc__launch *launch); /* a namespace for this start; ends the one before */
void pc__pmix_variables(pc__launch *launch, int rank, void (*add)(void *context, const char *variable), void *context);
void pc__pmix_stop(pc__launch *launch);
void pc__pmix_end(pc__launch *launch);

/* lines.c: what ranks write, and where that and the launcher's sentences go. The end comes when all is written, which may take
 * as long as a reader pauses; false: not all is, as a signal has come. */
pc_status pc__output_begin(pc__launch *launch);
bool pc__output_end(pc__launch *launch);
bool pc__lines_begin(pc__launch *launch, pc__lines *lines, int rank, int file, pc__writer *to);
void pc__lines_end(pc__lines *lines); /* what is there still, and no more */

/* writer.c: a thread that writes lines, each with the label in front, to a file. NULL: an error. */
pc__writer *pc__writer_begin(FILE *to, uv_async_t *wake);
void pc__writer_line(pc__writer *writer, const char *label, const char *text, size_t n);

/* What has gone wrong (errno, or 0). full: so much waits that no more should come; idle: all is written; written: bytes. When
 * it is full, or not idle, `wake` is sent as soon as that may have changed. */
int pc__writer_look(pc__writer *writer, bool *full, bool *idle, uint64_t *written);

/* What is not written yet is lost. */
void pc__writer_end(pc__writer *writer);

/* stopped.c: end ranks that have been stopped for longer than a heart may be silent. */
void pc__stopped_end(pc__launch *launch, uint64_t now);

/* orphans.c: processes of ranks that have outlived these and belong to this process now. How many there are; each gets the
 * signal (0: none). */
int pc__orphans_signal(pc__launch *launch, int number);

/* cpus.c: which CPUs each local rank may use, by the tree at `root` ("/sys"): arrays of cpu_set_t; NULL: all (no error), or
 * there is no memory. `devices` is CUDA_VISIBLE_DEVICES, or NULL. */
char **pc__cpus_divide(const char *root, int ranks, const void *allowed, size_t bytes, const char *devices);
void pc__cpus_free(char **cpus);

#endif

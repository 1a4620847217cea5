/* calls.h: the files of ranks in memory. The public face is <paracord-tools/calls.h>. */
#ifndef PC__CALLS_H
#define PC__CALLS_H

#include "base/base.h"

#include <paracord-tools/calls.h>

#define PC__CALLS_RANKS_MAX 65536
#define PC__CALLS_OP_MAX 32
#define PC__CALLS_GROUP_MAX 64

typedef enum pc__call_state {
    PC__SEEN_QUEUED,
    PC__SEEN_RUNNING,
    PC__SEEN_DONE,
    PC__SEEN_FAILED,
    PC__SEEN_RECORDED,
    PC__SEEN_STATES
} pc__call_state;

/* A call of a rank. Times are seconds of the job's clock; NaN: unknown. */
typedef struct pc__seen_call {
    char group[PC__CALLS_GROUP_MAX], op[PC__CALLS_OP_MAX], dtype[16], reduction[8], device[24];
    int64_t number, count, bytes;
    int peer, rank, of, member; /* peer -1: none */
    int who;                    /* rank in the world, or among the threads of a process alone */
    pc__call_state state;
    bool kept; /* of a file that counts */
    double queued, entered, finished;
} pc__seen_call;

typedef struct pc__seen_file {
    char name[64], host[64], job[24];
    char *why;
    int rank, size, start, process, first, count; /* its calls */
    int64_t written;
    double now;
} pc__seen_file;

struct pc_calls {
    pc__seen_file *files; /* by rank */
    pc__seen_call *calls; /* of a file as it has them: oldest first */
    int file_count, file_room, call_count, call_room;
    int size; /* ranks */
    char left_out[160];
};

/* read.c: the text of a file into the lists. */
pc_status pc__calls_read(pc_calls *calls, const char *path, const char *name, const void *bytes, size_t n);

/* open.c: which of the files count; once all are read. */
void pc__calls_choose(pc_calls *calls);

/* Whether this is a call of two ranks. */
bool pc__seen_is_pair(const pc__seen_call *call);

/* The file of a rank; NULL where there is none. */
const pc__seen_file *pc__seen_file_of(const pc_calls *calls, int who);

/* words.c: "all_reduce of 1.0 MB (262,144 float32, sum)"; "812 of world, " in front; "ranks 0-2, 4" of a set, "rank 3". */
void pc__seen_words(const pc__seen_call *call, char *text, size_t n);
void pc__seen_place(const pc__seen_call *call, char *text, size_t n);
void pc__seen_ranks(const bool *set, int count, char *text, size_t n);
const char *pc__seen_time(double seconds, char text[32]);
const char *pc__seen_state(pc__call_state state);

/* ranks.c: what each rank does; of one rank. */
pc_status pc__calls_sum_ranks(const pc_calls *calls, pc_calls_summary *summary);
const pc__seen_call *pc__seen_last(const pc_calls *calls, int who);

/* compare.c: findings and rows. */
pc_status pc__calls_compare(const pc_calls *calls, pc_calls_summary *summary);

#endif

/* calls.h: reading what ranks have written of their last collective calls (PARACORD_DIST_DUMP=FOLDER), and saying where they
 * part: who never came to a call that others wait in, who called something else.
 *
 *     pc_calls *calls = pc_calls_open("run/dump");
 *     pc_calls_summary summary;
 *     if (!calls || pc_calls_summarise(calls, &summary) != PC_OK)
 *         return pc_report(stderr);
 *     for (int i = 0; i < summary.finding_count; i++)
 *         puts(summary.findings[i].words); // "rank 3 never came to call 812 of world, all_reduce of ..."
 *     pc_calls_summary_free(&summary);
 *     pc_calls_free(calls);
 *
 * Each process writes one file, calls.rank3.json, when a wait of any rank has ended by its deadline, or a rank is lost. Of a
 * job that was started again the last start counts. Calls of a group on one kind of device are compared by their numbers;
 * those of send and receive, which two ranks make, are told and not compared. */
#ifndef PARACORD_TOOLS_CALLS_H
#define PARACORD_TOOLS_CALLS_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_calls pc_calls;

/* Times are seconds; NaN where nobody knows. */
typedef struct pc_calls_rank {
    int rank;
    bool there;       /* it has left a file; without, all else is empty */
    const char *host; /* and the number of its process */
    int process;
    char entered[192]; /* "812 of world, all_reduce of 1.0 MB (262,144 float32, sum)"; "" for none */
    char finished[192];
    const char *state; /* of the one entered last: "queued", "running", "done", "failed", "recorded"; "" */
    double since;      /* for how long it has been in that call, or in none */
} pc_calls_rank;

/* Where ranks part, or wait. */
typedef struct pc_calls_finding {
    const char *group;
    int64_t number;
    char words[800];
} pc_calls_finding;

/* One call of a group, as its ranks came to it. */
typedef struct pc_calls_row {
    const char *group;
    int64_t number;
    char call[128];  /* what most ranks called */
    int first, last; /* ranks that entered it first and last; -1: unknown */
    double later;    /* between these */
    char absent[96]; /* "rank 3": that have not come, or called something else; "" */
    bool finished;   /* by all that came */
} pc_calls_row;

/* Texts belong to the calls, lists to the summary. */
typedef struct pc_calls_summary {
    int size, there;    /* ranks, and how many have left a file */
    int start;          /* of the job: how often it was started again */
    int64_t written;    /* seconds since 1970: of the newest file */
    const char *why;    /* what the file that was written first says */
    char absent[96];    /* "rank 2": without a file; "" */
    char left_out[160]; /* files of another job or an earlier start; "" */
    int finding_count, rank_count, row_count;
    pc_calls_finding *findings; /* the first to be looked at first */
    pc_calls_rank *ranks;
    pc_calls_row *rows; /* those around the first finding; without one the last ones */
} pc_calls_summary;

/* Read the files of a folder; the caller releases it with pc_calls_free. NULL: PC_ERR_NOT_FOUND when it holds none,
 * PC_ERR_FILE when one cannot be read, PC_ERR_FORMAT, which names it, when one is cut or no such file; PC_ERR_MEMORY. Any
 * thread. */
PC_API PC_MUST_USE pc_calls *pc_calls_open(const char *folder);
PC_API void pc_calls_free(pc_calls *calls);

/* Fill `summary`; release it with pc_calls_summary_free before the calls. Zeroed after a failure. */
PC_API PC_MUST_USE pc_status pc_calls_summarise(const pc_calls *calls, pc_calls_summary *summary);
PC_API void pc_calls_summary_free(pc_calls_summary *summary);

PC_END
#endif

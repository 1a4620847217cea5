/* doctor_job.h: what a running job of NCCL has said, for people and for programs. */
#ifndef CLI_DOCTOR_JOB_H
#define CLI_DOCTOR_JOB_H

#include <stdbool.h>

#include <paracord-tools/ras.h>

/* How the ranks that are not as the others stand. */
typedef struct cli_job_verdict {
    int lost;   /* dead, missing, failed */
    int behind; /* or ahead, or of another status */
    bool asked_again, moved;
    bool complete; /* the answer */
} cli_job_verdict;

/* Ranks hold the job up, or nobody can say that none does. */
bool cli_job_wrong(const cli_job_verdict *v);

/* In words; as JSON; as NCCL said it. */
void cli_job_text(const pc_ras *r, const cli_job_verdict *v);
void cli_job_json(const pc_ras *r, const cli_job_verdict *v);
void cli_job_lines(const char *text);

#endif

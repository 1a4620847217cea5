/* doctor.h: what is wrong with a machine, how that is known, and the commands that mend it.
 *
 *     pc_machine *m = pc_machine();
 *     pc_diagnosis *d = pc_diagnosis(m, .job = PC_JOB_TRAIN);
 *     for (int i = 0; d && i < d->finding_count; i++)
 *         printf("%s\n%s\n", d->findings[i].what, d->findings[i].fix);
 *     pc_diagnosis_free(d);
 *
 * Checks look at the machine's files and at the facts of the probe; they change nothing and need no root. A check that
 * could not see what it needs says so in `unseen` instead of guessing.
 */
#ifndef PARACORD_TOOLS_DOCTOR_H
#define PARACORD_TOOLS_DOCTOR_H

#include <paracord-tools/probe.h>

PC_BEGIN

/* What the machine is for: checks that do not matter for it are left out. */
typedef enum pc_job {
    PC_JOB_ANY,       /* all checks */
    PC_JOB_TRAIN = 1, /* training, on one GPU or several */
    PC_JOB_SERVE = 2, /* predicting */
    PC_JOB_BUILD = 4  /* compiling CUDA programs */
} pc_job;

typedef enum pc_severity {
    PC_SEVERITY_WRONG, /* it keeps GPUs from working, or from working right or fast */
    PC_SEVERITY_ADVICE /* it works, and could be better; no reason to call the machine ill */
} pc_severity;

typedef struct pc_finding {
    const char *check;  /* its name, "driver-missing" */
    const char *device; /* PCI address; NULL: about the machine */
    pc_severity severity;
    const char *what; /* one sentence */
    const char *how;  /* how that is known */
    const char *fix;  /* what to do: commands, a line each; lines that begin with # explain */
} pc_finding;

/* A check that could not be made. */
typedef struct pc_unseen {
    const char *check, *why;
} pc_unseen;

typedef struct pc_diagnosis {
    pc_finding *findings; /* what is wrong first */
    pc_unseen *unseen;
    int finding_count, unseen_count, wrong_count, checked_count;
} pc_diagnosis;

typedef struct pc_diagnosis_options {
    int reserved_;
    pc_job job;
    const char *cuda_reason; /* why Paracord's CUDA backend has no device; NULL: it has some, or nobody asked */
    const char *peers;       /* what GPUs did together, the lines of pc_peers_try (peers.h); NULL: nobody tried */
} pc_diagnosis_options;

/* Examine a machine: pc_diagnosis(machine), or pc_diagnosis(machine, .job = PC_JOB_TRAIN). Where a process that the
 * driver lists has ended, or memory is held without one, the driver is asked again (pc_machine_sample). NULL with an
 * error when memory runs out. The diagnosis belongs to the caller and lends texts of the machine: free it first. */
PC_API PC_MUST_USE pc_diagnosis *pc_diagnosis_new(pc_machine *machine, pc_diagnosis_options options);
#define pc_diagnosis(...) PC_DIAGNOSIS_(__VA_ARGS__, )
#define PC_DIAGNOSIS_(machine, ...) pc_diagnosis_new((machine), PC_OPTIONS(pc_diagnosis_options, __VA_ARGS__))
PC_API void pc_diagnosis_free(pc_diagnosis *diagnosis);

/* The checks there are, by number; false behind the last. jobs: for which (PC_JOB_TRAIN | ...). */
PC_API bool pc_doctor_check(int i, const char **name, const char **title, int *jobs);

PC_END
#endif

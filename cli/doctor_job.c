/* doctor_job.c: paracord doctor job: what a running job of NCCL says of its ranks. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "doctor_job.h"

typedef struct job_settings {
    bool json, text;
    int timeout;
    double again;
} job_settings;

static bool any_mismatch(const pc_ras *r)
{
    for (int i = 0; i < r->group_count; i++)
        if (strstr(r->groups[i].errors, "MISMATCH"))
            return true;
    return r->count_count > 0;
}

static cli_job_verdict judge(const pc_ras *r)
{
    cli_job_verdict v = {.complete = r->complete};
    for (int i = 0; i < r->rank_count; i++) {
        v.lost += r->ranks[i].state <= PC_RAS_FAILED;
        v.behind += r->ranks[i].state > PC_RAS_FAILED;
    }
    v.behind += !v.behind && any_mismatch(r);
    for (int i = 0; i < r->group_count && !v.lost; i++)
        v.lost = strstr(r->groups[i].errors, "INCOMPLETE") || strstr(r->groups[i].errors, "ERROR");
    return v;
}

static void wait_seconds(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* In a job that runs, counts differ now and then: only the second answer tells whether it stands still. */
static pc_ras *ask_again(const job_settings *settings, const pc_ras_options *options, const pc_ras *first,
                         cli_job_verdict *v)
{
    if (v->lost || !v->behind || settings->again <= 0)
        return NULL;
    wait_seconds(settings->again);
    pc_ras *second = pc_ras_new(*options);
    if (!second) { /* it was there a moment ago, and what it said then is known */
        pc_error_clear();
        return NULL;
    }
    const bool moved = pc_ras_moved(first, second);
    *v = judge(second);
    v->asked_again = true;
    v->moved = moved;
    return second;
}

static int run(const cli_call *call)
{
    const job_settings *settings = call->settings;
    const pc_ras_options options = {.address = call->line->count ? call->line->values[0] : NULL,
                                    .timeout = settings->timeout};
    pc_ras *first = pc_ras_new(options);
    if (!first)
        return cli_failed(call->command);
    if (!first->complete && !first->version[0] && !first->group_count && !first->rank_count) {
        cli_error(call->command, "%s answered what is not understood, \"%.*s\": try again, or ask it with ncclras",
                  first->address, (int)strcspn(first->text, "\n") < 60 ? (int)strcspn(first->text, "\n") : 60,
                  first->text);
        pc_ras_free(first);
        return CLI_FAILED;
    }
    cli_job_verdict v = judge(first);
    pc_ras *second = ask_again(settings, &options, first, &v);
    const pc_ras *last = second ? second : first;
    if (settings->text)
        cli_job_lines(last->text);
    else if (settings->json)
        cli_job_json(last, &v);
    else
        cli_job_text(last, &v);
    pc_ras_free(second);
    pc_ras_free(first);
    return cli_job_wrong(&v) ? CLI_FAILED : CLI_FINE;
}

#define AT(member) offsetof(job_settings, member)

static const cli_option options[] = {
    {"timeout", 't', CLI_INT, AT(timeout), "5", "SECONDS",
     .help = "How long a process waits for those that do not answer", .min = 1, .max = 3600},
    {"again", 0, CLI_FLOAT, AT(again), "2", "SECONDS",
     .help = "Where ranks are behind, ask again after this to see whether they stand still; 0: do not", .min = 0,
     .max = 3600},
    {"text", 0, CLI_FLAG, AT(text), NULL, NULL, .help = "Print all that NCCL says, as it says it"},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"HOST:PORT", "Where a process of the job listens, as in its NCCL_RAS_ADDR (localhost:28028)", 0, 1,
     .complete = CLI_NOTHING},
    {0},
};

static const cli_example examples[] = {
    {"paracord doctor job", "On a host of the job: which ranks hold it up"},
    {"paracord doctor job node7:28028", "From elsewhere, where the job was started with NCCL_RAS_ADDR=node7:28028"},
    {0},
};

static const cli_choice statuses[] = {
    {"0", "The job runs"},
    {"1", "Ranks hold it up, or nobody answers, or not to the end, which standard output or one line on standard error "
          "says"},
    {0},
};

const cli_command cli_doctor_job = {
    .name = "doctor job",
    .summary = "Say which ranks hold up a running job of NCCL",
    .description =
        "Asks NCCL itself (2.24 and newer, any program that uses it: PyTorch, Megatron, Paracord), whose processes "
        "know each other's state, over the port that each of them serves on its own host. It says which ranks "
        "are dead, do not answer, have failed, or have launched fewer calls than the others, with host, process "
        "and GPU. The job is not disturbed.\n"
        "In a job that runs, ranks differ by a call or so at any moment: so where some are behind it asks again, "
        "and calls the job stuck only when the counts stood still.\n"
        "The exit status is 0 when the job runs, and 1 when ranks hold it up, or nobody answers, or not to the end.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .statuses = statuses,
    .settings_size = sizeof(job_settings),
    .run = run,
};

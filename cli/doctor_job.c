/* doctor_job.c: paracord doctor job: what a running job of NCCL says of its ranks. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <paracord-tools/ras.h>

#include "command.h"
#include "text.h"

typedef struct job_settings {
    bool json, text;
    int timeout;
    double again;
} job_settings;

enum { SHOWN_MAX = 32 };

/* How the ranks that are not as the others stand. */
typedef struct verdict {
    int lost;   /* dead, missing, failed */
    int behind; /* or ahead, or of another status */
    bool asked_again, moved;
    bool complete; /* the answer */
} verdict;

static const char *const states[] = {
    [PC_RAS_DEAD] = "dead",     [PC_RAS_MISSING] = "missing", [PC_RAS_FAILED] = "failed",
    [PC_RAS_BEHIND] = "behind", [PC_RAS_AHEAD] = "ahead",     [PC_RAS_DIFFERS] = "differs"};

static bool any_mismatch(const pc_ras *r)
{
    for (int i = 0; i < r->group_count; i++)
        if (strstr(r->groups[i].errors, "MISMATCH"))
            return true;
    return r->count_count > 0;
}

static verdict judge(const pc_ras *r)
{
    verdict v = {.complete = r->complete};
    for (int i = 0; i < r->rank_count; i++) {
        v.lost += r->ranks[i].state <= PC_RAS_FAILED;
        v.behind += r->ranks[i].state > PC_RAS_FAILED;
    }
    v.behind += !v.behind && any_mismatch(r);
    for (int i = 0; i < r->group_count && !v.lost; i++)
        v.lost = strstr(r->groups[i].errors, "INCOMPLETE") || strstr(r->groups[i].errors, "ERROR");
    return v;
}

static bool is_wrong(const verdict *v)
{
    return v->lost || (v->behind && !v->moved) || !v->complete;
}

static void print_rank(const pc_ras_rank *k)
{
    fputs("  ", stdout);
    int at = 2 + (k->rank >= 0 ? printf("rank %d", k->rank) : printf("process %lld", k->process));
    at = cli_pad(stdout, at, 18) + printf("%s", states[k->state]);
    at = cli_pad(stdout, at, 27);
    if (k->calls >= 0 && k->state == PC_RAS_BEHIND)
        printf("%lld of %lld calls%s%s", k->calls, k->most, k->operation[0] ? " of " : "", k->operation);
    else if (k->calls >= 0)
        printf("%lld calls%s%s, others fewer", k->calls, k->operation[0] ? " of " : "", k->operation);
    else
        cli_print_safe(stdout, k->words);
    if (k->gpu[0])
        printf("%sGPU %s", k->calls >= 0 || k->words[0] ? ", " : "", k->gpu);
    if (k->process >= 0 && k->rank >= 0)
        printf(", process %lld", k->process);
    if (k->host[0])
        printf(" on %s", k->host);
    if (k->communicator[0])
        printf(", %s", k->communicator);
    putchar('\n');
}

static void print_counts(const pc_ras *r)
{
    for (int i = 0; i < r->count_count && i < SHOWN_MAX; i++) {
        const pc_ras_count *c = &r->counts[i];
        cli_pad(stdout, printf("  %d ranks", c->ranks), 18);
        printf("have launched %lld calls%s%s, %s\n", c->calls, c->operation[0] ? " of " : "", c->operation,
               c->communicator);
    }
}

static void print_groups(const pc_ras *r)
{
    for (int i = 0; i < r->group_count && i < SHOWN_MAX; i++) {
        const pc_ras_group *g = &r->groups[i];
        printf("  %d communicator%s of %d rank%s: %s, %s\n", g->communicators, g->communicators == 1 ? "" : "s",
               g->ranks, g->ranks == 1 ? "" : "s", g->status, g->errors);
    }
}

static const char *meaning(const pc_ras *r, const verdict *v)
{
    if (v->lost)
        return "Ranks that do not answer, or have failed, hold up all others.";
    if (v->moved)
        return "The counts moved on from one question to the next: the job runs.";
    if (v->behind && v->asked_again)
        return "The counts stood still from one question to the next: those behind hold up all others.";
    if (v->behind)
        return "Ask again: if the counts stay as they are, those behind hold up all others.";
    return r->complete ? "All ranks answer, and are as far as each other. If it hangs nonetheless, then in a call that "
                         "all have "
                         "launched, between GPUs or in the network: paracord doctor tries the GPUs of a host."
                       : "Nothing wrong was told.";
}

/* What it means, and what to do next. */
static void print_verdict(const pc_ras *r, const verdict *v)
{
    const pc_ras_rank *first = NULL;
    for (int i = r->rank_count - 1; i >= 0; i--)
        if (r->ranks[i].process >= 0 && r->ranks[i].state != PC_RAS_AHEAD)
            first = &r->ranks[i];
    cli_wrap(stdout, meaning(r, v), 0, 0, cli_width(stdout));
    puts("");
    if (first && (v->lost || !v->moved))
        printf("See what it does: ssh %s sudo gdb -p %lld -batch -ex \"'thread apply all bt'\"\n"
               "A Python program: ssh %s py-spy dump --pid %lld\n",
               first->host[0] ? first->host : "HOST", first->process, first->host[0] ? first->host : "HOST",
               first->process);
    if (!r->complete)
        puts("The answer broke off before its end: some of it may be missing.");
}

static void print_text(const pc_ras *r, const verdict *v)
{
    printf("The job at %s", r->address);
    if (r->nodes >= 0)
        printf(": %d node%s, %d process%s, %d GPU%s", r->nodes, r->nodes == 1 ? "" : "s", r->processes,
               r->processes == 1 ? "" : "es", r->gpus, r->gpus == 1 ? "" : "s");
    if (r->version[0])
        printf(" (NCCL %s)", r->version);
    puts("");
    print_groups(r);
    if (r->rank_count || r->count_count)
        puts("");
    print_counts(r);
    for (int i = 0; i < r->rank_count && i < SHOWN_MAX; i++)
        print_rank(&r->ranks[i]);
    if (r->rank_count > SHOWN_MAX)
        printf("  and %d more: --json has all\n", r->rank_count - SHOWN_MAX);
    puts("");
    print_verdict(r, v);
}

static void print_json_text(const char *key, const char *text, const char *behind)
{
    printf("\"%s\": ", key);
    if (text[0])
        cli_json_text(stdout, text);
    else
        fputs("null", stdout);
    fputs(behind, stdout);
}

static void print_json_number(const char *key, long long number, const char *behind)
{
    if (number < 0)
        printf("\"%s\": null%s", key, behind);
    else
        printf("\"%s\": %lld%s", key, number, behind);
}

static void print_json(const pc_ras *r, const verdict *v)
{
    printf("{\"healthy\": %s, \"moved\": %s, \"complete\": %s, ", is_wrong(v) ? "false" : "true",
           v->asked_again ? v->moved ? "true" : "false" : "null", r->complete ? "true" : "false");
    print_json_text("address", r->address, ", ");
    print_json_text("nccl", r->version, ", ");
    print_json_number("nodes", r->nodes, ", ");
    print_json_number("processes", r->processes, ", ");
    print_json_number("gpus", r->gpus, ", \"ranks\": [");
    for (int i = 0; i < r->rank_count; i++) {
        const pc_ras_rank *k = &r->ranks[i];
        printf("%s\n  {\"state\": \"%s\", ", i ? "," : "", states[k->state]);
        print_json_number("rank", k->rank, ", ");
        print_json_number("process", k->process, ", ");
        print_json_text("host", k->host, ", ");
        print_json_text("gpu", k->gpu, ", ");
        print_json_text("communicator", k->communicator, ", ");
        print_json_text("operation", k->operation, ", ");
        print_json_number("calls", k->calls, ", ");
        print_json_number("most", k->most, ", ");
        print_json_text("words", k->words, "}");
    }
    puts("]}");
}

/* As it came, a line at a time: what is no letter does no harm to a terminal. */
static void print_lines(const char *text)
{
    char line[1024];
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        cli_print_safe(stdout, line);
        putchar('\n');
    }
}

static void wait_seconds(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* In a job that runs, counts differ now and then: only the second answer tells whether it stands still. */
static pc_ras *ask_again(const job_settings *settings, const pc_ras_options *options, const pc_ras *first, verdict *v)
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
    verdict v = judge(first);
    pc_ras *second = ask_again(settings, &options, first, &v);
    const pc_ras *last = second ? second : first;
    if (settings->text)
        print_lines(last->text);
    else if (settings->json)
        print_json(last, &v);
    else
        print_text(last, &v);
    pc_ras_free(second);
    pc_ras_free(first);
    return is_wrong(&v) ? CLI_FAILED : CLI_FINE;
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
    .settings_size = sizeof(job_settings),
    .run = run,
};

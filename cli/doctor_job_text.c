/* doctor_job_text.c: what a running job of NCCL has said, in words, as JSON, and as it came. */
#include <string.h>

#include "doctor_job.h"
#include "text.h"

enum { SHOWN_MAX = 32 };

static const char *const states[] = {
    [PC_RAS_DEAD] = "dead",     [PC_RAS_MISSING] = "missing", [PC_RAS_FAILED] = "failed",
    [PC_RAS_BEHIND] = "behind", [PC_RAS_AHEAD] = "ahead",     [PC_RAS_DIFFERS] = "differs"};

bool cli_job_wrong(const cli_job_verdict *v)
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

static const char *meaning(const pc_ras *r, const cli_job_verdict *v)
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
static void print_verdict(const pc_ras *r, const cli_job_verdict *v)
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

void cli_job_text(const pc_ras *r, const cli_job_verdict *v)
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

void cli_job_json(const pc_ras *r, const cli_job_verdict *v)
{
    printf("{\"healthy\": %s, \"moved\": %s, \"complete\": %s, ", cli_job_wrong(v) ? "false" : "true",
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
void cli_job_lines(const char *text)
{
    char line[1024];
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        cli_print_safe(stdout, line);
        putchar('\n');
    }
}

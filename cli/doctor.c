/* doctor.c: paracord doctor */
#include <stddef.h>
#include <string.h>

#include <paracord-tools/doctor.h>
#include <paracord-tools/peers.h>

#include "command.h"
#include "machine.h"
#include "text.h"

typedef struct doctor_settings {
    bool json, peers, list;
    int peers_timeout;
    const char *job;
    cli_machine_from from;
} doctor_settings;

enum { REASON_MAX = 512 };

static pc_job job_of(const char *name)
{
    return !name                    ? PC_JOB_ANY
           : !strcmp(name, "train") ? PC_JOB_TRAIN
           : !strcmp(name, "serve") ? PC_JOB_SERVE
                                    : PC_JOB_BUILD;
}

/* The device that the lines begin with: "devices cuda 0 WHY"; its number, and why it is 0. */
static int count_tried(const char *lines, char why[REASON_MAX])
{
    int count = -1, at = 0;
    if (sscanf(lines, "devices %*s %d %n", &count, &at) == 1)
        snprintf(why, REASON_MAX, "%.*s", (int)strcspn(lines + at, "\n"), lines + at);
    return count;
}

/* What this machine's GPUs do, or where there are none, its sim devices. Before this process touches them: a GPU that hangs
 * shall hang a child. */
static pc_status try_devices(const doctor_settings *settings, bool nvidia, pc_diagnosis_options *options,
                             char lines[PC_PEERS_TEXT], char why[REASON_MAX])
{
    const bool peers = settings->peers && (options->job == PC_JOB_ANY || options->job == PC_JOB_TRAIN);
    lines[0] = 0;
    if (peers) {
        const pc_peers_options what = {.type = nvidia ? PC_CUDA : PC_SIM, .timeout_ms = settings->peers_timeout};
        if (pc_peers_try(what, lines) != PC_OK)
            return pc_error_last()->status;
        options->peers = lines;
    }
    if (nvidia && count_tried(lines, why) == 0)
        options->cuda_reason = why;
    else if (nvidia && !peers)
        options->cuda_reason = pc_device_unavailable_reason(PC_CUDA, why, REASON_MAX);
    return PC_OK;
}

/* Lines of text, each indented; commands that follow one another stay lines of their own. */
static void print_lines(const char *text, int indent, bool wrap)
{
    char line[2048];
    for (; text && *text; text += strcspn(text, "\n"), text += *text == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        for (char *c = line; *c; c++)
            *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
        cli_pad(stdout, 0, indent);
        if (wrap)
            cli_wrap(stdout, line, indent, indent, cli_width(stdout));
        else
            fputs(line, stdout);
        putchar('\n');
    }
}

/* What to do: commands stay on one line, to be copied; what explains is filled into lines of its own. */
static void print_fix(const char *text, int indent)
{
    char line[2048];
    for (; text && *text; text += strcspn(text, "\n"), text += *text == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        if (line[0] != '#' || indent + cli_columns(line) <= cli_width(stdout)) {
            print_lines(line, indent, false);
            continue;
        }
        char *rest, *word = strtok_r(line + 1, " ", &rest);
        for (int at = 0; word; word = strtok_r(NULL, " ", &rest)) {
            if (at && at + 1 + cli_columns(word) > cli_width(stdout)) {
                putchar('\n');
                at = 0;
            }
            if (!at)
                at = cli_pad(stdout, 0, indent) + printf("#");
            at += printf(" ");
            cli_print_safe(stdout, word);
            at += cli_columns(word);
        }
        putchar('\n');
    }
}

static void print_summary(const pc_machine *m, const pc_diagnosis *d)
{
    int nvidia = 0, advice = d->finding_count - d->wrong_count;
    for (int i = 0; i < m->device_count; i++)
        nvidia += m->devices[i].nvidia;
    cli_set_style(stdout, CLI_BOLD);
    if (d->wrong_count)
        printf("%d thing%s wrong", d->wrong_count, d->wrong_count == 1 ? " is" : "s are");
    else
        printf("Nothing is wrong");
    if (advice)
        printf(", %d could be better", advice);
    cli_set_style(stdout, CLI_PLAIN);
    printf(" (%d checks", d->checked_count);
    if (nvidia)
        printf(", %d NVIDIA GPU%s", nvidia, nvidia == 1 ? "" : "s");
    puts(")");
    if (!nvidia)
        puts("No NVIDIA GPU is visible here, so what concerns one was not looked at.");
}

static void print_text(const pc_machine *m, const pc_diagnosis *d)
{
    print_summary(m, d);
    for (int i = 0; i < d->finding_count; i++) {
        const pc_finding *f = &d->findings[i];
        printf("\n%d. ", i + 1);
        cli_set_style(stdout, CLI_BOLD);
        cli_wrap(stdout, f->what, 3, 3, cli_width(stdout));
        cli_set_style(stdout, CLI_PLAIN);
        printf("\n   [%s%s%s%s]\n", f->check, f->device ? ", " : "", f->device ? f->device : "",
               f->severity == PC_SEVERITY_ADVICE ? ", advice" : "");
        print_lines(f->how, 3, true);
        puts("   To mend it:");
        print_fix(f->fix, 6);
    }
    for (int i = 0; i < d->unseen_count; i++) {
        printf("%s", i ? "" : "\n");
        int at = printf("Not checked: %s: ", d->unseen[i].check);
        cli_wrap(stdout, d->unseen[i].why, at, 3, cli_width(stdout));
        putchar('\n');
    }
}

/* "a\nb" as ["a", "b"] */
static void print_json_lines(const char *text)
{
    char line[2048];
    putchar('[');
    for (const char *joint = ""; *text; text += strcspn(text, "\n"), text += *text == '\n', joint = ", ") {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        fputs(joint, stdout);
        cli_json_text(stdout, line);
    }
    putchar(']');
}

static void print_json(const pc_diagnosis *d)
{
    printf("{\"healthy\": %s, \"wrong\": %d, \"checks\": %d, \"findings\": [", d->wrong_count ? "false" : "true",
           d->wrong_count, d->checked_count);
    for (int i = 0; i < d->finding_count; i++) {
        const pc_finding *f = &d->findings[i];
        printf("%s{\"check\": \"%s\", \"severity\": \"%s\", \"device\": ", i ? ", " : "", f->check,
               f->severity == PC_SEVERITY_WRONG ? "wrong" : "advice");
        if (f->device)
            cli_json_text(stdout, f->device);
        else
            fputs("null", stdout);
        fputs(", \"what\": ", stdout);
        cli_json_text(stdout, f->what);
        fputs(", \"how\": ", stdout);
        print_json_lines(f->how);
        fputs(", \"fix\": ", stdout);
        print_json_lines(f->fix);
        putchar('}');
    }
    fputs("], \"not_checked\": [", stdout);
    for (int i = 0; i < d->unseen_count; i++) {
        printf("%s{\"check\": \"%s\", \"why\": ", i ? ", " : "", d->unseen[i].check);
        cli_json_text(stdout, d->unseen[i].why);
        putchar('}');
    }
    puts("]}");
}

static const cli_choice jobs[] = {
    {"train", "training on one GPU or several"}, {"serve", "predicting"}, {"build", "compiling CUDA programs"}, {0}};

static void print_check_json(const char *name, const char *title, int of)
{
    printf("{\"check\": \"%s\", \"title\": ", name);
    cli_json_text(stdout, title);
    fputs(", \"for\": [", stdout);
    const char *joint = "";
    for (const cli_choice *job = jobs; job->name; job++)
        if (of & (int)job_of(job->name)) {
            printf("%s\"%s\"", joint, job->name);
            joint = ", ";
        }
    fputs("]}", stdout);
}

static int list_checks(pc_job job, bool json)
{
    const char *name, *title, *joint = "";
    int of;
    fputs(json ? "{\"checks\": [" : "", stdout);
    for (int i = 0; pc_doctor_check(i, &name, &title, &of); i++) {
        if (job != PC_JOB_ANY && !(of & (int)job))
            continue;
        if (json) {
            fputs(joint, stdout);
            print_check_json(name, title, of);
            joint = ", ";
        } else {
            printf("%-18s %s\n", name, title);
        }
    }
    fputs(json ? "]}\n" : "", stdout);
    return CLI_FINE;
}

static int examine(const cli_call *call, pc_machine *m)
{
    const doctor_settings *settings = call->settings;
    static char peers[PC_PEERS_TEXT];
    pc_diagnosis_options options = {.job = job_of(settings->job)};
    char why[REASON_MAX] = "";
    bool nvidia = false;
    for (int i = 0; i < m->device_count; i++)
        nvidia |= m->devices[i].nvidia;
    if (m->live && cli_machine_awake(m) && try_devices(settings, nvidia, &options, peers, why) != PC_OK)
        return cli_failed(call->command);
    pc_diagnosis *d = pc_diagnosis_new(m, options);
    if (!d)
        return cli_failed(call->command);
    int status = d->wrong_count ? CLI_FAILED : CLI_FINE;
    if (settings->from.record && pc_machine_record(m, settings->from.record) != PC_OK)
        status = cli_failed(call->command);
    else if (settings->json)
        print_json(d);
    else
        print_text(m, d);
    pc_diagnosis_free(d);
    return status;
}

static int run(const cli_call *call)
{
    const doctor_settings *settings = call->settings;
    if (settings->list)
        return list_checks(job_of(settings->job), settings->json);
    return cli_with_machine(call, &settings->from, examine);
}

static const cli_option options[] = {
    {"for", 0, CLI_CHOICE, offsetof(doctor_settings, job), NULL, "JOB", .help = "Only the checks that matter for this",
     .choices = jobs},
    {"json", 0, CLI_FLAG, offsetof(doctor_settings, json), NULL, NULL, .help = "Print JSON, for fleets"},
    {"peers", 0, CLI_FLAG, offsetof(doctor_settings, peers), "on", NULL,
     .help = "Try copies between each two GPUs and an all-reduce over all (or sim devices), in processes of their own"},
    {"peers-timeout", 0, CLI_INT, offsetof(doctor_settings, peers_timeout), "5000", "MS",
     .help = "How long such copies may take; the all-reduce gets six times as long", .min = 10, .max = 600000},
    {"list", 0, CLI_FLAG, offsetof(doctor_settings, list), NULL, NULL,
     .help = "List the checks, and make none (--json: which job each is for, too)"},
    CLI_MACHINE_ROOT(doctor_settings),
    {"record", 0, CLI_PATH, offsetof(doctor_settings, from.record), NULL, "FILE",
     .help = "Also write what is read of this machine to a file, for --root somewhere else"},
    CLI_MACHINE_WAKE(doctor_settings),
    CLI_MACHINE_TIMEOUT(doctor_settings),
    {0},
};

static const cli_example examples[] = {
    {"paracord doctor", "What is wrong with this machine, and what mends it"},
    {"paracord doctor --for train && paracord train DIR", "Train only where all is well"},
    {"paracord doctor --json | jq '.findings[].check'", "For a fleet"},
    {0},
};

static const cli_choice statuses[] = {
    {"0", "Nothing is wrong; advice alone is that, too"},
    {"1", "Something is wrong, which standard output says, or the command itself failed, which one line on standard "
          "error says"},
    {0},
};

const cli_command cli_doctor = {
    .name = "doctor",
    .summary = "Say what is wrong with this machine, and what mends it",
    .description = "Checks driver, device files, container, toolkit, PCIe, memory, clocks, kernel log and what several "
                   "GPUs need. For each check that fails it prints what is wrong, how that is known, and the commands "
                   "that mend it on this distribution. It changes nothing and needs no root; what root would show "
                   "besides is named. A job that hangs is asked by paracord doctor job.\n"
                   "The exit status is 0 when nothing is wrong, 1 when something is. Advice alone leaves it 0.",
    .options = options,
    .examples = examples,
    .statuses = statuses,
    .settings_size = sizeof(doctor_settings),
    .run = run,
};

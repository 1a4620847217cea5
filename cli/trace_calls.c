/* trace_calls.c: paracord trace calls FOLDER: what ranks did last, and where they part. */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <paracord-tools/calls.h>

#include "command.h"
#include "text.h"

typedef struct calls_settings {
    bool json;
} calls_settings;

enum { FINDINGS = 3 };

/* "60.0 s" */
static const char *duration(double seconds, char text[32])
{
    if (isnan(seconds))
        return "?";
    if (seconds < 999.5e-6)
        snprintf(text, 32, "%.0f us", 1e6 * seconds);
    else if (seconds < 0.9995)
        snprintf(text, 32, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, 32, seconds < 99.95 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

static void paragraph(const char *text, int indent)
{
    cli_wrap(stdout, text, cli_pad(stdout, 0, indent), indent, cli_width(stdout));
    putchar('\n');
}

static void print_head(const pc_calls_summary *s, const char *folder)
{
    char when[32] = "", start[32] = "";
    const time_t written = (time_t)s->written;
    struct tm day;
    if (gmtime_r(&written, &day))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &day);
    if (s->start)
        snprintf(start, sizeof start, ", restart %d of the job", s->start);
    printf("%d rank%s, the last calls of %d of them in ", s->size, s->size == 1 ? "" : "s", s->there);
    cli_print_safe(stdout, folder);
    printf(" (%s%s)\n", when, start);
    if (s->absent[0])
        printf("No file of %s: killed, hanging, gone before, or it could not write there.\n", s->absent);
    if (s->left_out[0])
        printf("Left out, of another job or an earlier start: %s\n", s->left_out);
    if (s->why[0]) {
        fputs("Written because: ", stdout);
        cli_wrap(stdout, s->why, 17, 4, cli_width(stdout));
        putchar('\n');
    }
}

static void print_findings(const pc_calls_summary *s)
{
    putchar('\n');
    cli_set_style(stdout, CLI_BOLD);
    for (int i = 0; i < s->finding_count && i < FINDINGS; i++)
        paragraph(s->findings[i].words, 0);
    if (!s->finding_count)
        paragraph(s->absent[0] ? "The ranks with a file made the same calls, and wait in none for others."
                               : "All ranks made the same calls, and none waits in one for others.",
                  0);
    cli_set_style(stdout, CLI_PLAIN);
    if (s->finding_count > FINDINGS)
        printf("... and %d more groups whose ranks part\n", s->finding_count - FINDINGS);
}

/* Ranks that did the same are one line. */
static bool same(const pc_calls_rank *a, const pc_calls_rank *b)
{
    return a->there == b->there && !strcmp(a->entered, b->entered) && !strcmp(a->finished, b->finished) &&
           !strcmp(a->state, b->state);
}

static void name_ranks(const pc_calls_summary *s, int first, char *text, size_t n)
{
    size_t at = 0;
    text[0] = 0;
    for (int r = first; r < s->rank_count && at + 32 < n; r++) {
        int end = r;
        if (!same(&s->ranks[r], &s->ranks[first]))
            continue;
        while (end + 1 < s->rank_count && same(&s->ranks[end + 1], &s->ranks[first]))
            end++;
        at += (size_t)snprintf(text + at, n - at, "%s%d", at ? "," : "", r);
        if (end > r)
            at += (size_t)snprintf(text + at, n - at, "-%d", end);
        r = end;
    }
}

static void print_rank(const pc_calls_summary *s, int first)
{
    char ranks[64], line[512], time[32];
    double longest = NAN;
    const pc_calls_rank *r = &s->ranks[first];
    name_ranks(s, first, ranks, sizeof ranks);
    for (int i = first; i < s->rank_count; i++)
        if (same(&s->ranks[i], r))
            longest = fmax(longest, s->ranks[i].since);
    if (!r->there)
        snprintf(line, sizeof line, "no file");
    else if (!r->entered[0])
        snprintf(line, sizeof line, "in no call yet");
    else if (!strcmp(r->state, "done"))
        snprintf(line, sizeof line, "entered and finished %s; in none for %s", r->entered, duration(longest, time));
    else
        snprintf(line, sizeof line, "entered %s: %s for %s; finished %s", r->entered, r->state, duration(longest, time),
                 r->finished[0] ? r->finished : "none");
    printf("  %-9s  ", ranks);
    cli_wrap(stdout, line, 13, 13, cli_width(stdout));
    putchar('\n');
}

static void heading(const char *title)
{
    putchar('\n');
    cli_set_style(stdout, CLI_BOLD);
    cli_print_safe(stdout, title);
    cli_set_style(stdout, CLI_PLAIN);
    putchar('\n');
}

static void print_ranks(const pc_calls_summary *s)
{
    heading("Ranks: the calls entered and finished last");
    for (int r = 0; r < s->rank_count; r++) {
        bool had = false;
        for (int i = 0; i < r && !had; i++)
            had = same(&s->ranks[i], &s->ranks[r]);
        if (!had)
            print_rank(s, r);
    }
}

static void print_rows(const pc_calls_summary *s)
{
    char title[160], line[512], time[32];
    if (!s->row_count)
        return;
    snprintf(title, sizeof title, "Calls of %s around it", s->rows[0].group);
    heading(title);
    for (int i = 0; i < s->row_count; i++) {
        const pc_calls_row *row = &s->rows[i];
        int at = snprintf(line, sizeof line, "%s: %s", row->call, row->finished ? "done" : "not done");
        if (row->first >= 0 && row->first != row->last)
            at += snprintf(line + at, sizeof line - (size_t)at, "; rank %d came first, rank %d last, %s later",
                           row->first, row->last, duration(row->later, time));
        if (row->absent[0])
            (void)snprintf(line + at, sizeof line - (size_t)at, "; not in it: %s", row->absent);
        printf("  %9lld  ", (long long)row->number);
        cli_wrap(stdout, line, 13, 13, cli_width(stdout));
        putchar('\n');
    }
}

static void print_text(const char *key, const char *value)
{
    printf("\"%s\": ", key);
    cli_json_text(stdout, value);
}

static void print_json(const pc_calls_summary *s)
{
    printf("{\"size\": %d, \"there\": %d, \"start\": %d, \"written\": %lld, ", s->size, s->there, s->start,
           (long long)s->written);
    print_text("why", s->why);
    fputs(", ", stdout);
    print_text("absent", s->absent);
    fputs(", ", stdout);
    print_text("left_out", s->left_out);
    fputs(",\n\"findings\": [", stdout);
    for (int i = 0; i < s->finding_count; i++) {
        fputs(i ? ",\n  {" : "\n  {", stdout);
        print_text("group", s->findings[i].group);
        printf(", \"number\": %lld, ", (long long)s->findings[i].number);
        print_text("words", s->findings[i].words);
        putchar('}');
    }
    fputs("],\n\"ranks\": [", stdout);
    for (int i = 0; i < s->rank_count; i++) {
        const pc_calls_rank *r = &s->ranks[i];
        printf("%s{\"rank\": %d, \"there\": %s, ", i ? ",\n  " : "\n  ", r->rank, r->there ? "true" : "false");
        print_text("host", r->host);
        printf(", \"process\": %d, ", r->process);
        print_text("entered", r->entered);
        fputs(", ", stdout);
        print_text("finished", r->finished);
        fputs(", ", stdout);
        print_text("state", r->state);
        fputs(", \"since_s\": ", stdout);
        cli_json_number(stdout, r->since);
        putchar('}');
    }
    fputs("],\n\"calls\": [", stdout);
    for (int i = 0; i < s->row_count; i++) {
        const pc_calls_row *row = &s->rows[i];
        fputs(i ? ",\n  {" : "\n  {", stdout);
        print_text("group", row->group);
        printf(", \"number\": %lld, ", (long long)row->number);
        print_text("call", row->call);
        printf(", \"first\": %d, \"last\": %d, \"later_s\": ", row->first, row->last);
        cli_json_number(stdout, row->later);
        fputs(", ", stdout);
        print_text("absent", row->absent);
        printf(", \"finished\": %s}", row->finished ? "true" : "false");
    }
    puts("]}");
}

static int run(const cli_call *call)
{
    const calls_settings *settings = call->settings;
    const char *folder = call->line->values[0];
    pc_calls_summary summary;
    pc_calls *calls = pc_calls_open(folder);
    if (!calls || pc_calls_summarise(calls, &summary) != PC_OK) {
        pc_calls_free(calls);
        return cli_failed(call->command);
    }
    if (settings->json)
        print_json(&summary);
    else {
        print_head(&summary, folder);
        print_findings(&summary);
        print_ranks(&summary);
        print_rows(&summary);
    }
    pc_calls_summary_free(&summary);
    pc_calls_free(calls);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"json", 0, CLI_FLAG, offsetof(calls_settings, json), NULL, NULL,
     .help = "Print JSON, for programs: times in seconds"},
    {0},
};

static const cli_argument arguments[] = {
    {"FOLDER", "Where PARACORD_DIST_DUMP had ranks write: calls.rank0.json and so on", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"PARACORD_DIST_DUMP=dump paracord launch -n 4 -- ./train",
     "Have ranks write their last calls when one hangs or dies"},
    {"paracord trace calls dump", "Say which rank did not come, or called something else"},
    {0},
};

const cli_command cli_trace_calls = {
    .name = "trace calls",
    .summary = "Say where the ranks of a job part that hangs",
    .description = "Each rank keeps its last 1,000 collective calls. Where PARACORD_DIST_DUMP names a folder, all "
                   "ranks that live write "
                   "them there when a wait of one ends by its deadline, when a rank is lost, and when paracord launch "
                   "gets SIGUSR1. This "
                   "compares them: the first call that a rank never came to, or called with another op, dtype, count "
                   "or root; what it "
                   "does instead; the calls that each rank entered and finished last; and the calls around that.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(calls_settings),
    .run = run,
};

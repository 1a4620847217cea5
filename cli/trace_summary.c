/* trace_summary.c: paracord trace summary FILE: where the time went, for people */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "command.h"
#include "text.h"
#include "trace.h"

typedef struct summary_settings {
    bool json, all;
} summary_settings;

enum { ROWS = 10, COLUMNS_MAX = 8, NAME_MAX_COLUMNS = 40 };

/* "4.20 us", "310 ms" */
static const char *duration(double us, char text[32])
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1, "us"}, {1e3, "ms"}, {1e6, "s"}};
    int unit = us < 999.5 ? 0 : us < 999.5e3 ? 1 : 2;
    double value = us / units[unit].size;
    snprintf(text, 32, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit].name);
    return isnan(us) ? strcpy(text, "-") : text;
}

static const char *percent(double share, char text[32])
{
    snprintf(text, 32, "%.1f %%", 100 * share);
    return isnan(share) ? strcpy(text, "-") : text;
}

static const char *volume(int64_t bytes, char text[32])
{
    double value = (double)bytes;
    if (bytes <= 0)
        return strcpy(text, "");
    if (bytes < 1000)
        snprintf(text, 32, "%lld bytes", (long long)bytes);
    else if (value < 1e6)
        snprintf(text, 32, "%.1f kB", value / 1e3);
    else if (value < 1e9)
        snprintf(text, 32, "%.1f MB", value / 1e6);
    else
        snprintf(text, 32, "%.2f GB", value / 1e9);
    return text;
}

/* A cell to the right, or (width below 0) to the left. */
static void cell(const char *text, int width)
{
    int columns = cli_columns(text);
    fputs("  ", stdout);
    if (width > 0)
        cli_pad(stdout, columns, width);
    cli_print_safe(stdout, text);
    if (width < 0)
        cli_pad(stdout, columns, -width);
}

static void heading(const char *title, int more)
{
    putchar('\n');
    cli_set_style(stdout, CLI_BOLD);
    fputs(title, stdout);
    cli_set_style(stdout, CLI_PLAIN);
    if (more > 0)
        printf(" (%d more: --all)", more);
    putchar('\n');
}

static int shown(int count, int most)
{
    return most && count > most ? most : count;
}

static void print_engines(const pc_timeline_summary *s)
{
    char busy[32], share[32];
    heading("Engines: busy, share of the whole time", 0);
    for (int i = 0; i < s->engine_count; i++) {
        char name[256], lane[24] = "";
        const pc_timeline_engine *engine = &s->engines[i];
        if (engine->lane >= 0)
            snprintf(lane, sizeof lane, ", lane %d", engine->lane);
        snprintf(name, sizeof name, "%.100s %.60s%s", engine->device, engine->engine, lane);
        cell(name, -28);
        cell(duration(engine->busy, busy), 8);
        cell(percent(engine->share, share), 8);
        putchar('\n');
    }
    for (int i = 0; i < s->device_count; i++) {
        const pc_timeline_device *device = &s->devices[i];
        if (isnan(device->copy_overlapped) || isnan(device->compute_overlapped))
            continue;
        fputs("  ", stdout);
        cli_print_safe(stdout, device->device);
        printf(" computed during %s of its copying", percent(device->copy_overlapped, busy));
        printf(", and copied during %s of its computing\n", percent(device->compute_overlapped, share));
    }
}

static void print_causes(const pc_timeline_causes *c)
{
    const struct {
        const char *words;
        double share;
    } parts[] = {{"computing", c->compute},
                 {"idle, copying", c->copying},
                 {"idle, waiting for the loader", c->loader},
                 {"idle, synchronising", c->synchronising},
                 {"idle, launching", c->launching},
                 {"idle, host code", c->host}};
    char text[32], title[256];
    if (!c->device)
        return;
    snprintf(title, sizeof title, "Compute on %.100s, from its first to its last work: %s", c->device,
             duration(c->window, text));
    heading(title, 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].share >= 0.0005) {
            cell(parts[i].words, -28);
            cell(percent(parts[i].share, text), 18);
            putchar('\n');
        }
}

static void print_devices(const pc_timeline_summary *s)
{
    char kernel[32], gap[32], queue[32];
    for (int i = 0; i < s->device_count; i++) {
        const pc_timeline_device *device = &s->devices[i];
        fputs("  ", stdout);
        cli_print_safe(stdout, device->device);
        printf(": median kernel %s, median gap %s, median wait in a queue %s\n",
               duration(device->median_kernel, kernel), duration(device->median_gap, gap),
               duration(device->median_queue_wait, queue));
    }
}

static void print_ops(const pc_timeline_summary *s, int most)
{
    char text[32];
    int n = shown(s->op_count, most);
    if (!n)
        return;
    heading("Work by total time: total, share, count, mean, bytes, GB/s", s->op_count - n);
    for (int i = 0; i < n; i++) {
        const pc_timeline_op *op = &s->ops[i];
        cell(op->name, -28);
        cell(duration(op->total, text), 8);
        cell(percent(op->share, text), 8);
        cell(cli_thousands(op->count, text), 9);
        cell(duration(op->mean, text), 8);
        if (op->bytes > 0) {
            cell(volume(op->bytes, text), 8);
            snprintf(text, sizeof text, "%.2f", op->gigabytes_per_second);
            cell(isnan(op->gigabytes_per_second) ? "-" : text, 7);
        }
        putchar('\n');
    }
}

static void print_waits(const pc_timeline_summary *s, int most)
{
    char text[32], title[160], share[32];
    int n = shown(s->wait_count, most);
    if (!n)
        return;
    snprintf(title, sizeof title, "The host stood still for %s, %s of the time: total, count, longest, call, place",
             duration(s->waited, text), percent(s->waited_share, share));
    heading(title, s->wait_count - n);
    for (int i = 0; i < n; i++) {
        const pc_timeline_wait *wait = &s->waits[i];
        cell(duration(wait->total, text), 8);
        cell(cli_thousands(wait->count, text), 9);
        cell(duration(wait->longest, text), 8);
        cell(wait->call, wait->site[0] ? -20 : 0);
        if (wait->site[0])
            cell(wait->site, 0);
        putchar('\n');
    }
}

static void print_queuing(const pc_timeline_summary *s, int most)
{
    char text[32], title[120];
    int n = shown(s->queuing_count, most);
    if (!n)
        return;
    snprintf(title, sizeof title, "The host %s ops for %s: total, count, mean", s->causes.device ? "queued" : "did",
             duration(s->queuing, text));
    heading(title, s->queuing_count - n);
    for (int i = 0; i < n; i++) {
        const pc_timeline_queuing *queuing = &s->queuings[i];
        cell(queuing->name, -28);
        cell(duration(queuing->total, text), 8);
        cell(cli_thousands(queuing->count, text), 9);
        cell(duration(queuing->mean, text), 8);
        putchar('\n');
    }
}

static void print_ranks(const pc_timeline_summary *s)
{
    char text[32];
    if (!s->rank_count)
        return;
    heading("Ranks: in calls, of it waiting, calls, came last, others waited, computing beside", 0);
    for (int i = 0; i < s->rank_count; i++) {
        const pc_timeline_rank *r = &s->ranks[i];
        snprintf(text, sizeof text, "rank %d", r->rank);
        cell(text, -12);
        cell(duration(r->in_calls, text), 9);
        cell(duration(r->waited, text), 9);
        cell(cli_thousands(r->calls, text), 8);
        cell(cli_thousands(r->last, text), 8);
        cell(duration(r->caused, text), 9);
        cell(percent(r->overlapped, text), 8);
        putchar('\n');
    }
    if (s->absent[0])
        printf("  no timeline of %s\n", s->absent);
    if (s->unmatched)
        printf("  %s calls without those of the other ranks\n", cli_thousands(s->unmatched, text));
    if (s->clock_error > 0)
        printf("  clocks of the hosts are known within %s\n", duration(s->clock_error, text));
}

static void print_collectives(const pc_timeline_summary *s, int most)
{
    char text[32], line[160];
    const int n = shown(s->collective_count, most);
    if (!n)
        return;
    heading("Calls by waiting: waited in sum, from first rank to last, took, call, last", s->collective_count - n);
    for (int i = 0; i < n; i++) {
        const pc_timeline_collective *c = &s->collectives[i];
        cell(duration(c->waited, text), 8);
        cell(duration(c->spread, text), 8);
        cell(duration(c->took, text), 8);
        snprintf(line, sizeof line, "%.40s %lld of %.50s, %s", c->name, (long long)c->number, c->group,
                 volume(c->bytes, text));
        cell(line, -40);
        snprintf(text, sizeof text, "rank %d", c->last);
        cell(text, 0);
        putchar('\n');
    }
}

static void print_notes(const pc_timeline_summary *s, int most)
{
    char text[32];
    int n = shown(s->note_count, most);
    if (!n)
        return;
    heading("Remarks", s->note_count - n);
    for (int i = 0; i < n; i++) {
        const pc_timeline_note *note = &s->notes[i];
        printf("  %s x ", cli_thousands(note->count, text));
        cli_print_safe(stdout, note->name);
        fputs(": ", stdout);
        cli_print_safe(stdout, note->note);
        if (note->bytes > 0)
            printf(", %s", volume(note->bytes, text));
        fputs(note->site[0] ? ", first at " : "", stdout);
        cli_print_safe(stdout, note->site);
        putchar('\n');
    }
}

void cli_trace_print(const pc_timeline_summary *s, int most)
{
    char wall[32], count[32];
    cli_set_style(stdout, CLI_BOLD);
    cli_wrap(stdout, s->verdict_words, 0, 0, cli_width(stdout));
    if (s->rank_words[0]) {
        putchar('\n');
        cli_wrap(stdout, s->rank_words, 0, 0, cli_width(stdout));
    }
    cli_set_style(stdout, CLI_PLAIN);
    printf("\n\n%s in all, %s events", duration(s->wall, wall), cli_thousands(s->events, count));
    if (s->skipped)
        printf("; %s more without sensible times left out", cli_thousands(s->skipped, count));
    if (s->dropped)
        printf("; %s more could not be written", cli_thousands(s->dropped, count));
    if (s->cut)
        fputs("; the file", stdout);
    if (s->cut && s->cut_file) {
        putchar(' ');
        cli_print_safe(stdout, s->cut_file);
    }
    puts(s->cut ? " ends in the middle, so the program was ended" : "");
    print_ranks(s);
    print_collectives(s, most);
    if (s->engine_count)
        print_engines(s);
    print_causes(&s->causes);
    print_devices(s);
    print_ops(s, most);
    print_waits(s, most);
    print_queuing(s, most);
    print_notes(s, most);
}

static int run(const cli_call *call)
{
    const summary_settings *settings = call->settings;
    pc_timeline_summary summary;
    pc_timeline *timeline = pc_timeline_open_all(call->line->values, call->line->count);
    if (!timeline || pc_timeline_summarise(timeline, &summary) != PC_OK) {
        pc_timeline_free(timeline);
        return cli_failed(call->command);
    }
    if (settings->json)
        cli_trace_print_json(&summary);
    else
        cli_trace_print(&summary, settings->all ? 0 : ROWS);
    pc_timeline_summary_free(&summary);
    pc_timeline_free(timeline);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"all", 'a', CLI_FLAG, offsetof(summary_settings, all), NULL, NULL,
     .help = "Whole lists, not only their first rows"},
    {"json", 0, CLI_FLAG, offsetof(summary_settings, json), NULL, NULL,
     .help = "Print JSON, for programs: whole lists, times in microseconds, shares from 0 to 1"},
    {0},
};

static const cli_argument arguments[] = {
    {"FILE",
     "A timeline that PARACORD_TRACE wrote, or another program's in Chrome's trace format; - for standard input. Those "
     "of all "
     "ranks of a job, or their folder: one timeline",
     1, INT_MAX, .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example examples[] = {
    {"PARACORD_TRACE=trace.json paracord train faces --epochs 1", "Write down what a run does"},
    {"paracord trace summary trace.json", "Say where its time went"},
    {"PARACORD_TRACE=times/ paracord launch -n 4 -- ./train", "Write down what each rank of a job does"},
    {"paracord trace summary times", "Say which rank the others wait for"},
    {0},
};

const cli_command cli_trace_summary = {
    .name = "trace summary",
    .summary = "Say where the time of a timeline went",
    .description =
        "Begins with what the program is bound by, in words with the figure behind it: computing, copying, the loader, "
        "synchronising (the host waits and has queued nothing more), launching (queuing ops takes longer than they do) "
        "or "
        "the program's own code. Then: how busy each engine was, why compute stood idle, ops by time, where the host "
        "stood still with the place in the program, what queuing cost, and remarks such as why a copy was staged. Of "
        "ranks that "
        "work together also: how long each was in calls with others and waited there, which one came last how often "
        "and what "
        "the others waited for it, and how much of it went on beside computing.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(summary_settings),
    .run = run,
};

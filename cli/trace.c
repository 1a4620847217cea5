/* trace.c: paracord trace, which names its sub-commands; trace view FILE, which makes a page or a picture of a
 * timeline */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <paracord-tools/timeline.h>

#include "command.h"
#include "text.h"

/* Reached only where the words behind "trace" are no sub-command's name. */
static int run_trace(const cli_call *call)
{
    return cli_unknown_action(call, "view, summary or calls");
}

static const cli_argument trace_arguments[] = {
    {"ACTION", "What to do with the timeline: view or summary; calls is for what ranks did last", 1, 1,
     .complete = CLI_NOTHING},
    {0},
};

static const cli_example trace_examples[] = {
    {"PARACORD_TRACE=trace.json paracord train faces --epochs 1", "Write down what a run does"},
    {"paracord trace summary trace.json", "Say where its time went"},
    {"paracord trace view trace.json", "Make a page of it: trace.html"},
    {0},
};

const cli_command cli_trace = {
    .name = "trace",
    .summary = "Look at the timeline of a program",
    .description =
        "Any program that uses Paracord writes a timeline when the environment variable PARACORD_TRACE names "
        "a file: what the host did, what each stream and engine did, and who waited for whom. It is in "
        "Chrome's trace format, which Perfetto opens too. See paracord help trace view and paracord help "
        "trace summary; paracord help trace calls is about jobs of several ranks that hang.",
    .group = "Timelines",
    .arguments = trace_arguments,
    .examples = trace_examples,
    .run = run_trace,
};

typedef struct view_settings {
    const char *out, *range;
} view_settings;

/* The file's name with .html in the place of .json; of several, or of a folder, trace.html beside or in it. The caller frees
 * it. */
static char *page_of(const cli_line *line)
{
    struct stat about;
    const char *file = line->values[0], *slash = strrchr(file, '/');
    if (!strcmp(file, CLI_STDIN))
        return strdup("timeline.html");
    size_t n = strlen(file);
    char *path = malloc(n + sizeof "/trace.html");
    if (!path)
        return NULL;
    memcpy(path, file, n + 1);
    if (stat(file, &about) == 0 && S_ISDIR(about.st_mode)) {
        memcpy(path + n, file[n - 1] == '/' ? "trace.html" : "/trace.html", file[n - 1] == '/' ? 11 : 12);
        return path;
    }
    if (line->count > 1) {
        memcpy(path + (slash ? slash + 1 - file : 0), "trace.html", sizeof "trace.html");
        return path;
    }
    if (n > 5 && !strcmp(file + n - 5, ".json"))
        n -= 5;
    memcpy(path + n, ".html", sizeof ".html");
    return path;
}

static bool ends_in(const char *page, const char *end)
{
    const size_t n = strlen(page), m = strlen(end);
    return n > m && !strcmp(page + n - m, end);
}

static bool is_one_of(const char *page, const cli_line *line)
{
    for (int i = 0; i < line->count; i++)
        if (!strcmp(page, line->values[i]))
            return true;
    return false;
}

static int write_page(const cli_call *call, const char *page)
{
    const view_settings *settings = call->settings;
    pc_timeline *timeline = pc_timeline_open_all(call->line->values, call->line->count);
    pc_status status = PC_ERR_FILE;
    if (timeline && ends_in(page, ".json"))
        status = pc_timeline_write(timeline, page);
    else if (timeline && ends_in(page, ".svg"))
        status = pc_timeline_picture(timeline, page, settings->range);
    else if (timeline)
        status = pc_timeline_page(timeline, page);
    pc_timeline_free(timeline);
    if (status != PC_OK)
        return cli_failed(call->command);
    fputs("wrote ", stdout);
    cli_print_safe(stdout, page);
    putchar('\n');
    return CLI_FINE;
}

static int refuse_ending(const cli_call *call, const char *page)
{
    cli_error(call->command, "--out %s: must end in .html (a page), .svg (a picture) or .json (a timeline)", page);
    return CLI_WRONG_USAGE;
}

static int run_view(const cli_call *call)
{
    const view_settings *settings = call->settings;
    char *page = settings->out ? strdup(settings->out) : page_of(call->line);
    int status = CLI_FAILED;
    if (!page)
        cli_error(call->command, "out of memory");
    else if (!ends_in(page, ".html") && !ends_in(page, ".svg") && !ends_in(page, ".json"))
        status = refuse_ending(call, page);
    else if (is_one_of(page, call->line))
        cli_error(call->command, "%s is the timeline itself: name another file with --out", page);
    else if (settings->range && !ends_in(page, ".svg"))
        cli_error(call->command, "--range is for pictures: add --out NAME.svg");
    else
        status = write_page(call, page);
    free(page);
    return status;
}

static const cli_option view_options[] = {
    {"out", 'o', CLI_PATH, offsetof(view_settings, out), NULL, "FILE",
     .help = "NAME.html: the page; without it, the timeline's name with .html. NAME.svg: a picture. NAME.json: one "
             "timeline of several, for Perfetto"},
    {"range", 0, CLI_TEXT, offsetof(view_settings, range), NULL, "NAME",
     .help = "In the picture, only the time of the first range or op of this name; NAME#2: the second"},
    {0},
};

static const cli_argument view_arguments[] = {
    {"FILE",
     "A timeline that PARACORD_TRACE wrote, or another program's in Chrome's trace format; - for standard input. Those "
     "of all "
     "ranks of a job, or their folder: one timeline",
     1, INT_MAX, .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example view_examples[] = {
    {"paracord trace view trace.json", "Write trace.html"},
    {"paracord trace view times -o all.json", "Put the timelines of all ranks into one file for Perfetto"},
    {"paracord trace view trace.json -o epoch.svg --range epoch",
     "Draw what PC_TRACE_RANGE(\"epoch\") took, as an SVG"},
    {0},
};

const cli_command cli_trace_view = {
    .name = "trace view",
    .summary = "Make a page of a timeline, for a browser",
    .description = "Writes one HTML file that needs no network: rows for host threads, streams and engines, with zoom, "
                   "search, details of each piece of work, arrows for who waited for whom, and the summary. Or one "
                   "picture of the rows, for a document.",
    .options = view_options,
    .arguments = view_arguments,
    .examples = view_examples,
    .settings_size = sizeof(view_settings),
    .run = run_view,
};

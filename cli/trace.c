/* trace.c: paracord trace, which names its two sub-commands; trace view FILE, which makes a page or a picture of a
 * timeline */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord-tools/timeline.h>

#include "command.h"
#include "text.h"

/* Reached only where the words behind "trace" are no sub-command's name. */
static int run_trace(const cli_call *call)
{
    cli_error(call->command, "ACTION %s: must be view or summary", call->line->values[0]);
    return CLI_WRONG_USAGE;
}

static const cli_argument trace_arguments[] = {
    {"ACTION", "What to do with the timeline: view or summary", 1, 1, .complete = CLI_NOTHING},
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
        "trace summary.",
    .group = "Timelines",
    .arguments = trace_arguments,
    .examples = trace_examples,
    .run = run_trace,
};

typedef struct view_settings {
    const char *out, *range;
} view_settings;

/* The file's name with .html in the place of .json; the caller frees it. */
static char *page_of(const char *file)
{
    if (!strcmp(file, CLI_STDIN))
        return strdup("timeline.html");
    size_t n = strlen(file);
    char *path = malloc(n + sizeof ".html");
    if (!path)
        return NULL;
    memcpy(path, file, n + 1);
    if (n > 5 && !strcmp(file + n - 5, ".json"))
        n -= 5;
    memcpy(path + n, ".html", sizeof ".html");
    return path;
}

static bool is_picture(const char *page)
{
    size_t n = strlen(page);
    return n > 4 && !strcmp(page + n - 4, ".svg");
}

static int write_page(const cli_call *call, const char *file, const char *page)
{
    const view_settings *settings = call->settings;
    pc_timeline *timeline = pc_timeline_open(file);
    pc_status status = PC_ERR_FILE;
    if (timeline && is_picture(page))
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

static int run_view(const cli_call *call)
{
    const view_settings *settings = call->settings;
    const char *file = call->line->values[0];
    char *page = settings->out ? strdup(settings->out) : page_of(file);
    int status = CLI_FAILED;
    if (!page)
        cli_error(call->command, "out of memory");
    else if (!strcmp(page, file))
        cli_error(call->command, "%s is the timeline itself: name another file with --out", page);
    else if (settings->range && !is_picture(page))
        cli_error(call->command, "--range is for pictures: add --out NAME.svg");
    else
        status = write_page(call, file, page);
    free(page);
    return status;
}

static const cli_option view_options[] = {
    {"out", 'o', CLI_PATH, offsetof(view_settings, out), NULL, "FILE",
     .help = "The page to write; without it, the timeline's name with .html. NAME.svg: a picture"},
    {"range", 0, CLI_TEXT, offsetof(view_settings, range), NULL, "NAME",
     .help = "In the picture, only the time of the first range or op of this name; NAME#2: the second"},
    {0},
};

static const cli_argument view_arguments[] = {
    {"FILE",
     "A timeline that PARACORD_TRACE wrote, or another program's in Chrome's trace format; - for standard input", 1, 1,
     .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example view_examples[] = {
    {"paracord trace view trace.json", "Write trace.html"},
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

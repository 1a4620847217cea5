/* report.c: paracord report RUN... */
#include <limits.h>
#include <stddef.h>

#include <paracord-tools/report.h>

#include "command.h"
#include "text.h"

typedef struct report_settings {
    const char *out;
    bool json;
} report_settings;

static int run(const cli_call *call)
{
    const report_settings *settings = call->settings;
    const char *page = settings->out ? settings->out : settings->json ? NULL : "compare.html";
    char *text, *json;
    if (pc_runs_compare(call->line->values, call->line->count, page, &text, &json) != PC_OK)
        return cli_failed(call->command);
    fputs(settings->json ? json : text, stdout);
    if (page && !settings->json) {
        fputs("\nthe page is ", stdout);
        cli_print_shell(stdout, page);
        putchar('\n');
    }
    pc_text_free(text);
    pc_text_free(json);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"out", 'o', CLI_PATH, offsetof(report_settings, out), NULL, "FILE",
     .help = "Where the page goes; compare.html unless --json is given"},
    {"json", 0, CLI_FLAG, offsetof(report_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"RUN", "Folders that paracord train has written, or is writing", 1, INT_MAX, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord report run1 run2", "Which of two runs did better, and what was different about it"},
    {"paracord report run* -o all.html", "All of them, on a page of that name"},
    {0},
};

const cli_command cli_report = {
    .name = "report",
    .summary = "Compare training runs",
    .description =
        "Prints a line for each run, with the figures of the epoch that its model.h5 is of, and the settings "
        "that differ; and writes a page with their curves in the same graphs. The page needs nothing else, "
        "and the runs may still be going on.\n"
        "\n"
        "Each run has a page of its own besides: report.html in its folder.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(report_settings),
    .run = run,
};

/* pictures_check.c: paracord pictures check DIR, which names the broken pictures */
#include <stddef.h>

#include <paracord/loader.h>

#include "command.h"
#include "text.h"

typedef struct check_settings {
    bool json;
} check_settings;

/* Broken pictures so far. */
typedef struct finding {
    bool json;
    int64_t count;
} finding;

static void found(void *context, const char *path, const char *why)
{
    finding *f = context;
    if (f->json) {
        fputs(f->count ? ",\n  {\"file\": " : "\n  {\"file\": ", stdout);
        cli_json_text(stdout, path);
        fputs(", \"why\": ", stdout);
        cli_json_text(stdout, why);
        putchar('}');
    } else {
        cli_print_safe(stdout, path);
        fputs(": ", stdout);
        cli_print_safe(stdout, why);
        putchar('\n');
    }
    f->count++;
}

static void print_end(const pc_folder_report *report, const finding *f, bool failed)
{
    char pictures[32], broken[32];
    if (f->json)
        printf("%s]", f->count ? "\n" : "");
    if (f->json && !failed)
        printf(", \"pictures\": %lld, \"classes\": %d", (long long)report->pictures, report->classes);
    if (f->json)
        puts("}");
    else if (!failed)
        printf("%s pictures in %d classes, %s broken\n", cli_thousands(report->pictures, pictures), report->classes,
               report->broken ? cli_thousands(report->broken, broken) : "none");
}

static int run(const cli_call *call)
{
    const check_settings *settings = call->settings;
    pc_folder_report report = {0};
    finding f = {.json = settings->json};
    if (f.json)
        fputs("{\"broken\": [", stdout);
    bool failed = pc_pictures_check(call->line->values[0], found, &f, &report) != PC_OK;
    print_end(&report, &f, failed);
    if (failed)
        return cli_failed(call->command);
    return report.broken ? CLI_FAILED : CLI_FINE;
}

static const cli_option options[] = {
    {"json", 0, CLI_FLAG, offsetof(check_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"DIR", "A folder of pictures, as paracord train takes", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord pictures check pets", "Name the pictures that paracord train would skip, with the reason"},
    {0},
};

const cli_command cli_pictures_check = {
    .name = "pictures check",
    .summary = "Name the broken pictures in a folder",
    .description = "Reads every picture and prints a line for each one that is empty, cut short, damaged or no "
                   "picture at all. The exit status is 1 when there are any.\n"
                   "\n"
                   "(To draw into a folder that is itself called check: paracord pictures ./check)",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(check_settings),
    .run = run,
};

/* pictures_check.c: paracord pictures check DIR, which names the broken pictures */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <paracord/loader.h>

#include "command.h"
#include "text.h"

typedef struct check_settings {
    bool json;
} check_settings;

/* What was found so far. For programs broken and damaged pictures are two arrays, so the second waits in a file. */
typedef struct finding {
    bool json;
    int64_t broken, damaged;
    FILE *later;
} finding;

static void put_json(FILE *out, bool first, const char *path, const char *why)
{
    fputs(first ? "\n  {\"file\": " : ",\n  {\"file\": ", out);
    cli_json_text(out, path);
    fputs(", \"why\": ", out);
    cli_json_text(out, why);
    putc('}', out);
}

static void put_line(const char *path, const char *words, const char *why)
{
    cli_print_safe(stdout, path);
    printf(": %s", words);
    cli_print_safe(stdout, why);
    putchar('\n');
}

static void broken(void *context, const char *path, const char *why)
{
    finding *f = context;
    if (f->json)
        put_json(stdout, f->broken == 0, path, why);
    else
        put_line(path, "", why);
    f->broken++;
}

static void damaged(void *context, const char *path, const char *why)
{
    finding *f = context;
    if (f->json && f->later)
        put_json(f->later, f->damaged == 0, path, why);
    else if (!f->json)
        put_line(path, "is damaged, but all its pixels are there: ", why);
    f->damaged++;
}

static void copy_later(const finding *f)
{
    rewind(f->later);
    for (int c; (c = getc(f->later)) != EOF;)
        putchar(c);
}

static void print_json_end(const pc_folder_report *report, const finding *f, bool failed)
{
    printf("%s], \"damaged\": [", f->broken ? "\n" : "");
    if (f->later)
        copy_later(f);
    printf("%s]", f->damaged ? "\n" : "");
    if (!failed)
        printf(", \"pictures\": %lld, \"classes\": %d", (long long)report->pictures, report->classes);
    puts("}");
}

static void print_end(const pc_folder_report *report)
{
    char text[32];
    printf("%s pictures in %d class%s, ", cli_thousands(report->pictures, text), report->classes,
           report->classes == 1 ? "" : "es");
    printf("%s broken", report->broken ? cli_thousands(report->broken, text) : "none");
    if (report->damaged)
        printf(", %s damaged", cli_thousands(report->damaged, text));
    putchar('\n');
}

static int run(const cli_call *call)
{
    const check_settings *settings = call->settings;
    pc_folder_report report = {0};
    finding f = {.json = settings->json, .later = settings->json ? tmpfile() : NULL};
    if (f.json && !f.later) {
        cli_error(call->command, "no temporary file can be made: %s", strerror(errno));
        return CLI_FAILED;
    }
    if (f.json)
        fputs("{\"broken\": [", stdout);
    const pc_folder_callbacks tell = {&f, broken, damaged};
    bool failed = pc_pictures_check(call->line->values[0], &tell, &report) != PC_OK;
    if (f.json) {
        print_json_end(&report, &f, failed);
        fclose(f.later);
    } else if (!failed) {
        print_end(&report);
    }
    if (failed)
        return cli_failed(call->command);
    return report.broken + report.damaged ? CLI_FAILED : CLI_FINE;
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
    {"paracord pictures check pets", "Name the broken and the damaged pictures, with the reason"},
    {0},
};

static const cli_choice statuses[] = {
    {"0", "Every picture is whole"},
    {"1", "Pictures are broken or damaged, which standard output says, or the command itself failed, which one line on "
          "standard error says"},
    {0},
};

const cli_command cli_pictures_check = {
    .name = "pictures check",
    .summary = "Name the broken pictures in a folder",
    .description = "Reads every picture and prints a line for each one that is empty, cut short, damaged or no "
                   "picture at all. paracord train leaves those out whose pixels are not all there, and uses the "
                   "others, unless it is told to be --strict. The exit status is 1 when there are any.\n"
                   "\n"
                   "(To draw into a folder that is itself called check: paracord pictures ./check)",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .statuses = statuses,
    .settings_size = sizeof(check_settings),
    .run = run,
};

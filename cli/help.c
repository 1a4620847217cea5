/* help.c: the help texts, made from the rows, and the command that shows them. */
#include <limits.h>
#include <string.h>

#include "command.h"
#include "text.h"

#define WIDEST 96      /* longer lines are hard to read */
#define HELP_COLUMN 26 /* where the sentences begin, when there is room */
#define NARROW 60      /* below this they begin on a line of their own */
#define NARROW_COLUMN 10

static int text_width(FILE *out)
{
    int width = cli_width(out);
    return width > WIDEST ? WIDEST : width;
}

static void heading(FILE *out, const char *text)
{
    fputc('\n', out);
    cli_set_style(out, CLI_BOLD);
    fputs(text, out);
    cli_set_style(out, CLI_PLAIN);
    fputc('\n', out);
}

/* "  label      sentence", the sentence wrapped in its own column. */
static void item(FILE *out, int width, const char *label, const char *sentence)
{
    int column = width < NARROW ? NARROW_COLUMN : HELP_COLUMN;
    int at = fprintf(out, "  %s", label);
    if (at + 1 >= column) {
        fputc('\n', out);
        at = 0;
    }
    cli_wrap(out, sentence, cli_pad(out, at, column), column, width);
    fputc('\n', out);
}

/* Lines of a description: paragraphs are wrapped, lines that begin with a space stay as they are. */
static void paragraphs(FILE *out, int width, const char *text)
{
    char line[1024];
    while (*text) {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        if (line[0] == ' ')
            fputs(line, out);
        else
            cli_wrap(out, line, 0, 0, width);
        fputc('\n', out);
        text += n + (text[n] == '\n');
    }
}

char *cli_usage(const cli_command *command, char *text, size_t n)
{
    size_t length = (size_t)snprintf(text, n, "%s%s", command->name, command->options ? " [OPTIONS]" : "");
    for (const cli_argument *a = command->arguments; a && a->metavar && length < n; a++)
        length += (size_t)snprintf(text + length, n - length, a->least ? " %s%s" : " [%s%s]", a->metavar,
                                   a->most == INT_MAX ? "..." : "");
    return text;
}

static void option_label(const cli_option *o, char *label, size_t n)
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(label, n, "%s--%s%s%s%s", letter, cli_negatable(o) ? "[no-]" : "", o->name, o->metavar ? " " : "",
             o->metavar ? o->metavar : "");
}

static bool choices_have_help(const cli_option *o)
{
    return o->kind == CLI_CHOICE && o->choices[0].help;
}

static void option_item(FILE *out, int width, const cli_option *o)
{
    char label[64], sentence[512], values[128] = "";
    option_label(o, label, sizeof label);
    if (o->kind == CLI_CHOICE && !choices_have_help(o))
        cli_values(o, values, sizeof values);
    const char *fallback = o->kind == CLI_FLAG && !cli_negatable(o) ? NULL : o->fallback;
    snprintf(sentence, sizeof sentence, "%s%s%s%s%s%s", o->help, values[0] ? ": " : "", values,
             fallback ? " (default " : "", fallback ? fallback : "", fallback ? ")" : "");
    item(out, width, label, sentence);
    if (!choices_have_help(o))
        return;
    int column = width < NARROW ? NARROW_COLUMN : HELP_COLUMN, longest = 0;
    for (const cli_choice *c = o->choices; c->name; c++)
        longest = (int)strlen(c->name) > longest ? (int)strlen(c->name) : longest;
    for (const cli_choice *c = o->choices; c->name; c++) {
        int at = cli_pad(out, 0, column + 2);
        at += fprintf(out, "%s", c->name);
        cli_wrap(out, c->help, cli_pad(out, at, column + longest + 4), column + longest + 4, width);
        fputc('\n', out);
    }
}

static void show_arguments(FILE *out, int width, const cli_argument *arguments)
{
    char label[64];
    if (arguments && arguments->metavar)
        heading(out, "Arguments");
    for (const cli_argument *a = arguments; a && a->metavar; a++) {
        snprintf(label, sizeof label, "%s%s", a->metavar, a->most == INT_MAX ? "..." : "");
        item(out, width, label, a->help);
    }
}

static void show_options(FILE *out, int width, const cli_option *options)
{
    bool grouped = false;
    if (options && options->name && !options->group)
        heading(out, "Options");
    for (const cli_option *o = options; o && o->name; o++) {
        grouped |= o->group != NULL;
        if (o->group)
            heading(out, o->group);
        option_item(out, width, o);
    }
    if (grouped || !options)
        heading(out, grouped ? cli_help_option.group : "Options");
    option_item(out, width, &cli_help_option);
}

void cli_help_command(FILE *out, const cli_command *command)
{
    char usage[256];
    int width = text_width(out);
    cli_set_style(out, CLI_BOLD);
    fputs("Usage:", out);
    cli_set_style(out, CLI_PLAIN);
    fprintf(out, " paracord %s\n\n", cli_usage(command, usage, sizeof usage));
    paragraphs(out, width, command->summary);
    if (command->description) {
        fputc('\n', out);
        paragraphs(out, width, command->description);
    }
    show_arguments(out, width, command->arguments);
    show_options(out, width, command->options);
    if (command->examples)
        heading(out, "Examples");
    for (const cli_example *e = command->examples; e && e->line; e++)
        fprintf(out, "  %s:\n      %s\n", e->help, e->line);
}

void cli_help_overview(FILE *out)
{
    int width = text_width(out);
    char usage[256];
    cli_set_style(out, CLI_BOLD);
    fputs("Usage:", out);
    cli_set_style(out, CLI_PLAIN);
    fputs(" paracord COMMAND [OPTIONS] [ARGUMENTS]\n\n", out);
    paragraphs(out, width, cli_about);
    for (int i = 0; cli_commands[i]; i++) {
        const cli_command plain = {.name = cli_commands[i]->name, .arguments = cli_commands[i]->arguments};
        if (cli_commands[i]->group)
            heading(out, cli_commands[i]->group);
        item(out, width, cli_usage(&plain, usage, sizeof usage), cli_commands[i]->summary);
    }
    heading(out, "A first run, in a minute or two");
    for (const cli_example *e = cli_first_run; e->line; e++)
        fprintf(out, "  %s\n", e->line);
    fputc('\n', out);
    paragraphs(out, width, "paracord help COMMAND explains one command; paracord --version shows the version.");
}

static int run(const cli_call *call)
{
    if (!call->line->count) {
        cli_help_overview(stdout);
        return CLI_FINE;
    }
    const cli_command *command = cli_named(call);
    if (!command)
        return CLI_WRONG_USAGE;
    cli_help_command(stdout, command);
    return CLI_FINE;
}

static const cli_argument arguments[] = {
    {"COMMAND", "The command to explain; all are listed without one", 0, 2, .complete = CLI_COMMANDS},
    {0},
};

const cli_command cli_help = {
    .name = "help",
    .summary = "Explain a command, or list them all",
    .group = "Help",
    .arguments = arguments,
    .run = run,
};

/* man.c: manual pages in troff, made from the rows, and the command that prints them. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include <paracord/api.h>

#include "command.h"

/* Text as troff reads it: no letter is a request, a dash stays a dash that can be copied. */
static void troff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            fputc(*text, stdout);
    }
}

static void line(const char *text)
{
    troff(text);
    fputc('\n', stdout);
}

static void sentence(const char *before, const char *text)
{
    fputs(before, stdout);
    troff(text);
    puts(".");
}

static void font(char name, const char *text)
{
    printf("\\f%c", name);
    troff(text);
    fputs("\\fR", stdout);
}

static void upper(const char *text)
{
    for (; *text; text++)
        fputc(*text == ' ' ? '-' : toupper((unsigned char)*text), stdout);
}

/* The name of a command's page: paracord-pictures-check. */
static void page_name(const char *command)
{
    char name[64];
    snprintf(name, sizeof name, "paracord-%s", command);
    for (char *space = strchr(name, ' '); space; space = strchr(space, ' '))
        *space = '-';
    troff(name);
}

static void title(const char *command)
{
    fputs(".TH PARACORD", stdout);
    if (command) {
        fputc('-', stdout);
        upper(command);
    }
    printf(" 1 \"\" \"Paracord %s\" \"Paracord manual\"\n.ad l\n.nh\n.SH NAME\n", pc_version());
}

/* Paragraphs; lines that begin with a space are shown as they are. */
static void paragraphs(const char *text)
{
    char buffer[1024];
    bool literal = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        snprintf(buffer, sizeof buffer, "%.*s", (int)n, text);
        if (literal != (buffer[0] == ' ')) {
            literal = !literal;
            puts(literal ? ".PP\n.nf" : ".fi");
        }
        if (!n)
            puts(".PP");
        else
            line(buffer);
        text += n + (text[n] == '\n');
    }
    if (literal)
        puts(".fi");
}

static void option_entry(const cli_option *o)
{
    char values[256], dashed[64];
    puts(".TP");
    if (o->letter) {
        font('B', (char[]){'-', o->letter, 0});
        fputs(", ", stdout);
    }
    snprintf(dashed, sizeof dashed, "--%s", o->name);
    font('B', dashed);
    if (cli_negatable(o)) {
        snprintf(dashed, sizeof dashed, "--no-%s", o->name);
        fputs(", ", stdout);
        font('B', dashed);
    }
    if (o->metavar) {
        fputc(' ', stdout);
        font('I', o->metavar);
    }
    fputc('\n', stdout);
    sentence("", o->help);
    bool listed = o->kind == CLI_CHOICE && o->choices[0].help;
    if (!listed && *cli_values(o, values, sizeof values))
        sentence("Values: ", values);
    if (o->fallback)
        sentence("Default: ", o->fallback);
    if (!listed)
        return;
    puts(".RS");
    for (const cli_choice *c = o->choices; c->name; c++) {
        puts(".TP");
        font('B', c->name);
        fputc('\n', stdout);
        sentence("", c->help);
    }
    puts(".RE");
}

static void options(const cli_command *command)
{
    bool grouped = false;
    puts(".SH OPTIONS");
    for (const cli_option *o = command->options; o && o->name; o++) {
        grouped |= o->group != NULL;
        if (o->group)
            printf(".SS %s\n", o->group);
        option_entry(o);
    }
    if (grouped)
        printf(".SS %s\n", cli_help_option.group);
    option_entry(&cli_help_option);
}

static void arguments(const cli_argument *rows)
{
    if (rows && rows->metavar)
        puts(".SH ARGUMENTS");
    for (const cli_argument *a = rows; a && a->metavar; a++) {
        puts(".TP");
        font('I', a->metavar);
        puts(a->most == INT_MAX ? "..." : "");
        sentence("", a->help);
    }
}

static void examples(const cli_example *rows)
{
    if (rows)
        puts(".SH EXAMPLES");
    for (const cli_example *e = rows; e && e->line; e++) {
        puts(".TP");
        font('B', e->line);
        fputc('\n', stdout);
        sentence("", e->help);
    }
}

static void status_entry(const char *number, const char *help)
{
    puts(".TP");
    font('B', number);
    fputc('\n', stdout);
    sentence("", help);
}

static const cli_choice usual_statuses[] = {
    {"0", "All went well"},
    {"1", "The command failed; one line on standard error names the thing, the cause and the way out"},
    {"2", "The command line was wrong"},
    {"130, 143", "Stopped by an interrupt (Ctrl-C) or by SIGTERM"},
    {0}};

static const char *meaning(const cli_choice *own, const char *number)
{
    while (own && own->name && strcmp(own->name, number))
        own++;
    return own && own->name ? own->help : NULL;
}

static void exit_status(const cli_choice *own)
{
    puts(".SH EXIT STATUS");
    for (const cli_choice *s = usual_statuses; s->name; s++) {
        const char *other = meaning(own, s->name);
        status_entry(s->name, other ? other : s->help);
    }
    for (const cli_choice *s = own; s && s->name; s++)
        if (!meaning(usual_statuses, s->name))
            status_entry(s->name, s->help);
}

static void command_page(const cli_command *command)
{
    char usage[256];
    title(command->name);
    page_name(command->name);
    fputs(" \\- ", stdout);
    line(command->summary);
    puts(".SH SYNOPSIS\n.B paracord");
    line(cli_usage(command, usage, sizeof usage));
    puts(".SH DESCRIPTION");
    sentence("", command->summary);
    if (command->description) {
        puts(".PP");
        paragraphs(command->description);
    }
    arguments(command->arguments);
    options(command);
    examples(command->examples);
    exit_status(command->statuses);
    puts(".SH SEE ALSO\n.BR paracord (1)");
}

static void overview_page(void)
{
    char usage[256];
    title(NULL);
    puts("paracord \\- a GPU survival toolkit, and a trainer of picture classifiers\n"
         ".SH SYNOPSIS\n.B paracord\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION");
    line(cli_about);
    puts(".SH COMMANDS");
    for (int i = 0; cli_commands[i]; i++) {
        const cli_command plain = {.name = cli_commands[i]->name, .arguments = cli_commands[i]->arguments};
        puts(".TP");
        font('B', cli_usage(&plain, usage, sizeof usage));
        fputc('\n', stdout);
        troff(cli_commands[i]->summary);
        fputs(". See ", stdout);
        fputs("\\fB", stdout);
        page_name(cli_commands[i]->name);
        puts("\\fR(1).");
    }
    puts(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR [\\fICOMMAND\\fR]\nShow the commands, or explain one.\n"
         ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nShow the version.");
    examples(cli_first_run);
    puts(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhen set, no bold or coloured letters are written.\n.TP\n.B COLUMNS\n"
         "The width to write for, instead of the terminal's.\n.TP\n.B TERM\nWith \\(lqdumb\\(rq, progress is shown as "
         "plain lines.");
    exit_status(NULL);
}

static int run(const cli_call *call)
{
    if (!call->line->count) {
        overview_page();
        return CLI_FINE;
    }
    const cli_command *command = cli_named(call);
    if (!command)
        return CLI_WRONG_USAGE;
    command_page(command);
    return CLI_FINE;
}

static const cli_argument man_arguments[] = {
    {"COMMAND", "The command whose page is wanted; without one, the page that lists them", 0, 2,
     .complete = CLI_COMMANDS},
    {0},
};

static const cli_example man_examples[] = {
    {"paracord man train | man -l -", "Read a page"},
    {"paracord man train > paracord-train.1", "Write it to a file"},
    {0},
};

const cli_command cli_man = {
    .name = "man",
    .summary = "Print a manual page",
    .arguments = man_arguments,
    .examples = man_examples,
    .run = run,
};

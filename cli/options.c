/* options.c: the parser of command lines, driven by a command's rows. */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "nearest.h"
#include "values.h"

const cli_option cli_help_option = {"help", 'h', CLI_FLAG, .help = "Show this help and leave", .group = "Help"};

/* One walk over a command line. */
typedef struct parser {
    const cli_option *options;
    const cli_argument *arguments;
    char **argv;
    int argc, at;
    void *settings;
    cli_line *line;
    char *message;
} parser;

static bool set_defaults(const cli_option *options, void *settings, char *message)
{
    for (const cli_option *o = options; o && o->name; o++)
        if (o->fallback && !cli_store(o, o->fallback, settings, message))
            return false;
    return true;
}

const cli_option *cli_next_option(const cli_option *options, const cli_option *option)
{
    if (option == &cli_help_option)
        return NULL;
    option = option ? option + 1 : options;
    return option && option->name ? option : &cli_help_option;
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !strncmp(name, text, length);
}

static const cli_option *find_long(const parser *p, const char *text, size_t length, bool *negated)
{
    for (const cli_option *o = cli_next_option(p->options, NULL); o; o = cli_next_option(p->options, o)) {
        *negated = cli_negatable(o) && length > 3 && !strncmp(text, "no-", 3) && is_name(o->name, text + 3, length - 3);
        if (*negated || is_name(o->name, text, length))
            return o;
    }
    return NULL;
}

static bool unknown_long(const parser *p, const char *text, size_t length)
{
    char typed[64];
    const char *meant = NULL;
    snprintf(typed, sizeof typed, "%.*s", (int)length, text);
    for (const cli_option *o = cli_next_option(p->options, NULL); o; o = cli_next_option(p->options, o))
        meant = cli_nearer(typed, meant, o->name);
    if (meant)
        return cli_wrong(p->message, "there is no option --%s; did you mean --%s?", typed, meant);
    return cli_wrong(p->message, "there is no option --%s; --help lists the options", typed);
}

/* The word after the option as its value. A word that is itself one of our options was not meant as one. */
static bool take_value(parser *p, const cli_option *option)
{
    bool negated;
    const char *value = p->at < p->argc ? p->argv[p->at] : NULL;
    if (!value || (!strncmp(value, "--", 2) && find_long(p, value + 2, strcspn(value + 2, "="), &negated)))
        return cli_wrong(p->message, "--%s: needs a value: --%s %s", option->name, option->name, option->metavar);
    p->at++;
    return cli_store(option, value, p->settings, p->message);
}

static bool take_long(parser *p, const char *text)
{
    bool negated;
    size_t length = strcspn(text, "=");
    const char *value = text[length] ? text + length + 1 : NULL;
    const cli_option *option = find_long(p, text, length, &negated);
    if (!option)
        return unknown_long(p, text, length);
    if (option->kind != CLI_FLAG)
        return value ? cli_store(option, value, p->settings, p->message) : take_value(p, option);
    if (value)
        return cli_wrong(p->message, "--%.*s: takes no value", (int)length, text);
    if (option == &cli_help_option)
        return p->line->help = true;
    return cli_store(option, negated ? "off" : "on", p->settings, p->message);
}

/* "-e5", "-e 5", "-rs" */
static bool take_letters(parser *p, const char *letters)
{
    for (; *letters; letters++) {
        const cli_option *option = cli_next_option(p->options, NULL);
        while (option && option->letter != *letters)
            option = cli_next_option(p->options, option);
        if (!option)
            return cli_wrong(p->message, "there is no option -%.*s; --help lists the options%s",
                             (unsigned char)*letters < 128 ? 1 : CLI_MESSAGE_MAX, letters,
                             *letters >= '0' && *letters <= '9' ? ", and a number below 0 goes behind --" : "");
        if (option == &cli_help_option)
            return p->line->help = true;
        if (option->kind != CLI_FLAG)
            return letters[1] ? cli_store(option, letters + 1, p->settings, p->message) : take_value(p, option);
        if (!cli_store(option, "on", p->settings, p->message))
            return false;
    }
    return true;
}

/* The row of the i-th argument; the last one stands for the rest. */
static const cli_argument *argument_row(const parser *p, int i)
{
    const cli_argument *row = p->arguments;
    for (; row && row->metavar && i >= row->most; row++)
        i -= row->most;
    return row && row->metavar ? row : NULL;
}

static bool take_argument(parser *p, const char *value)
{
    const cli_argument *row = argument_row(p, p->line->count);
    if (!row) {
        p->line->miscounted = true;
        return cli_wrong(p->message, "%s: one argument too many", value);
    }
    if (!*value)
        return cli_wrong(p->message, "%s must not be empty", row->metavar);
    if (row->choices && !(value = cli_find_choice(row->metavar, row->choices, value, p->message)))
        return false;
    p->line->values[p->line->count++] = row->read && !strcmp(value, "-") ? CLI_STDIN : value;
    return true;
}

static bool enough_arguments(const parser *p)
{
    int wanted = 0;
    for (const cli_argument *row = p->arguments; row && row->metavar; row++) {
        wanted += row->least;
        if (p->line->count < wanted) {
            p->line->miscounted = true;
            char names[256] = "";
            if (row->choices)
                cli_list_choices(row->choices, names, sizeof names);
            return cli_wrong(p->message, "%s is missing%s%s", row->metavar, *names ? ": " : "", names);
        }
    }
    return true;
}

bool cli_parse(const cli_option *options, const cli_argument *arguments, int argc, char **argv, void *settings,
               cli_line *line, char message[CLI_MESSAGE_MAX])
{
    parser p = {options, arguments, argv, argc, 0, settings, line, message};
    bool only_arguments = false;
    line->count = 0;
    line->help = line->miscounted = false;
    if (!set_defaults(options, settings, message))
        return false;
    while (p.at < argc && !line->help) {
        const char *word = argv[p.at++];
        bool fine;
        if (!only_arguments && !strcmp(word, "--"))
            fine = only_arguments = true;
        else if (!only_arguments && word[0] == '-' && word[1] == '-')
            fine = take_long(&p, word + 2);
        else if (!only_arguments && word[0] == '-' && word[1])
            fine = take_letters(&p, word + 1);
        else
            fine = take_argument(&p, word);
        if (!fine)
            return false;
    }
    line->values[line->count] = NULL;
    return line->help || enough_arguments(&p);
}

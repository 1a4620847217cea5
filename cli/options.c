/* options.c: the parser of command lines, driven by a command's rows. */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

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

static bool wrong(char *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, CLI_MESSAGE_MAX, format, arguments);
    va_end(arguments);
    return false;
}

bool cli_negatable(const cli_option *option)
{
    return option->kind == CLI_FLAG && option->fallback && !strcmp(option->fallback, "on");
}

/* "a, b or c" */
static char *list_choices(const cli_choice *choices, char *text, size_t n)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; choices[i].name && length < n; i++) {
        const char *joint = i == 0 ? "" : choices[i + 1].name ? ", " : " or ";
        length += (size_t)snprintf(text + length, n - length, "%s%s", joint, choices[i].name);
    }
    return text;
}

char *cli_values(const cli_option *option, char *text, size_t n)
{
    text[0] = 0;
    if (option->kind == CLI_CHOICE)
        return list_choices(option->choices, text, n);
    if (option->kind == CLI_SEED)
        snprintf(text, n, "a whole number, 0 or more");
    if (option->kind != CLI_INT && option->kind != CLI_FLOAT && option->kind != CLI_PAIR)
        return text;
    if (isinf(option->max))
        snprintf(text, n, option->above ? "more than %.10g" : "%.10g or more", option->min);
    else if (option->above)
        snprintf(text, n, "more than %.10g, at most %.10g", option->min, option->max);
    else
        snprintf(text, n, "%.10g to %.10g", option->min, option->max);
    return text;
}

static bool reject(const cli_option *option, const char *value, const char *prefix, char *message)
{
    char values[256];
    cli_values(option, values, sizeof values);
    return wrong(message, "--%s %s: must be %s%s", option->name, *value ? value : "\"\"", prefix, values);
}

static bool outside(const cli_option *option, double number)
{
    return !(number <= option->max && (option->above ? number > option->min : number >= option->min));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_int(const cli_option *option, const char *value, int *result, char *message)
{
    char *end;
    const char *digits = value + (*value == '-' || *value == '+');
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (!is_digit(*digits) || *end)
        return reject(option, value, "a whole number, ", message);
    if (errno || outside(option, (double)number) || number < INT_MIN || number > INT_MAX)
        return reject(option, value, "", message);
    *result = (int)number;
    return true;
}

static bool parse_seed(const cli_option *option, const char *value, uint64_t *result, char *message)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (!is_digit(*value) || *end)
        return reject(option, value, "", message);
    if (errno)
        return wrong(message, "--%s %s: must be at most %llu", option->name, value, (unsigned long long)UINT64_MAX);
    *result = number;
    return true;
}

/* A number that ends at `stop`. "inf", "nan" and hexadecimal are no numbers here. */
static bool parse_number(const char *text, char stop, const char **end, double *number)
{
    char *after;
    *number = strtod(text, &after);
    *end = after;
    return after > text && after == text + strspn(text, "0123456789+-.eE") && *after == stop;
}

static bool parse_float(const cli_option *option, const char *value, double *result, char *message)
{
    const char *end;
    double number;
    if (!parse_number(value, 0, &end, &number))
        return reject(option, value, "a number, ", message);
    if (outside(option, number))
        return reject(option, value, "", message);
    *result = number;
    return true;
}

static bool parse_pair(const cli_option *option, const char *value, double result[2], char *message)
{
    const char *end;
    double a, b;
    if (!parse_number(value, ',', &end, &a) || !parse_number(end + 1, 0, &end, &b) || outside(option, a) ||
        outside(option, b))
        return reject(option, value, "two numbers A,B, each ", message);
    result[0] = a;
    result[1] = b;
    return true;
}

/* The choice that `value` names, or NULL with a message that begins with `what`. */
static const char *find_choice(const char *what, const cli_choice *choices, const char *value, char *message)
{
    char names[256];
    const char *meant = NULL;
    for (int i = 0; choices[i].name; i++) {
        if (!strcmp(choices[i].name, value))
            return choices[i].name;
        meant = cli_nearer(value, meant, choices[i].name);
    }
    wrong(message, "%s %s: must be %s%s%s%s", what, *value ? value : "\"\"", list_choices(choices, names, sizeof names),
          meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
    return NULL;
}

static bool store(const cli_option *option, const char *value, void *settings, char *message)
{
    void *place = (char *)settings + option->offset;
    char what[64];
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)place = !strcmp(value, "on");
        return true;
    case CLI_INT:
        return parse_int(option, value, place, message);
    case CLI_SEED:
        return parse_seed(option, value, place, message);
    case CLI_FLOAT:
        return parse_float(option, value, place, message);
    case CLI_PAIR:
        return parse_pair(option, value, place, message);
    case CLI_CHOICE:
        snprintf(what, sizeof what, "--%s", option->name);
        return (*(const char **)place = find_choice(what, option->choices, value, message)) != NULL;
    case CLI_TEXT:
    case CLI_PATH:
        break;
    }
    if (!*value)
        return wrong(message, "--%s: must not be empty", option->name);
    *(const char **)place = value;
    return true;
}

bool cli_defaults(const cli_option *options, void *settings, char message[CLI_MESSAGE_MAX])
{
    for (const cli_option *o = options; o && o->name; o++)
        if (o->fallback && !store(o, o->fallback, settings, message))
            return false;
    return true;
}

/* The row after `option` in the order rows, --help, NULL; start with NULL. */
static const cli_option *next_option(const parser *p, const cli_option *option)
{
    if (option == &cli_help_option)
        return NULL;
    option = !option ? p->options : option + 1;
    return option && option->name ? option : &cli_help_option;
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !strncmp(name, text, length);
}

static const cli_option *find_long(const parser *p, const char *text, size_t length, bool *negated)
{
    for (const cli_option *o = next_option(p, NULL); o; o = next_option(p, o)) {
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
    for (const cli_option *o = next_option(p, NULL); o; o = next_option(p, o))
        meant = cli_nearer(typed, meant, o->name);
    if (meant)
        return wrong(p->message, "there is no option --%s; did you mean --%s?", typed, meant);
    return wrong(p->message, "there is no option --%s; --help lists the options", typed);
}

/* The word after the option as its value. A word that is itself one of our options was not meant as one. */
static bool take_value(parser *p, const cli_option *option)
{
    bool negated;
    const char *value = p->at < p->argc ? p->argv[p->at] : NULL;
    if (!value || (!strncmp(value, "--", 2) && find_long(p, value + 2, strcspn(value + 2, "="), &negated)))
        return wrong(p->message, "--%s: needs a value: --%s %s", option->name, option->name, option->metavar);
    p->at++;
    return store(option, value, p->settings, p->message);
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
        return value ? store(option, value, p->settings, p->message) : take_value(p, option);
    if (value)
        return wrong(p->message, "--%.*s: takes no value", (int)length, text);
    if (option == &cli_help_option)
        return p->line->help = true;
    return store(option, negated ? "off" : "on", p->settings, p->message);
}

/* "-e5", "-e 5", "-rs" */
static bool take_letters(parser *p, const char *letters)
{
    for (; *letters; letters++) {
        const cli_option *option = next_option(p, NULL);
        while (option && option->letter != *letters)
            option = next_option(p, option);
        if (!option)
            return wrong(p->message, "there is no option -%.*s; --help lists the options",
                         (unsigned char)*letters < 128 ? 1 : CLI_MESSAGE_MAX, letters);
        if (option == &cli_help_option)
            return p->line->help = true;
        if (option->kind != CLI_FLAG)
            return letters[1] ? store(option, letters + 1, p->settings, p->message) : take_value(p, option);
        if (!store(option, "on", p->settings, p->message))
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
        return wrong(p->message, "%s: one argument too many", value);
    }
    if (!*value)
        return wrong(p->message, "%s must not be empty", row->metavar);
    if (row->choices && !(value = find_choice(row->metavar, row->choices, value, p->message)))
        return false;
    p->line->values[p->line->count++] = value;
    return true;
}

static bool enough_arguments(const parser *p)
{
    int wanted = 0;
    for (const cli_argument *row = p->arguments; row && row->metavar; row++) {
        wanted += row->least;
        if (p->line->count < wanted) {
            p->line->miscounted = true;
            return wrong(p->message, "%s is missing", row->metavar);
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
    if (!cli_defaults(options, settings, message))
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

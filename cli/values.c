/* values.c: the value of an option, from text into the settings. */
#include "values.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

bool cli_wrong(char *message, const char *format, ...)
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

char *cli_list_choices(const cli_choice *choices, char *text, size_t n)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; choices[i].name && length < n; i++) {
        const char *joint = i == 0 ? "" : choices[i + 1].name ? ", " : " or ";
        length += (size_t)snprintf(text + length, n - length, "%s%s", joint, choices[i].name);
    }
    return text;
}

/* 4096 as "4K" */
static void write_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    int unit = 0;
    for (; unit < 4 && bytes >= 1024 && fmod(bytes, 1024) == 0; unit++)
        bytes /= 1024;
    snprintf(text, 32, "%.15g%s", bytes, units[unit]);
}

static bool has_range(const cli_option *option)
{
    return option->max > 0;
}

char *cli_values(const cli_option *option, char *text, size_t n)
{
    text[0] = 0;
    if (option->kind == CLI_CHOICE)
        return cli_list_choices(option->choices, text, n);
    if (option->kind == CLI_SEED)
        snprintf(text, n, "a whole number, 0 or more");
    if (option->kind == CLI_BYTES && has_range(option)) {
        char least[32], most[32];
        write_bytes(option->min, least);
        write_bytes(option->max, most);
        snprintf(text, n, "bytes, %s to %s", least, most);
    } else if (option->kind == CLI_BYTES) {
        snprintf(text, n, "auto, or bytes such as 500M or 4G");
    }
    if (option->kind != CLI_INT && option->kind != CLI_SIZE && option->kind != CLI_FLOAT && option->kind != CLI_PAIR)
        return text;
    const char *word = option->automatic ? ", or auto" : "";
    if (isinf(option->max))
        snprintf(text, n, option->above ? "more than %.10g%s" : "%.10g or more%s", option->min, word);
    else if (option->above)
        snprintf(text, n, "more than %.10g, at most %.10g%s", option->min, option->max, word);
    else
        snprintf(text, n, "%.10g to %.10g%s", option->min, option->max, word);
    return text;
}

static bool reject(const cli_option *option, const char *value, const char *prefix, char *message)
{
    char values[256];
    cli_values(option, values, sizeof values);
    return cli_wrong(message, "--%s %s: must be %s%s", option->name, *value ? value : "\"\"", prefix, values);
}

static bool outside(const cli_option *option, double number)
{
    return !(number <= option->max && (option->above ? number > option->min : number >= option->min));
}

/* A file in place of a choice, where the option takes one. */
static bool names_file(const cli_option *option, const char *value)
{
    const size_t n = strlen(value), suffix = option->suffix ? strlen(option->suffix) : 0;
    return suffix && n > suffix && strcmp(value + n - suffix, option->suffix) == 0;
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

/* One side of a size, which ends at `stop`. */
static bool parse_side(const cli_option *option, const char *text, char stop, const char **end, int *side)
{
    char *after;
    errno = 0;
    const long number = strtol(text, &after, 10);
    *end = after;
    *side = (int)number;
    return is_digit(*text) && *after == stop && !errno && !outside(option, (double)number);
}

static bool parse_size(const cli_option *option, const char *value, int result[2], char *message)
{
    const char *end;
    if (parse_side(option, value, 0, &end, &result[0])) {
        result[1] = result[0];
        return true;
    }
    if (parse_side(option, value, 'x', &end, &result[0]) && parse_side(option, end + 1, 0, &end, &result[1]))
        return true;
    return reject(option, value, "a whole number for both sides, or HEIGHTxWIDTH, each ", message);
}

/* 0 means "none" to the user, "as much as fits" to the library. */
static bool parse_bytes(const cli_option *option, const char *value, int64_t *result, char *message)
{
    static const char units[] = "KMGT";
    const char *end;
    char *after;
    double bytes = strtod(value, &after);
    const char *unit = *after & ~0x20 ? strchr(units, *after & ~0x20) : NULL;
    end = after + (unit != NULL);
    for (int i = 0; unit && i <= unit - units; i++)
        bytes *= 1024;
    if (!strcmp(value, "auto") && !has_range(option))
        bytes = 0;
    else if (!is_digit(*value) || strspn(value, "0123456789.") != (size_t)(after - value) || *end || bytes > 9e18 ||
             (has_range(option) && outside(option, bytes)))
        return reject(option, value, "", message);
    else
        bytes = bytes >= 1 ? bytes : -1;
    *result = (int64_t)bytes;
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
        return cli_wrong(message, "--%s %s: must be at most %llu", option->name, value, (unsigned long long)UINT64_MAX);
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
    if (option->automatic && !strcmp(value, "auto")) {
        *result = -1;
        return true;
    }
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

const char *cli_find_choice(const char *what, const cli_choice *choices, const char *value, char *message)
{
    char names[256];
    const char *meant = NULL;
    for (int i = 0; choices[i].name; i++) {
        if (!strcmp(choices[i].name, value))
            return choices[i].name;
        meant = cli_nearer(value, meant, choices[i].name);
    }
    cli_wrong(message, "%s %s: must be %s%s%s%s", what, *value ? value : "\"\"",
              cli_list_choices(choices, names, sizeof names), meant ? "; did you mean " : "", meant ? meant : "",
              meant ? "?" : "");
    return NULL;
}

bool cli_store(const cli_option *option, const char *value, void *settings, char *message)
{
    void *place = (char *)settings + option->offset;
    char what[64];
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)place = !strcmp(value, "on");
        return true;
    case CLI_INT:
        return parse_int(option, value, place, message);
    case CLI_BYTES:
        return parse_bytes(option, value, place, message);
    case CLI_SIZE:
        return parse_size(option, value, place, message);
    case CLI_SEED:
        return parse_seed(option, value, place, message);
    case CLI_FLOAT:
        return parse_float(option, value, place, message);
    case CLI_PAIR:
        return parse_pair(option, value, place, message);
    case CLI_CHOICE:
        if (names_file(option, value))
            break;
        snprintf(what, sizeof what, "--%s", option->name);
        return (*(const char **)place = cli_find_choice(what, option->choices, value, message)) != NULL;
    case CLI_TEXT:
    case CLI_PATH:
        break;
    }
    if (!*value)
        return cli_wrong(message, "--%s: must not be empty", option->name);
    *(const char **)place = value;
    return true;
}

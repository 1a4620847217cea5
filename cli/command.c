/* command.c: from words to a running sub-command, and its errors as one line. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <paracord/device.h>
#include <paracord/error.h>

#include "nearest.h"
#include "text.h"

/* How many of the words the name takes, 0 when it does not fit. */
static int words_of(const char *name, int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        size_t n = strlen(argv[i]);
        if (!n || strncmp(name, argv[i], n) || (name[n] && name[n] != ' '))
            return 0;
        if (!name[n])
            return i + 1;
        name += n + 1;
    }
    return 0;
}

const cli_command *cli_find(int argc, const char *const *argv, int *words)
{
    const cli_command *found = NULL;
    int most = 0;
    for (int i = 0; cli_commands[i]; i++) {
        int n = words_of(cli_commands[i]->name, argc, argv);
        if (!n && cli_commands[i]->alias)
            n = words_of(cli_commands[i]->alias, argc, argv);
        if (n > most) {
            most = n;
            found = cli_commands[i];
        }
    }
    if (words)
        *words = most;
    return found;
}

void cli_error(const cli_command *command, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "paracord%s%s: ", command ? " " : "", command ? command->name : "");
    cli_print_safe(stderr, line);
    fputc('\n', stderr);
}

int cli_unknown(const cli_command *command, const char *typed)
{
    const char *meant = NULL;
    for (int i = 0; cli_commands[i]; i++)
        meant = cli_nearer(typed, meant, cli_commands[i]->name);
    if (!command)
        meant = cli_nearer(typed, cli_nearer(typed, meant, "--help"), "--version");
    const char *what = typed[0] == '-' ? "option" : "command";
    if (meant)
        cli_error(command, "there is no %s %s; did you mean %s?", what, typed, meant);
    else
        cli_error(command, "there is no %s %s; paracord help lists the commands", what, typed);
    return CLI_WRONG_USAGE;
}

/* The word behind the command's name where the row is a sub-command of it; else NULL. */
static const char *action_of(const cli_command *command, const cli_command *row)
{
    const size_t n = strlen(command->name);
    return !strncmp(row->name, command->name, n) && row->name[n] == ' ' ? row->name + n + 1 : NULL;
}

const char *cli_near_action(const cli_command *command, const char *typed)
{
    const char *meant = NULL;
    for (int i = 0; cli_commands[i]; i++)
        if (action_of(command, cli_commands[i]))
            meant = cli_nearer(typed, meant, action_of(command, cli_commands[i]));
    return meant;
}

int cli_unknown_action(const cli_call *call, const char *there_are)
{
    const char *typed = call->line->values[0], *meant = cli_near_action(call->command, typed);
    cli_error(call->command, "ACTION %s: must be %s%s%s%s", typed, there_are, meant ? "; did you mean " : "",
              meant ? meant : "", meant ? "?" : "");
    return CLI_WRONG_USAGE;
}

const cli_command *cli_named(const cli_call *call)
{
    int words, count = call->line->count;
    const char *const *values = call->line->values;
    const cli_command *command = cli_find(count, values, &words);
    if (command && words == count)
        return command;
    char typed[128];
    snprintf(typed, sizeof typed, "%s%s%s", values[0], count > 1 ? " " : "", count > 1 ? values[1] : "");
    cli_unknown(call->command, typed);
    return NULL;
}

char *cli_failure(char text[CLI_FAILURE_MAX])
{
    const pc_error *error = pc_error_last();
    const char *message = error->message[0] ? error->message : pc_status_text(error->status);
    snprintf(text, CLI_FAILURE_MAX, "%s%s%s", message, error->cause[0] ? ": " : "", error->cause);
    return text;
}

int cli_failed(const cli_command *command)
{
    char text[CLI_FAILURE_MAX];
    cli_error(command, "%s", cli_failure(text));
    return CLI_FAILED;
}

/* Where an earlier write has failed, errno is of something else by now, and another byte has to find out; 0: it does not. */
static int why_unwritten(bool now)
{
    return now || write(STDOUT_FILENO, "\n", 1) < 0 ? errno : 0;
}

int cli_finish(const cli_command *command, int status)
{
    const bool fails = fflush(stdout) != 0;
    if (!fails && !ferror(stdout))
        return status;
    const int why = why_unwritten(fails);
    cli_error(command, "cannot write the output%s%s", why ? ": " : "", why ? strerror(why) : "");
    return status ? status : CLI_FAILED;
}

/* ": list, pick, cost" where others have its name and one more word; else "". */
static char *sub_commands(const cli_command *command, char *text, size_t n)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; cli_commands[i] && length < n; i++)
        if (action_of(command, cli_commands[i]))
            length += (size_t)snprintf(text + length, n - length, "%s%s", length ? ", " : ": ",
                                       action_of(command, cli_commands[i]));
    return text;
}

/* A --device of which no machine has one; whether this one has it, the command sees. */
static bool names_device(const cli_command *command, const void *settings)
{
    const cli_option *o = command->options;
    while (o && o->name && !(o->kind == CLI_TEXT && !strcmp(o->name, "device")))
        o++;
    const char *word = o && o->name ? *(const char *const *)((const char *)settings + o->offset) : NULL;
    pc_device device;
    const bool wrong = word && pc_device_parse(word, &device) == PC_ERR_ARGUMENT;
    if (wrong)
        cli_failed(command);
    pc_error_clear();
    return !wrong;
}

static int parse_and_run(const cli_command *command, int argc, char **argv, void *settings, cli_line *line)
{
    char message[CLI_MESSAGE_MAX];
    if (!cli_parse(command->options, command->arguments, argc, argv, settings, line, message)) {
        char usage[256] = "", names[256] = "";
        const char *meant = line->miscounted && argc ? cli_near_action(command, argv[0]) : NULL;
        if (meant) {
            cli_error(command, "%s; did you mean paracord %s %s?", message, command->name, meant);
            return CLI_WRONG_USAGE;
        }
        if (line->miscounted) {
            cli_usage(command, usage, sizeof usage);
            if (!line->count && !command->settings_size)
                sub_commands(command, names, sizeof names);
        }
        cli_error(command, "%s%s%s%s", message, names, usage[0] ? "; usage: paracord " : "", usage);
        return CLI_WRONG_USAGE;
    }
    if (line->help) {
        cli_help_command(stdout, command);
        return CLI_FINE;
    }
    if (!names_device(command, settings))
        return CLI_WRONG_USAGE;
    cli_call call = {command, settings, line, argc, argv};
    return command->run(&call);
}

int cli_run(const cli_command *command, int argc, char **argv)
{
    cli_line line = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    void *settings = calloc(1, command->settings_size ? command->settings_size : 1);
    int status = CLI_FAILED;
    if (line.values && settings)
        status = parse_and_run(command, argc, argv, settings, &line);
    else
        cli_error(command, "out of memory");
    free(settings);
    free(line.values);
    return cli_finish(command, status);
}

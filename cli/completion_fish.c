/* completion_fish.c: the script for fish. */
#include "completion.h"

#include <string.h>

static void quoted(const char *text)
{
    fputc('\'', stdout);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', stdout);
        fputc(*text, stdout);
    }
    fputc('\'', stdout);
}

/* complete -c paracord -n '__paracord_is "train"' */
static void begin(const cli_command *command)
{
    printf("complete -c paracord -n '__paracord_is \"%s\"'", command->name);
}

static void option(const cli_command *command, const cli_option *o)
{
    begin(command);
    printf(" -l %s", o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (o->choices) {
        fputs(" -x -a '", stdout);
        cli_complete_value(o);
        fputc('\'', stdout);
    } else if (o->kind != CLI_FLAG)
        fputs(o->kind == CLI_PATH ? " -r -F" : " -x", stdout);
    fputs(" -d ", stdout);
    quoted(o->help);
    fputc('\n', stdout);
    if (cli_negatable(o)) {
        begin(command);
        printf(" -l no-%s -d 'Switch --%s off'\n", o->name, o->name);
    }
}

static void argument(const cli_command *command, const cli_argument *a)
{
    begin(command);
    if (a->complete == CLI_FILES || a->complete == CLI_FOLDERS)
        fputs(" -F", stdout);
    if (a->complete == CLI_COMMANDS || a->choices || a->offer) {
        fputs(" -x -a '", stdout);
        cli_complete_argument(a);
        fputc('\'', stdout);
    }
    fputc('\n', stdout);
}

/* "check" behind "pictures", in a word of its own. */
static void second_word(const cli_command *command, const char *space)
{
    int n = (int)(space - command->name);
    printf("complete -c paracord -n '__paracord_is \"%.*s\"' -a %s -d ", n, command->name, space + 1);
    quoted(command->summary);
    fputc('\n', stdout);
}

static void first_word(const cli_command *command)
{
    printf("complete -c paracord -n __fish_use_subcommand -a %s -d ", command->name);
    quoted(command->summary);
    fputc('\n', stdout);
}

void cli_complete_fish(void)
{
    puts("# fish completion for paracord: ~/.config/fish/completions/paracord.fish\n"
         "function __paracord_is --argument-names wanted\n"
         "    set -l words (commandline -opc)\n"
         "    set -l name \"$words[2]\"\n"
         "    switch \"$words[2] $words[3]\"");
    for (int i = 0; cli_commands[i]; i++)
        if (strchr(cli_commands[i]->name, ' '))
            printf("        case '%s'\n            set name '%s'\n", cli_commands[i]->name, cli_commands[i]->name);
    puts("    end\n"
         "    test \"$name\" = \"$wanted\"\n"
         "end\n"
         "complete -c paracord -f\n"
         "complete -c paracord -n __fish_use_subcommand -s h -l help -d 'Show the commands'\n"
         "complete -c paracord -n __fish_use_subcommand -s V -l version -d 'Show the version'");
    for (int i = 0; cli_commands[i]; i++) {
        const cli_command *command = cli_commands[i];
        const char *space = strchr(command->name, ' ');
        if (space)
            second_word(command, space);
        else
            first_word(command);
        for (const cli_option *o = cli_next_option(command->options, NULL); o; o = cli_next_option(command->options, o))
            option(command, o);
        for (const cli_argument *a = command->arguments; a && a->metavar; a++)
            argument(command, a);
    }
}

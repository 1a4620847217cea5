/* completion_bash.c: the script for bash. */
#include "completion.h"

#include <string.h>

static const char head[] = "# bash completion for paracord: source <(paracord completion bash)\n"
                           "_paracord_files()\n"
                           "{\n"
                           "    compopt -o filenames 2>/dev/null\n"
                           "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
                           "}\n"
                           "\n"
                           "_paracord()\n"
                           "{\n"
                           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                           "    local command=${COMP_WORDS[1]} options= words= second=\n"
                           "    COMPREPLY=()\n"
                           "    # \"--name=value\" comes as three words\n"
                           "    [[ $cur == = ]] && cur=\n"
                           "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                           "    if [[ $COMP_CWORD -gt 2 ]]; then\n"
                           "        case \"$command ${COMP_WORDS[2]}\" in\n";

static const char tail[] = "    [[ $cur == -* ]] && words=$options\n"
                           "    case \"$words\" in\n"
                           "    '*files') _paracord_files -f ;;\n"
                           "    '*folders') _paracord_files -d ;;\n"
                           "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
                           "    esac\n"
                           "    if [[ $second && $COMP_CWORD -eq 2 ]]; then\n"
                           "        COMPREPLY+=($(compgen -W \"$second\" -- \"$cur\"))\n"
                           "    fi\n"
                           "}\n"
                           "complete -F _paracord paracord\n";

/* The patterns "train:--epochs|train:-e", and what may follow. */
static void value_case(const cli_command *command, const cli_option *o)
{
    printf("    '%s:--%s'", command->name, o->name);
    if (o->letter)
        printf(" | '%s:-%c'", command->name, o->letter);
    fputs(") ", stdout);
    if (o->kind == CLI_PATH)
        fputs("_paracord_files -f; ", stdout);
    if (o->choices) {
        fputs("COMPREPLY=($(compgen -W \"", stdout);
        cli_complete_value(o);
        fputs("\" -- \"$cur\")); ", stdout);
    }
    puts("return ;;");
}

static void command_names(void)
{
    for (int i = 0; cli_commands[i]; i++)
        if (!strchr(cli_commands[i]->name, ' '))
            printf("%s ", cli_commands[i]->name);
}

/* What may stand where no option stands: a kind of files, or words. */
static void argument_words(const cli_command *command)
{
    const cli_argument *last = NULL;
    for (const cli_argument *a = command->arguments; a && a->metavar; a++) {
        last = a;
        if (cli_complete_argument(a))
            putchar(' ');
    }
    if (last && (last->complete == CLI_FILES || last->complete == CLI_FOLDERS))
        fputs(last == command->arguments && last->complete == CLI_FOLDERS ? "*folders" : "*files", stdout);
}

/* "check" for "pictures" */
static void second_words(const char *first)
{
    size_t n = strlen(first);
    for (int i = 0; cli_commands[i]; i++)
        if (!strncmp(cli_commands[i]->name, first, n) && cli_commands[i]->name[n] == ' ')
            printf("%s ", cli_commands[i]->name + n + 1);
}

/* Behind help and man comes a whole name: "help cloud" goes on with cloud's sub-commands. */
static void names_of_two_words(void)
{
    fputs("    if [[ $COMP_CWORD -gt 2 && $command =~ ^(help|man)$ ]]; then\n        words=\n"
          "        [[ $COMP_CWORD -eq 3 ]] && case \"${COMP_WORDS[2]}\" in\n",
          stdout);
    for (int i = 0; cli_commands[i]; i++) {
        if (strchr(cli_commands[i]->name, ' '))
            continue;
        printf("        '%s') words='", cli_commands[i]->name);
        second_words(cli_commands[i]->name);
        puts("' ;;");
    }
    fputs("        esac\n    fi\n", stdout);
}

static void option_words(const cli_command *command)
{
    for (const cli_option *o = cli_next_option(command->options, NULL); o; o = cli_next_option(command->options, o))
        printf("--%s%s%s ", o->name, cli_negatable(o) ? " --no-" : "", cli_negatable(o) ? o->name : "");
}

void cli_complete_bash(void)
{
    fputs(head, stdout);
    for (int i = 0; cli_commands[i]; i++)
        if (strchr(cli_commands[i]->name, ' '))
            printf("        '%s') command='%s' ;;\n", cli_commands[i]->name, cli_commands[i]->name);
    fputs("        esac\n    fi\n    case \"$command:$prev\" in\n", stdout);
    for (int i = 0; cli_commands[i]; i++)
        for (const cli_option *o = cli_next_option(cli_commands[i]->options, NULL); o;
             o = cli_next_option(cli_commands[i]->options, o))
            if (o->kind != CLI_FLAG)
                value_case(cli_commands[i], o);
    fputs("    esac\n    [[ $COMP_CWORD -eq 1 ]] && command=\n    case \"$command\" in\n    '') words='", stdout);
    command_names();
    fputs("' options='--help --version' ;;\n", stdout);
    for (int i = 0; cli_commands[i]; i++) {
        printf("    '%s') words='", cli_commands[i]->name);
        argument_words(cli_commands[i]);
        fputs("' options='", stdout);
        option_words(cli_commands[i]);
        fputs("' second='", stdout);
        second_words(cli_commands[i]->name);
        puts("' ;;");
    }
    fputs("    esac\n", stdout);
    names_of_two_words();
    fputs(tail, stdout);
}

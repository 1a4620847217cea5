/* completion_zsh.c: the script for zsh. */
#include "completion.h"

#include <string.h>

/* Text inside '...' of an _arguments specification, where : [ ] have a meaning. */
static void quoted(const char *text)
{
    for (; *text; text++) {
        if (strchr(":[]\\", *text))
            fputc('\\', stdout);
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, stdout);
    }
}

/* One spelling: '(-e --epochs)--epochs=[Passes over the pictures]:N:' */
static void option_spec(const cli_option *o, const char *spelling)
{
    fputs(" \\\n      '(", stdout);
    if (o->letter)
        printf("-%c ", o->letter);
    printf("--%s%s%s)%s[", o->name, cli_negatable(o) ? " --no-" : "", cli_negatable(o) ? o->name : "", spelling);
    quoted(o->help);
    fputc(']', stdout);
    if (o->kind != CLI_FLAG) {
        printf(":%s:", o->metavar);
        if (o->kind == CLI_PATH)
            fputs("_files", stdout);
        if (o->choices) {
            putchar('(');
            cli_complete_value(o);
            putchar(')');
        }
    }
    fputc('\'', stdout);
}

static void option_specs(const cli_option *o)
{
    char spelling[64];
    bool flag = o->kind == CLI_FLAG;
    if (o->letter) {
        snprintf(spelling, sizeof spelling, "-%c%s", o->letter, flag ? "" : "+");
        option_spec(o, spelling);
    }
    snprintf(spelling, sizeof spelling, "--%s%s", o->name, flag ? "" : "=");
    option_spec(o, spelling);
    if (cli_negatable(o)) {
        snprintf(spelling, sizeof spelling, "--no-%s", o->name);
        option_spec(o, spelling);
    }
}

static void argument_spec(const cli_argument *a)
{
    fputs(a->most > 1 ? " \\\n      '*:" : " \\\n      ':", stdout);
    printf("%s:", a->metavar);
    if (a->complete == CLI_FILES)
        fputs("_files", stdout);
    if (a->complete == CLI_FOLDERS)
        fputs("_files -/", stdout);
    if (a->complete == CLI_COMMANDS || a->choices || a->offer) {
        putchar('(');
        cli_complete_argument(a);
        putchar(')');
    }
    fputc('\'', stdout);
}

static void command_case(const cli_command *command)
{
    size_t n = strlen(command->name);
    printf("    '%s')\n", command->name);
    for (int i = 0; cli_commands[i]; i++)
        if (!strncmp(cli_commands[i]->name, command->name, n) && cli_commands[i]->name[n] == ' ')
            printf("      (( CURRENT == 2 )) && compadd %s\n", cli_commands[i]->name + n + 1);
    fputs("      _arguments -s -S", stdout);
    for (const cli_option *o = cli_next_option(command->options, NULL); o; o = cli_next_option(command->options, o))
        option_specs(o);
    for (const cli_argument *a = command->arguments; a && a->metavar; a++)
        argument_spec(a);
    puts(" ;;");
}

void cli_complete_zsh(void)
{
    puts("#compdef paracord\n"
         "_paracord() {\n"
         "  local -a commands=(");
    for (int i = 0; cli_commands[i]; i++)
        if (!strchr(cli_commands[i]->name, ' ')) {
            printf("    '%s:", cli_commands[i]->name);
            quoted(cli_commands[i]->summary);
            puts("'");
        }
    puts("  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    _arguments '(- *)'{-h,--help}'[Show the commands]' '(- *)'{-V,--version}'[Show the version]'\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  local name=$words[1]\n"
         "  if (( CURRENT > 2 )); then\n"
         "    case \"$name $words[2]\" in");
    for (int i = 0; cli_commands[i]; i++)
        if (strchr(cli_commands[i]->name, ' '))
            printf("    '%s') name='%s'; shift words; (( CURRENT-- )) ;;\n", cli_commands[i]->name,
                   cli_commands[i]->name);
    puts("    esac\n"
         "  fi\n"
         "  case $name in");
    for (int i = 0; cli_commands[i]; i++)
        command_case(cli_commands[i]);
    puts("  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _paracord \"$@\"\n"
         "else\n"
         "  compdef _paracord paracord\n"
         "fi");
}

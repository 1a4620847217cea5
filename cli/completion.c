/* completion.c: the command that prints completion scripts; the shells have files of their own. */
#include "completion.h"

#include <string.h>

static int word(int count, const char *text)
{
    printf("%s%s", count ? " " : "", text);
    return count + 1;
}

int cli_complete_argument(const cli_argument *argument)
{
    int count = 0;
    for (const cli_choice *c = argument->choices; c && c->name; c++)
        count = word(count, c->name);
    for (int i = 0; argument->offer && argument->offer(i); i++)
        count = word(count, argument->offer(i));
    for (int i = 0; argument->complete == CLI_COMMANDS && cli_commands[i]; i++)
        if (!strchr(cli_commands[i]->name, ' '))
            count = word(count, cli_commands[i]->name);
    return count;
}

int cli_complete_value(const cli_option *option)
{
    int count = 0;
    for (const cli_choice *c = option->choices; c && c->name; c++)
        count = word(count, c->name);
    return count;
}

static int run(const cli_call *call)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } scripts[] = {{"bash", cli_complete_bash}, {"zsh", cli_complete_zsh}, {"fish", cli_complete_fish}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (!strcmp(call->line->values[0], scripts[i].shell))
            scripts[i].print();
    return CLI_FINE;
}

static const cli_choice shells[] = {{"bash", NULL}, {"zsh", NULL}, {"fish", NULL}, {0}};

static const cli_argument arguments[] = {
    {"SHELL", "bash, zsh or fish", 1, 1, .choices = shells},
    {0},
};

static const cli_example examples[] = {
    {"source <(paracord completion bash)", "Switch it on in this bash; the line may go into ~/.bashrc"},
    {"paracord completion zsh > ~/.zfunc/_paracord", "zsh: into a folder of $fpath, before compinit runs"},
    {"paracord completion fish > ~/.config/fish/completions/paracord.fish", "fish: where it looks by itself"},
    {0},
};

const cli_command cli_completion = {
    .name = "completion",
    .summary = "Print a completion script for your shell",
    .arguments = arguments,
    .examples = examples,
    .run = run,
};

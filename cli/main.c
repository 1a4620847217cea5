/* main.c: from the command line to a row of the table of sub-commands (table.c). */
#include <stdio.h>
#include <string.h>

#include <paracord/api.h>

#include "command.h"

int main(int argc, char **argv)
{
    int words;
    const cli_command *command = cli_find(argc - 1, (const char *const *)argv + 1, &words);
    if (command)
        return cli_run(command, argc - 1 - words, argv + 1 + words);
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_WRONG_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return cli_run(&cli_help, argc - 2, argv + 2);
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
        return cli_finish(NULL, printf("paracord %s\n", pc_version()) < 0);
    return cli_unknown(NULL, argv[1]);
}

/* main.c: the command, a table of sub-commands. Each is one file. */
#include <stdio.h>
#include <string.h>

#include <paracord/api.h>

#include "command.h"

const cli_command *const cli_commands[] = {
    &cli_train,  &cli_eval, &cli_predict, &cli_show,       &cli_pictures, &cli_pictures_check,
    &cli_device, &cli_help, &cli_man,     &cli_completion, NULL,
};

const char cli_about[] =
    "Trains picture classifiers on folders of pictures, in plain C, and shows what there is to compute on.";

const cli_example cli_first_run[] = {
    {"paracord pictures faces", "Draw cat and dog faces to practise on"},
    {"paracord train faces --epochs 5", "Train on them; the network goes to run/model.h5"},
    {"paracord predict run/model.h5 faces/test/dog/*.jpg", "Ask it about pictures that it has not seen"},
    {0},
};

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

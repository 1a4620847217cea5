/* command.h: a sub-command as a row of the table in table.c. Each lives in a file of its own, which exports the row. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdio.h>

#include "options.h"

/* Exit statuses. A command that was stopped by a signal leaves with 128 + its number, as shells count. */
enum { CLI_FINE = 0, CLI_FAILED = 1, CLI_WRONG_USAGE = 2 };

typedef struct cli_call {
    const struct cli_command *command;
    void *settings; /* the command's struct, filled by its rows */
    const cli_line *line;
    int argc; /* the words behind the command's name, as typed */
    char **argv;
} cli_call;

typedef struct cli_example {
    const char *line, *help; /* NULL line ends the list */
} cli_example;

typedef struct cli_command {
    const char *name;              /* "train", "pictures check" */
    const char *alias;             /* another name that is understood; may be NULL */
    const char *summary;           /* one line without a full stop */
    const char *description;       /* paragraphs separated by \n; those that begin with a space stay as they are */
    const char *group;             /* begins a new heading in the overview */
    const cli_option *options;     /* may be NULL */
    const cli_argument *arguments; /* may be NULL */
    const cli_example *examples;   /* may be NULL */
    size_t settings_size;
    int (*run)(const cli_call *call);
} cli_command;

/* The table, ended by NULL, and what the overview says around it. */
extern const cli_command cli_train, cli_eval, cli_predict, cli_show, cli_pictures, cli_pictures_check;
extern const cli_command cli_trace, cli_trace_view, cli_trace_summary;
extern const cli_command cli_add, cli_saxpy, cli_matmul, cli_mandelbrot;
extern const cli_command cli_devices, cli_topo, cli_doctor;
extern const cli_command cli_cloud, cli_cloud_list, cli_cloud_pick, cli_cloud_cost, cli_cloud_update, cli_cloud_run;
extern const cli_command cli_help, cli_man, cli_completion;

#endif

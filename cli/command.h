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
    const cli_choice *statuses;    /* exit statuses that are not as in all commands: numbers, sentences; may be NULL */
    size_t settings_size;
    int (*run)(const cli_call *call);
} cli_command;

/* The table, ended by NULL, and what the overview says around it. */
extern const cli_command *const cli_commands[];
extern const char cli_about[];
extern const cli_example cli_first_run[];

/* The row whose name the first words make up, the longest such name first; *words is how many (NULL: not wanted).
 * NULL when there is none. */
const cli_command *cli_find(int argc, const char *const *argv, int *words);

/* The command that the call's arguments name; NULL with an error when there is none. */
const cli_command *cli_named(const cli_call *call);

/* Say that there is no command `typed` and which one it may have been; returns CLI_WRONG_USAGE. */
int cli_unknown(const cli_command *command, const char *typed);

/* The command's sub-command that `typed` may have meant: "check" of pictures; NULL: none is near. */
const char *cli_near_action(const cli_command *command, const char *typed);

/* Say that the first argument is no sub-command, which there are, and which one it may have been; CLI_WRONG_USAGE. */
int cli_unknown_action(const cli_call *call, const char *there_are);

/* Read the words behind the name, run the command and return the exit status. */
int cli_run(const cli_command *command, int argc, char **argv);

/* Write "paracord train: ..." to stderr, control characters made harmless. cli_failed writes the library's error and
 * returns the exit status. */
void cli_error(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_failed(const cli_command *command);

/* The library's error in `text`, and `text`. */
#define CLI_FAILURE_MAX 1100
char *cli_failure(char text[CLI_FAILURE_MAX]);

/* The status to leave with: what was printed must also have arrived (a full disk behind `> file` is a failure). */
int cli_finish(const cli_command *command, int status);

/* The usage line behind "paracord": "train [OPTIONS] DIR" in `text`, and `text`. */
char *cli_usage(const cli_command *command, char *text, size_t n);

/* Print the overview of all commands, and the help of one. */
void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const cli_command *command);

/* The networks of paracord train --arch. */
extern const cli_choice cli_train_archs[];

extern const cli_command cli_train, cli_report, cli_eval, cli_predict, cli_show, cli_pictures, cli_pictures_check;
extern const cli_command cli_gpt, cli_gpt_train, cli_gpt_sample, cli_gpt_eval;
extern const cli_command cli_launch;
extern const cli_command cli_trace, cli_trace_view, cli_trace_summary, cli_trace_calls;
extern const cli_command cli_add, cli_saxpy, cli_matmul, cli_mandelbrot;
extern const cli_command cli_devices, cli_topo, cli_doctor, cli_doctor_job, cli_bench, cli_bench_collective;
extern const cli_command cli_cloud, cli_cloud_list, cli_cloud_pick, cli_cloud_cost, cli_cloud_update, cli_cloud_run;
extern const cli_command cli_help, cli_man, cli_completion;

#endif

/* options.h: what a command's rows of options and arguments look like, and the parser that reads a command line by
 * them. Help, man page and completion are made from the same rows (help.c, man.c, completion.c).
 *
 * Forms: --name value, --name=value, -n value, -nvalue, flags together (-rs), `--` before arguments that begin with
 * a dash. A flag whose default is "on" is switched off by --no-name. The last one given counts.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_kind {
    CLI_FLAG,   /* bool */
    CLI_INT,    /* int, min..max */
    CLI_BYTES,  /* int64_t: bytes with K, M, G or T (of 1024), min..max; without a max any, none is -1, and "auto" 0 */
    CLI_SIZE,   /* int[2], height and width: "A" for both, or "AxB", each min..max */
    CLI_SEED,   /* uint64_t, any */
    CLI_FLOAT,  /* double, min..max */
    CLI_PAIR,   /* double[2], "a,b", each min..max */
    CLI_CHOICE, /* const char *, one of the choices */
    CLI_TEXT,   /* const char * */
    CLI_PATH    /* const char *; completed as a file or folder */
} cli_kind;

typedef struct cli_choice {
    const char *name, *help; /* help may be NULL: the name says it */
} cli_choice;

typedef struct cli_option {
    const char *name; /* without dashes; NULL ends the rows */
    char letter;      /* 0: none */
    cli_kind kind;
    size_t offset;        /* where in the settings, offsetof */
    const char *fallback; /* the default, as the user would type it ("on" for a flag); NULL: none (zero, NULL, off) */
    const char *metavar;  /* what the value is called; NULL for flags */
    const char *help;     /* a sentence without its full stop */
    const char *group;    /* begins a new heading in the help; NULL: goes on under the last one */
    double min, max;
    bool above;                /* min itself is not allowed */
    bool automatic;            /* of a CLI_FLOAT: "auto" is taken, too, and is -1 */
    const cli_choice *choices; /* ended by a NULL name; of a CLI_TEXT what shells offer, and anything is taken */
    const char *suffix; /* of a CLI_CHOICE: what ends so is the name of a file, and taken, too; NULL: nothing is */
} cli_option;

/* What a shell offers for an argument. */
typedef enum cli_complete { CLI_NOTHING, CLI_FILES, CLI_FOLDERS, CLI_COMMANDS } cli_complete;

/* The arguments that are not options. A row stands for one of them, the last row for as many as `most` allows. */
typedef struct cli_argument {
    const char *metavar; /* NULL ends the rows */
    const char *help;
    int least, most; /* 1, 1 for one; 0, 1 for an optional one; 1, INT_MAX for one or more */
    cli_complete complete;
    bool read;                 /* a file that is read: `-` is standard input, which the command gets as CLI_STDIN */
    const cli_choice *choices; /* NULL: anything */
    const char *(*offer)(
        int i); /* what a shell offers beside anything: the i-th word, until the next call; NULL: no more */
} cli_argument;

typedef struct cli_line {
    const char **values; /* the arguments in order, NULL behind the last; room for argc + 1, lent by the caller */
    int count;
    bool help;       /* --help was asked for: nothing after it was read */
    bool miscounted; /* the error is one argument too many or too few: the usage would help */
} cli_line;

#define CLI_MESSAGE_MAX 512

/* The library reads what its descriptor has to the end. */
#define CLI_STDIN "/dev/stdin"

/* The option that every command has besides its rows. */
extern const cli_option cli_help_option;

/* The row after `option` in the order of `options` (may be NULL), then --help, then NULL; start with NULL. */
const cli_option *cli_next_option(const cli_option *options, const cli_option *option);

/* Set all settings to their defaults, then read argv[0..argc-1] (without the command's name) into them and `line`.
 * False with a one-line `message` that names the option, what is wrong with it and what would be right. */
bool cli_parse(const cli_option *options, const cli_argument *arguments, int argc, char **argv, void *settings,
               cli_line *line, char message[CLI_MESSAGE_MAX]);

/* The values an option takes, in words ("1 to 100000", "article, two-conv or mlp"), or "" when any will do. */
char *cli_values(const cli_option *option, char *text, size_t n);

/* A flag that is on unless --no-name says otherwise. */
bool cli_negatable(const cli_option *option);

#endif

/* watch.h: what a long command shows while the library works: progress, pictures that had to be left out or are
 * damaged, stopping. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "command.h"
#include "progress.h"

typedef struct cli_watch {
    const cli_command *command;
    cli_progress progress;
    pc_progress last; /* where the run was when it was last heard of */
    int skipped, damaged;
} cli_watch;

/* Begin to watch: catches Ctrl-C. */
void cli_watch_start(cli_watch *watch, const cli_command *command);

/* The callbacks for it: progress, skipped, damaged and stop. */
pc_train_callbacks cli_watch_callbacks(cli_watch *watch);

/* Stop watching: clears the line and says how many skipped and damaged pictures were not named. */
void cli_watch_end(cli_watch *watch);

#endif

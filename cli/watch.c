/* watch.c: what a long command shows while the library works. */
#include "watch.h"

#include <paracord/log.h>

#include "signals.h"

#define NAMED 10 /* skipped pictures that are named; more would push everything else off the screen */

static void show_progress(void *context, const pc_progress *at)
{
    cli_watch *watch = context;
    watch->last = *at;
    cli_progress_show(&watch->progress, at);
}

static void show_skipped(void *context, const char *path, const char *why)
{
    cli_watch *watch = context;
    if (watch->skipped++ >= NAMED)
        return;
    cli_progress_clear(&watch->progress);
    cli_error(watch->command, "skipped %s: %s", path, why);
}

static void show_damaged(void *context, const char *path, const char *why)
{
    cli_watch *watch = context;
    if (watch->damaged++ >= NAMED)
        return;
    cli_progress_clear(&watch->progress);
    cli_error(watch->command, "%s is damaged and used all the same: %s", path, why);
}

/* What the library has to say beside errors, such as a loss that is not finite. */
static void show_log(void *context, pc_log_level level, const char *line)
{
    cli_watch *watch = context;
    (void)level;
    cli_progress_clear(&watch->progress);
    cli_error(watch->command, "%s", line);
}

void cli_watch_start(cli_watch *watch, const cli_command *command)
{
    *watch = (cli_watch){.command = command};
    cli_progress_start(&watch->progress);
    cli_signals_catch();
    pc_log_set(show_log, watch, PC_LOG_WARNING);
}

pc_train_callbacks cli_watch_callbacks(cli_watch *watch)
{
    return (pc_train_callbacks){.context = watch,
                                .progress = show_progress,
                                .skipped = show_skipped,
                                .damaged = show_damaged,
                                .stop = cli_stop};
}

void cli_watch_end(cli_watch *watch)
{
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
    cli_progress_clear(&watch->progress);
    if (watch->skipped > NAMED)
        cli_error(watch->command, "skipped %d more; paracord pictures check names them all", watch->skipped - NAMED);
    if (watch->damaged > NAMED)
        cli_error(watch->command, "%d more are damaged and used; paracord pictures check names them all",
                  watch->damaged - NAMED);
}

/* signals.h: Ctrl-C asks the command to stop in good order; a second one ends it at once. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>

/* Catch SIGINT and SIGTERM from now on. */
void cli_signals_catch(void);

/* The signal that came first, 0 when none did. Any thread. */
int cli_signal(void);

/* The same in the form of pc_train_callbacks.stop. */
bool cli_stop(void *context);

/* The exit status of a run that was stopped: 128 + the signal's number, as shells count; 130 when there was none. */
int cli_stopped_status(void);

#endif

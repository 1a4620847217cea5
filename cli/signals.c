/* signals.c: the first SIGINT or SIGTERM is noted, the second ends the process. */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int first;
static volatile sig_atomic_t on_terminal;

static void say(const char *text, size_t n)
{
    if (on_terminal && write(STDERR_FILENO, text, n) < 0)
        return;
}

/* Only what is safe in a signal handler: a lock-free atomic, write and _exit. */
static void handle(int number)
{
    static const char patience[] = "\nstopping in good order; press Ctrl-C again to stop at once\n";
    int none = 0;
    if (!atomic_compare_exchange_strong(&first, &none, number)) {
        say("\n", 1);
        _exit(128 + number);
    }
    say(patience, sizeof patience - 1);
}

void cli_signals_catch(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    on_terminal = isatty(STDERR_FILENO);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int cli_signal(void)
{
    return atomic_load(&first);
}

bool cli_stop(void *context)
{
    (void)context;
    return cli_signal() != 0;
}

int cli_stopped_status(void)
{
    return 128 + (cli_signal() ? cli_signal() : SIGINT);
}

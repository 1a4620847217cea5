/* machine.h: the machine that a command looks at: this one, or that of --root. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include <paracord-tools/probe.h>

#include "command.h"

typedef struct cli_machine_from {
    const char *root, *record; /* NULL: this machine; what was read is not written */
    int timeout;
    bool wake;
} cli_machine_from;

/* The rows of options that fill it in, where `settings` has it as its member `from`. */
#define CLI_MACHINE_ROOT(settings)                                                                                     \
    {                                                                                                                  \
        "root", 0, CLI_PATH, offsetof(settings, from.root), NULL, "PATH",                                              \
            .help = "Look at the machine in this folder or recording instead of this one", .group = "Where from"       \
    }
#define CLI_MACHINE_WAKE(settings)                                                                                     \
    {                                                                                                                  \
        "wake", 0, CLI_FLAG, offsetof(settings, from.wake), NULL, NULL,                                                \
            .help = "Ask GPUs too that sleep to save power, which wakes them"                                          \
    }
#define CLI_MACHINE_TIMEOUT(settings)                                                                                  \
    {                                                                                                                  \
        "timeout", 0, CLI_INT, offsetof(settings, from.timeout), "3000", "MS",                                         \
            .help = "How long the driver may take to answer one call", .min = 10, .max = 600000                        \
    }

/* Its GPUs may be touched by this process: none hangs, and it is not that all sleep to save power. */
bool cli_machine_awake(const pc_machine *machine);

/* Look at the machine, and do `then` with it; the exit status. */
int cli_with_machine(const cli_call *call, const cli_machine_from *from,
                     int (*then)(const cli_call *call, pc_machine *machine));

#endif

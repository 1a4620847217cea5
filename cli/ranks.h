/* ranks.h: commands that work as one rank or as several: threads with a device each (--devices), or processes that were launched
 * (paracord launch, torchrun, mpirun, srun). */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <paracord/group.h>

#include "command.h"

enum { CLI_RANKS = 64 };

typedef struct cli_ranks {
    /* A rank's work; first: it is the one that speaks. */
    pc_status (*work)(void *context, pc_group *group, const char *device, bool first);
    void *context;
    int count;                                  /* threads */
    char device[CLI_RANKS][PC_DEVICE_NAME_MAX]; /* of each */
    bool is_other;                              /* a process that is not the first rank: it says nothing */
} cli_ranks;

/* `more`: a string literal, what differs from one device. */
#define CLI_DEVICES_OPTION(place, more)                                                                                \
    {                                                                                                                  \
        "devices", 0, CLI_TEXT, (place), NULL, "LIST",                                                                 \
            .help = "Work on several: all GPUs (all), those of these numbers (0,1), or devices by name "               \
                    "(sim:0,sim:1)" more,                                                                              \
            .group = "Several devices"                                                                                 \
    }

#define CLI_ZERO_HELP                                                                                                  \
    "Let each device keep a part only, for less memory (ZeRO): 1 of the optimiser's state, 2 of gradients too, 3 of "  \
    "weights too; 0: each keeps all"

#define CLI_REDUCE_HELP                                                                                                \
    "In what gradients travel between devices: bf16 is half of the bytes, where links are slow, and rounds them"
#define CLI_REDUCES                                                                                                    \
    {                                                                                                                  \
        {"float32", "as they are"}, {"bf16", "rounded to 8 bits of fraction"}, {0},                                    \
    }

/* From the words of --devices (NULL: not given) and --device. False: it does not work, which is said. */
bool cli_ranks_take(const cli_command *command, cli_ranks *ranks, const char *devices, const char *device);

/* Do the work in all ranks, and wait for them. The first error of any is the thread's. */
pc_status cli_ranks_run(cli_ranks *ranks);

#endif

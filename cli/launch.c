/* launch.c: paracord launch, a job of several ranks. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include <paracord-tools/launch.h>

#include "command.h"

typedef struct launch_settings {
    const char *master, *bind;
    int ranks, nodes, node_rank, restarts, min_ranks;
    bool elastic;
    double timeout;
} launch_settings;

static int run(const cli_call *call)
{
    const launch_settings *s = call->settings;
    int status = CLI_FAILED;
    const pc_launch_options options = {.ranks = s->ranks,
                                       .nodes = s->nodes,
                                       .node_rank = s->node_rank,
                                       .master = s->master,
                                       .max_restarts = s->restarts,
                                       .min_ranks = s->elastic ? (s->min_ranks ? s->min_ranks : 1) : 0,
                                       .bind = strcmp(s->bind, "none") ? PC_LAUNCH_BIND_NUMA : PC_LAUNCH_BIND_NONE,
                                       .timeout_seconds = s->timeout,
                                       .out = stdout,
                                       .err = stderr};
    if (s->node_rank >= s->nodes) {
        cli_error(call->command, "--node-rank is %d, but --nodes is %d: hosts count from 0 to %d", s->node_rank,
                  s->nodes, s->nodes - 1);
        return CLI_WRONG_USAGE;
    }
    if (s->min_ranks && !s->elastic) {
        cli_error(call->command, "--min-ranks is for --elastic: without it the job goes on with all ranks or none");
        return CLI_WRONG_USAGE;
    }
    if (pc_launch(call->line->values, options, &status) != PC_OK)
        return cli_failed(call->command);
    return status;
}

#define AT(member) offsetof(launch_settings, member)

static const cli_choice binds[] = {
    {"numa", "each rank to cores of its own, near its GPU, where there are enough"},
    {"none", "all ranks to all cores"},
    {0},
};

static const cli_option options[] = {
    {"ranks", 'n', CLI_INT, AT(ranks), "1", "N", .help = "Ranks on this host: mostly as many as it has GPUs", .min = 1,
     .max = 4096},
    {"max-restarts", 0, CLI_INT, AT(restarts), "0", "N",
     .help = "How often all ranks are started again when one has failed", .min = 0, .max = 1000000},
    {"elastic", 0, CLI_FLAG, AT(elastic), NULL, NULL,
     .help = "Go on without a GPU or a host that has failed for good, with fewer ranks"},
    {"min-ranks", 0, CLI_INT, AT(min_ranks), NULL, "N", .help = "Fewest ranks that --elastic goes on with (default 1)",
     .min = 1, .max = 1000000},
    {"bind", 0, CLI_CHOICE, AT(bind), "numa", "HOW", .help = "Which cores ranks may use", .choices = binds},
    {"nodes", 0, CLI_INT, AT(nodes), "1", "N", .help = "Hosts; paracord launch is started on each of them", .min = 1,
     .max = 65536, .group = "Several hosts"},
    {"node-rank", 0, CLI_INT, AT(node_rank), "0", "R", .help = "Which of them this is, from 0", .min = 0, .max = 65535},
    {"master", 0, CLI_TEXT, AT(master), NULL, "HOST:PORT", .help = "Address of host 0, and a port that is free there"},
    {"timeout", 0, CLI_FLOAT, AT(timeout), "60", "S", .help = "Seconds that hosts wait for each other", .min = 0,
     .max = 1e6, .above = true},
    {0},
};

static const cli_argument arguments[] = {
    {"COMMAND", "A program and its arguments, behind --", 1, INT_MAX, .complete = CLI_FILES},
    {0},
};

static const cli_example examples[] = {
    {"paracord launch -n 4 -- ./train --epochs 5", "Four ranks on this machine"},
    {"paracord launch -n 4 --max-restarts 3 -- python3 train.py",
     "A program of PyTorch, started again when a rank fails"},
    {"paracord launch -n 4 -- paracord gpt train train.bin --size gpt2-xl --zero 3", "Four GPUs share out a network"},
    {"paracord launch -n 4 --max-restarts 9 --elastic -- paracord train pictures --resume",
     "Go on from the last checkpoint, with fewer GPUs when one has failed for good"},
    {"paracord launch -n 8 --nodes 2 --node-rank 1 --master 10.0.0.1:29500 -- ./train", "The second of two hosts"},
    {0},
};

static const cli_choice statuses[] = {
    {"0", "All ranks ended with 0"},
    {"1", "This command failed, or the rank that failed first ended with 1"},
    {"2", "The command line was wrong, or the rank that failed first ended with 2"},
    {"other", "That of the rank that failed first; 128 and the number of the signal that ended it"},
    {0},
};

const cli_command cli_launch = {
    .name = "launch",
    .summary = "Start a job of several ranks, and see it through",
    .description =
        "A rank is one of the processes that work together, mostly one for each GPU. All run the same command, with "
        "the "
        "variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and so on), and of MPI (on one host, where "
        "libpmix is there). Each line they write comes out with the rank in front.\n"
        "\n"
        "When one fails, or gives no sign of life for PARACORD_BEAT_LIMIT seconds (10), it is told which one and of "
        "what, the others are stopped within seconds, and all are started again while restarts are left.\n"
        "\n"
        "With --elastic the job goes on without a rank's GPU that has failed twice within ten minutes, without a host "
        "that does not come back, and without whatever fails when no restart is left. Of paracord gpt train "
        "--tensor-parallel N it goes on with a multiple of N ranks.\n"
        "\n"
        "Several hosts share a secret, PARACORD_TOKEN, which has to be set on all of them.\n"
        "\n"
        "Exit status: 0, or that of the rank that failed first (128 + the signal that ended it).",
    .group = "Many processes",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .statuses = statuses,
    .settings_size = sizeof(launch_settings),
    .run = run,
};

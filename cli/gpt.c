/* gpt.c: paracord gpt, which names its sub-commands. */
#include "command.h"

/* Reached only where the words behind "gpt" are no sub-command's name. */
static int run(const cli_call *call)
{
    return cli_unknown_action(call, "train, sample or eval");
}

static const cli_argument arguments[] = {
    {"ACTION", "What to do: train, sample or eval", 1, 1, .complete = CLI_NOTHING},
    {0},
};

static const cli_example examples[] = {
    {"paracord gpt train poems.txt", "Learn from a text; the network goes to the folder gpt"},
    {"paracord gpt sample gpt --start \"Once upon a time\"", "Let it write"},
    {"paracord gpt eval gpt other.txt", "How well it tells another text"},
    {0},
};

const cli_command cli_gpt = {
    .name = "gpt",
    .summary = "Train and use networks that write",
    .description =
        "GPT-2, from networks of a million weights that learn on a laptop to the published ones, whose files "
        "(config.json, model.safetensors, vocab.json, merges.txt) are read and written. See paracord help gpt "
        "train, sample, eval.",
    .group = "Networks that write",
    .arguments = arguments,
    .examples = examples,
    .run = run,
};

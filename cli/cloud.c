/* cloud.c: paracord cloud, which names its sub-commands, and what they share. */
#include "cloud.h"

#include <stddef.h>
#include <string.h>

#include <paracord/error.h>

#include "nearest.h"

const cli_choice cli_cloud_uses[] = {
    {"train", "training networks"}, {"infer", "asking them"}, {"graphics", "rendering, desktops, games"}, {0}};
const cli_choice cli_cloud_vendors[] = {
    {"nvidia", "CUDA"},          {"amd", "no CUDA"},     {"aws", "Inferentia and Trainium: no CUDA"},
    {"intel", "Gaudi: no CUDA"}, {"any", "all of them"}, {0}};
const cli_choice cli_cloud_archs[] = {
    {"x86_64", "what most programs are built for"}, {"arm64", "Graviton"}, {"any", "both"}, {0}};

pc_cloud_use cli_cloud_use(const char *name)
{
    if (!name)
        return PC_CLOUD_ANY;
    return !strcmp(name, "train") ? PC_CLOUD_TRAIN : !strcmp(name, "infer") ? PC_CLOUD_INFER : PC_CLOUD_GRAPHICS;
}

pc_cloud_pick_options cli_cloud_wish(const cli_cloud_settings *s)
{
    return (pc_cloud_pick_options){.use = cli_cloud_use(s->use),
                                   .memory_gb = s->memory,
                                   .gpus = s->gpus,
                                   .vcpus = s->vcpus,
                                   .budget = s->budget,
                                   .region = s->region,
                                   .vendor = s->vendor,
                                   .arch = s->arch};
}

int cli_cloud_failed(const cli_call *call, const char *guess)
{
    char text[CLI_FAILURE_MAX];
    if (!guess)
        return cli_failed(call->command);
    cli_error(call->command, "%s; did you mean %s?", cli_failure(text), guess);
    return CLI_FAILED;
}

const char *cli_cloud_guess_region(const pc_cloud *cloud, const char *typed, char guess[CLI_CLOUD_TEXT_MAX])
{
    const char *meant = NULL, *region;
    int n = (int)strlen(typed);
    bool other = pc_cloud_is_region(typed); /* us-east-2, us-west-1: another one, not a slip */
    for (int i = 0; cloud && (region = pc_cloud_region_at(cloud, i)); i++)
        if (!other || (cli_edit_distance(typed, region) == 1 && region[strlen(region) - 1] == typed[n - 1]))
            meant = cli_nearer(typed, meant, region);
    if (meant || n < 2 || n > CLI_CLOUD_TEXT_MAX - 2 || typed[n - 2] < 'a' || typed[n - 2] > 'z')
        return meant;
    snprintf(guess, CLI_CLOUD_TEXT_MAX, "%.*s-%s", n - 1, typed, typed + n - 1); /* eu-central1, which lacks a dash */
    return !other && pc_cloud_is_region(guess) ? guess : NULL;
}

pc_cloud *cli_cloud_open(const cli_call *call)
{
    const cli_cloud_settings *settings = call->settings;
    char guess[CLI_CLOUD_TEXT_MAX];
    pc_cloud *cloud = pc_cloud_open(settings->catalogue);
    if (cloud && pc_cloud_check_region(cloud, settings->region) == PC_OK)
        return cloud;
    cli_cloud_failed(call, cloud ? cli_cloud_guess_region(cloud, settings->region, guess) : NULL);
    pc_cloud_free(cloud);
    return NULL;
}

/* The i-th word; `families` of them first. The catalogue stays open until the last one was asked for. */
static const char *offer(int i, bool families)
{
    static pc_cloud *cloud;
    const pc_cloud_family *family = NULL;
    cloud = cloud ? cloud : pc_cloud_open_builtin();
    for (int k = 0; cloud && families && (family = pc_cloud_family_at(cloud, k)); k++)
        if (i-- == 0)
            return family->name;
    const pc_cloud_instance *machine = cloud ? pc_cloud_instance_at(cloud, i) : NULL;
    if (machine)
        return machine->name;
    pc_cloud_free(cloud);
    cloud = NULL;
    return NULL;
}

const char *cli_cloud_offer_machine(int i)
{
    return offer(i, false);
}

const char *cli_cloud_offer_name(int i)
{
    return offer(i, true);
}

/* Reached only where the words behind "cloud" are no sub-command's name. */
static int run(const cli_call *call)
{
    return cli_unknown_action(call, "list, pick, cost, update or run");
}

static const cli_argument arguments[] = {
    {"ACTION", "What to do: list, pick, cost, update or run", 1, 1, .complete = CLI_NOTHING},
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud list g6 g6e", "What there is, with prices"},
    {"paracord cloud pick --memory 40 --gpus 4 --for train --budget 20", "The machine for a need"},
    {"paracord cloud cost article faces --epochs 25", "Hours and dollars for a training"},
    {"paracord cloud update", "Today's prices, from your own aws command"},
    {"paracord cloud run g6.xlarge", "The commands that start one; it starts nothing itself"},
    {0},
};

const cli_command cli_cloud = {
    .name = "cloud",
    .summary = "Find the machine to rent",
    .description = "Amazon's machines with accelerators: what there is, what fits, what a training would cost on each, "
                   "and the commands that start it. The catalogue is part of the command; nothing but cloud update "
                   "uses a network, and nothing is ever started. Prices are US dollars an hour for Linux, on demand, "
                   "and each has a region, a date and a source. See paracord help cloud list, pick, cost, update, run.",
    .group = "Machines to rent",
    .arguments = arguments,
    .examples = examples,
    .run = run,
};

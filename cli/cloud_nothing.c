/* cloud_nothing.c: what paracord cloud pick says to a wish that no machine meets: what was asked for, and what comes
 * nearest to it. */
#include <stddef.h>
#include <string.h>

#include "cloud.h"
#include "text.h"

/* "4 GPUs of 40 GB, for train, for at most $5 an hour" */
static void describe(const cli_cloud_settings *s, char *text, size_t n)
{
    size_t length = (size_t)snprintf(text, n, "%d GPU%s", s->gpus ? s->gpus : 1, s->gpus > 1 ? "s" : "");
    if (s->memory > 0 && length < n)
        length += (size_t)snprintf(text + length, n - length, " of %g GB", s->memory);
    if (s->vcpus && length < n)
        length += (size_t)snprintf(text + length, n - length, ", %d vCPUs", s->vcpus);
    if (strcmp(s->vendor, "nvidia") != 0 && strcmp(s->vendor, "any") != 0 && length < n)
        length += (size_t)snprintf(text + length, n - length, ", from %s", s->vendor);
    if (strcmp(s->arch, "x86_64") != 0 && strcmp(s->arch, "any") != 0 && length < n)
        length += (size_t)snprintf(text + length, n - length, ", on %s", s->arch);
    if (s->use && length < n)
        length += (size_t)snprintf(text + length, n - length, ", for %s", s->use);
    if (s->budget > 0 && length < n)
        snprintf(text + length, n - length, ", for at most $%g an hour", s->budget);
}

/* What may stand in the way, in the order in which it is easiest to do without. */
enum { PRICE, OLD, PART, ARCH, VENDOR, MEMORY, GPUS, VCPUS, AMOUNTS, WAYS };

static pc_cloud_pick_options without(const pc_cloud_pick_options *wish, int way)
{
    pc_cloud_pick_options less = *wish;
    bool all = way == AMOUNTS;
    less.order = way == PRICE ? PC_CLOUD_FASTEST : PC_CLOUD_CHEAPEST; /* which takes unknown prices */
    less.old = wish->old || way == OLD;
    less.fractions = wish->fractions || way == PART;
    less.arch = way == ARCH ? "any" : wish->arch;
    less.vendor = way == VENDOR ? "any" : wish->vendor;
    less.memory_gb = way == MEMORY || all ? 0 : wish->memory_gb;
    less.gpus = way == GPUS || all ? 0 : wish->gpus;
    less.vcpus = way == VCPUS || all ? 0 : wish->vcpus;
    return less;
}

/* More is nearer. Where prices are unknown, the smallest machine is. */
static double amount(const pc_cloud_instance *i, int way)
{
    if (way == PRICE)
        return -i->memory_gb * i->gpus - i->vcpus / 1e3;
    return way == GPUS ? i->gpus : way == VCPUS ? i->vcpus : i->memory_gb;
}

/* Of those that fit, which are sorted by price: the one with the most of what there is too little of, or the first. */
static const pc_cloud_offer *best_of(const pc_cloud_offer *offers, int count, int way)
{
    const pc_cloud_offer *best = count && !offers[0].misfit ? &offers[0] : NULL;
    for (int i = 1; best && (way >= MEMORY || way == PRICE) && i < count && !offers[i].misfit; i++)
        if (amount(offers[i].instance, way) > amount(best->instance, way))
            best = &offers[i];
    return best;
}

/* It has all that was asked for, at a price that is not known. */
static void say_unpriced(const cli_call *call, const char *asked, const pc_cloud_offer *best)
{
    char gpus[CLI_CLOUD_TEXT_MAX], options[CLI_CLOUD_OPTIONS_MAX];
    const pc_cloud_instance *i = best->instance;
    bool blocks = i->family->blocks;
    cli_error(call->command,
              "nothing that has a known price has %s; nearest is %s: %s with %g GB%s, %d vCPUs, its price unknown%s "
              "(--by fastest takes it; paracord cloud %s%s%s %s)",
              asked, i->name, cli_cloud_gpus(i, gpus), i->memory_gb, i->gpus > 1 ? " each" : "", i->vcpus,
              blocks ? ", as it is rented by the block of days only" : "", blocks ? "run " : "update",
              blocks ? i->name : "", cli_cloud_options(call->settings, options),
              blocks ? "says how to buy one" : "may know the price");
}

static void say(const cli_call *call, const char *asked, const pc_cloud_offer *best, int way)
{
    static const pc_cloud_misfit misfits[WAYS] = {
        [OLD] = PC_CLOUD_OLD, [PART] = PC_CLOUD_FRACTION, [ARCH] = PC_CLOUD_ARCH, [VENDOR] = PC_CLOUD_VENDOR};
    char gpus[CLI_CLOUD_TEXT_MAX], usd[CLI_CLOUD_TEXT_MAX], option[CLI_CLOUD_TEXT_MAX], take[CLI_CLOUD_TEXT_MAX] = "";
    const pc_cloud_instance *i = best->instance;
    if (misfits[way])
        snprintf(take, sizeof take, " (%.40s takes it)", cli_cloud_option(misfits[way], i->family, option));
    cli_error(call->command, "nothing has %s; nearest is %s: %s with %g GB%s, %d vCPUs, $%s an hour%s", asked, i->name,
              cli_cloud_gpus(i, gpus), i->memory_gb, i->gpus > 1 ? " each" : "", i->vcpus,
              cli_cloud_dollars(best->price.usd, usd), take);
}

int cli_cloud_nothing(const cli_call *call, const pc_cloud *cloud, const pc_cloud_pick_options *wish,
                      const pc_cloud_offer *offers, int count)
{
    char asked[192], usd[CLI_CLOUD_TEXT_MAX];
    describe(call->settings, asked, sizeof asked);
    for (int i = 0; i < count; i++) /* those that do not fit are sorted by price */
        if (offers[i].misfit == PC_CLOUD_TOO_DEAR) {
            cli_error(call->command, "nothing has %s; the cheapest that has the rest is %s at $%s", asked,
                      offers[i].instance->name, cli_cloud_dollars(offers[i].price.usd, usd));
            return CLI_FAILED;
        }
    for (int way = 0; way < WAYS; way++) {
        pc_cloud_pick_options less = without(wish, way);
        pc_cloud_offer *found;
        int n;
        if (pc_cloud_pick(cloud, less, &found, &n) != PC_OK)
            return cli_failed(call->command);
        const pc_cloud_offer *best = best_of(found, n, way);
        if (best && way == PRICE)
            say_unpriced(call, asked, best);
        else if (best)
            say(call, asked, best, way);
        pc_cloud_offers_free(found);
        if (best)
            return CLI_FAILED;
    }
    cli_error(call->command, "nothing has %s, nor nearly so; paracord cloud list shows what there is", asked);
    return CLI_FAILED;
}

/* cloud_list.c: paracord cloud list [NAME...] */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cloud.h"
#include "nearest.h"
#include "text.h"

/* NAME is the family, the instance, SageMaker's name for it, or the accelerator's ("A100 40GB", "A100"). */
static bool is_named(const pc_cloud_instance *i, const char *name)
{
    const char *gpu = i->family->gpu->name;
    size_t n = strlen(name);
    return !strcmp(i->name, name) || !strcmp(i->family->name, name) ||
           (!strncmp(name, "ml.", 3) && i->sagemaker && !strcmp(i->name, name + 3)) ||
           (!strncasecmp(gpu, name, n) && (!gpu[n] || gpu[n] == ' '));
}

static bool is_wanted(const cli_call *call, const pc_cloud_instance *i)
{
    for (int n = 0; n < call->line->count; n++)
        if (is_named(i, call->line->values[n]))
            return true;
    return call->line->count == 0;
}

static const char *guess_name(const pc_cloud *cloud, const char *typed)
{
    const pc_cloud_instance *i;
    const char *meant = NULL;
    for (int k = 0; typed[0] && typed[1] && typed[2] && (i = pc_cloud_instance_at(cloud, k));
         k++) { /* g9 is like all */
        meant = cli_nearer(typed, meant, i->family->name);
        meant = cli_nearer(typed, meant, i->family->gpu->name);
        meant = cli_nearer(typed, meant, i->name);
    }
    return meant;
}

/* Every NAME must mean something; false after the error was written. */
static bool check_names(const cli_call *call, const pc_cloud *cloud)
{
    for (int n = 0; n < call->line->count; n++) {
        const char *name = call->line->values[n];
        const pc_cloud_instance *i;
        bool known = false;
        for (int k = 0; !known && (i = pc_cloud_instance_at(cloud, k)); k++)
            known = is_named(i, name);
        if (!known) {
            if (strchr(name, '.') ? !pc_cloud_find(cloud, name) : !pc_cloud_find_family(cloud, name))
                cli_cloud_failed(call, guess_name(cloud, name));
            return false;
        }
    }
    return true;
}

/* In the catalogue's order, what of the wish it meets; unknown prices too, unless there is a budget. */
static pc_cloud_offer *find_offer(pc_cloud_offer *offers, int count, const pc_cloud_instance *instance, bool budget)
{
    for (int i = 0; i < count; i++)
        if (offers[i].instance == instance)
            return !offers[i].misfit || (offers[i].misfit == PC_CLOUD_NO_PRICE && !budget) ? &offers[i] : NULL;
    return NULL;
}

static void print_family(const pc_cloud_family *f)
{
    char uses[CLI_CLOUD_TEXT_MAX], line[256];
    const pc_cloud_gpu *g = f->gpu;
    cli_set_style(stdout, CLI_BOLD);
    int at = printf("%s", f->name);
    cli_set_style(stdout, CLI_PLAIN);
    cli_pad(stdout, at, 11);
    snprintf(line, sizeof line, "%s%s%s%s",
             !strcmp(g->vendor, "amd")     ? "AMD "
             : !strcmp(g->vendor, "aws")   ? "AWS "
             : !strcmp(g->vendor, "intel") ? "Intel "
                                           : "",
             g->name, !strcmp(f->arch, "arm64") ? ", Arm CPU" : "", f->old ? ", on its way out" : "");
    printf("%s: %s\n", line, cli_cloud_use_names(f->uses, uses));
    cli_cloud_note("           ", f->about);
    if (f->trap)
        cli_cloud_note("         ! ", f->trap);
}

static void print_row(const pc_cloud_offer *offer, const cli_cloud_prices *prices)
{
    char gpus[16], usd[CLI_CLOUD_TEXT_MAX];
    const pc_cloud_instance *i = offer->instance;
    snprintf(gpus, sizeof gpus, i->parts > 1 ? "1/%d" : "%d", i->parts > 1 ? i->parts : i->gpus);
    if (cli_cloud_narrow()) {
        printf("  %s  %s%s\n    GPUs %s of %g GB, %d vCPUs, %.0f GB\n", i->name,
               cli_cloud_dollars(offer->price.usd, usd), cli_cloud_mark(prices, &offer->price), gpus, i->memory_gb,
               i->vcpus, (double)i->host_mib / 1024);
        return;
    }
    printf("  %-18s %4s %4g GB %5d %5.0f GB %8s%-1s %s%s\n", i->name, gpus, i->memory_gb, i->vcpus,
           (double)i->host_mib / 1024, cli_cloud_dollars(offer->price.usd, usd), cli_cloud_mark(prices, &offer->price),
           i->sagemaker ? "ml." : "-", i->sagemaker ? i->name : "");
}

static void print_text(const pc_cloud *cloud, pc_cloud_offer *const *rows, int count, const cli_cloud_settings *s)
{
    const pc_cloud_family *family = NULL;
    cli_cloud_prices prices = {.count = 0};
    for (int i = 0; i < count; i++)
        cli_cloud_add_price(&prices, &rows[i]->price);
    for (int i = 0; i < count; i++) {
        if (rows[i]->instance->family != family) {
            if (family)
                putchar('\n');
            family = rows[i]->instance->family;
            print_family(family);
            cli_set_style(stdout, CLI_DIM);
            if (cli_cloud_narrow())
                puts("  instance  $/hour");
            else
                printf("  %-18s %4s %7s %5s %8s %8s  %s\n", "instance", "GPUs", "memory", "vCPUs", "host", "$/hour",
                       "SageMaker");
            cli_set_style(stdout, CLI_PLAIN);
        }
        print_row(rows[i], &prices);
    }
    putchar('\n');
    cli_cloud_print_prices(&prices, cloud, s);
}

static void print_json(const pc_cloud *cloud, pc_cloud_offer *const *rows, int count)
{
    putchar('{');
    cli_cloud_json_catalogue(cloud);
    fputs(", \"instances\": [", stdout);
    for (int i = 0; i < count; i++) {
        fputs(i ? ",\n  {" : "\n  {", stdout);
        cli_cloud_json(rows[i]->instance, &rows[i]->price);
        putchar('}');
    }
    puts("]}");
}

#define MOST 1024

static int list(const cli_call *call, const pc_cloud *cloud, pc_cloud_offer *offers, int count)
{
    const cli_cloud_settings *s = call->settings;
    pc_cloud_offer *rows[MOST];
    const pc_cloud_instance *i;
    int found = 0;
    for (int k = 0; found < MOST && (i = pc_cloud_instance_at(cloud, k)); k++) {
        pc_cloud_offer *offer = is_wanted(call, i) ? find_offer(offers, count, i, s->budget > 0) : NULL;
        if (offer)
            rows[found++] = offer;
    }
    if (s->json)
        print_json(cloud, rows, found);
    else if (found)
        print_text(cloud, rows, found, s);
    if (!found) {
        cli_error(call->command,
                  "no machine of the catalogue has all of that; paracord cloud list shows what there is");
        return CLI_FAILED;
    }
    return CLI_FINE;
}

static int run(const cli_call *call)
{
    const cli_cloud_settings *s = call->settings;
    pc_cloud *cloud = cli_cloud_open(call);
    if (!cloud)
        return CLI_FAILED;
    pc_cloud_pick_options wish = cli_cloud_wish(s);
    wish.fractions = wish.old = true;
    pc_cloud_offer *offers = NULL;
    int count, status = CLI_FAILED;
    if (check_names(call, cloud)) {
        if (pc_cloud_pick(cloud, wish, &offers, &count) == PC_OK)
            status = list(call, cloud, offers, count);
        else
            cli_failed(call->command);
    }
    pc_cloud_offers_free(offers);
    pc_cloud_free(cloud);
    return status;
}

static const cli_option options[] = {
    CLI_CLOUD_WISHES,
    {"vendor", 0, CLI_CHOICE, offsetof(cli_cloud_settings, vendor), "any", "NAME", .help = "Whose accelerators",
     .choices = cli_cloud_vendors},
    {"arch", 0, CLI_CHOICE, offsetof(cli_cloud_settings, arch), "any", "NAME", .help = "The CPU",
     .choices = cli_cloud_archs},
    CLI_CLOUD_SHARED,
    {0},
};

static const cli_argument arguments[] = {
    {"NAME", "A family (g6), an instance (g6.xlarge) or an accelerator (L4); all without one", 0, INT_MAX,
     .offer = cli_cloud_offer_name},
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud list", "Everything"},
    {"paracord cloud list g6 g6e", "Two families"},
    {"paracord cloud list A100", "Whatever has this GPU"},
    {"paracord cloud list --memory 80 --budget 30 --json", "Filtered, for programs"},
    {0},
};

const cli_command cli_cloud_list = {
    .name = "cloud list",
    .summary = "List machines with accelerators, and what they cost",
    .description =
        "Prints each family with what it is for, what it is often taken for and is not (!), and its machines: "
        "accelerators, memory of each, vCPUs, memory of the host, US dollars an hour, and SageMaker's name "
        "where SageMaker rents it. A price that is not known is \"unknown\".",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(cli_cloud_settings),
    .run = run,
};

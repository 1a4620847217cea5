/* cloud_pick.c: paracord cloud pick */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cloud.h"
#include "text.h"

#define OTHERS 5

static bool is_left_out(const pc_cloud_offer *offer, double limit)
{
    if (offer->misfit == PC_CLOUD_NO_PRICE)
        return true;
    return offer->misfit >= PC_CLOUD_VENDOR && offer->misfit < PC_CLOUD_NO_PRICE && offer->price.usd < limit;
}

/* The next one that was left out and would be cheaper than `limit`, or has no price: the first of each family. */
static const pc_cloud_offer *next_left_out(const pc_cloud_offer *offers, int count, double limit, int *at)
{
    for (int i = *at; i < count; i++) {
        bool first = is_left_out(&offers[i], limit);
        for (int k = 0; first && k < i; k++)
            first = offers[k].instance->family != offers[i].instance->family || !is_left_out(&offers[k], limit);
        if (!first)
            continue;
        *at = i + 1;
        return &offers[i];
    }
    return NULL;
}

static const char *link_name(const char *link)
{
    return !strcmp(link, "nvlink")       ? "NVLink"
           : !strcmp(link, "pcie")       ? "PCIe"
           : !strcmp(link, "neuronlink") ? "NeuronLink"
           : !strcmp(link, "ethernet")   ? "Ethernet"
                                         : link;
}

static void print_choice(const pc_cloud_offer *offer, const cli_cloud_settings *s)
{
    char options[CLI_CLOUD_OPTIONS_MAX];
    char gpus[CLI_CLOUD_TEXT_MAX], usd[CLI_CLOUD_TEXT_MAX], line[256];
    const pc_cloud_instance *i = offer->instance;
    const pc_cloud_family *f = i->family;
    cli_set_style(stdout, CLI_BOLD);
    fputs(i->name, stdout);
    cli_set_style(stdout, CLI_PLAIN);
    if (isnan(offer->price.usd))
        puts("  price unknown");
    else
        printf("  $%s an hour\n", cli_cloud_dollars(offer->price.usd, usd));
    snprintf(line, sizeof line, "%s with %g GB%s%s%s; %d vCPUs; %.0f GB of host memory", cli_cloud_gpus(i, gpus),
             i->memory_gb, i->gpus > 1 ? " each" : "", i->gpus > 1 && f->link ? ", joined by " : "",
             i->gpus > 1 && f->link ? link_name(f->link) : "", i->vcpus, (double)i->host_mib / 1024);
    cli_cloud_note("  ", line);
    cli_cloud_note("  ", f->about);
    if (pc_cloud_trap(i))
        cli_cloud_note("! ", pc_cloud_trap(i));
    if (i->sagemaker)
        printf("  SageMaker has it as ml.%s\n", i->name);
    printf("  Start it:%sparacord cloud run %s%s\n", cli_cloud_narrow() ? "\n    " : " ", i->name,
           cli_cloud_options(s, options));
}

static void print_row(const pc_cloud_offer *offer, const cli_cloud_prices *prices)
{
    char gpus[CLI_CLOUD_TEXT_MAX], usd[CLI_CLOUD_TEXT_MAX];
    const pc_cloud_instance *i = offer->instance;
    if (cli_cloud_narrow()) {
        printf("  %s  %s%s\n    %s, %g GB, %d vCPUs\n", i->name, cli_cloud_dollars(offer->price.usd, usd),
               cli_cloud_mark(prices, &offer->price), cli_cloud_gpus(i, gpus), i->memory_gb, i->vcpus);
        return;
    }
    printf("  %-18s %16s  %4g GB  %3d vCPUs  %8s%s\n", i->name, cli_cloud_gpus(i, gpus), i->memory_gb, i->vcpus,
           cli_cloud_dollars(offer->price.usd, usd), cli_cloud_mark(prices, &offer->price));
}

static void print_left_out(const pc_cloud_offer *offers, int count, const cli_cloud_prices *prices,
                           const cli_cloud_settings *s)
{
    const pc_cloud_offer *offer;
    int at = 0;
    bool any = false;
    char unpriced[512] = "";
    while ((offer = next_left_out(offers, count, offers[0].price.usd, &at))) {
        char lead[CLI_CLOUD_TEXT_MAX * 2], usd[CLI_CLOUD_TEXT_MAX], why[512];
        if (!any)
            cli_cloud_heading("\nLeft out: cheaper or unpriced, but");
        any = true;
        if (cli_cloud_is_unpriced(offer)) {
            size_t n = strlen(unpriced);
            snprintf(unpriced + n, sizeof unpriced - n, "%s%s", n ? ", " : "", offer->instance->family->name);
            continue;
        }
        snprintf(lead, sizeof lead, "  %-18s %8s%s  ", offer->instance->name, cli_cloud_dollars(offer->price.usd, usd),
                 cli_cloud_mark(prices, &offer->price));
        cli_cloud_note(lead, cli_cloud_reason(offer, s, why));
    }
    if (unpriced[0])
        cli_cloud_note("  Prices unknown here of sizes of ", unpriced);
}

/* Families of what fits that stand last for want of a speed. */
static void print_unknown_speeds(const pc_cloud_offer *offers, int count)
{
    char line[512] = "";
    for (int i = 0; i < count && !offers[i].misfit; i++) {
        bool first = isnan(offers[i].speed);
        for (int k = 0; first && k < i; k++)
            first = offers[k].instance->family != offers[i].instance->family;
        size_t n = strlen(line);
        if (first)
            snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "", offers[i].instance->family->name);
    }
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, ": how fast the GPU is is not known");
    if (n)
        cli_cloud_note("  Last  ", line);
}

static void print_text(const pc_cloud *cloud, const pc_cloud_offer *offers, int count, const cli_cloud_settings *s)
{
    char heading[64];
    cli_cloud_prices prices = {.count = 0};
    const pc_cloud_offer *offer;
    int at = 0;
    for (int i = 0; i <= OTHERS && i < count && !offers[i].misfit; i++)
        cli_cloud_add_price(&prices, &offers[i].price);
    while ((offer = next_left_out(offers, count, offers[0].price.usd, &at)))
        cli_cloud_add_price(&prices, &offer->price);
    print_choice(&offers[0], s);
    if (count > 1 && !offers[1].misfit) {
        snprintf(heading, sizeof heading, "\nThe next, %s first", !strcmp(s->order, "value") ? "best value" : s->order);
        cli_cloud_heading(heading);
    }
    for (int i = 1; i <= OTHERS && i < count && !offers[i].misfit; i++)
        print_row(&offers[i], &prices);
    if (strcmp(s->order, "cheapest") != 0)
        print_unknown_speeds(offers, count);
    print_left_out(offers, count, &prices, s);
    putchar('\n');
    cli_cloud_print_prices(&prices, cloud, s);
}

static void print_offer(const pc_cloud_offer *offer)
{
    putchar('{');
    cli_cloud_json(offer->instance, &offer->price);
    fputs(", \"speed\": ", stdout);
    cli_json_number(stdout, offer->speed);
    putchar('}');
}

static void print_json(const pc_cloud *cloud, const pc_cloud_offer *offers, int count, const cli_cloud_settings *s)
{
    const char *use = s->use;
    putchar('{');
    cli_cloud_json_catalogue(cloud);
    printf(", \"speed_is\": \"%s\"", use && !strcmp(use, "infer")      ? "GB/s of memory"
                                     : use && !strcmp(use, "graphics") ? "TFLOP/s in float32"
                                                                       : "TFLOP/s in half precision");
    fputs(",\n\"choice\": ", stdout);
    print_offer(&offers[0]);
    fputs(",\n\"others\": [", stdout);
    for (int i = 1; i < count && !offers[i].misfit; i++) {
        fputs(i > 1 ? ",\n  " : "\n  ", stdout);
        print_offer(&offers[i]);
    }
    fputs("],\n\"left_out\": [", stdout);
    const pc_cloud_offer *offer;
    char why[512];
    const char *joint = "\n  ";
    for (int at = 0; (offer = next_left_out(offers, count, offers[0].price.usd, &at)); joint = ",\n  ") {
        printf("%s{\"why\": ", joint);
        cli_json_text(stdout, cli_cloud_reason(offer, s, why));
        fputs(", ", stdout);
        cli_cloud_json(offer->instance, &offer->price);
        putchar('}');
    }
    puts("]}");
}

static int run(const cli_call *call)
{
    const cli_cloud_settings *s = call->settings;
    pc_cloud *cloud = cli_cloud_open(call);
    if (!cloud)
        return CLI_FAILED;
    pc_cloud_pick_options wish = cli_cloud_wish(s);
    wish.fractions = s->fractions;
    wish.old = s->old;
    wish.order = !strcmp(s->order, "fastest") ? PC_CLOUD_FASTEST
                 : !strcmp(s->order, "value") ? PC_CLOUD_VALUE
                                              : PC_CLOUD_CHEAPEST;
    pc_cloud_offer *offers;
    int count, status = CLI_FINE;
    if (pc_cloud_pick(cloud, wish, &offers, &count) != PC_OK)
        status = cli_failed(call->command);
    else if (!count || offers[0].misfit)
        status = cli_cloud_nothing(call, cloud, &wish, offers, count);
    else if (s->json)
        print_json(cloud, offers, count, s);
    else
        print_text(cloud, offers, count, s);
    pc_cloud_offers_free(offers);
    pc_cloud_free(cloud);
    return status;
}

static const cli_choice orders[] = {
    {"cheapest", "least dollars an hour"},
    {"fastest", "most speed: tensor TFLOP/s to train, memory GB/s to infer, float32 TFLOP/s for graphics"},
    {"value", "most of that speed for a dollar"},
    {0},
};

static const cli_option options[] = {
    CLI_CLOUD_WISHES,
    {"vendor", 0, CLI_CHOICE, offsetof(cli_cloud_settings, vendor), "nvidia", "NAME", .help = "Whose accelerators",
     .choices = cli_cloud_vendors},
    {"arch", 0, CLI_CHOICE, offsetof(cli_cloud_settings, arch), "x86_64", "NAME", .help = "The CPU",
     .choices = cli_cloud_archs},
    {"fractions", 0, CLI_FLAG, offsetof(cli_cloud_settings, fractions), NULL, NULL, .help = "A part of a GPU will do"},
    {"old", 0, CLI_FLAG, offsetof(cli_cloud_settings, old), NULL, NULL,
     .help = "Generations on their way out will do (p3)"},
    {"by", 0, CLI_CHOICE, offsetof(cli_cloud_settings, order), "cheapest", "ORDER", .help = "What is best",
     .choices = orders},
    CLI_CLOUD_SHARED,
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud pick --memory 40 --gpus 4 --for train --budget 20", "Four GPUs of 40 GB for at most $20 an hour"},
    {"paracord cloud pick --for infer --memory 20 --by value", "The most memory bandwidth for a dollar"},
    {"paracord cloud pick --for graphics --vendor any", "A desktop to render on, with or without CUDA"},
    {0},
};

const cli_command cli_cloud_pick = {
    .name = "cloud pick",
    .summary = "Pick the machine for a need",
    .description =
        "Prints the machine that has what is asked for and is the cheapest (--by says what is best), the next "
        "five, and what was left out though it is cheaper, with the reason: AMD and AWS accelerators run no "
        "CUDA, Arm CPUs no x86-64 programs, and parts of a GPU have a part of its memory.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(cli_cloud_settings),
    .run = run,
};

/* cloud.h: what the commands of paracord cloud share: their options, and how machines and prices are written. */
#ifndef CLI_CLOUD_H
#define CLI_CLOUD_H

#include <limits.h>
#include <paracord-tools/cloud.h>

#include "command.h"

#define CLI_CLOUD_TEXT_MAX 64

typedef struct cli_cloud_settings {
    const char *region, *catalogue;
    bool json;
    /* of those that look for machines */
    const char *use, *vendor, *arch, *order;
    double memory, budget;
    int gpus, vcpus;
    bool fractions, old;
} cli_cloud_settings;

#define CLI_CLOUD_REGION "us-east-1"

/* Rows of options for commands whose settings are, or begin with, the struct above. */
#define CLI_CLOUD_SHARED                                                                                               \
    {"region",                                                                                                         \
     0,                                                                                                                \
     CLI_TEXT,                                                                                                         \
     offsetof(cli_cloud_settings, region),                                                                             \
     CLI_CLOUD_REGION,                                                                                                 \
     "NAME",                                                                                                           \
     .help = "The region whose prices count",                                                                          \
     .group = "Prices"},                                                                                               \
        {"catalogue",                                                                                                  \
         0,                                                                                                            \
         CLI_PATH,                                                                                                     \
         offsetof(cli_cloud_settings, catalogue),                                                                      \
         NULL,                                                                                                         \
         "FILE",                                                                                                       \
         .help = "Another catalogue than your own or the built-in one"},                                               \
    {                                                                                                                  \
        "json", 0, CLI_FLAG, offsetof(cli_cloud_settings, json), NULL, NULL, .help = "Print JSON, for programs"        \
    }
#define CLI_CLOUD_WISHES                                                                                               \
    {"for",                                                                                                            \
     0,                                                                                                                \
     CLI_CHOICE,                                                                                                       \
     offsetof(cli_cloud_settings, use),                                                                                \
     NULL,                                                                                                             \
     "USE",                                                                                                            \
     .help = "What the machine is for",                                                                                \
     .group = "What it must have",                                                                                     \
     .choices = cli_cloud_uses},                                                                                       \
        {"memory",                                                                                                     \
         0,                                                                                                            \
         CLI_FLOAT,                                                                                                    \
         offsetof(cli_cloud_settings, memory),                                                                         \
         NULL,                                                                                                         \
         "GB",                                                                                                         \
         .help = "Memory of each GPU, at least",                                                                       \
         .min = 0,                                                                                                     \
         .max = 10000,                                                                                                 \
         .above = true},                                                                                               \
        {"gpus",                                                                                                       \
         0,                                                                                                            \
         CLI_INT,                                                                                                      \
         offsetof(cli_cloud_settings, gpus),                                                                           \
         NULL,                                                                                                         \
         "N",                                                                                                          \
         .help = "GPUs in one machine, at least",                                                                      \
         .min = 1,                                                                                                     \
         .max = 1000},                                                                                                 \
        {"vcpus",  0,           CLI_INT, offsetof(cli_cloud_settings, vcpus), NULL, "N", .help = "vCPUs, at least",    \
         .min = 1, .max = 10000},                                                                                      \
    {                                                                                                                  \
        "budget", 0, CLI_FLOAT, offsetof(cli_cloud_settings, budget), NULL, "DOLLARS",                                 \
            .help = "US dollars an hour, at most", .min = 0, .max = 100000, .above = true                              \
    }
extern const cli_choice cli_cloud_uses[], cli_cloud_vendors[], cli_cloud_archs[];

/* The catalogue, with the region checked; NULL after the error was written. */
pc_cloud *cli_cloud_open(const cli_call *call);
/* The library's error, with a guess (or NULL) at the word that was meant. The status of the command. */
int cli_cloud_failed(const cli_call *call, const char *guess);

/* The region of the catalogue (which may be NULL) that is like it, or what AWS would write; else NULL. */
const char *cli_cloud_guess_region(const pc_cloud *cloud, const char *typed, char guess[CLI_CLOUD_TEXT_MAX]);

pc_cloud_use cli_cloud_use(const char *name);

/* What a shell offers: the built-in machines; families before them. */
const char *cli_cloud_offer_machine(int i);
const char *cli_cloud_offer_name(int i);

/* What the common options ask for; which machines are left out is the caller's. */
pc_cloud_pick_options cli_cloud_wish(const cli_cloud_settings *s);

/* "4 x L40S", "1/8 of an L4" */
char *cli_cloud_gpus(const pc_cloud_instance *instance, char text[CLI_CLOUD_TEXT_MAX]);

/* "10.493", "unknown" */
char *cli_cloud_dollars(double usd, char text[CLI_CLOUD_TEXT_MAX]);

/* What the next command needs to mean the same prices: " --region eu-central-1 --catalogue 'my list.txt'", quoted for a
 * shell; "" where the defaults do. */
#define CLI_CLOUD_OPTIONS_MAX (2 * PATH_MAX)
char *cli_cloud_options(const cli_cloud_settings *settings, char text[CLI_CLOUD_OPTIONS_MAX]);

/* "240 us", "0.4 s", "12 min", "3.1 h", "12 days" */
char *cli_cloud_time(double seconds, char text[CLI_CLOUD_TEXT_MAX]);

/* "train, infer" */
char *cli_cloud_use_names(int uses, char text[CLI_CLOUD_TEXT_MAX]);

/* Too few columns for tables: rows take two lines. */
bool cli_cloud_narrow(void);

/* Paragraphs below a list: the text filled into lines behind `lead`, which is not repeated. */
void cli_cloud_note(const char *lead, const char *text);
void cli_cloud_heading(const char *text);

/* A list that printed prices are from: what one source says of one region, of which each price has its own day. */
typedef struct cli_cloud_price_list {
    const pc_cloud_source *source;
    const char *region, *oldest, *newest;
} cli_cloud_price_list;

/* The distinct ones, each with the letter that its prices carry where there are several. */
typedef struct cli_cloud_prices {
    cli_cloud_price_list lists[26];
    int count;
} cli_cloud_prices;
void cli_cloud_add_price(cli_cloud_prices *prices, const pc_cloud_price *price);
const char *cli_cloud_mark(const cli_cloud_prices *prices, const pc_cloud_price *price); /* "", "a", "b" */
void cli_cloud_print_prices(const cli_cloud_prices *prices, const pc_cloud *cloud, const cli_cloud_settings *settings);

/* The option of cloud pick that takes what was left out: "--vendor amd"; "" where there is none. */
const char *cli_cloud_option(pc_cloud_misfit misfit, const pc_cloud_family *family, char text[CLI_CLOUD_TEXT_MAX]);

/* It could be rented by the hour, if only its price were known here. */
bool cli_cloud_is_unpriced(const pc_cloud_offer *offer);

/* Why it was left out, and the options that take it: "It is NVIDIA, not AMD (--vendor nvidia takes it)". */
#define CLI_CLOUD_REASON_MAX 512
const char *cli_cloud_reason(const pc_cloud_offer *offer, const cli_cloud_settings *settings,
                             char text[CLI_CLOUD_REASON_MAX]);

/* The error of a wish that no machine meets: what comes nearest to it. The status of the command. */
int cli_cloud_nothing(const cli_call *call, const pc_cloud *cloud, const pc_cloud_pick_options *wish,
                      const pc_cloud_offer *offers, int count);

/* JSON: members of an object, without its braces. */
void cli_cloud_json(const pc_cloud_instance *instance, const pc_cloud_price *price);
void cli_cloud_json_catalogue(const pc_cloud *cloud);

#endif

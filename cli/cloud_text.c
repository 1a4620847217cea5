/* cloud_text.c: how machines and their prices are written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cloud.h"
#include "text.h"

#define WIDEST 96

char *cli_cloud_gpus(const pc_cloud_instance *i, char text[CLI_CLOUD_TEXT_MAX])
{
    if (i->parts > 1)
        snprintf(text, CLI_CLOUD_TEXT_MAX, "1/%d %s", i->parts, i->family->gpu->name);
    else
        snprintf(text, CLI_CLOUD_TEXT_MAX, "%d x %s", i->gpus, i->family->gpu->name);
    return text;
}

char *cli_cloud_dollars(double usd, char text[CLI_CLOUD_TEXT_MAX])
{
    if (isnan(usd))
        snprintf(text, CLI_CLOUD_TEXT_MAX, "unknown");
    else
        snprintf(text, CLI_CLOUD_TEXT_MAX, "%.3f", usd);
    return text;
}

char *cli_cloud_time(double seconds, char text[CLI_CLOUD_TEXT_MAX])
{
    if (seconds < 0.0095) /* eight columns hold it */
        snprintf(text, CLI_CLOUD_TEXT_MAX, seconds < 0.00095 ? "%.0f us" : "%.1f ms",
                 seconds * (seconds < 0.00095 ? 1e6 : 1e3));
    else if (seconds < 0.95)
        snprintf(text, CLI_CLOUD_TEXT_MAX, "%.2g s", seconds);
    else if (seconds < 99.5)
        snprintf(text, CLI_CLOUD_TEXT_MAX, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    else if (seconds < 5970)
        snprintf(text, CLI_CLOUD_TEXT_MAX, seconds < 597 ? "%.1f min" : "%.0f min", seconds / 60);
    else if (seconds < 99.5 * 3600)
        snprintf(text, CLI_CLOUD_TEXT_MAX, seconds < 35820 ? "%.1f h" : "%.0f h", seconds / 3600);
    else
        snprintf(text, CLI_CLOUD_TEXT_MAX, "%.0f days", seconds / 86400);
    return text;
}

static const char *const use_names[] = {"train", "infer", "graphics"};

char *cli_cloud_use_names(int uses, char text[CLI_CLOUD_TEXT_MAX])
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < 3; i++)
        if (uses & 1 << i)
            length +=
                (size_t)snprintf(text + length, CLI_CLOUD_TEXT_MAX - length, "%s%s", length ? ", " : "", use_names[i]);
    return text;
}

bool cli_cloud_narrow(void)
{
    return cli_width(stdout) < 72;
}

void cli_cloud_note(const char *lead, const char *text)
{
    int width = cli_width(stdout), at = (int)strlen(lead);
    fputs(lead, stdout);
    if (at * 2 > width) { /* no room beside it */
        at = 4;
        printf("\n%*s", at, "");
    }
    cli_wrap(stdout, text, at, at, width > WIDEST ? WIDEST : width);
    putchar('\n');
}

void cli_cloud_heading(const char *text)
{
    cli_set_style(stdout, CLI_BOLD);
    fputs(text, stdout);
    cli_set_style(stdout, CLI_PLAIN);
    putchar('\n');
}

/* Which of the lists the price is of; `count` when it is none of them. */
static int list_of(const cli_cloud_prices *prices, const pc_cloud_price *price)
{
    int i = 0;
    while (i < prices->count &&
           (prices->lists[i].source != price->source || strcmp(prices->lists[i].region, price->region) != 0))
        i++;
    return i;
}

void cli_cloud_add_price(cli_cloud_prices *prices, const pc_cloud_price *price)
{
    const int room = (int)(sizeof prices->lists / sizeof *prices->lists), i = list_of(prices, price);
    cli_cloud_price_list *list = &prices->lists[i];
    if (i == room)
        return;
    if (i == prices->count) {
        prices->count++;
        *list = (cli_cloud_price_list){price->source, price->region, price->date, price->date};
    }
    if (strcmp(price->date, list->oldest) < 0)
        list->oldest = price->date;
    if (strcmp(price->date, list->newest) > 0)
        list->newest = price->date;
}

static const char *mark_of(const cli_cloud_prices *prices, int list)
{
    static const char marks[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    return prices->count > 1 && list < prices->count ? marks + (size_t)2 * (size_t)list : "";
}

const char *cli_cloud_mark(const cli_cloud_prices *prices, const pc_cloud_price *price)
{
    return mark_of(prices, list_of(prices, price));
}

/* Days from a date to today, below 0 where a clock is wrong. */
static int age_in_days(const char *date)
{
    struct tm then = {.tm_year = atoi(date) - 1900, .tm_mon = atoi(date + 5) - 1, .tm_mday = atoi(date + 8)};
    return (int)floor(difftime(time(NULL), timegm(&then)) / 86400);
}

char *cli_cloud_options(const cli_cloud_settings *s, char text[CLI_CLOUD_OPTIONS_MAX])
{
    text[0] = 0;
    FILE *out = fmemopen(text, CLI_CLOUD_OPTIONS_MAX, "w");
    if (!out)
        return text;
    if (strcmp(s->region, CLI_CLOUD_REGION) != 0) {
        fputs(" --region ", out);
        cli_print_shell(out, s->region);
    }
    if (s->catalogue) {
        fputs(" --catalogue ", out);
        cli_print_shell(out, s->catalogue);
    }
    fclose(out);
    return text;
}

static bool is_old(const char *date)
{
    return age_in_days(date) > 30;
}

/* "of 2026-07-20 to 2026-10-01, some more than a month ago" */
static const char *days_of(const cli_cloud_price_list *list, char text[CLI_CLOUD_TEXT_MAX])
{
    const bool several = strcmp(list->oldest, list->newest) != 0;
    snprintf(text, CLI_CLOUD_TEXT_MAX, "of %s%s%s%s", list->oldest, several ? " to " : "", several ? list->newest : "",
             is_old(list->newest)   ? ", more than a month ago"
             : is_old(list->oldest) ? ", some more than a month ago"
                                    : "");
    return text;
}

void cli_cloud_print_prices(const cli_cloud_prices *prices, const pc_cloud *cloud, const cli_cloud_settings *settings)
{
    char options[CLI_CLOUD_OPTIONS_MAX], line[CLI_CLOUD_OPTIONS_MAX + 512], days[CLI_CLOUD_TEXT_MAX];
    bool old = false;
    for (int i = 0; i < prices->count; i++) {
        const cli_cloud_price_list *list = &prices->lists[i];
        const char *mark = mark_of(prices, i);
        old = old || is_old(list->oldest);
        int n =
            snprintf(line, 512, "%s%sUS dollars an hour, Linux, on demand, %s, %s; from %s.", mark, *mark ? ": " : "",
                     list->region, days_of(list, days), list->source ? list->source->text : "the catalogue");
        if (old && i == prices->count - 1 && n < 512)
            snprintf(line + n, sizeof line - (size_t)n, " Prices move: paracord cloud update%s.",
                     cli_cloud_options(settings, options));
        cli_cloud_note(i ? "        " : "Prices  ", line);
    }
    if (strcmp(pc_cloud_path(cloud), "built in") != 0) {
        fputs("        Catalogue: ", stdout);
        cli_print_safe(stdout, pc_cloud_path(cloud));
        putchar('\n');
    }
}

static void json_text(const char *key, const char *value)
{
    printf("\"%s\": ", key);
    if (value)
        cli_json_text(stdout, value);
    else
        fputs("null", stdout);
}

void cli_cloud_json(const pc_cloud_instance *i, const pc_cloud_price *price)
{
    char name[CLI_CLOUD_TEXT_MAX];
    const pc_cloud_family *f = i->family;
    json_text("instance", i->name);
    fputs(", ", stdout);
    json_text("family", f->name);
    fputs(", ", stdout);
    json_text("gpu", f->gpu->name);
    fputs(", ", stdout);
    json_text("vendor", f->gpu->vendor);
    printf(", \"gpus\": %d, \"gpu_share\": ", i->gpus);
    cli_json_number(stdout, 1.0 / i->parts);
    fputs(", \"memory_gb\": ", stdout);
    cli_json_number(stdout, i->memory_gb);
    printf(", \"memory_mib\": %lld, \"vcpus\": %d, \"host_mib\": %lld, ", (long long)i->memory_mib, i->vcpus,
           (long long)i->host_mib);
    json_text("arch", f->arch);
    fputs(", ", stdout);
    json_text("link", f->link);
    fputs(", \"for\": [", stdout);
    for (int u = 0, any = 0; u < 3; u++)
        if (f->uses & 1 << u)
            printf("%s\"%s\"", any++ ? ", " : "", use_names[u]);
    fputs("], ", stdout);
    json_text("trap", pc_cloud_trap(i));
    snprintf(name, sizeof name, "ml.%s", i->name);
    fputs(", ", stdout);
    json_text("sagemaker", i->sagemaker ? name : NULL);
    fputs(", \"usd_per_hour\": ", stdout);
    cli_json_number(stdout, price->usd);
    fputs(", ", stdout);
    json_text("region", price->region);
    fputs(", ", stdout);
    json_text("price_date", price->date);
    fputs(", ", stdout);
    json_text("price_source", price->source ? price->source->text : NULL);
}

void cli_cloud_json_catalogue(const pc_cloud *cloud)
{
    json_text("catalogue", pc_cloud_path(cloud));
    fputs(", ", stdout);
    json_text("catalogue_date", pc_cloud_date(cloud));
}

/* cloud_cost.c: paracord cloud cost MODEL DIR */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cloud.h"
#include "program.h"
#include "text.h"
#include "values.h"

typedef struct cost_settings {
    cli_cloud_settings cloud;
    int epochs, batch, size[2]; /* size: height, width */
    const char *device;
    double measure, known_rate;
    const char *known_gpu;
    bool all;
} cost_settings;

#define SHOWN 5

typedef struct candidate {
    const pc_cloud_instance *instance;
    pc_cloud_price price;
    pc_cloud_estimate estimate;
} candidate;

static int compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

/* Where the minute that is billed makes many alike, the faster is before the slower. */
static int by_dollars(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    int order = compare(a->estimate.usd, b->estimate.usd);
    return order ? order : compare(a->estimate.seconds, b->estimate.seconds);
}

static int by_time(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    int order = compare(a->estimate.seconds, b->estimate.seconds);
    return order ? order : compare(a->price.usd, b->price.usd);
}

static const char *const reasons[] = {
    [PC_CLOUD_NO_CUDA] = "no CUDA that Paracord has code for",
    [PC_CLOUD_OTHER_ARCH] = "an Arm CPU",
    [PC_CLOUD_PART] = "a part of a GPU, whose speed is not known",
    [PC_CLOUD_NO_RATES] = "how fast the GPU is is not known",
    [PC_CLOUD_NO_ROOM] = "too little memory for this training",
};

static const char *const reason_names[] = {
    [PC_CLOUD_NO_CUDA] = "no-cuda",   [PC_CLOUD_OTHER_ARCH] = "other-arch",     [PC_CLOUD_PART] = "part-of-a-gpu",
    [PC_CLOUD_NO_RATES] = "no-rates", [PC_CLOUD_NO_ROOM] = "too-little-memory",
};

/* "9.23 kB", "0.517 MB", "24.3 GFLOP" */
static char *amount(double value, const char *unit, char text[32])
{
    int thousands = value < 99.95e3 ? 1 : value < 999.5e6 ? 2 : value < 999.5e9 ? 3 : 4;
    snprintf(text, 32, "%.3g %c%s", value * pow(1e-3, thousands), " kMGT"[thousands], unit);
    return text;
}

/* A rate: "1,234", "0.39" */
static char *rate(double value, char text[32])
{
    if (value < 9.95)
        snprintf(text, 32, "%.2g", value);
    else
        cli_thousands((int64_t)(value + 0.5), text);
    return text;
}

static void print_counted(const pc_cloud_job *job, const char *model)
{
    char a[32], b[32], c[32], line[512];
    snprintf(line, sizeof line, "%s on %s picture%s of %d x %d, testing on %s: %d epoch%s in batches of %d", model,
             cli_thousands(job->train_pictures, a), job->train_pictures == 1 ? "" : "s", job->height, job->width,
             cli_thousands(job->test_pictures, b), job->epochs, job->epochs == 1 ? "" : "s", job->batch);
    cli_cloud_note("Training  ", line);
    snprintf(line, sizeof line, "%s and %s of memory traffic a picture, forward and back; %s parameters",
             amount(job->work.train_flops, "FLOP", a), amount(job->work.train_bytes, "B", b),
             cli_thousands(job->work.parameters, c));
    cli_cloud_note("Counted   ", line);
    rate(job->here, a);
    snprintf(line, sizeof line,
             "here, on %s: training at %s picture%s/s; decoding a picture takes %.2g ms, altering it %.2g ms of one of "
             "%d thread%s",
             job->device, a, strcmp(a, "1") ? "s" : "", job->decode * 1e3, job->augment * 1e3, job->threads,
             job->threads == 1 ? "" : "s");
    cli_cloud_note("Measured  ", line);
    if (job->gpu) {
        snprintf(line, sizeof line, "%s%s: a step takes %.2f times what the model says, and so does every estimate",
                 job->gpu->name, strncmp(job->device, "cuda", 4) ? " (--rate)" : "", job->correction);
        cli_cloud_note("          ", line);
    }
}

static void print_here(const pc_cloud_job *job)
{
    char time[CLI_CLOUD_TEXT_MAX], line[128];
    pc_cloud_estimate here = pc_cloud_estimate_here(job);
    snprintf(line, sizeof line, "%s on this machine, for nothing", cli_cloud_time(here.seconds, time));
    cli_cloud_note("Here      ", line);
}

static void print_rows(const char *heading, const candidate *all, int count, int shown, const cli_cloud_prices *prices)
{
    cli_cloud_heading(heading);
    cli_set_style(stdout, CLI_DIM);
    if (!cli_cloud_narrow())
        printf("  %-16s %-20s %8s %9s %11s %8s\n", "instance", "GPU it uses", "time", "dollars", "pictures/s",
               "$/hour");
    cli_set_style(stdout, CLI_PLAIN);
    for (int i = 0; i < count && i < shown; i++) {
        char time[CLI_CLOUD_TEXT_MAX], usd[CLI_CLOUD_TEXT_MAX], hour[CLI_CLOUD_TEXT_MAX], speed[32], gpu[80];
        const candidate *c = &all[i];
        const pc_cloud_gpu *g = c->instance->family->gpu;
        snprintf(gpu, sizeof gpu, c->instance->gpus > 1 ? "%s, 1 of %d" : "%s", g->name, c->instance->gpus);
        cli_cloud_dollars(c->estimate.usd, usd);
        printf(cli_cloud_narrow() ? "  %s\n    %s: %s, %s dollars\n    %s pictures/s at %s%s an hour\n"
                                  : "  %-16s %-20s %8s %9s %11s %8s%s\n",
               c->instance->name, gpu, cli_cloud_time(c->estimate.seconds, time), usd,
               rate(c->estimate.pictures_per_second, speed), cli_cloud_dollars(c->price.usd, hour),
               cli_cloud_mark(prices, &c->price));
    }
}

/* Families that were left out, by reason. */
static void print_left_out(const pc_cloud *cloud, const pc_cloud_job *job, const char *region)
{
    for (int reason = 1; reason < (int)(sizeof reasons / sizeof *reasons); reason++) {
        char line[512] = "";
        const pc_cloud_instance *i;
        const pc_cloud_family *last = NULL;
        for (int k = 0; (i = pc_cloud_instance_at(cloud, k)); k++) {
            pc_cloud_estimate e = pc_cloud_estimate_job(job, i, pc_cloud_price_of(cloud, i, region));
            if ((int)e.reason != reason || i->family == last)
                continue;
            last = i->family;
            size_t n = strlen(line);
            snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "", last->name);
        }
        if (line[0]) {
            size_t n = strlen(line);
            snprintf(line + n, sizeof line - n, ": %s", reasons[reason]);
            cli_cloud_note("Left out  ", line);
        }
    }
}

#define HOW_MAX 640

/* What the estimates are made of, with the numbers that the library computes with. */
static char *how(char text[HOW_MAX])
{
    pc_cloud_model m = pc_cloud_estimate_model();
    snprintf(
        text, HOW_MAX,
        "%g us for each pass of a layer, plus flops at %.2g%% of the GPU's float32 rate (%.2g%% in convolutions to "
        "fewer than %d channels), plus bytes at %.2g%% of its bandwidth, plus %.2g us of the host for a picture: "
        "what fits an H200, within %.2g%%, and is assumed of the others. All vCPUs decode every picture once, "
        "each as fast as a thread here. The estimate is of one GPU at work. %.0f seconds at least are billed; "
        "starting the machine and copying the pictures come on top.",
        m.pass_seconds * 1e6, m.flops_share * 100, m.narrow_share * 100, m.narrow_channels, m.bytes_share * 100,
        m.host_seconds * 1e6, m.worst * 100, m.billed_seconds);
    return text;
}

static void print_text(const cli_call *call, const pc_cloud *cloud, const pc_cloud_job *job, candidate *all, int count)
{
    const cost_settings *s = call->settings;
    cli_cloud_prices prices = {.count = 0};
    char text[HOW_MAX];
    int shown = s->all ? count : SHOWN;
    for (int i = 0; i < count; i++)
        cli_cloud_add_price(&prices, &all[i].price);
    print_counted(job, call->line->values[0]);
    print_here(job);
    putchar('\n');
    qsort(all, (size_t)count, sizeof *all, by_dollars);
    print_rows("Cheapest first", all, count, shown, &prices);
    putchar('\n');
    qsort(all, (size_t)count, sizeof *all, by_time);
    print_rows("Fastest first", all, count, shown, &prices);
    putchar('\n');
    cli_cloud_note("Model     ", how(text));
    print_left_out(cloud, job, s->cloud.region);
    cli_cloud_print_prices(&prices, cloud, &s->cloud);
}

static void number(const char *key, double value)
{
    printf("\"%s\": ", key);
    cli_json_number(stdout, value);
    fputs(", ", stdout);
}

static void print_job(const pc_cloud_job *job, const char *model)
{
    pc_cloud_estimate here = pc_cloud_estimate_here(job);
    char text[HOW_MAX];
    fputs(",\n\"job\": {\"model\": ", stdout);
    cli_json_text(stdout, model);
    printf(", \"height\": %d, \"width\": %d, \"channels\": %d, \"batch\": %d, \"epochs\": %d, \"train_pictures\": "
           "%lld, \"test_pictures\": %lld, ",
           job->height, job->width, job->channels, job->batch, job->epochs, (long long)job->train_pictures,
           (long long)job->test_pictures);
    number("train_flops", job->work.train_flops);
    number("train_bytes", job->work.train_bytes);
    number("step_bytes", job->work.step_bytes);
    printf("\"parameters\": %lld, \"layers\": %d},\n\"measured\": {\"device\": \"%s\", \"threads\": %d, ",
           (long long)job->work.parameters, job->work.layers, job->device, job->threads);
    number("decode_seconds", job->decode);
    number("pictures_per_second", job->here);
    printf("\"batch\": %d, ", job->measured_batch);
    number("seconds_here", here.seconds);
    number("augment_seconds", job->augment);
    fputs("\"gpu\": ", stdout);
    if (job->gpu)
        cli_json_text(stdout, job->gpu->name);
    else
        fputs("null", stdout);
    fputs(", \"correction\": ", stdout);
    cli_json_number(stdout, job->correction);
    fputs("},\n\"computed\": ", stdout);
    cli_json_text(stdout, how(text));
}

static void print_json(const cli_call *call, const pc_cloud *cloud, const pc_cloud_job *job, candidate *all, int count)
{
    const pc_cloud_instance *i;
    const cost_settings *s = call->settings;
    qsort(all, (size_t)count, sizeof *all, by_dollars);
    putchar('{');
    cli_cloud_json_catalogue(cloud);
    print_job(job, call->line->values[0]);
    fputs(",\n\"cheapest_first\": [", stdout);
    for (int k = 0; k < count; k++) {
        fputs(k ? ",\n  {" : "\n  {", stdout);
        number("hours", all[k].estimate.seconds / 3600);
        number("usd", all[k].estimate.usd);
        number("decode_seconds", all[k].estimate.decode);
        number("pictures_per_second", all[k].estimate.pictures_per_second);
        cli_cloud_json(all[k].instance, &all[k].price);
        putchar('}');
    }
    fputs("],\n\"left_out\": [", stdout);
    const char *joint = "\n  ";
    for (int k = 0; (i = pc_cloud_instance_at(cloud, k)); k++) {
        pc_cloud_estimate e = pc_cloud_estimate_job(job, i, pc_cloud_price_of(cloud, i, s->cloud.region));
        if (e.reason == PC_CLOUD_ESTIMATED)
            continue;
        printf("%s{\"instance\": \"%s\", \"why\": \"%s\"}", joint, i->name, reason_names[e.reason]);
        joint = ",\n  ";
    }
    puts("]}");
}

/* The error of a training for which there is no machine: the budget, or else the memory. */
static int nothing(const cli_call *call, const pc_cloud *cloud, const pc_cloud_job *job)
{
    const cost_settings *s = call->settings;
    const pc_cloud_instance *i, *cheapest = NULL, *largest = NULL;
    double least = INFINITY;
    for (int k = 0; (i = pc_cloud_instance_at(cloud, k)); k++) {
        pc_cloud_price price = pc_cloud_price_of(cloud, i, s->cloud.region);
        pc_cloud_estimate e = pc_cloud_estimate_job(job, i, price);
        if (e.reason == PC_CLOUD_ESTIMATED && price.usd < least)
            cheapest = i, least = price.usd;
        if (e.reason == PC_CLOUD_NO_ROOM && (!largest || i->memory_mib > largest->memory_mib))
            largest = i;
    }
    if (cheapest)
        cli_error(call->command, "nothing that can train it costs at most $%g an hour; the cheapest is %s at $%.3f",
                  s->cloud.budget, cheapest->name, least);
    else if (largest)
        cli_error(call->command,
                  "no GPU of the catalogue has the memory: batches of %d pictures of %d x %d need %.0f GB, and the "
                  "largest, of %s, has %g GB; a smaller --batch needs less",
                  job->batch, job->height, job->width, ceil(pc_cloud_job_bytes(job) * 1e-9), largest->name,
                  largest->memory_gb);
    else
        cli_error(call->command, "no machine of the catalogue can train it%s",
                  s->cloud.budget > 0 ? " at a price that is known" : "");
    return CLI_FAILED;
}

static int estimate(const cli_call *call, const pc_cloud *cloud, const pc_cloud_job *job)
{
    const cost_settings *s = call->settings;
    const pc_cloud_instance *i;
    int count = 0;
    while (pc_cloud_instance_at(cloud, count))
        count++;
    candidate *all = calloc((size_t)count + 1, sizeof *all);
    if (!all) {
        cli_error(call->command, "out of memory");
        return CLI_FAILED;
    }
    count = 0;
    for (int k = 0; (i = pc_cloud_instance_at(cloud, k)); k++) {
        pc_cloud_price price = pc_cloud_price_of(cloud, i, s->cloud.region);
        pc_cloud_estimate e = pc_cloud_estimate_job(job, i, price);
        if (e.reason == PC_CLOUD_ESTIMATED && !(s->cloud.budget > 0 && !(price.usd <= s->cloud.budget)))
            all[count++] = (candidate){i, price, e};
    }
    int status = CLI_FINE;
    if (s->cloud.json)
        print_json(call, cloud, job, all, count);
    else if (count)
        print_text(call, cloud, job, all, count);
    if (!count)
        status = nothing(call, cloud, job);
    free(all);
    return status;
}

/* What can be told to be wrong without looking into files; false after the error was written. */
static bool check_usage(const cli_call *call)
{
    const cost_settings *s = call->settings;
    const char *model = call->line->values[0];
    char message[CLI_MESSAGE_MAX];
    if (s->known_gpu && !(s->known_rate > 0)) {
        cli_error(call->command, "--on %.40s: needs --rate N too, the pictures a second measured on it", s->known_gpu);
        return false;
    }
    if (s->known_rate > 0 && !s->known_gpu) {
        cli_error(call->command, "--rate: needs --on GPU too, which it was measured on");
        return false;
    }
    if (access(model, F_OK) == 0 || strpbrk(model, "./") || cli_find_choice("MODEL", cli_train_archs, model, message))
        return true;
    cli_error(call->command, "%s", message);
    return false;
}

static int run(const cli_call *call)
{
    const cost_settings *s = call->settings;
    if (!check_usage(call))
        return CLI_WRONG_USAGE;
    pc_cloud *cloud = cli_cloud_open(call);
    if (!cloud)
        return CLI_FAILED;
    pc_cloud_job_options plan = {.model = call->line->values[0],
                                 .folder = call->line->values[1],
                                 .height = s->size[0],
                                 .width = s->size[1],
                                 .batch = s->batch,
                                 .epochs = s->epochs,
                                 .device = s->device,
                                 .known_rate = s->known_rate,
                                 .known_gpu = s->known_gpu,
                                 .seconds = s->measure};
    pc_cloud_job job;
    int status =
        pc_cloud_plan_job(cloud, plan, &job) == PC_OK ? estimate(call, cloud, &job) : cli_failed(call->command);
    pc_cloud_free(cloud);
    return status;
}

static const cli_option options[] = {
    {"epochs", 0, CLI_INT, offsetof(cost_settings, epochs), "25", "N", .help = "Times through the pictures", .min = 1,
     .max = 100000},
    {"batch", 0, CLI_INT, offsetof(cost_settings, batch), "32", "N", .help = "Pictures in a step", .min = 1,
     .max = 65536},
    {"size", 0, CLI_SIZE, offsetof(cost_settings, size), NULL, "PIXELS",
     .help = "Pictures are resized to PIXELS x PIXELS, or to HEIGHTxWIDTH; 64 for a network by name, a file's own "
             "otherwise, unless it takes any size",
     .min = 8, .max = 4096},
    {"budget", 0, CLI_FLOAT, offsetof(cost_settings, cloud.budget), NULL, "DOLLARS",
     .help = "US dollars an hour, at most", .min = 0, .max = 100000, .above = true},
    {"all", 0, CLI_FLAG, offsetof(cost_settings, all), NULL, NULL, .help = "Show every machine, not five"},
    {"device", 0, CLI_TEXT, offsetof(cost_settings, device), "auto", "DEVICE", .help = "What to measure on",
     .choices = cli_program_devices, .group = "Measuring here"},
    {"rate", 0, CLI_FLOAT, offsetof(cost_settings, known_rate), NULL, "N",
     .help = "Pictures a second that you have measured, training on the GPU that --on names", .min = 0, .max = 1e12,
     .above = true},
    {"on", 0, CLI_TEXT, offsetof(cost_settings, known_gpu), NULL, "GPU",
     .help = "The GPU of --rate, as the catalogue calls it (T4, A100 40GB)"},
    {"seconds", 0, CLI_FLOAT, offsetof(cost_settings, measure), NULL, "S",
     .help = "How long to measure training; 0.02 on a CPU, 0.5 on a GPU unless set", .min = 0, .max = 600,
     .above = true},
    CLI_CLOUD_SHARED,
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL",
     "A network of paracord train --arch, a file that paracord train wrote, or a Keras file; - for standard input", 1,
     1, .complete = CLI_FILES, .read = true},
    {"DIR", "A folder of pictures, as paracord train takes it", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud cost article faces --epochs 25", "A network by name"},
    {"paracord cloud cost run/model.h5 faces --epochs 100 --all", "A network from a file, on every machine"},
    {0},
};

const cli_command cli_cloud_cost = {
    .name = "cloud cost",
    .summary = "Say what a training would cost on each machine",
    .description =
        "Counts what the network computes and moves for a picture, counts the pictures of DIR, measures for a moment "
        "how fast this machine decodes and trains, and estimates from each GPU's datasheet how long the same training "
        "takes on each machine with NVIDIA GPUs and what that costs: the cheapest first, then the fastest first. On a "
        "machine with a GPU that the catalogue knows, its measurement corrects all estimates. An estimate is no "
        "promise: docs/cloud.md says how it is made and how far off it was.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(cost_settings),
    .run = run,
};

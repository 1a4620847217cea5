/* bench.c: paracord bench: how fast this machine is, beside how fast it could be. */
#include "bench.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <limits.h>

#include "bench_plot.h"
#include "nearest.h"
#include "text.h"
#include "whole.h"

typedef struct bench_settings {
    const char *device, *svg, *png, *disk;
    bool json;
} bench_settings;

/* clang-format off */
const bench_row bench_rows[] = {
    {"copy.to-device", "host to device, pinned", BENCH_LINK, "B", 0, bench_transfer},
    {"copy.to-host", "device to host, pinned", BENCH_LINK, "B", 1, bench_transfer},
    {"copy.both", "both ways at once, pinned", BENCH_BOTH, "B", 0, bench_transfer},
    {"pageable.to-device", "host to device, ordinary memory", BENCH_PAGEABLE, "B", 0, bench_transfer},
    {"pageable.to-host", "device to host, ordinary memory", BENCH_PAGEABLE, "B", 1, bench_transfer},
    {"copy.device", "within the device", BENCH_MEMORY, "B", 0, bench_memory},
    {"copy.peer", "to the next device", BENCH_PEER, "B", 0, bench_peer},
    {"add", "c = a + b", BENCH_MEMORY, "B", 1, bench_memory},
    {"saxpy", "y = a x + y", BENCH_MEMORY, "B", 2, bench_memory},
    {"stream.copy", "host: a plain loop, c = a", BENCH_HOST, "B", BENCH_COPY, bench_stream},
    {"stream.triad", "host: a plain loop, c = a + 3 b", BENCH_HOST, "B", BENCH_TRIAD, bench_stream},
    {"stream.one", "host: the same on one thread", BENCH_HOST, "B", BENCH_ONE_THREAD, bench_stream},
    {"product.f64", "matrix product", BENCH_PRODUCT, "FLOP", BENCH_F64, bench_product},
    {"product.f32", "matrix product", BENCH_PRODUCT, "FLOP", BENCH_F32, bench_product},
    {"product.tf32", "matrix product", BENCH_PRODUCT, "FLOP", BENCH_TF32, bench_product},
    {"product.f16", "matrix product", BENCH_PRODUCT, "FLOP", BENCH_F16, bench_product},
    {"product.bf16", "matrix product", BENCH_PRODUCT, "FLOP", BENCH_BF16, bench_product},
    {"launch.kernel", "calling an op, not waited for", BENCH_LAUNCH, "", 0, bench_calls},
    {"launch.graph", "an op of a recording of 500", BENCH_NODE, "", 0, bench_calls},
    {"sync", "an op, waited for", BENCH_SYNC, "", 0, bench_calls},
    {"overlap", "copying in beside computing", BENCH_OVERLAP, "B", 0, bench_overlap},
    {"disk", "a file to the device", BENCH_DISK, "B", 0, bench_disk},
};
/* clang-format on */
const int bench_row_count = sizeof bench_rows / sizeof *bench_rows;

#define GROUPS                                                                                                         \
    "copy, pageable, add, saxpy, stream, product, launch, sync, overlap, disk, or one of theirs, such as product.f16"

/* The names of groups and rows, for shells: "copy", "copy.to-device", ... */
static const char *offer(int i)
{
    static char group[32];
    for (int row = 0; row < bench_row_count; row++) {
        const char *name = bench_rows[row].name;
        const size_t n = strcspn(name, ".");
        bool first = name[n] != 0;
        for (int k = 0; k < row && first; k++)
            first = strncmp(bench_rows[k].name, name, n + 1) != 0;
        if (first && i-- == 0) {
            snprintf(group, sizeof group, "%.*s", (int)n, name);
            return group;
        }
        if (i-- == 0)
            return name;
    }
    return NULL;
}

/* "product" is all that begins with "product.". */
static bool is_named(const char *row, const char *word)
{
    const size_t n = strlen(word);
    return !strncmp(row, word, n) && (!row[n] || row[n] == '.');
}

/* What is no row's name nor a sub-command's, and which one it may have been. False. */
static bool refuse(const cli_call *call, const char *word)
{
    char groups[2][32]; /* the nearest so far, and the next */
    int next = 0;
    const char *meant = cli_near_action(call->command, word);
    for (int i = 0; i < bench_row_count; i++) {
        const char *row = bench_rows[i].name;
        snprintf(groups[next], sizeof groups[next], "%.*s", (int)strcspn(row, "."), row);
        if (cli_nearer(word, meant, groups[next]) == groups[next]) {
            meant = groups[next];
            next = !next;
        }
        meant = cli_nearer(word, meant, row);
    }
    cli_error(call->command, "ROW %s: must be " GROUPS "%s%s%s", word, meant ? "; did you mean " : "",
              meant ? meant : "", meant ? "?" : "");
    return false;
}

/* False: an error, told. */
static bool choose(bench *b, const cli_call *call)
{
    const cli_line *line = call->line;
    for (int i = 0; i < bench_row_count; i++)
        b->chosen[i] = !line->count;
    for (int k = 0; k < line->count; k++) {
        bool found = false;
        for (int i = 0; i < bench_row_count; i++)
            if (is_named(bench_rows[i].name, line->values[k]))
                b->chosen[i] = found = true;
        if (!found)
            return refuse(call, line->values[k]);
    }
    return true;
}

/* On a terminal, what is under way; NULL clears the line. */
static void tell(const char *row)
{
    if (!cli_is_terminal(stderr))
        return;
    fputs("\r\033[K", stderr);
    if (row)
        fprintf(stderr, "measuring %s", row);
}

/* A row that fails says so and the others go on; what was broken is counted. */
static int measure(bench *b)
{
    char text[CLI_FAILURE_MAX];
    int broken = 0;
    for (int i = 0; i < bench_row_count; i++) {
        bench_result *r = &b->results[i];
        if (!b->chosen[i])
            continue;
        tell(bench_rows[i].name);
        if (!bench_rows[i].measure(b, &bench_rows[i], r)) {
            snprintf(r->why, sizeof r->why, "%s", cli_failure(text));
            pc_error_clear();
            r->broken = true;
        }
        broken += r->broken;
    }
    tell(NULL);
    return broken;
}

/* What the machine says of its GPUs. It has to be asked before the program itself starts CUDA: a child process does
 * that, and in the child of a program that has done so CUDA does not start. NULL: no GPU is meant, or nothing is known.
 */
static pc_machine *ask_machine(const char *device)
{
    const bool other = !strcmp(device, "cpu") || !strncmp(device, "sim", 3);
    pc_machine *machine = other ? NULL : pc_machine();
    pc_error_clear();
    return machine;
}

static bool write_pictures(const bench *b, const bench_settings *settings)
{
    static bench_plot plot;
    bench_draw(b, &plot);
    return (!settings->svg || cli_write_whole(b->p.command, settings->svg, bench_write_svg, &plot)) &&
           (!settings->png || cli_write_whole(b->p.command, settings->png, bench_write_png, &plot));
}

static int run_rows(bench *b, const pc_machine *machine, const bench_settings *settings)
{
    const double start = cli_now();
    if (!cli_program_fits(&b->p, 20.0 * (double)bench_elements(PC_DEVICE_CPU), "end what else runs"))
        return CLI_FAILED;
    tell("the machine's limits");
    bench_find_limits(b, machine);
    const int broken = measure(b);
    bench_raise_limits(b);
    b->took = cli_now() - start;
    if (settings->json)
        bench_json(b);
    else
        bench_print(b);
    if (!write_pictures(b, settings))
        return CLI_FAILED;
    if (broken)
        cli_error(b->p.command, "%d of the rows could not be measured; they say why", broken);
    return broken ? CLI_FAILED : CLI_FINE;
}

static int run(const cli_call *call)
{
    const bench_settings *settings = call->settings;
    const char *folder = getenv("TMPDIR");
    bench b = {.disk = settings->disk ? settings->disk : folder && *folder ? folder : "/var/tmp"};
    if (!choose(&b, call))
        return CLI_WRONG_USAGE;
    if ((settings->svg && !cli_may_write(call->command, settings->svg)) ||
        (settings->png && !cli_may_write(call->command, settings->png)))
        return CLI_FAILED;
    pc_machine *machine = ask_machine(settings->device);
    const int status =
        cli_program_open(&b.p, call, settings->device, settings->json) ? run_rows(&b, machine, settings) : CLI_FAILED;
    pc_machine_free(machine);
    return status;
}

#define AT(member) offsetof(bench_settings, member)

static const cli_option options[] = {
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices},
    {"svg", 0, CLI_PATH, AT(svg), NULL, "FILE",
     .help = "Draw the roofline: what the device could do, and what it does"},
    {"png", 0, CLI_PATH, AT(png), NULL, "FILE", .help = "The same as a picture of pixels"},
    {"disk", 0, CLI_PATH, AT(disk), NULL, "DIR",
     .help = "Folder of the disk to read from; otherwise $TMPDIR, or /var/tmp"},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"ROW", "What to measure: " GROUPS "; everything where none is named", 0, INT_MAX, .offer = offer},
    {0},
};

static const cli_example examples[] = {
    {"paracord bench", "Everything, on the fastest device"},
    {"paracord bench product --device cpu --svg roofline.svg",
     "Products on the CPU, and where they lie under its roof"},
    {"paracord bench copy pageable", "How fast the way to the GPU is, and what pinned memory brings"},
    {0},
};

const cli_command cli_bench = {
    .name = "bench",
    .summary = "Measure this machine, beside what it could do",
    .description =
        "Measures copies, streams through memory, matrix products, calls and waits, on a device and its host. Each "
        "result stands beside the machine's limit: its GPU's datasheet, its PCIe link or NVLinks, or, where neither is "
        "known, what reading, copying or multiply-adds alone reach here; and a verdict says what that means. The first "
        "call is timed apart; then come warm-up and batches between marks in the device's stream, of which the median "
        "and the spread are told. Arrays are larger than caches.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(bench_settings),
    .run = run,
};

/* bench_collective.c: paracord bench collective: how fast ranks exchange data, counted as nccl-tests counts. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/dist.h>
#include <paracord/group.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/stream.h>

#include "clock.h"
#include "program.h"
#include "ranks.h"
#include "text.h"

enum { ROUNDS = 7, RECORDED = 20, SIZES = 40 };

#define LEAST 4096
#define MOST 0x1p40

typedef enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, KINDS } kind;

typedef struct measured {
    int64_t bytes;
    double call, graph; /* seconds; NaN: no recording there */
    int64_t wrong;      /* elements */
} measured;

typedef struct settings {
    const char *op, *device, *devices;
    int64_t least, most;
    bool json;
    kind kind;
    int ranks;
    int count;
    measured sizes[SIZES];
} settings;

static const struct {
    const char *name;
    double factor; /* of bus bandwidth: this, times (n - 1) / n, but for broadcast */
} kinds[KINDS] = {{"all-reduce", 2}, {"all-gather", 1}, {"reduce-scatter", 1}, {"broadcast", 1}, {"all-to-all", 1}};

/* The tensors of a rank: whole has all bytes, part a rank's share of them. */
typedef struct work {
    const settings *s;
    pc_group *group;
    pc_device device;
    pc_tensor *whole, *part, *other;
} work;

static pc_status go(const work *w)
{
    switch (w->s->kind) {
    case ALL_REDUCE:
        return pc_group_all_reduce(w->group, w->whole, PC_GROUP_MAX);
    case ALL_GATHER:
        return pc_group_all_gather(w->group, w->whole, w->part);
    case REDUCE_SCATTER:
        return pc_group_reduce_scatter(w->group, w->part, w->whole, PC_GROUP_SUM);
    case BROADCAST:
        return pc_group_broadcast(w->group, w->whole, 0);
    default:
        return pc_group_all_to_all(w->group, w->other, w->whole);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one of `calls`, which `graph` does RECORDED at a time where there is one. */
static pc_status time_it(const work *w, pc_graph *graph, int calls, double *seconds)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        pc_status status = pc_group_barrier(w->group);
        const double start = cli_now();
        for (int i = 0; i < calls && status == PC_OK; i += graph ? RECORDED : 1)
            status = graph ? pc_graph_launch(graph, pc_group_stream(w->group, w->device)) : go(w);
        if (status == PC_OK)
            status = pc_device_synchronize(w->device);
        if (status != PC_OK)
            return status;
        times[round] = (cli_now() - start) / calls;
    }
    qsort(times, ROUNDS, sizeof *times, ascending);
    *seconds = times[ROUNDS / 2];
    return PC_OK;
}

static pc_graph *record(const work *w)
{
    pc_stream *stream = pc_group_stream(w->group, w->device);
    if (pc_graph_begin(stream) != PC_OK)
        return NULL;
    pc_status status = PC_OK;
    for (int i = 0; i < RECORDED && status == PC_OK; i++)
        status = go(w);
    return pc_graph_end(stream);
}

/* Once, from rank + 1 everywhere, and how many elements are not what they should be. */
static pc_status check(work *w, int64_t *wrong)
{
    const int rank = pc_group_rank(w->group), size = pc_group_size(w->group);
    static const bool part[KINDS] = {[REDUCE_SCATTER] = true};
    pc_tensor *found = part[w->s->kind] ? w->part : w->s->kind == ALL_TO_ALL ? w->other : w->whole;
    if (pc_fill(w->whole, rank + 1) != PC_OK || pc_fill(w->part, rank + 1) != PC_OK || go(w) != PC_OK)
        return pc_error_last()->status;
    *wrong = 0;
    for (int r = 0; r < size; r++) {
        const int64_t n = pc_tensor_count(found) / size;
        const double want[KINDS] = {size, r + 1, size * (size + 1) / 2.0, 1, r + 1};
        pc_tensor *piece = pc_slice(found, 0, r * n, (r + 1) * n, 1);
        pc_tensor *bad = pc_ne(piece, pc_full(PC_SHAPE(1), want[w->s->kind], PC_F32, w->device));
        *wrong += (int64_t)pc_item(pc_sum(pc_cast(bad, PC_F32)));
    }
    return pc_failed() ? pc_error_last()->status : PC_OK;
}

static pc_status measure(work *w, measured *m)
{
    const int64_t n = m->bytes / (int64_t)sizeof(float) / pc_group_size(w->group);
    w->part = pc_zeros(PC_SHAPE(n), PC_F32, w->device);
    w->whole = pc_zeros(PC_SHAPE(n * pc_group_size(w->group)), PC_F32, w->device);
    w->other = w->s->kind == ALL_TO_ALL ? pc_zeros(PC_SHAPE(n * pc_group_size(w->group)), PC_F32, w->device) : w->part;
    const int calls = m->bytes <= 1 << 20 ? 5 * RECORDED : m->bytes <= 1 << 26 ? RECORDED : 3;
    pc_status status = check(w, &m->wrong);
    if (status == PC_OK)
        status = time_it(w, NULL, calls, &m->call);
    m->graph = (double)NAN;
    if (status != PC_OK || w->device.type == PC_CPU)
        return status;
    pc_graph *graph = record(w);
    status =
        graph ? time_it(w, graph, (calls + RECORDED - 1) / RECORDED * RECORDED, &m->graph) : pc_error_last()->status;
    pc_graph_free(graph);
    return status;
}

static pc_status all_sizes(void *context, pc_group *group, const char *device, bool first)
{
    settings *s = context;
    work w = {.s = s, .group = group};
    measured unread;
    pc_status status = pc_device_parse(device, &w.device);
    if (first)
        s->ranks = group ? pc_group_size(group) : 1;
    if (!group)
        return pc_fail(PC_ERR_ARGUMENT,
                       "one rank has nobody to talk to: --devices all, or paracord launch -n 2 -- ...");
    for (int i = 0; i < s->count && status == PC_OK; i++)
        PC_SCOPE {
            PC_NO_GRAD {
                unread.bytes = s->sizes[i].bytes;
                status = measure(&w, first ? &s->sizes[i] : &unread);
            }
        }
    return status;
}

static double bus_rate(const settings *s, const measured *m)
{
    const double best = m->graph < m->call ? m->graph : m->call;
    const double share = s->kind == BROADCAST ? 1 : (s->ranks - 1.0) / s->ranks;
    return kinds[s->kind].factor * share * (double)m->bytes / best;
}

static void show(const settings *s)
{
    char bytes[32];
    printf("%s of float32 between %d ranks\n\n%14s  %10s  %10s  %9s  %9s  %s\n", kinds[s->kind].name, s->ranks, "bytes",
           "a call", "in a graph", "algorithm", "bus", "wrong");
    for (int i = 0; i < s->count; i++) {
        const measured *m = &s->sizes[i];
        const double best = m->graph < m->call ? m->graph : m->call;
        printf("%14s  %7.1f us  ", cli_thousands(m->bytes, bytes), m->call * 1e6);
        if (isnan(m->graph))
            printf("%10s", "-");
        else
            printf("%7.1f us", m->graph * 1e6);
        printf("  %5.*f GB/s  %4.*f GB/s  %lld\n", (double)m->bytes / best < 1e10 ? 2 : 1,
               (double)m->bytes / best * 1e-9, bus_rate(s, m) < 1e10 ? 2 : 1, bus_rate(s, m) * 1e-9,
               (long long)m->wrong);
    }
}

static void show_json(const settings *s)
{
    printf("{\"collective\": \"%s\", \"ranks\": %d, \"sizes\": [", kinds[s->kind].name, s->ranks);
    for (int i = 0; i < s->count; i++) {
        const measured *m = &s->sizes[i];
        printf("%s\n  {\"bytes\": %lld, \"call_us\": %.3f, ", i ? "," : "", (long long)m->bytes, m->call * 1e6);
        if (isnan(m->graph))
            printf("\"graph_us\": null");
        else
            printf("\"graph_us\": %.3f", m->graph * 1e6);
        printf(", \"bus_bytes_per_second\": %.0f, \"wrong\": %lld}", bus_rate(s, m), (long long)m->wrong);
    }
    puts("\n]}");
}

static int run(const cli_call *call)
{
    settings s = *(settings *)call->settings;
    cli_ranks ranks = {.work = all_sizes, .context = &s};
    for (s.kind = 0; s.kind < KINDS - 1 && strcmp(kinds[s.kind].name, s.op); s.kind++)
        continue;
    if (s.least > s.most) {
        cli_error(call->command,
                  "--least is %lld bytes, more than --most, %lld; give a smaller --least or a larger --most",
                  (long long)s.least, (long long)s.most);
        return CLI_WRONG_USAGE;
    }
    if (!cli_ranks_take(call->command, &ranks, s.devices, s.device))
        return CLI_WRONG_USAGE;
    for (int64_t bytes = s.least; bytes <= s.most && s.count < SIZES; bytes *= 4)
        s.sizes[s.count++].bytes = bytes;
    if (cli_ranks_run(&ranks) != PC_OK)
        return cli_failed(call->command);
    int64_t wrong = 0;
    for (int i = 0; i < s.count; i++)
        wrong += s.sizes[i].wrong;
    if (!ranks.is_other && s.json)
        show_json(&s);
    else if (!ranks.is_other)
        show(&s);
    if (!wrong)
        return CLI_FINE;
    cli_error(call->command,
              "%lld elements did not arrive as they were sent; NCCL_P2P_DISABLE=1 shows whether the direct way "
              "between GPUs is to blame (ACS or an IOMMU), and paracord doctor looks for causes",
              (long long)wrong);
    return CLI_FAILED;
}

static const cli_choice names[] = {
    {"all-reduce", "each gets the sum of all"},          {"all-gather", "each gets all parts"},
    {"reduce-scatter", "each gets its part of the sum"}, {"broadcast", "each gets the first's"},
    {"all-to-all", "each gets a part of each"},          {0}};

#define AT(member) offsetof(settings, member)

static const cli_option options[] = {
    {"op", 0, CLI_CHOICE, AT(op), "all-reduce", "NAME", .help = "What the ranks do", .choices = names},
    {"least", 0, CLI_BYTES, AT(least), "4K", "BYTES", .help = "The smallest message", .min = LEAST, .max = MOST},
    {"most", 0, CLI_BYTES, AT(most), "1G", "BYTES", .help = "The largest, by factors of 4", .min = LEAST, .max = MOST},
    CLI_DEVICES_OPTION(AT(devices), ""),
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = "Of a rank that was launched",
     .choices = cli_program_devices},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON"},
    {0},
};

static const cli_example examples[] = {
    {"paracord bench collective --devices all", "All-reduce between the GPUs of this machine"},
    {"paracord launch -n 4 -- paracord bench collective", "The same, a process a GPU"},
    {0},
};

const cli_command cli_bench_collective = {
    .name = "bench collective",
    .summary = "Measure how fast devices exchange data",
    .description =
        "Times are medians: of a call among many, and of one among 20 in a recorded graph. Algorithm bandwidth is "
        "bytes by "
        "time; bus bandwidth, as nccl-tests counts it, is what each link has carried: 2 (n - 1) / n of that for an "
        "all-reduce, so it can be compared with the link's. Every size is checked first: wrong counts elements.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(settings),
    .run = run,
};

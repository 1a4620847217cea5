/* topo.c: paracord topo */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord-tools/probe.h>

#include "command.h"
#include "machine.h"
#include "peers.h"
#include "text.h"
#include "topo_ways.h"

typedef struct topo_settings {
    bool json, measure;
    cli_machine_from from;
} topo_settings;

enum { PEERS_MAX = 16, WIDTH = 7 };

/* The devices of the machine that are no mere console. */
typedef struct chosen {
    int index[64];
    int count;
} chosen;

static bool computes(const pc_probe_device *d)
{
    bool console = d->vendor_id.known && (!strcmp(d->vendor_id.text, "1a03") || !strcmp(d->vendor_id.text, "102b"));
    return d->nvidia || !console;
}

static void choose(const pc_machine *m, chosen *c)
{
    for (int i = 0; i < m->device_count && c->count < 64; i++)
        if (computes(&m->devices[i]))
            c->index[c->count++] = i;
}

static void print_cell(const char *text, int width)
{
    cli_pad(stdout, printf("%s", text), width);
}

/* The NUMA node and the CPUs beside the matrix, as wide as the widest. */
static void print_matrix(const pc_machine *m, const chosen *c)
{
    char text[32];
    int cpus = (int)strlen("CPU affinity");
    for (int i = 0; i < c->count; i++) {
        const pc_fact *affinity = &m->devices[c->index[i]].cpu_affinity;
        if (affinity->known && (int)strlen(affinity->text) > cpus)
            cpus = (int)strlen(affinity->text);
    }
    print_cell("", WIDTH);
    for (int i = 0; i < c->count; i++) {
        snprintf(text, sizeof text, "%d", i);
        print_cell(text, WIDTH);
    }
    print_cell("CPU affinity", cpus + 2);
    print_cell("NUMA", WIDTH);
    puts("Device");
    for (int i = 0; i < c->count; i++) {
        const pc_probe_device *d = &m->devices[c->index[i]];
        snprintf(text, sizeof text, "%d", i);
        print_cell(text, WIDTH);
        for (int j = 0; j < c->count; j++)
            print_cell(pc_link_text(pc_machine_link(m, c->index[i], c->index[j]), text), WIDTH);
        print_cell(d->cpu_affinity.known ? d->cpu_affinity.text : "unknown", cpus + 2);
        snprintf(text, sizeof text, d->numa_node.known ? "%.0f" : "N/A", d->numa_node.number);
        print_cell(text, WIDTH);
        printf("%s ", d->address.text);
        cli_print_safe(stdout, d->model.known ? d->model.text : d->vendor.known ? d->vendor.text : "unknown");
        putchar('\n');
    }
}

static void print_legend(const pc_machine *m, const chosen *c)
{
    static const char *const words[] = {[PC_LINK_NV] = "NV#   NVLink, so many links",
                                        [PC_LINK_PIX] = "PIX   at most one PCIe bridge between",
                                        [PC_LINK_PXB] = "PXB   several PCIe bridges, not the host's",
                                        [PC_LINK_PHB] = "PHB   the PCIe host bridge: through the CPU",
                                        [PC_LINK_NODE] = "NODE  host bridges of one NUMA node",
                                        [PC_LINK_SYS] = "SYS   the link between NUMA nodes",
                                        [PC_LINK_UNKNOWN] = "?     unknown: no PCI tree is visible"};
    bool used[PC_LINK_SYS + 1] = {0};
    for (int i = 0; i < c->count; i++)
        for (int j = 0; j < i; j++)
            used[pc_machine_link(m, c->index[i], c->index[j]).kind] = true;
    for (int kind = 0; kind <= PC_LINK_SYS; kind++)
        if (used[kind] && words[kind])
            printf("  %s\n", words[kind]);
}

/* What pairs are measured: GPUs, else sim devices. */
static int find_peers(pc_device peers[PEERS_MAX])
{
    pc_device_type type = pc_device_available(PC_CUDA) ? PC_CUDA : PC_SIM;
    int count = pc_device_count(type, NULL, 0);
    for (int i = 0; i < count && i < PEERS_MAX; i++)
        peers[i] = (pc_device){(int16_t)type, (int16_t)i};
    return count < PEERS_MAX ? count : PEERS_MAX;
}

static pc_status measure(const pc_device *peers, int count, cli_peer *results)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            int64_t bytes = peers[i].type == PC_CUDA ? 256 << 20 : 16 << 20;
            if (i != j && cli_peer_measure(peers[i], peers[j], bytes, &results[i * count + j]) != PC_OK)
                return pc_error_last()->status;
        }
    return PC_OK;
}

static void print_measured(const pc_device *peers, int count, const cli_peer *results, bool latency)
{
    char name[PC_DEVICE_NAME_MAX], text[32];
    printf("\n%s, from the device of the line to that of the column\n",
           latency ? "Microseconds of a copy of 4 bytes, waited for" : "GB/s of large copies");
    print_cell("", 9);
    for (int j = 0; j < count; j++)
        print_cell(pc_device_name(peers[j], name), j + 1 < count ? 9 : 0);
    putchar('\n');
    for (int i = 0; i < count; i++) {
        print_cell(pc_device_name(peers[i], name), 9);
        for (int j = 0; j < count; j++) {
            const cli_peer *r = &results[i * count + j];
            snprintf(text, sizeof text, latency ? "%.1f%s" : "%.1f%s", latency ? r->latency * 1e6 : r->bandwidth / 1e9,
                     r->intact ? "" : " !");
            print_cell(i == j ? "-" : text, j + 1 < count ? 9 : 0);
        }
        putchar('\n');
    }
    for (int i = 0; i < count * count && !latency; i++)
        if (i / count != i % count && !results[i].intact) {
            printf("! from %s to ", pc_device_name(peers[i / count], name));
            printf("%s other bytes arrived than were sent: do not train on these\n",
                   pc_device_name(peers[i % count], name));
        }
}

static void print_json(pc_machine *m, const chosen *c, const pc_device *peers, int count, const cli_peer *results)
{
    char text[64];
    fputs("{\"devices\": [", stdout);
    for (int i = 0; i < c->count; i++) {
        const pc_probe_device *d = &m->devices[c->index[i]];
        printf("%s{\"address\": \"%s\", \"numa_node\": ", i ? ", " : "", d->address.text);
        printf(d->numa_node.known ? "%.0f" : "null", d->numa_node.number);
        fputs(", \"cpu_affinity\": ", stdout);
        if (d->cpu_affinity.known)
            cli_json_text(stdout, d->cpu_affinity.text);
        else
            fputs("null", stdout);
        fputs(", \"links\": [", stdout);
        for (int j = 0; j < c->count; j++)
            printf("%s\"%s\"", j ? ", " : "", pc_link_text(pc_machine_link(m, c->index[i], c->index[j]), text));
        fputs("]}", stdout);
    }
    fputs("], ", stdout);
    cli_topo_ways_json(m, c->index, c->count);
    fputs(", \"measured\": [", stdout);
    const char *joint = "";
    for (int i = 0; results && i < count * count; i++) {
        if (i / count == i % count)
            continue;
        printf("%s{\"from\": \"%s\"", joint, pc_device_name(peers[i / count], text));
        printf(", \"to\": \"%s\", \"bytes_per_second\": ", pc_device_name(peers[i % count], text));
        cli_json_number(stdout, results[i].bandwidth);
        fputs(", \"latency_seconds\": ", stdout);
        cli_json_number(stdout, results[i].latency);
        printf(", \"intact\": %s}", results[i].intact ? "true" : "false");
        joint = ", ";
    }
    puts("]}");
}

static int show(const cli_call *call, pc_machine *m)
{
    const topo_settings *settings = call->settings;
    pc_device peers[PEERS_MAX];
    chosen c = {0};
    choose(m, &c);
    int count = settings->measure ? find_peers(peers) : 0;
    cli_peer *results = count > 1 ? calloc((size_t)(count * count), sizeof *results) : NULL;
    if (results && measure(peers, count, results) != PC_OK) {
        free(results);
        return cli_failed(call->command);
    }
    if (settings->json) {
        print_json(m, &c, peers, count, results);
    } else {
        if (c.count) {
            print_matrix(m, &c);
            print_legend(m, &c);
            cli_topo_ways(m, c.index, c.count);
        } else {
            puts("There is no graphics or accelerator device to connect.");
        }
        if (results) {
            print_measured(peers, count, results, false);
            print_measured(peers, count, results, true);
        } else if (settings->measure) {
            puts("Nothing to measure: it takes two GPUs, or two sim devices (PARACORD_SIM=2).");
        }
    }
    bool intact = true;
    for (int i = 0; results && i < count * count; i++)
        intact &= i / count == i % count || results[i].intact;
    free(results);
    return intact ? CLI_FINE : CLI_FAILED;
}

static int run(const cli_call *call)
{
    const topo_settings *settings = call->settings;
    if (settings->from.root && settings->measure) {
        cli_error(call->command, "--measure is for this machine: leave out --root");
        return CLI_WRONG_USAGE;
    }
    return cli_with_machine(call, &settings->from, show);
}

static const cli_option options[] = {
    {"measure", 'm', CLI_FLAG, offsetof(topo_settings, measure), NULL, NULL,
     .help = "Measure copies between each two GPUs (or sim devices): bandwidth, latency, and whether the bytes arrive"},
    {"json", 0, CLI_FLAG, offsetof(topo_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    CLI_MACHINE_ROOT(topo_settings),
    CLI_MACHINE_TIMEOUT(topo_settings),
    {0},
};

static const cli_example examples[] = {
    {"paracord topo", "How the devices are connected"},
    {"paracord topo --measure", "And how fast"},
    {"PARACORD_SIM=3 paracord topo --measure", "The same without a GPU"},
    {0},
};

const cli_command cli_topo = {
    .name = "topo",
    .summary = "Show how devices are connected, and measure it",
    .description =
        "Prints the matrix of links between devices as nvidia-smi topo -m does, with the NUMA node and the "
        "CPUs that are nearest to each. A copy takes the way that the matrix names; NVLink is fastest, then "
        "PIX, and SYS is slowest.\n"
        "Below it stands how collectives between the GPUs go, for each pair and for all together: by NVLink, "
        "directly over PCIe, or through the host's memory, as NCCL chooses and why, what the links on that way carry "
        "at "
        "most, whether NVSwitches add up (NVLS), and what to change.\n"
        "With --measure the exit status is 1 when bytes arrived that were not sent.",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(topo_settings),
    .run = run,
};

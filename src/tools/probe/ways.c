/* ways.c: how NCCL goes from one GPU to another, and how much the links on that way carry at most.
 *
 * The choice is that of NCCL 2.30.7 (NVIDIA NCCL User Guide, Environment Variables, NCCL_P2P_LEVEL, and ncclTopoCheckP2p in its
 * source): NVLink, else directly over PCIe as far as no host bridge is crossed, on machines with AMD's CPUs and at most two
 * GPUs anywhere; else through the host's memory. */
#include "probe/ways.h"

#include <math.h>
#include <stdlib.h>

/* GB/s of a link of NVLink, each direction (NVIDIA's pages on NVLink: the sum of both directions is 160 GB/s for the 4 links
 * of P100, 300 for the 6 of V100, 600 for the 12 of A100, 900 for the 18 of H100, 1800 for the 18 of B200; the whitepaper on
 * GA102: 14.0625). NaN: not known here. */
static double nvlink_rate(const pc_probe_device *d)
{
    static const struct {
        double version, rate;
    } rates[] = {{1, 20}, {2, 25}, {2.2, 25}, {3, 25}, {4, 25}, {5, 50}};
    if (d->compute_capability.known && !strcmp(d->compute_capability.text, "8.6"))
        return 14.0625;
    for (int i = 0; i < PC__COUNT(rates) && d->nvlink_version.known; i++)
        if (fabs(d->nvlink_version.number - rates[i].version) < 0.01)
            return rates[i].rate;
    return (double)NAN;
}

/* GB/s of a PCIe link, each direction: transfers by lane, less the code of each generation (PCI Express Base
 * Specification: 8b/10b, 128b/130b from the third on, 242 of 256 bytes of a flit in the sixth). */
static double pcie_rate(const pc_probe_device *d)
{
    static const double lanes[] = {0,
                                   2.5 * 8 / 10 / 8,
                                   5 * 8.0 / 10 / 8,
                                   8 * 128.0 / 130 / 8,
                                   16 * 128.0 / 130 / 8,
                                   32 * 128.0 / 130 / 8,
                                   64 * 242.0 / 256 / 8};
    const double generation = d->pcie_generation_max.number, width = d->pcie_width_max.number;
    if (!d->pcie_generation_max.known || !d->pcie_width_max.known || generation < 1 || generation >= PC__COUNT(lanes))
        return (double)NAN;
    return lanes[(int)generation] * width;
}

/* NaN where either is. */
static double least(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

bool pc__behind_switches(const pc_probe_device *d)
{
    int switched = 0;
    for (int i = 0; i < d->link_count; i++)
        switched += !strcmp(d->links[i].to_kind, "switch");
    return switched && switched == d->link_count;
}

int pc__ways_gpus(const pc_machine *machine, int index[], int room)
{
    int count = 0;
    for (int i = 0; i < machine->device_count && count < room; i++)
        if (machine->devices[i].nvidia)
            index[count++] = i;
    return count;
}

pc_link_kind pc__ncclwise(pc_link_kind kind)
{
    return kind == PC_LINK_NODE ? PC_LINK_PHB : kind;
}

/* "PHB", or the older numbers from 0 (none) to 4 (SYS). */
static pc_link_kind read_level(const char *text)
{
    static const struct {
        const char *name, *number;
        pc_link_kind kind;
    } levels[] = {{"LOC", "0", PC_LINK_SELF}, {"NVL", "", PC_LINK_NV},   {"PIX", "1", PC_LINK_PIX},
                  {"PXB", "2", PC_LINK_PXB},  {"PHB", "3", PC_LINK_PHB}, {"SYS", "4", PC_LINK_SYS}};
    for (int i = 0; i < PC__COUNT(levels); i++)
        if (!strcmp(text, levels[i].name) || !strcmp(text, levels[i].number))
            return levels[i].kind;
    return atoi(text) > 4 ? PC_LINK_SYS : PC_LINK_UNKNOWN;
}

pc__level pc__p2p_level(pc__machine *m)
{
    char cpu[512] = "";
    int index[PC__WAYS_GPUS];
    const char *disabled = pc__root_env(m->root, "NCCL_P2P_DISABLE"), *level = pc__root_env(m->root, "NCCL_P2P_LEVEL");
    if (disabled && atoi(disabled))
        return (pc__level){PC_LINK_SELF, "NCCL_P2P_DISABLE is set", true};
    const pc_link_kind set = level && *level ? read_level(level) : PC_LINK_UNKNOWN;
    if (set != PC_LINK_UNKNOWN)
        return (pc__level){set, pc__keepf(m, "NCCL_P2P_LEVEL is %.16s", level), true};
    (void)pc__root_read(m->root, "proc/cpuinfo", cpu, sizeof cpu);
    if (strstr(cpu, "AuthenticAMD") && pc__ways_gpus(&m->public, index, PC__WAYS_GPUS) <= 2)
        return (pc__level){PC_LINK_SYS, "NCCL lets two GPUs on an AMD board reach each other wherever they are", false};
    return (pc__level){PC_LINK_PXB, "NCCL goes directly where no host bridge (CPU) is crossed", false};
}

static pc_way by_nvlink(pc__machine *m, const pc_probe_device *x, const pc_probe_device *y, int links)
{
    const double rate = least(nvlink_rate(x), nvlink_rate(y));
    return (pc_way){PC_WAY_NVLINK, links * rate * 1e9,
                    pc__keepf(m, "%d link%s of NVLink%s", links, links == 1 ? "" : "s",
                              pc__behind_switches(x) && pc__behind_switches(y) ? " through NVSwitches" : "")};
}

static const char *pcie_words(pc__machine *m, const pc_probe_device *x, const pc_probe_device *y)
{
    const pc_probe_device *slow = pcie_rate(y) < pcie_rate(x) ? y : x;
    return isnan(pcie_rate(slow))
               ? "PCIe"
               : pc__keepf(m, "PCIe %.0f.0 x%.0f", slow->pcie_generation_max.number, slow->pcie_width_max.number);
}

pc_way pc_machine_way(pc_machine *machine, int a, int b)
{
    const pc_way unknown = {PC_WAY_UNKNOWN, (double)NAN, "the driver, or the PCI tree, does not tell"};
    PC__NEED_OR(unknown, machine);
    pc__machine *m = (pc__machine *)machine;
    const pc_link link = pc_machine_link(machine, a, b);
    if (link.kind == PC_LINK_UNKNOWN || link.kind == PC_LINK_SELF || !machine->devices[a].nvidia ||
        !machine->devices[b].nvidia)
        return unknown;
    const pc_probe_device *x = &machine->devices[a], *y = &machine->devices[b];
    const pc__level level = pc__p2p_level(m);
    if (link.kind == PC_LINK_NV && level.farthest >= PC_LINK_NV)
        return by_nvlink(m, x, y, link.count);
    const char *pcie = pcie_words(m, x, y);
    const char *no_shared = pc__root_env(m->root, "NCCL_SHM_DISABLE");
    pc_way way = {PC_WAY_HOST, least(pcie_rate(x), pcie_rate(y)) * 1e9, ""};
    if (pc__without_peers(x) || pc__without_peers(y)) {
        way.why = pc__keepf(m, "%s; the driver does not let GeForce cards reach each other", pcie);
    } else if (pc__ncclwise(link.kind) <= level.farthest) {
        way.kind = PC_WAY_P2P;
        way.why = pc__keepf(m, "%s; %s", pcie, level.why);
    } else {
        way.why = pc__keepf(m, "%s; %s", pcie, level.why);
    }
    if (way.kind == PC_WAY_HOST && no_shared && atoi(no_shared))
        way = (pc_way){PC_WAY_NETWORK, (double)NAN, pc__keepf(m, "NCCL_SHM_DISABLE is set; %s", way.why)};
    return way;
}

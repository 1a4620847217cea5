/* ways_all.c: how a collective over all GPUs of a machine goes, and what would make it faster. */
#include "probe/ways.h"

#include <math.h>
#include <stdlib.h>

/* What was found on the way over all pairs. */
typedef struct survey {
    pc__machine *m;
    int index[PC__WAYS_GPUS], count;
    int pairs[PC_WAY_NETWORK + 1]; /* by kind */
    double bandwidth;              /* least of any pair's */
    bool far;                      /* a way crosses host bridges and could be direct: NCCL_P2P_LEVEL */
    bool far_sys;                  /* and NUMA nodes, too */
    int nodes;                     /* NUMA nodes with GPUs */
} survey;

static const pc_probe_device *gpu(const survey *s, int i)
{
    return &s->m->public.devices[s->index[i]];
}

static void look_at_pair(survey *s, int i, int j, const pc__level *level)
{
    const pc_way way = pc_machine_way(&s->m->public, s->index[i], s->index[j]);
    const pc_link_kind kind = pc__ncclwise(pc_machine_link(&s->m->public, s->index[i], s->index[j]).kind);
    s->pairs[way.kind]++;
    if (isnan(way.bandwidth) || way.bandwidth < s->bandwidth)
        s->bandwidth = way.bandwidth;
    const bool could = way.kind >= PC_WAY_HOST && !pc__without_peers(gpu(s, i)) && !pc__without_peers(gpu(s, j));
    s->far |= could && !level->asked;
    s->far_sys |= could && !level->asked && kind == PC_LINK_SYS;
}

static survey look(pc__machine *m)
{
    survey s = {.m = m, .bandwidth = (double)INFINITY};
    bool node[256] = {false};
    const pc__level level = pc__p2p_level(m);
    s.count = pc__ways_gpus(&m->public, s.index, PC__WAYS_GPUS);
    for (int i = 0; i < s.count; i++) {
        const pc_fact *n = &gpu(&s, i)->numa_node;
        if (n->known && n->number >= 0 && n->number < 256 && !node[(int)n->number]) {
            node[(int)n->number] = true;
            s.nodes++;
        }
        for (int j = 0; j < i; j++)
            look_at_pair(&s, i, j, &level);
    }
    return s;
}

static const char *nvls(const survey *s)
{
    const char *set = pc__root_env(s->m->root, "NCCL_NVLS_ENABLE");
    for (int i = 0; i < s->count; i++) {
        const pc_probe_device *d = gpu(s, i);
        if (!pc__behind_switches(d))
            return "not available: it takes NVSwitches";
        if (!d->compute_capability.known || atof(d->compute_capability.text) < 9)
            return "not available: it takes GPUs of compute capability 9.0 (Hopper) or newer";
        if (d->fabric_state.known && strcmp(d->fabric_state.text, "completed") != 0)
            return "not available: the fabric manager is not done (paracord doctor)";
    }
    return set && !strcmp(set, "0") ? "off: NCCL_NVLS_ENABLE=0 is set"
                                    : "available: GPUs and switches have it, and NVSwitches add up on the way "
                                      "(NCCL_DEBUG=INFO says whether NCCL takes it)";
}

static void note_name(void *context, const char *name)
{
    pc__text_add(context, "%s%s", ((pc__text *)context)->length ? " " : "", name);
}

static const char *network(pc__machine *m)
{
    pc__text names = {0};
    pc__root_list(m->root, "sys/class/infiniband", "", note_name, &names);
    const char *words = names.length ? pc__keepf(m, "by InfiniBand or RoCE (%.400s)", names.data)
                                     : "by TCP: no InfiniBand or RoCE device is there";
    m->failed |= names.failed;
    pc__text_free(&names);
    return words;
}

static const char *engine(const pc_machine *machine)
{
    for (int i = 0; i < machine->library_count; i++)
        if (!strcmp(machine->libraries[i].name, "NCCL") && machine->libraries[i].path)
            return "NCCL";
    return "NCCL, which is missing here";
}

static void advise(pc__text *advice, const char *words)
{
    pc__text_add(advice, "%s%s", advice->length ? "\n" : "", words);
}

/* What stands between GPUs that go over PCIe. */
static void advise_between(const survey *s, pc__text *advice)
{
    pc__acs acs = {0};
    char type[16];
    bool iommu = false;
    for (int i = 0; i < s->count; i++) {
        pc__acs_above(s->m, gpu(s, i), &acs);
        iommu |= pc__iommu_translates(s->m, gpu(s, i), type);
    }
    if (acs.bridges[0])
        advise(advice,
               pc__keepf(s->m,
                         "ACS sends what GPUs send to each other up to the CPU, at %s: switch it off (paracord doctor "
                         "says how), or copies are slow, hang or are corrupt",
                         acs.bridges));
    else if (acs.hidden)
        advise(advice, "whether ACS stands between the GPUs is for root to see: sudo paracord topo");
    if (iommu)
        advise(advice,
               pc__keepf(s->m,
                         "the IOMMU translates what GPUs send (groups of type %s): iommu=pt on the kernel's command "
                         "line lets it pass",
                         type));
}

static const char *all_advice(const survey *s)
{
    pc__text advice = {0};
    const char *disabled = pc__root_env(s->m->root, "NCCL_P2P_DISABLE");
    const char *multicast = pc__root_env(s->m->root, "NCCL_NVLS_ENABLE");
    if (disabled && atoi(disabled))
        advise(&advice,
               "NCCL_P2P_DISABLE is set: unset it where paracord doctor finds copies between GPUs to be right");
    if (s->pairs[PC_WAY_NETWORK])
        advise(&advice,
               "NCCL_SHM_DISABLE is set: unset it, so that GPUs meet in the host's memory and not on the network");
    if (multicast && !strcmp(multicast, "0") && !strncmp(nvls(s), "off", 3))
        advise(&advice,
               "NCCL_NVLS_ENABLE=0 is set: without it NVSwitches add up, and large all-reduces take less time");
    if (s->pairs[PC_WAY_P2P] || s->far)
        advise_between(s, &advice);
    if (s->far)
        advise(&advice,
               pc__keepf(s->m,
                         "NCCL_P2P_LEVEL=%s lets them go directly: measure both ways with paracord bench collective, "
                         "after paracord doctor has found copies to be right",
                         s->far_sys ? "SYS" : "PHB"));
    if (s->nodes > 1)
        advise(&advice,
               "bind each rank to the CPUs and the memory of its GPU's NUMA node: paracord launch does, elsewhere "
               "numactl --cpunodebind=N --membind=N");
    const char *words = pc__keep(s->m, advice.data ? advice.data : "");
    s->m->failed |= advice.failed;
    pc__text_free(&advice);
    return words;
}

static const char *why(const survey *s)
{
    const int pairs = s->count * (s->count - 1) / 2;
    const int *n = s->pairs;
    if (n[PC_WAY_NVLINK] == pairs)
        return "each GPU reaches each other one by NVLink";
    if (n[PC_WAY_NVLINK])
        return "a ring over all leaves NVLink somewhere, and is as fast as its slowest link";
    if (n[PC_WAY_P2P] == pairs)
        return "each GPU reaches each other one over PCIe";
    return n[PC_WAY_P2P] ? "some GPUs reach each other only through the host's memory"
                         : "no GPU reaches another one directly";
}

pc_ways pc_machine_ways(pc_machine *machine)
{
    pc_ways ways = {.all = {PC_WAY_UNKNOWN, (double)NAN, ""}, .engine = "", .nvls = "", .network = "", .advice = ""};
    PC__NEED_OR(ways, machine);
    const survey s = look((pc__machine *)machine);
    ways.gpus = s.count;
    if (s.count < 2)
        return ways;
    ways.all.kind = s.pairs[PC_WAY_UNKNOWN]   ? PC_WAY_UNKNOWN
                    : s.pairs[PC_WAY_NETWORK] ? PC_WAY_NETWORK
                    : s.pairs[PC_WAY_HOST]    ? PC_WAY_HOST
                    : s.pairs[PC_WAY_P2P]     ? PC_WAY_P2P
                                              : PC_WAY_NVLINK;
    ways.all.bandwidth = s.bandwidth;
    ways.all.why = ways.all.kind == PC_WAY_UNKNOWN ? "the driver, or the PCI tree, does not tell" : why(&s);
    ways.engine = engine(machine);
    ways.nvls = nvls(&s);
    ways.network = network(s.m);
    ways.advice = all_advice(&s);
    return ways;
}

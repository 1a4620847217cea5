/* cpus.c: cores for each rank of a host, near its GPU. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <dirent.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>

#define CPUS_MOST CPU_SETSIZE
#define NODES_MOST 64
#define CARDS_MOST 64

typedef struct machine {
    int node_of_core[CPUS_MOST], core_of_cpu[CPUS_MOST]; /* a core is named by its first CPU; -1: not allowed */
    int nodes;
    int card_nodes[CARDS_MOST], cards; /* of the GPUs, in the order of their addresses; -1: not known */
} machine;

static bool read_text(char *text, size_t n, const char *format, ...) PC_PRINTF(3, 4);
static bool read_text(char *text, size_t n, const char *format, ...)
{
    char path[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    FILE *file = fopen(path, "re");
    text[0] = 0;
    const bool read = file && fgets(text, (int)n, file);
    if (file)
        fclose(file);
    return read;
}

/* "0-3,8": whether `cpu` is in it. */
static bool is_in(const char *list, int cpu)
{
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        const long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (cpu >= first && cpu <= last)
            return true;
        at = *end == ',' ? end + 1 : end;
    }
    return false;
}

static void read_cores(machine *m, const char *root, const cpu_set_t *allowed)
{
    char text[4096];
    for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
        m->core_of_cpu[cpu] = m->node_of_core[cpu] = -1;
        if (!CPU_ISSET(cpu, allowed))
            continue;
        m->core_of_cpu[cpu] = cpu;
        if (read_text(text, sizeof text, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, cpu))
            for (int first = cpu - 1; first >= 0; first--)
                if (m->core_of_cpu[first] >= 0 && is_in(text, first))
                    m->core_of_cpu[cpu] = m->core_of_cpu[first];
    }
    for (int node = 0; node < NODES_MOST; node++) {
        if (!read_text(text, sizeof text, "%s/devices/system/node/node%d/cpulist", root, node))
            continue;
        bool any = false;
        for (int cpu = 0; cpu < CPUS_MOST; cpu++)
            if (m->core_of_cpu[cpu] == cpu && is_in(text, cpu)) {
                m->node_of_core[cpu] = m->nodes;
                any = true;
            }
        for (int card = 0; card < m->cards; card++) /* they have the system's numbers until now */
            if (m->card_nodes[card] == node)
                m->card_nodes[card] = any ? m->nodes - CARDS_MOST : -1;
        m->nodes += any;
    }
    for (int card = 0; card < m->cards; card++)
        m->card_nodes[card] = m->card_nodes[card] < -1 ? m->card_nodes[card] + CARDS_MOST : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* NVIDIA's display and 3D controllers: what CUDA numbers in this order where they are alike. */
static void read_cards(machine *m, const char *root)
{
    char path[512], text[64], names[CARDS_MOST][32];
    snprintf(path, sizeof path, "%s/bus/pci/devices", root);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder)) && m->cards < CARDS_MOST;)
        if (read_text(text, sizeof text, "%s/%s/vendor", path, entry->d_name) && !strncmp(text, "0x10de", 6) &&
            read_text(text, sizeof text, "%s/%s/class", path, entry->d_name) && !strncmp(text, "0x03", 4))
            snprintf(names[m->cards++], sizeof names[0], "%.31s", entry->d_name);
    if (folder)
        closedir(folder);
    qsort(names, (size_t)m->cards, sizeof names[0], by_name);
    for (int i = 0; i < m->cards; i++)
        m->card_nodes[i] = read_text(text, sizeof text, "%s/%s/numa_node", path, names[i]) ? atoi(text) : -1;
}

/* The card that is rank's: by CUDA_VISIBLE_DEVICES, where that is a list of numbers. -1: none. */
static int card_of(const machine *m, int rank, int ranks, const char *devices)
{
    if (!devices)
        return m->cards >= ranks ? rank : -1;
    for (int i = 0; i < rank; i++) {
        devices = strchr(devices, ',');
        if (!devices)
            return -1;
        devices++;
    }
    const int card = *devices >= '0' && *devices <= '9' ? atoi(devices) : -1;
    return card < m->cards ? card : -1;
}

/* Where its card is; -1: nobody knows. */
static int node_of(const machine *m, int rank, int ranks, const char *devices)
{
    const int card = card_of(m, rank, ranks, devices);
    return card >= 0 ? m->card_nodes[card] : -1;
}

/* The cores of a node, or of all (-1) node by node, in `cores`; how many there are. */
static int list_cores(const machine *m, int node, int cores[CPUS_MOST])
{
    int n = 0;
    for (int at = m->nodes ? 0 : -1; at < m->nodes; at++) /* -1: the system names no nodes */
        for (int core = 0; core < CPUS_MOST; core++)
            if (m->core_of_cpu[core] == core && m->node_of_core[core] == at && (node < 0 || node == at))
                cores[n++] = core;
    return n;
}

/* The place-th of `of` parts of these cores. False: there are fewer than that. */
static bool take_part(const machine *m, int node, int place, int of, cpu_set_t *set)
{
    int cores[CPUS_MOST];
    const int n = list_cores(m, node, cores);
    CPU_ZERO(set);
    for (int i = place * n / of; i < (place + 1) * n / of; i++)
        for (int cpu = cores[i]; cpu < CPUS_MOST; cpu++)
            if (m->core_of_cpu[cpu] == cores[i])
                CPU_SET(cpu, set);
    return n >= of;
}

/* Ranks whose cards' places are all known share the cores of these; others all cores, in the order of nodes. */
static bool divide(const machine *m, int ranks, const char *devices, char **cpus)
{
    bool known = true;
    for (int rank = 0; rank < ranks; rank++)
        known = known && node_of(m, rank, ranks, devices) >= 0;
    for (int rank = 0; rank < ranks; rank++) {
        const int node = known ? node_of(m, rank, ranks, devices) : -1;
        int place = 0, of = 0;
        for (int other = 0; other < ranks; other++)
            if (!known || node_of(m, other, ranks, devices) == node) {
                place += other < rank;
                of++;
            }
        if (!(cpus[rank] = pc__calloc(1, sizeof(cpu_set_t))) ||
            !take_part(m, node, place, of, (cpu_set_t *)(void *)cpus[rank]))
            return false;
    }
    return true;
}

char **pc__cpus_divide(const char *root, int ranks, const void *allowed, size_t bytes, const char *devices)
{
    cpu_set_t set;
    if (ranks == 1) /* nobody to share with */
        return NULL;
    machine *m = pc__calloc(1, sizeof *m);
    char **cpus = pc__calloc((size_t)ranks + 1, sizeof *cpus);
    bool fine = m && cpus;
    if (fine) {
        CPU_ZERO(&set);
        memcpy(&set, allowed, PC__MIN(bytes, sizeof set));
        read_cards(m, root);
        read_cores(m, root, &set);
        fine = divide(m, ranks, devices, cpus);
    }
    pc__free(m);
    if (fine)
        return cpus;
    for (int rank = 0; cpus && rank < ranks; rank++)
        pc__free(cpus[rank]);
    pc__free(cpus);
    return NULL;
}

void pc__cpus_free(char **cpus)
{
    for (int rank = 0; cpus && cpus[rank]; rank++)
        pc__free(cpus[rank]);
    pc__free(cpus);
}
#endif

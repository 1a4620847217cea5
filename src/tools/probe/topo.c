/* topo.c: how two devices are connected: by NVLink as the driver says, else by the PCI tree of /sys. */
#include "probe/probe.h"

/* Links from a to b: straight ones, or as many as both have to switches that join them. */
static int nvlinks_between(const pc_machine *machine, const pc_probe_device *a, const pc_probe_device *b)
{
    int straight = 0, switched[2] = {0, 0};
    const pc_probe_device *ends[2] = {a, b};
    for (int i = 0; i < a->link_count; i++) {
        pc_probe_device *to = a->links[i].to ? pc__device_at((pc__machine *)machine, a->links[i].to) : NULL;
        straight += to == b;
    }
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < ends[e]->link_count; i++)
            switched[e] += !strcmp(ends[e]->links[i].to_kind, "switch");
    return straight ? straight : PC__MIN(switched[0], switched[1]);
}

/* How many parts of two paths are the same, and how many each has. */
static int common_parts(const char *a, const char *b, int parts[2])
{
    int common = 0;
    bool same = true;
    parts[0] = parts[1] = 0;
    for (const char *p = a, *q = b; *p || *q; common += same) {
        size_t n = strcspn(p, "/"), k = strcspn(q, "/");
        same = same && n && n == k && !memcmp(p, q, n);
        parts[0] += n > 0;
        parts[1] += k > 0;
        p += n + (p[n] == '/');
        q += k + (q[k] == '/');
    }
    return common;
}

pc_link pc_machine_link(const pc_machine *machine, int a, int b)
{
    PC__NEED_OR((pc_link){.kind = PC_LINK_UNKNOWN}, machine);
    if (a < 0 || b < 0 || a >= machine->device_count || b >= machine->device_count)
        return (pc_link){PC_LINK_UNKNOWN, 0};
    if (a == b)
        return (pc_link){PC_LINK_SELF, 0};
    const pc_probe_device *x = &machine->devices[a], *y = &machine->devices[b];
    int parts[2], links = nvlinks_between(machine, x, y);
    if (links)
        return (pc_link){PC_LINK_NV, links};
    if (!x->bus_path || !y->bus_path)
        return (pc_link){PC_LINK_UNKNOWN, 0};
    int common = common_parts(x->bus_path, y->bus_path, parts);
    if (common == 0) { /* not even the root complex */
        bool node = x->numa_node.known && y->numa_node.known && x->numa_node.number == y->numa_node.number;
        bool one = !x->numa_node.known && !y->numa_node.known;
        return (pc_link){node || one ? PC_LINK_NODE : PC_LINK_SYS, 0};
    }
    if (common == 1)
        return (pc_link){PC_LINK_PHB, 0};
    /* the bridges of each that the other has not, and a switch's upstream port that both have */
    int apart = (parts[0] - common - 1) + (parts[1] - common - 1);
    return (pc_link){apart <= 2 ? PC_LINK_PIX : PC_LINK_PXB, 0};
}

char *pc_link_text(pc_link link, char text[16])
{
    PC__NEED_OR(NULL, text);
    static const char *const names[] = {
        [PC_LINK_UNKNOWN] = "?", [PC_LINK_SELF] = "X",  [PC_LINK_NV] = "NV",     [PC_LINK_PIX] = "PIX",
        [PC_LINK_PXB] = "PXB",   [PC_LINK_PHB] = "PHB", [PC_LINK_NODE] = "NODE", [PC_LINK_SYS] = "SYS"};
    if (link.kind == PC_LINK_NV)
        snprintf(text, 16, "NV%d", link.count);
    else
        snprintf(text, 16, "%s", (unsigned)link.kind < (unsigned)PC__COUNT(names) ? names[link.kind] : "?");
    return text;
}

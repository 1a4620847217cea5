/* between.c: what stands between GPUs that reach each other over PCIe: IOMMU, access control (ACS), the maker's word. */
#include "probe/between.h"

bool pc__without_peers(const pc_probe_device *d)
{
    int major = 0, minor = 0;
    return d->model.known && strstr(d->model.text, "GeForce") && d->compute_capability.known &&
           sscanf(d->compute_capability.text, "%d.%d", &major, &minor) == 2 && major * 10 + minor >= 75;
}

bool pc__iommu_translates(pc__machine *m, const pc_probe_device *d, char type[16])
{
    char path[128], line[64];
    if (!d->iommu_group.known)
        return false;
    snprintf(path, sizeof path, "sys/kernel/iommu_groups/%.0f/type", d->iommu_group.number);
    if (!pc__root_line(m->root, path, line, sizeof line) || strncmp(line, "DMA", 3))
        return false;
    snprintf(type, 16, "%.15s", line);
    return true;
}

/* Bits 2 and 3 of the control register (request and completion redirect), in extended capability 0x000d. 1 on, 0 off, -1
 * cannot be seen. */
static int redirects(pc__machine *m, const char *bridge)
{
    unsigned char config[PC__CONFIG];
    ssize_t n = pc__pci_config(m, bridge, config);
    if (n <= 256)
        return -1; /* without root the kernel shows 64 bytes */
    for (unsigned at = 0x100, hops = 0; at >= 0x100 && at + 8 <= (unsigned)n && hops < 64; hops++) {
        unsigned head = config[at] | config[at + 1] << 8, next = (config[at + 3] << 8 | config[at + 2]) >> 4;
        if (head == 0x000d)
            return (config[at + 6] & 0x0c) != 0;
        at = next & ~3u;
    }
    return 0;
}

void pc__acs_above(pc__machine *m, const pc_probe_device *d, pc__acs *acs)
{
    char part[64];
    for (const char *at = d->bus_path; at && *at; at += strcspn(at, "/"), at += *at == '/') {
        snprintf(part, sizeof part, "%.*s", (int)PC__MIN(strcspn(at, "/"), sizeof part - 1), at);
        if (!strncmp(part, "pci", 3) || !strcmp(part, d->address.text))
            continue;
        int state = redirects(m, part);
        acs->hidden |= state < 0;
        size_t used = strlen(acs->bridges);
        if (state > 0 && !strstr(acs->bridges, part))
            snprintf(acs->bridges + used, sizeof acs->bridges - used, "%s%s", used ? " " : "", part);
    }
}

char *pc__iommu_words(pc__machine *m, char *words, size_t n)
{
    char line[4096] = "", *rest;
    words[0] = 0;
    if (!pc__root_line(m->root, "proc/cmdline", line, sizeof line))
        return words;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        size_t used = strlen(words);
        if (strstr(word, "iommu") || strstr(word, "acs_override"))
            snprintf(words + used, n - used, "%s%.100s", used ? " " : "", word);
    }
    return words;
}

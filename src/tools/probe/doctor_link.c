/* doctor_link.c: is the PCIe link to each GPU as wide and fast as both of its ends can? The ends say so in their own
 * configuration (LnkCap, LnkSta), in every link on the way to the CPU; the driver's maximum alone hides a slot. */
#include "probe/doctor.h"

#include <stdlib.h>

#define BUSY 50 /* percent: idle GPUs lower their clocks and links to save power */
#define DEVICES "sys/bus/pci/devices"

/* Width and generation of one end: what it can (LnkCap) and what was agreed (LnkSta); 0: unknown. */
typedef struct end {
    int can_width, width, can_generation, generation;
} end;

static int read_number(pc__exam *e, const char *address, const char *file)
{
    char path[160], line[64];
    snprintf(path, sizeof path, DEVICES "/%.32s/%s", address, file);
    int number = pc__root_line(e->m->root, path, line, sizeof line) ? atoi(line) : 0;
    return number > 0 && number <= 32 ? number : 0;
}

/* The capability "PCI Express" (0x10) in the configuration, of which everybody may read 64 bytes and root all. */
static void read_configuration(pc__exam *e, const char *address, end *out)
{
    unsigned char config[PC__CONFIG];
    ssize_t n = pc__pci_config(e->m, address, config);
    unsigned at = n > 64 ? config[0x34] & ~3u : 0;
    for (int hops = 0; at >= 0x40 && at + 20 <= (unsigned)n && hops < 48; hops++, at = config[at + 1] & ~3u) {
        if (config[at] != 0x10)
            continue;
        unsigned can = config[at + 12] | (unsigned)config[at + 13] << 8;
        unsigned now = config[at + 18] | (unsigned)config[at + 19] << 8;
        *out = (end){(int)(can >> 4 & 63), (int)(now >> 4 & 63), (int)(can & 15), (int)(now & 15)};
        return;
    }
}

static end read_end(pc__exam *e, const char *address)
{
    end x = {0};
    read_configuration(e, address, &x);
    int can = read_number(e, address, "max_link_width"), now = read_number(e, address, "current_link_width");
    x.can_width = x.can_width ? x.can_width : can;
    x.width = x.width ? x.width : now;
    return x;
}

/* The link above `below` is narrower than both ends can: by how much it could be wider; 0: it is not. */
static int could_be(const end *below, const end *above)
{
    int can = PC__MIN(below->can_width, above->can_width);
    return below->width > 0 && can > below->width ? can : 0;
}

static void say_narrow(pc__exam *e, pc_finding *f, const char *below, const char *above, const end *b, const end *a)
{
    int can = could_be(b, a);
    pc__how(e, f, "It runs at x%d, and could at x%d: copies take %.0f times as long.", b->width, can,
            (double)can / b->width);
    pc__how(e, f, "PCI configuration: %s can do x%d (LnkCap), the port above it, %s, x%d; they agreed on x%d (LnkSta).",
            below, b->can_width, above, a->can_width, b->width);
}

/* Intel's root ports keep saying x16 when the board parts their lanes between slots: two cards at x8 are no fault. */
static bool parted(pc__exam *e, const char *above, int width, int can)
{
    char sibling[64], path[160], line[64];
    size_t n = strlen(above);
    snprintf(path, sizeof path, DEVICES "/%.32s/vendor", above);
    if (n < 2 || n >= sizeof sibling || !pc__root_line(e->m->root, path, line, sizeof line) || strcmp(line, "0x8086"))
        return false;
    int used = 0;
    for (char function = '0'; function < '8'; function++) {
        snprintf(sibling, sizeof sibling, "%.*s%c", (int)n - 1, above, function);
        if (function != above[n - 1])
            used += read_number(e, sibling, "current_link_width");
    }
    return used && used + width <= can;
}

static bool check_link(pc__exam *e, const pc_probe_device *d, const char *below, const char *above)
{
    end b = read_end(e, below), a = read_end(e, above);
    bool own = !strcmp(below, d->address.text);
    if (own && d->pcie_width.known && (!b.width || d->pcie_width.number < b.width))
        b.width = (int)d->pcie_width.number;
    if (own && !a.can_width && d->pcie_width_max.known) /* the port cannot be seen: the driver saw it */
        a.can_width = (int)d->pcie_width_max.number;
    if (!could_be(&b, &a) || parted(e, above, b.width, could_be(&b, &a)))
        return false;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    pc__what(e, f,
             own ? "The PCIe link of the GPU is narrower than both of its ends can."
                 : "A PCIe link between the GPU and the CPU is narrower than both of its ends can.");
    say_narrow(e, f, below, above, &b, &a);
    pc__fix(e, f,
            "# switch the machine off, seat the card (and its riser) again, clean the contacts, try another slot");
    pc__fix(e, f,
            "# the board's manual says which slots share lanes with others or with M.2; in the firmware's set-up, "
            "bifurcation of the slot must be \"x16\" or \"Auto\"");
    pc__fix(e, f, "sudo lspci -vv -s %s | grep -E 'LnkCap:|LnkSta:' # both ends afterwards; and of %s", below, above);
    return true;
}

static bool check_way(pc__exam *e, const pc_probe_device *d)
{
    char above[64] = "", below[64];
    for (const char *at = d->bus_path; at && *at; at += strcspn(at, "/"), at += *at == '/') {
        snprintf(below, sizeof below, "%.*s", (int)PC__MIN(strcspn(at, "/"), sizeof below - 1), at);
        bool own = !strcmp(below, d->address.text);
        if ((above[0] || own) && check_link(e, d, below, above[0] ? above : "(not visible)"))
            return true;
        snprintf(above, sizeof above, "%s", strncmp(below, "pci", 3) ? below : "");
    }
    return false;
}

void pc__check_pcie(pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (d->asleep || d->integrated)
            continue;
        bool narrow = check_way(e, d);
        bool busy = d->utilization_gpu.known && d->utilization_gpu.number > BUSY;
        bool slow = busy && d->pcie_generation.known && d->pcie_generation_max.known &&
                    d->pcie_generation.number < d->pcie_generation_max.number;
        if (!slow || narrow)
            continue;
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
        pc__what(e, f, "The PCIe link of the GPU is slower than both of its ends can.");
        pc__how(e, f, "It runs at generation %.0f under load, and could at %.0f.", d->pcie_generation.number,
                d->pcie_generation_max.number);
        pc__fix(e, f, "# switch the machine off, seat the card (and its riser) again, try another slot");
        pc__fix(e, f, "# in the firmware's set-up: PCIe speed of the slot \"Auto\", no power saving (ASPM)");
        pc__fix(e, f, "sudo lspci -vv -s %s | grep -E 'LnkCap:|LnkSta:' # afterwards, under load", d->address.text);
    }
}

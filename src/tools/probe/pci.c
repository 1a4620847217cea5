/* pci.c: graphics and accelerator devices from /sys/bus/pci, and the PCIe link of each. */
#include "probe/probe.h"

#include <stdlib.h>

#define DEVICES "sys/bus/pci/devices"

enum { NVIDIA = 0x10de, AMAZON = 0x1d0f };
enum { SYSFS_MAX = 4096 }; /* a file there is a page at most */

/* "0x10de" in a file of one number; -1 when it is not there or is none. */
static long long number_in(pc__machine *m, const char *address, const char *file)
{
    char path[256], line[64], *end;
    snprintf(path, sizeof path, DEVICES "/%s/%s", address, file);
    if (!pc__root_line(m->root, path, line, sizeof line))
        return -1;
    long long number = strtoll(line, &end, 0);
    return end == line || *end ? -1 : number;
}

/* Amazon's Inferentia and Trainium call themselves system peripherals. */
static bool computes(long long class, long long vendor, long long device)
{
    return class >> 16 == 0x03 || class >> 16 == 0x12 || class >> 8 == 0x0b40 ||
           (vendor == AMAZON && device >= 0x7064 && device <= 0x7564);
}

static const char *class_name(long long class)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {
        {0x0300, "VGA compatible controller"}, {0x0301, "XGA compatible controller"}, {0x0302, "3D controller"},
        {0x0380, "display controller"},        {0x1200, "processing accelerator"},    {0x0b40, "co-processor"},
        {0x0880, "system peripheral"}};
    for (int i = 0; i < PC__COUNT(names); i++)
        if (names[i].class == class >> 8)
            return names[i].name;
    return class >> 16 == 0x03 ? "display device" : "accelerator";
}

/* "16.0 GT/s PCIe" as a generation; 0 when it is none. */
static int generation_of(const char *speed)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64, 128};
    double rate = atof(speed);
    for (int i = 0; i < PC__COUNT(rates); i++)
        if (rate > rates[i] * 0.99 && rate < rates[i] * 1.01)
            return i + 1;
    return 0;
}

static void read_generation(pc__machine *m, pc_fact *fact, const char *address, const char *file)
{
    char path[256], line[64];
    snprintf(path, sizeof path, DEVICES "/%s/%s", address, file);
    if (!pc__root_line(m->root, path, line, sizeof line))
        pc__fact_unknown(m, fact, "the kernel does not say (%s/%s)", address, file);
    else if (generation_of(line))
        pc__fact_number(fact, generation_of(line));
    else
        pc__fact_unknown(m, fact, "the kernel says \"%s\"", line);
}

static void read_width(pc__machine *m, pc_fact *fact, const char *address, const char *file)
{
    long long width = number_in(m, address, file);
    if (width > 0 && width <= 32)
        pc__fact_number(fact, (double)width);
    else
        pc__fact_unknown(m, fact, "the kernel does not say (%s/%s)", address, file);
}

static void least_of(pc_fact *fact, const pc_fact *device, const pc_fact *host)
{
    if (device->known && host->known)
        pc__fact_number(fact, PC__MIN(device->number, host->number));
    else
        *fact = *device;
}

bool pc__asleep(pc__machine *m, const pc_probe_device *d)
{
    char path[256], line[32];
    snprintf(path, sizeof path, DEVICES "/%.32s/power/runtime_status", d->address.text);
    return !m->options.wake && pc__root_line(m->root, path, line, sizeof line) && !strcmp(line, "suspended");
}

/* The kernel remembers what a device is; for the state of its link it would have to be switched on. */
static void leave_asleep(pc__machine *m, pc_probe_device *d)
{
    pc_fact *const link[] = {&d->pcie_generation, &d->pcie_generation_device, &d->pcie_generation_max,
                             &d->pcie_width,      &d->pcie_width_device,      &d->pcie_width_max,
                             &d->pcie_width_host, &d->pcie_generation_host};
    for (int i = 0; i < PC__COUNT(link); i++)
        pc__fact_unknown(m, link[i], "the device sleeps to save power, and asking would wake it (--wake)");
}

/* Both ends of the link: the device's and that of the bridge above it. */
static void read_pcie(pc__machine *m, pc_probe_device *d, const char *address, const char *above)
{
    if ((d->asleep = pc__asleep(m, d))) {
        leave_asleep(m, d);
        return;
    }
    read_generation(m, &d->pcie_generation, address, "current_link_speed");
    read_generation(m, &d->pcie_generation_device, address, "max_link_speed");
    read_width(m, &d->pcie_width, address, "current_link_width");
    read_width(m, &d->pcie_width_device, address, "max_link_width");
    if (above) {
        read_generation(m, &d->pcie_generation_host, above, "max_link_speed");
        read_width(m, &d->pcie_width_host, above, "max_link_width");
    } else {
        pc__fact_unknown(m, &d->pcie_generation_host, "no bridge above it is visible (a virtual machine)");
        pc__fact_unknown(m, &d->pcie_width_host, "no bridge above it is visible (a virtual machine)");
    }
    least_of(&d->pcie_generation_max, &d->pcie_generation_device, &d->pcie_generation_host);
    least_of(&d->pcie_width_max, &d->pcie_width_device, &d->pcie_width_host);
}

static void read_number(pc__machine *m, pc_fact *fact, const char *address, const char *file, const char *why)
{
    long long number = number_in(m, address, file);
    if (number >= 0)
        pc__fact_number(fact, (double)number);
    else
        pc__fact_unknown(m, fact, "%s", why);
}

/* Firmware of machines with one node does not say which node a device is at. */
static void only_node(pc__machine *m, pc_fact *node)
{
    char line[64], *end;
    if (node->known || !pc__root_line(m->root, "sys/devices/system/node/online", line, sizeof line))
        return;
    long number = strtol(line, &end, 10);
    if (end != line && !*end && number >= 0)
        pc__fact_number(node, (double)number);
}

/* Lines of "start end flags" in hexadecimal, one for each of its windows. */
static void read_windows(pc__machine *m, pc_probe_device *d, const char *address)
{
    char path[256], text[1024];
    unsigned long long start, end, largest = 0;
    snprintf(path, sizeof path, DEVICES "/%s/resource", address);
    if (pc__root_read(m->root, path, text, sizeof text) < 0)
        return;
    for (char *line = text; line && *line; line = pc__behind(line, '\n'))
        if (sscanf(line, "%llx %llx", &start, &end) == 2 && end > start && end - start + 1 > largest)
            largest = end - start + 1;
    if (largest)
        pc__fact_number(&d->bar_largest, (double)largest);
}

/* The path from its host bridge on, "pci0000:40/..."; in front of that may stand others of like names, as of a device
 * tree: "platform/soc/30000000.pcie/pci0000:40/...". */
static char *from_host_bridge(char *path)
{
    for (char *at = path; at; at = pc__behind(at, '/')) {
        const size_t n = strncmp(at, "pci", 3) ? 0 : strspn(at + 3, "0123456789abcdef");
        if (n >= 4 && n <= 8 && at[3 + n] == ':' && strspn(at + 4 + n, "0123456789abcdef") == 2 &&
            (!at[6 + n] || at[6 + n] == '/'))
            return at;
    }
    return NULL;
}

static void read_links(pc__machine *m, pc_probe_device *d, const char *address)
{
    char path[256], target[512], *name;
    snprintf(path, sizeof path, DEVICES "/%s/driver", address);
    if (pc__root_link(m->root, path, target, sizeof target))
        pc__fact_text(m, &d->module, (name = strrchr(target, '/')) ? name + 1 : target);
    else
        pc__fact_unknown(m, &d->module, "no kernel module has taken the device");
    snprintf(path, sizeof path, DEVICES "/%s/iommu_group", address);
    if (pc__root_link(m->root, path, target, sizeof target) && (name = strrchr(target, '/')))
        pc__fact_number(&d->iommu_group, atoi(name + 1));
    else
        pc__fact_unknown(m, &d->iommu_group, "it is in no IOMMU group");

    const char *above = NULL;
    snprintf(path, sizeof path, DEVICES "/%s", address);
    if (pc__root_link(m->root, path, target, sizeof target) && (name = from_host_bridge(target))) {
        d->bus_path = pc__keep(m, name);
        if ((name = strrchr(target, '/'))) {
            *name = 0;
            name = strrchr(target, '/');
            above = name && strncmp(name + 1, "pci", 3) ? name + 1 : NULL;
        }
    }
    read_pcie(m, d, address, above);
}

static void read_device(pc__machine *m, const char *address, long long class, long long vendor, long long device)
{
    char text[64];
    pc_probe_device *d =
        pc__more(m, &m->public.devices, &m->public.device_count, &m->device_capacity, sizeof *m->public.devices);
    if (!d)
        return;
    d->nvidia = vendor == NVIDIA;
    pc__fact_text(m, &d->address, address);
    pc__fact_text(m, &d->class_name, class_name(class));
    snprintf(text, sizeof text, "%06llx", class);
    pc__fact_text(m, &d->class_id, text);
    if (vendor >= 0) {
        snprintf(text, sizeof text, "%04llx", vendor & 0xffff);
        pc__fact_text(m, &d->vendor_id, text);
    }
    if (device >= 0) {
        snprintf(text, sizeof text, "%04llx", device & 0xffff);
        pc__fact_text(m, &d->device_id, text);
    }
    long long sub_vendor = number_in(m, address, "subsystem_vendor");
    long long sub_device = number_in(m, address, "subsystem_device"), revision = number_in(m, address, "revision");
    if (sub_vendor >= 0 && sub_device >= 0) {
        snprintf(text, sizeof text, "%04llx:%04llx", sub_vendor & 0xffff, sub_device & 0xffff);
        pc__fact_text(m, &d->subsystem_id, text);
    }
    if (revision >= 0) {
        snprintf(text, sizeof text, "%02llx", revision & 0xff);
        pc__fact_text(m, &d->revision, text);
    }
    if (class >> 16 == 0x03)
        read_number(m, &d->boot_display, address, "boot_vga", "the kernel does not say");
    else
        pc__fact_unknown(m, &d->boot_display, "it is no display device");
    read_number(m, &d->irq, address, "irq", "the kernel does not say");
    read_number(m, &d->numa_node, address, "numa_node", "the firmware does not say");
    only_node(m, &d->numa_node);
    snprintf(text, sizeof text, DEVICES "/%s/local_cpulist", address);
    char line[SYSFS_MAX + 1] = ""; /* CPUs one by one, where sockets take turns, are many numbers */
    if (pc__root_line(m->root, text, line, sizeof line))
        pc__fact_text(m, &d->cpu_affinity, line);
    snprintf(text, sizeof text, DEVICES "/%s/power_state", address);
    if (pc__root_line(m->root, text, line, sizeof line))
        pc__fact_text(m, &d->power_state, line);
    read_windows(m, d, address);
    read_links(m, d, address);
    pc_fact *const said[] = {&d->vendor_id,    &d->device_id,   &d->subsystem_id, &d->revision,
                             &d->cpu_affinity, &d->bar_largest, &d->power_state};
    for (int i = 0; i < PC__COUNT(said); i++)
        if (!said[i]->known)
            pc__fact_unknown(m, said[i], "the kernel does not say");
}

static void look(void *context, const char *address)
{
    pc__machine *m = context;
    unsigned domain, bus, slot, function;
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || strlen(address) > 32)
        return;
    long long class = number_in(m, address, "class");
    if (class < 0)
        return;
    if (class >> 16 != 0x03 && class >> 16 != 0x12 && class >> 8 != 0x0b40 && class >> 8 != 0x0680 &&
        class >> 8 != 0x0880)
        return; /* a machine has hundreds of others: one read each is enough */
    long long vendor = number_in(m, address, "vendor"), device = number_in(m, address, "device");
    if (vendor == NVIDIA && class >> 8 == 0x0680)
        m->public.nvswitch_count++;
    if (computes(class, vendor, device))
        read_device(m, address, class, vendor, device);
}

static int by_address(const void *a, const void *b)
{
    const pc_probe_device *x = a, *y = b;
    unsigned p[4] = {0}, q[4] = {0};
    sscanf(x->address.text, "%x:%x:%x.%x", &p[0], &p[1], &p[2], &p[3]);
    sscanf(y->address.text, "%x:%x:%x.%x", &q[0], &q[1], &q[2], &q[3]);
    for (int i = 0; i < 4; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

void pc__probe_pci(pc__machine *m)
{
    pc__root_list(m->root, DEVICES, "", look, m);
    if (m->public.device_count)
        qsort(m->public.devices, (size_t)m->public.device_count, sizeof *m->public.devices, by_address);
}

/* Whole at once: a recording keeps what was read first. */
ssize_t pc__pci_config(pc__machine *m, const char *address, unsigned char config[PC__CONFIG])
{
    char path[128];
    snprintf(path, sizeof path, DEVICES "/%.32s/config", address);
    return pc__root_read(m->root, path, (char *)config, PC__CONFIG);
}

pc_probe_device *pc__device_at(pc__machine *m, const char *address)
{
    unsigned p[4], q[4];
    if (sscanf(address, "%x:%x:%x.%x", &p[0], &p[1], &p[2], &p[3]) != 4)
        return NULL;
    for (int i = 0; i < m->public.device_count; i++)
        if (sscanf(m->public.devices[i].address.text, "%x:%x:%x.%x", &q[0], &q[1], &q[2], &q[3]) == 4 &&
            !memcmp(p, q, sizeof p))
            return &m->public.devices[i];
    return NULL;
}

/* doctor_many.c: what several GPUs need to work together. */
#include "probe/doctor.h"

#include <stdlib.h>

#define SHARED_LEAST (1 << 30)

void pc__check_fabric(pc__exam *e)
{
    const pc_machine *m = e->machine;
    pc__cards waiting = {0};
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (d->fabric_state.known &&
            (!strcmp(d->fabric_state.text, "not started") || !strcmp(d->fabric_state.text, "in progress")))
            pc__add_card(&waiting, d);
    bool code = m->cuda_init.known && !strncmp(m->cuda_init.text, "error 802", 9);
    if (!code && !(waiting.count && m->nvswitch_count))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, waiting.first);
    pc__what(e, f,
             "The GPUs of this machine are joined by NVSwitches, and the fabric manager does not run: CUDA does "
             "not start.");
    if (m->nvswitch_count)
        pc__how(e, f, "There are %d NVSwitches.", m->nvswitch_count);
    if (waiting.count)
        pc__how(e, f, "The fabric of %s is %s.", waiting.list, waiting.first->fabric_state.text);
    if (code)
        pc__how(e, f, "cuInit says: %s.", m->cuda_init.text);
    const char *driver = m->driver.known ? m->driver.text : "";
    int branch = atoi(driver);
    if (e->packages == PC__APT_UBUNTU || e->packages == PC__APT)
        pc__fix(e, f, "sudo apt install nvidia-fabricmanager-%d # of the driver's version, %s", branch, driver);
    else if (e->packages == PC__DNF || e->packages == PC__DNF_FEDORA)
        pc__fix(e, f, "sudo dnf install nvidia-fabric-manager-%s", driver);
    else
        pc__fix(e, f, "# install nvidia-fabricmanager of the driver's version, %s", driver);
    if (!m->nvswitch_count) { /* since Blackwell they are reached by InfiniBand */
        pc__fix(e, f, "%s # the manager of the NVSwitches' own network",
                pc__install(e, "nvlsm", "nvlsm", "nvlsm", "nvlsm"));
        pc__fix(e, f, "sudo modprobe -a mlx5_ib ib_umad # Ubuntu in clouds: linux-modules-extra-$(uname -r) has them");
    }
    pc__fix(e, f, "sudo systemctl enable --now nvidia-fabricmanager");
    pc__fix(e, f, "systemctl status nvidia-fabricmanager # if it does not stay up: the versions differ");
}

/* GeForce cards since Turing are not let copy to each other over PCIe (NVIDIA's driver says "chipset not supported"):
 * their copies go through the host anyway, and nothing between them is wrong. */
static bool without_peers(const pc_probe_device *d)
{
    return d->model.known && strstr(d->model.text, "GeForce") && d->compute_capability.known &&
           pc__version_number(d->compute_capability.text) >= 705;
}

/* Two GPUs between which copies go over PCIe. */
static bool pcie_pair(const pc__exam *e, int *a, int *b)
{
    for (int i = 0; i < e->machine->device_count; i++)
        for (int j = 0; j < i; j++) {
            const pc_probe_device *x = &e->machine->devices[i], *y = &e->machine->devices[j];
            if (!x->nvidia || !y->nvidia || !x->nvml || !y->nvml || without_peers(x) || without_peers(y))
                continue;
            pc_link_kind kind = pc_machine_link(e->machine, i, j).kind;
            if (kind != PC_LINK_NV && kind != PC_LINK_UNKNOWN) {
                *a = j;
                *b = i;
                return true;
            }
        }
    return false;
}

/* The IOMMU translates for this device, rather than letting addresses pass. */
static bool translated(pc__exam *e, const pc_probe_device *d)
{
    char path[128], line[64];
    if (!d->iommu_group.known)
        return false;
    snprintf(path, sizeof path, "sys/kernel/iommu_groups/%.0f/type", d->iommu_group.number);
    return pc__root_line(e->m->root, path, line, sizeof line) && !strncmp(line, "DMA", 3);
}

/* ACS of a bridge sends copies between what is below it up to the CPU: bits 2 and 3 of its control register
 * (request and completion redirect), in extended capability 0x000d. 1 on, 0 off, -1 cannot be seen. */
static int redirects(pc__exam *e, const char *bridge)
{
    unsigned char config[PC__CONFIG];
    ssize_t n = pc__pci_config(e->m, bridge, config);
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

static void check_acs(pc__exam *e, const pc_probe_device *d)
{
    char part[64], seen[512] = "";
    bool hidden = false;
    for (const char *at = d->bus_path; at && *at; at += strcspn(at, "/"), at += *at == '/') {
        snprintf(part, sizeof part, "%.*s", (int)PC__MIN(strcspn(at, "/"), sizeof part - 1), at);
        if (!strncmp(part, "pci", 3) || !strcmp(part, d->address.text))
            continue;
        int state = redirects(e, part);
        hidden |= state < 0;
        if (state > 0)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s", seen[0] ? " " : "", part);
    }
    if (seen[0]) {
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
        pc__what(e, f, "PCIe bridges above the GPU send copies between GPUs through the CPU (ACS).");
        pc__how(e, f, "Access control redirects at: %s.", seen);
        pc__fix(e, f, "for b in %s; do sudo setpci -s $b ECAP_ACS+6.w=0000; done # until the next start", seen);
        pc__fix(e, f, "# for good: switch ACS off in the firmware's set-up");
    } else if (hidden) {
        pc__unseen(e, "whether ACS redirects copies between GPUs needs root (PCI configuration of the bridges)");
    }
}

void pc__check_iommu(pc__exam *e)
{
    int a, b;
    if (e->container || !pcie_pair(e, &a, &b))
        return;
    const pc_probe_device *x = &e->machine->devices[a], *y = &e->machine->devices[b];
    if (translated(e, x) && translated(e, y)) {
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f,
                 "The IOMMU translates what GPUs send to each other: copies between them may hang, be slow, or "
                 "corrupt data.");
        pc__how(e, f, "%s and %s are in IOMMU groups of type DMA, and have no NVLink.", x->address.text,
                y->address.text);
        if (e->packages == PC__DNF || e->packages == PC__DNF_FEDORA) {
            pc__fix(e, f, "sudo grubby --update-kernel=ALL --args=iommu=pt");
        } else {
            pc__fix(e, f, "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub");
            pc__fix(e, f, "%s",
                    e->packages == PC__APT || e->packages == PC__APT_UBUNTU
                        ? "sudo update-grub"
                        : "sudo grub-mkconfig -o /boot/grub/grub.cfg");
        }
        pc__fix(e, f, "sudo reboot");
    }
    check_acs(e, x);
}

void pc__check_peers(pc__exam *e)
{
    char *recorded = NULL, from[32], to[32], state[32];
    const char *lines = e->options->peers;
    if (!e->machine->live)
        lines = recorded = pc__root_text(e->m->root, "answers/peers", 65536, false);
    for (const char *line = lines; line && *line; line = pc__behind(line, '\n')) {
        if (sscanf(line, "%31s %31s %31s", from, to, state) != 3 || strcmp(state, "corrupt"))
            continue;
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f, "A copy from %s to %s arrives as something else: training on both gives wrong networks.", from,
                 to);
        pc__how(e, f, "16 MiB were copied and compared.");
        pc__fix(e, f, "export NCCL_P2P_DISABLE=1 # at once: copies go through the host");
        pc__fix(e, f,
                "# the cause is mostly the IOMMU or ACS: add iommu=pt to the kernel's command line, switch ACS off");
    }
    pc__free(recorded);
}

void pc__check_shared_memory(pc__exam *e)
{
    const pc_fact *size = &e->machine->shared_memory;
    if (pc__gpu_count(e) < 2 || !size->known || size->number >= SHARED_LEAST)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "/dev/shm is too small for NCCL and for loaders with several workers.");
    pc__how(e, f, "It has %.0f MiB; several GPUs need 1 GiB or more.", size->number / (1 << 20));
    if (e->container && !strcmp(e->machine->container.text, "kubernetes"))
        pc__fix(e, f, "# mount an emptyDir with medium: Memory at /dev/shm");
    else if (e->container)
        pc__fix(e, f, "docker run --ipc=host ... # or --shm-size=8g");
    else
        pc__fix(e, f, "sudo mount -o remount,size=8G /dev/shm");
}

/* "0-15,32-47" into bits; false when it is no such list. */
static bool read_cpus(const char *list, unsigned char bits[512])
{
    memset(bits, 0, 512);
    while (list && *list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu >= 0 && cpu <= last && cpu < 4096; cpu++)
            bits[cpu / 8] |= (unsigned char)(1 << cpu % 8);
        list = *end == ',' ? end + 1 : NULL;
    }
    return true;
}

void pc__check_placement(pc__exam *e)
{
    unsigned char mine[512], near[512];
    char *text = pc__root_text(e->m->root, "proc/self/status", 65536, false);
    char *line = text ? strstr(text, "Cpus_allowed_list:") : NULL;
    if (line) {
        line += strlen("Cpus_allowed_list:");
        line += strspn(line, " \t");
        line[strcspn(line, "\n")] = 0;
    }
    bool known = line && read_cpus(line, mine);
    const pc_probe_device *far = NULL;
    int i = 0, close = 0;
    for (const pc_probe_device *d; known && (d = pc__next_gpu(e, &i));) {
        if (!d->nvml || !d->cpu_affinity.known || !read_cpus(d->cpu_affinity.text, near))
            continue;
        bool meet = false, any = false;
        for (int b = 0; b < 512; b++) {
            meet |= (mine[b] & near[b]) != 0;
            any |= near[b] != 0;
        }
        close += meet;
        far = !meet && any ? d : far;
    }
    if (far) { /* a rank of several may well be bound to the CPUs of its own GPU */
        pc_finding *f = pc__found(e, close ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, far);
        pc__what(e, f,
                 "This process may only run on CPUs that are far from the GPU: every copy crosses the link "
                 "between the sockets.");
        pc__how(e, f, "It may use CPUs %s; those near the GPU are %s.", line, far->cpu_affinity.text);
        pc__fix(e, f, "taskset -c %s COMMAND", far->cpu_affinity.text);
        if (far->numa_node.known)
            pc__fix(e, f, "# with its memory: numactl --cpunodebind=%.0f --membind=%.0f COMMAND", far->numa_node.number,
                    far->numa_node.number);
    }
    pc__free(text);
}

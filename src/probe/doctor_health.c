/* doctor_health.c: is each GPU well, as fast as it could be, and free? */
#include "probe/doctor.h"

#include <stdlib.h>

#define BUSY 50 /* percent: idle GPUs lower their clocks and links to save power */

static bool more_than(const pc_fact *fact, double least)
{
    return fact->known && fact->number > least;
}

static const char *index_of(pc__exam *e, const pc_probe_device *d)
{
    return d->index_pci.known ? pc__keepf(e->m, "%.0f", d->index_pci.number) : d->address.text;
}

void pc__check_ecc(pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (more_than(&d->rows_failed, 0)) {
            pc_finding *f = pc__found(e, PC_WRONG, d);
            pc__what(e, f, "The GPU's memory has more broken rows than it can replace.");
            pc__how(e, f, "NVML: replacing memory rows failed.");
            pc__fix(e, f, "# have the card replaced (RMA); take it out of use until then");
        } else if (more_than(&d->rows_pending, 0)) {
            pc_finding *f = pc__found(e, PC_WRONG, d);
            pc__what(e, f, "A broken row of the GPU's memory waits for a reset to be replaced.");
            pc__how(e, f, "NVML: remapped rows pending; uncorrected so far: %.0f.",
                    d->rows_remapped_uncorrected.known ? d->rows_remapped_uncorrected.number : 0);
            pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # nothing may use it", index_of(e, d));
        } else if (more_than(&d->ecc_uncorrected, 0)) {
            pc_finding *f = pc__found(e, PC_WRONG, d);
            pc__what(e, f, "The GPU's memory had errors that ECC could not correct: results since then may be wrong.");
            pc__how(e, f, "NVML counts %.0f since the driver was loaded.", d->ecc_uncorrected.number);
            pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # nothing may use it", index_of(e, d));
            pc__fix(e, f, "# if they come again, have the card replaced");
        }
    }
}

/* The width stays as it was trained; the generation falls on an idle GPU. */
void pc__check_pcie(pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        bool known = d->pcie_width.known && d->pcie_width_max.known;
        bool narrow = known && d->pcie_width.number < d->pcie_width_max.number;
        bool busy = more_than(&d->utilization_gpu, BUSY);
        bool slow = busy && d->pcie_generation.known && d->pcie_generation_max.known &&
                    d->pcie_generation.number < d->pcie_generation_max.number;
        if (!narrow && !slow)
            continue;
        pc_finding *f = pc__found(e, PC_WRONG, d);
        pc__what(e, f, "The PCIe link of the GPU is %s%s%s than both of its ends can.", narrow ? "narrower" : "",
                 narrow && slow ? " and " : "", slow ? "slower" : "");
        if (narrow)
            pc__how(e, f, "It runs at x%.0f, and could at x%.0f: copies take %.0f times as long.", d->pcie_width.number,
                    d->pcie_width_max.number, d->pcie_width_max.number / d->pcie_width.number);
        if (slow)
            pc__how(e, f, "It runs at generation %.0f under load, and could at %.0f.", d->pcie_generation.number,
                    d->pcie_generation_max.number);
        pc__fix(e, f, "# switch the machine off, seat the card (and its riser) again, try another slot");
        pc__fix(e, f, "sudo lspci -vv -s %s | grep -E 'LnkCap|LnkSta' # both ends afterwards", d->address.text);
        if (slow)
            pc__fix(e, f, "# in the firmware's set-up: PCIe speed of the slot \"Auto\", no power saving (ASPM)");
    }
}

void pc__check_throttle(pc__exam *e)
{
    static const struct {
        const char *reason, *what, *fix;
    } causes[] = {
        {"hardware thermal slowdown", "The GPU is too hot and runs at half its clocks or less.",
         "# clean fans and filters, look at the air flow; nvidia-smi -q -d TEMPERATURE"},
        {"software thermal slowdown", "The GPU is near its highest temperature and lowers its clocks.",
         "# clean fans and filters, look at the air flow; nvidia-smi -q -d TEMPERATURE"},
        {"hardware power brake",
         "The power supply asked the GPU to brake: the machine has too little power for its cards.",
         "# look at the power supplies (all plugged in, redundancy), the power cap of the machine's controller, the "
         "cables"},
        {"hardware slowdown", "The hardware holds the GPU's clocks down: heat or power.",
         "# nvidia-smi -q -d TEMPERATURE,POWER says which; look at fans, power cables, power supplies"},
    };
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        int found = -1;
        for (int c = 0; d->clock_reasons.known && found < 0 && c < PC__COUNT(causes); c++)
            if (strstr(d->clock_reasons.text, causes[c].reason))
                found = c;
        if (found >= 0) {
            pc_finding *f = pc__found(e, PC_WRONG, d);
            pc__what(e, f, "%s", causes[found].what);
            pc__how(e, f, "Clocks held down by: %s; now %.0f C, %.0f W.", d->clock_reasons.text,
                    d->temperature.known ? d->temperature.number : 0, d->power.known ? d->power.number : 0);
            pc__fix(e, f, "%s", causes[found].fix);
        } else if (d->power_limit.known && d->power_limit_default.known &&
                   d->power_limit.number < 0.9 * d->power_limit_default.number) {
            pc_finding *f = pc__found(e, PC_ADVICE, d);
            pc__what(e, f, "Somebody lowered the GPU's power limit.");
            pc__how(e, f, "It is %.0f W, and %.0f W by default.", d->power_limit.number, d->power_limit_default.number);
            pc__fix(e, f, "sudo nvidia-smi -i %s -pl %.0f # if that is not meant", index_of(e, d),
                    d->power_limit_default.number);
        }
    }
}

/* What is off the bus answers every read with ones. The first 64 bytes of the configuration need no root. */
static bool answers_ones(pc__exam *e, const pc_probe_device *d)
{
    unsigned char head[17];
    char path[128];
    snprintf(path, sizeof path, "sys/bus/pci/devices/%.32s/config", d->address.text);
    ssize_t n = pc__root_read(e->m->root, path, (char *)head, sizeof head);
    for (ssize_t i = 0; i < n; i++)
        if (head[i] != 0xff)
            return false;
    return n >= 4;
}

/* "Xid (PCI:0000:81:00): 79" for this device */
static bool xid_79(const pc__exam *e, const pc_probe_device *d)
{
    char words[64];
    size_t n = strcspn(d->address.text, ".");
    snprintf(words, sizeof words, "(PCI:%.*s): 79,", (int)PC__MIN(n, (size_t)32), d->address.text);
    return e->log && strstr(e->log, words);
}

/* That the driver does not list a GPU is no sign: a container or a batch system may hide it. */
void pc__check_lost(pc__exam *e)
{
    int i = 0;
    bool named = false;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        bool ones = !d->asleep && answers_ones(e, d), xid = !d->nvml && xid_79(e, d);
        if (!ones && !xid)
            continue;
        named = true;
        pc_finding *f = pc__found(e, PC_WRONG, d);
        pc__what(e, f, "This GPU fell off the bus: PCIe no longer reaches it.");
        if (ones)
            pc__how(e, f, "Its PCI configuration reads as ones (/sys/bus/pci/devices/%s/config).", d->address.text);
        if (xid)
            pc__how(e, f, "The kernel log has Xid 79 for it, and the driver does not list it.");
        pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20 # what came before");
        pc__fix(e, f, "sudo reboot");
        pc__fix(e, f, "# if it is lost again: seat the card again, look at its power cables and heat");
    }
    if (!e->machine->lost || named)
        return;
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "The driver cannot open a GPU that it lists.");
    pc__how(e, f, "NVML: %s.", e->machine->lost);
    pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20 # why");
    pc__fix(e, f, "sudo reboot");
}

/* A process of the user's whose parent is gone, and that is no service. */
static bool orphaned(pc__exam *e, int64_t pid)
{
    char path[64], text[4096], *line;
    int parent = -1;
    snprintf(path, sizeof path, "proc/%lld/status", (long long)pid);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0 || !(line = strstr(text, "PPid:")) ||
        sscanf(line, "PPid: %d", &parent) != 1 || parent != 1)
        return false;
    snprintf(path, sizeof path, "proc/%lld/cgroup", (long long)pid);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0)
        return false;
    return strstr(text, "session-") || (strstr(text, "user.slice") && !strstr(text, ".service\n"));
}

static void say_orphan(pc__exam *e, const pc_probe_device *d, const pc_probe_process *process)
{
    pc_finding *f = pc__found(e, PC_WRONG, d);
    pc__what(e, f, "A process whose parent is gone still holds memory of the GPU: %s.",
             process->name ? process->name : "its name is unknown");
    if (process->memory.known)
        pc__how(e, f, "Process %lld has %.0f MiB.", (long long)process->pid, process->memory.number / (1 << 20));
    pc__how(e, f, "The parent of %lld is process 1, and it belongs to a session, not to a service.",
            (long long)process->pid);
    pc__fix(e, f, "ps -o pid,etime,cmd -p %lld # is it wanted?", (long long)process->pid);
    pc__fix(e, f, "kill %lld", (long long)process->pid);
}

/* Memory without a process that the driver lists: mostly workers of a run that was killed have the file open. */
static void say_hidden(pc__exam *e, const pc_probe_device *d)
{
    pc_finding *f = pc__found(e, PC_WRONG, d);
    char *holders = pc__holders(e), *rest;
    pc__what(e, f, "Memory of the GPU is held, and no process is listed for it.");
    pc__how(e, f, "%.0f MiB are used, and the driver lists no process.", d->memory_used.number / (1 << 20));
    for (char *line = holders ? strtok_r(holders, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        char *name = strchr(line, ' ');
        pc__how(e, f, "Process %.*s (%s) has a GPU open.", (int)strcspn(line, " "), line, name ? name + 1 : "?");
        pc__fix(e, f, "kill %.*s # if it is not wanted: %s", (int)strcspn(line, " "), line, name ? name + 1 : "?");
    }
    pc__fix(e, f, "sudo fuser -v /dev/nvidia* # who has the device open, other users' processes too");
    pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # if nobody has", index_of(e, d));
    pc__free(holders);
}

void pc__check_orphans(pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (e->container) /* the driver's numbers of processes are the host's */
            return;
        for (int p = 0; p < d->process_count; p++)
            if (orphaned(e, d->processes[p].pid))
                say_orphan(e, d, &d->processes[p]);
        if (d->processes_known.known && !d->process_count && more_than(&d->memory_used, 1.5e9) &&
            !more_than(&d->mig, 0))
            say_hidden(e, d);
    }
}

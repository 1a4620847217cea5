/* doctor_between.c: what stands between GPUs that reach each other over PCIe, as a finding and as the cause of one. */
#include "probe/between.h"
#include "probe/doctor.h"

/* Two GPUs between which copies go over PCIe. */
static bool pcie_pair(const pc__exam *e, const pc_probe_device *pair[2])
{
    for (int i = 0; i < e->machine->device_count; i++)
        for (int j = 0; j < i; j++) {
            const pc_probe_device *x = &e->machine->devices[i], *y = &e->machine->devices[j];
            if (!x->nvidia || !y->nvidia || !x->nvml || !y->nvml || pc__without_peers(x) || pc__without_peers(y))
                continue;
            pc_link_kind kind = pc_machine_link(e->machine, i, j).kind;
            if (kind != PC_LINK_NV && kind != PC_LINK_UNKNOWN) {
                pair[0] = y;
                pair[1] = x;
                return true;
            }
        }
    return false;
}

static void fix_iommu(pc__exam *e, pc_finding *f)
{
    if (e->packages == PC__DNF || e->packages == PC__DNF_FEDORA) {
        pc__fix(e, f, "sudo grubby --update-kernel=ALL --args=iommu=pt");
    } else {
        pc__fix(e, f, "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub");
        pc__fix(e, f, "%s",
                e->packages == PC__APT || e->packages == PC__APT_UBUNTU ? "sudo update-grub"
                                                                        : "sudo grub-mkconfig -o /boot/grub/grub.cfg");
    }
    pc__fix(e, f, "sudo reboot");
}

static void fix_acs(pc__exam *e, pc_finding *f, const char *bridges)
{
    pc__fix(e, f, "for b in %s; do sudo setpci -s $b ECAP_ACS+6.w=0000; done # until the next start", bridges);
    pc__fix(e, f, "# for good: switch ACS off in the firmware's set-up");
}

void pc__check_iommu(pc__exam *e)
{
    const pc_probe_device *pair[2];
    char type[16];
    if (e->container || !pcie_pair(e, pair) || pc__found_by(e, "peer-copies") || pc__found_by(e, "all-reduce"))
        return; /* those name it as their cause */
    if (pc__iommu_translates(e->m, pair[0], type) && pc__iommu_translates(e->m, pair[1], type)) {
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f,
                 "The IOMMU translates what GPUs send to each other: copies between them may hang, be slow, or "
                 "corrupt data.");
        pc__how(e, f, "%s and %s are in IOMMU groups of type DMA, and have no NVLink.", pair[0]->address.text,
                pair[1]->address.text);
        fix_iommu(e, f);
    }
    pc__acs acs = {0};
    pc__acs_above(e->m, pair[0], &acs);
    pc__acs_above(e->m, pair[1], &acs);
    if (acs.bridges[0]) {
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f, "PCIe bridges above the GPUs send copies between GPUs through the CPU (ACS).");
        pc__how(e, f, "Access control redirects at: %s.", acs.bridges);
        fix_acs(e, f, acs.bridges);
    } else if (acs.hidden) {
        pc__unseen(e, "whether ACS redirects copies between GPUs needs root (PCI configuration of the bridges)");
    }
}

static void say_iommu(pc__exam *e, pc_finding *f, const pc_probe_device *const pair[2], bool *seen)
{
    char type[16] = "", words[512];
    *seen = pc__iommu_translates(e->m, pair[0], type) || pc__iommu_translates(e->m, pair[1], type);
    pc__iommu_words(e->m, words, sizeof words);
    const char *line = words[0] ? pc__keepf(e->m, "has \"%s\"", words) : "says nothing of it";
    if (*seen)
        pc__how(e, f, "The IOMMU translates their addresses (groups of type %s); the kernel's command line %s.", type,
                line);
    else
        pc__how(e, f, "No translation by the IOMMU is seen; the kernel's command line %s.", line);
}

void pc__say_between(pc__exam *e, pc_finding *f)
{
    const pc_probe_device *pair[2];
    bool iommu;
    if (!e->nvidia)
        return;
    if (!pcie_pair(e, pair)) {
        pc__how(e, f, "None of these GPUs reach each other over PCIe, so neither IOMMU nor ACS is the cause.");
        pc__fix(e, f, "nvidia-smi nvlink -e # errors of the links");
        pc__fix(e, f,
                "sudo dmesg | grep -E 'NVRM|Xid|fabric' | tail -n 20 # what the driver says; then a newer driver");
        return;
    }
    say_iommu(e, f, pair, &iommu);
    pc__acs acs = {0};
    pc__acs_above(e->m, pair[0], &acs);
    pc__acs_above(e->m, pair[1], &acs);
    if (acs.bridges[0])
        pc__how(e, f, "PCIe access control (ACS) redirects what GPUs send to each other at: %s.", acs.bridges);
    else if (acs.hidden)
        pc__how(e, f,
                "Whether ACS redirects it is for root to see: sudo lspci -vvv | grep ACSCtl (ReqRedir+, CmpltRedir+).");
    if (e->container)
        pc__fix(e, f, "# then, on the host:");
    if (iommu)
        fix_iommu(e, f);
    if (acs.bridges[0])
        fix_acs(e, f, acs.bridges);
    if (!iommu && !acs.bridges[0])
        pc__fix(
            e, f,
            "# the cause is mostly ACS or the IOMMU: switch both off in the firmware's set-up (ACS; VT-d, AMD-Vi), or "
            "add iommu=pt to the kernel's command line; else a newer driver");
}

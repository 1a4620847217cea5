/* doctor_gpu.c: a GPU is in the machine, and did not start, or is gone: the cause of what no program finds. */
#include "probe/doctor.h"

#include <stdlib.h>

static bool set_aside(const pc_probe_device *d)
{
    return d->module.known && !strncmp(d->module.text, "vfio", 4);
}

/* A GPU that the driver should have, and has not. A container sees cards that are none of its business. */
static bool left_out(const pc__exam *e, const pc_probe_device *d)
{
    if (d->nvml || d->asleep || d->integrated || set_aside(d))
        return false;
    int i = 0, listed = 0;
    for (const pc_probe_device *o; (o = pc__next_gpu(e, &i));)
        listed += o->nvml;
    return !e->container || !listed;
}

/* What is off the bus answers every read with ones. The first 64 bytes of the configuration need no root. */
static bool answers_ones(pc__exam *e, const pc_probe_device *d)
{
    unsigned char config[PC__CONFIG];
    ssize_t n = pc__pci_config(e->m, d->address.text, config);
    for (ssize_t i = 0; i < n && i < 64; i++)
        if (config[i] != 0xff)
            return false;
    return n >= 4;
}

/* That the driver does not list a GPU is no sign: a container or a batch system may hide it. */
void pc__check_lost(pc__exam *e)
{
    int i = 0;
    bool named = false;
    char said[PC__NVRM_SAID];
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        bool ones = !d->asleep && answers_ones(e, d);
        bool xid = !d->nvml && !set_aside(d) && pc__xid_count(e, d, 79);
        bool told = left_out(e, d) && pc__nvrm_reason(e, d, said) == PC__NVRM_LOST;
        if (!ones && !xid && !told)
            continue;
        named = true;
        pc_finding *f = pc__found(e, PC_WRONG, d);
        pc__what(e, f, "This GPU fell off the bus: PCIe no longer reaches it.");
        if (ones)
            pc__how(e, f, "Its PCI configuration reads as ones (/sys/bus/pci/devices/%s/config).", d->address.text);
        pc__xid_quote(e, f, d);
        if (xid)
            pc__how(e, f, "The driver does not list it.");
        if (told)
            pc__nvrm_quote(e, f, d);
        pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid|AER|pcieport' | tail -n 20 # what came before");
        pc__fix(e, f, "sudo reboot # or, better, switch it off and on");
        if (told && strstr(e->log, "D3cold"))
            pc__fix(e, f,
                    "echo 'options nvidia NVreg_DynamicPowerManagement=0x00' | sudo tee "
                    "/etc/modprobe.d/nvidia-power.conf # it did not come back from being switched off");
        pc__fix(e, f,
                "# if it is lost again: seat the card (and riser) again, look at its power cables, power supply "
                "and heat");
    }
    if (!e->machine->lost || named)
        return;
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "The driver cannot open a GPU that it lists.");
    pc__how(e, f, "NVML: %s.", e->machine->lost);
    pc__nvrm_quote(e, f, NULL);
    pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20 # why");
    pc__fix(e, f, "sudo reboot");
}

/* GPUs of one kind make one finding: the first, and the others' addresses. */
static pc_finding *found(pc__exam *e, pc__nvrm kind, char said[PC__NVRM_SAID])
{
    pc_finding *f = NULL;
    char others[512] = "", one[PC__NVRM_SAID];
    int i = 0, count = 0;
    const pc_probe_device *first = NULL;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (!left_out(e, d) || pc__nvrm_reason(e, d, one) != kind)
            continue;
        size_t used = strlen(others);
        snprintf(others + used, sizeof others - used, "%s%s", used ? ", " : "", d->address.text);
        if (!count++)
            snprintf(said, PC__NVRM_SAID, "%s", one);
        first = first ? first : d;
    }
    if (!first || (kind == PC__NVRM_OTHER && pc__found_by(e, "gpu-refused")))
        return NULL;
    f = pc__found(e, PC_WRONG, first);
    pc__nvrm_quote(e, f, first);
    if (count > 1)
        pc__how(e, f, "So it is with %d GPUs: %s.", count, others);
    return f;
}

void pc__check_power_cables(pc__exam *e)
{
    char said[PC__NVRM_SAID];
    pc_finding *f = found(e, PC__NVRM_POWER, said);
    if (!f)
        return;
    pc__what(e, f, "The GPU has no power: its power cables are not connected, or not all of them.");
    pc__fix(e, f,
            "# switch the machine off; plug every power cable into the card, at the power supply's side too, and "
            "not two of the card's plugs on one cable");
    pc__fix(e, f, "# server cards (Tesla P40, M40, V100) take the plug of a CPU (EPS), not that of a graphics card");
    pc__fix(e, f, "paracord devices # afterwards: the card is listed with its load");
}

/* The memory window of a device by the kernel: registers 0, memory 1. */
static bool without_window(pc__exam *e, const pc_probe_device *d, int wanted)
{
    char path[128], text[1024], *line = text;
    unsigned long long start, end;
    snprintf(path, sizeof path, "sys/bus/pci/devices/%.32s/resource", d->address.text);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0)
        return false;
    for (int i = 0; i < wanted && line; i++)
        line = pc__behind(line, '\n');
    return line && sscanf(line, "%llx %llx", &start, &end) == 2 && !start && !end;
}

void pc__check_windows(pc__exam *e)
{
    char said[PC__NVRM_SAID];
    pc_finding *f = found(e, PC__NVRM_WINDOWS, said);
    int i = 0;
    bool driver = e->machine->driver.known || e->machine->driver_library.known;
    for (const pc_probe_device *d; !f && driver && (d = pc__next_gpu(e, &i));)
        if (left_out(e, d) && !answers_ones(e, d) && (without_window(e, d, 0) || without_window(e, d, 1))) {
            f = pc__found(e, PC_WRONG, d);
            pc__how(e, f, "/sys/bus/pci/devices/%s/resource has no window %d, of its %s.", d->address.text,
                    without_window(e, d, 0) ? 0 : 1, without_window(e, d, 0) ? "registers" : "memory");
        }
    if (!f)
        return;
    pc__what(e, f,
             "The firmware (BIOS) gave the GPU no room in the address space (a BAR of 0 bytes): the driver cannot "
             "reach it.");
    pc__fix(e, f,
            "# in the firmware's set-up: switch \"Above 4G Decoding\" on, then \"Resizable BAR\", switch CSM off");
    pc__fix(e, f,
            "# a virtual machine: give its PCI bus 64-bit space (QEMU: -global q35-pcihost.pci-hole64-size=512G; "
            "ESXi: pciPassthru.use64bitMMIO=TRUE)");
    pc__fix(e, f,
            "# if the set-up has no such switch: update the firmware, or add pci=realloc to the kernel's command "
            "line");
}

static void fix_firmware_package(pc__exam *e, pc_finding *f)
{
    const pc_machine *m = e->machine;
    const char *version = m->driver.known ? m->driver.text : "VERSION";
    pc__fix(e, f, "ls /lib/firmware/nvidia/%s # gsp_*.bin must be there, of the driver's version", version);
    if (e->packages == PC__APT_UBUNTU)
        pc__fix(e, f, "sudo apt install --reinstall 'nvidia-firmware-%d*' && sudo update-initramfs -u", atoi(version));
    else if (e->packages == PC__APT)
        pc__fix(e, f, "sudo apt install --reinstall firmware-nvidia-gsp && sudo update-initramfs -u");
    else if (e->packages == PC__DNF_FEDORA || e->packages == PC__DNF)
        pc__fix(e, f, "sudo dnf reinstall '*nvidia*' && sudo dracut --force");
    else if (e->packages == PC__ZYPPER)
        pc__fix(e, f, "sudo zypper install --force 'nvidia-*-G06*' && sudo dracut --force");
    else
        pc__fix(e, f, "# install the driver's package with its firmware again, and make the initial RAM disk anew");
    pc__fix(e, f, "sudo reboot");
}

void pc__check_firmware(pc__exam *e)
{
    char said[PC__NVRM_SAID];
    pc_finding *f = found(e, PC__NVRM_NO_FIRMWARE, said);
    if (f) {
        pc__what(e, f, "The driver does not find the GPU's firmware (GSP) of its own version, and does not start it.");
        fix_firmware_package(e, f);
    }
    if ((f = found(e, PC__NVRM_FIRMWARE, said))) {
        pc__what(e, f, "The GPU's own processor (GSP) does not start: the driver gives the GPU up.");
        if (said[0])
            pc__how(e, f, "%s", said);
        pc__fix(e, f, "# switch the machine off, take it off the power for a minute, and start it again");
        pc__fix(e, f,
                "# then, in this order: the other kind of kernel modules or another version of the driver, a newer "
                "firmware (BIOS) of the board, power cables and slot, the card in another machine");
        pc__fix(e, f, "sudo nvidia-bug-report.sh # for NVIDIA, if nothing helps");
    }
    if ((f = found(e, PC__NVRM_RESET, said))) {
        pc__what(e, f, "The GPU still runs the firmware of an earlier start, and needs a real reset.");
        pc__fix(e, f, "# switch the machine off (not only reboot), and on again");
        pc__fix(e, f,
                "# a virtual machine: stop it, and reset the card on the host: echo 1 | sudo tee "
                "/sys/bus/pci/devices/ADDRESS/reset");
    }
}

void pc__check_gpu_start(pc__exam *e)
{
    static const struct {
        pc__nvrm kind;
        const char *what, *fix;
    } causes[] = {
        {PC__NVRM_VBIOS, "The driver cannot read or run the GPU's VBIOS (the program in its flash memory).",
         "# a virtual machine: do not hand it a ROM file of another card (romfile=), or hand it the right one\n"
         "# otherwise: start by UEFI without CSM, update the firmware of board and card"},
        {PC__NVRM_INTERRUPT, "The GPU's interrupts do not arrive: the driver gives it up.",
         "# a virtual machine: switch MSI on for the card (NVreg_EnableMSI=1), update the hypervisor\n"
         "# otherwise: take pci=nomsi, noapic and acpi=off from the kernel's command line, update the firmware (BIOS)"},
        {PC__NVRM_MEMORY, "The GPU's memory fails while the driver starts it: the card is suspect.",
         "# switch the machine off and on again; if it comes back, run NVIDIA's field diagnostics and have the card "
         "replaced"},
        {PC__NVRM_OTHER, "The driver is loaded, and could not start this GPU.",
         "# switch the machine off and on again; seat the card again, look at its power cables\n"
         "# then another version of the driver (or its other kind of kernel modules), and a newer firmware (BIOS)\n"
         "sudo nvidia-bug-report.sh # for NVIDIA, if nothing helps"},
    };
    char said[PC__NVRM_SAID];
    for (int i = 0; i < PC__COUNT(causes); i++) {
        pc_finding *f = found(e, causes[i].kind, said);
        if (!f)
            continue;
        pc__what(e, f, "%s", causes[i].what);
        if (said[0])
            pc__how(e, f, "%s", said);
        pc__fix(e, f, "%s", causes[i].fix);
    }
}

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

/* How it is known that a GPU is off the bus; all false: it is not. */
typedef struct signs {
    bool ones, xid, told;
} signs;

/* That the driver does not list a GPU is no sign: a container or a batch system may hide it. */
static signs signs_of(pc__exam *e, const pc_probe_device *d)
{
    char said[PC__NVRM_SAID];
    return (signs){.ones = !d->asleep && answers_ones(e, d),
                   .xid = !d->nvml && !set_aside(d) && pc__xid_count(e, d, 79),
                   .told = left_out(e, d) && pc__nvrm_reason(e, d, said) == PC__NVRM_LOST};
}

static void say_signs(pc__exam *e, pc_finding *f, const pc_probe_device *d, signs s)
{
    if (s.ones)
        pc__how(e, f, "The PCI configuration of %s reads as ones (/sys/bus/pci/devices/%s/config).", d->address.text,
                d->address.text);
    pc__xid_quote(e, f, d);
    if (s.xid)
        pc__how(e, f, "The driver does not list %s.", d->address.text);
    if (s.told)
        pc__nvrm_quote(e, f, d);
}

/* Evidence of each; of many cards it would be a page. */
static pc_finding *find_lost(pc__exam *e, bool *asleep)
{
    pc__cards cards = {0};
    pc_finding *f = NULL;
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        signs s = signs_of(e, d);
        if (!s.ones && !s.xid && !s.told)
            continue;
        f = f ? f : pc__found(e, PC_SEVERITY_WRONG, d);
        *asleep |= s.told && strstr(e->log, "D3cold");
        pc__add_card(&cards, d);
        say_signs(e, f, d, s);
    }
    if (f)
        pc__what(e, f, "This GPU fell off the bus: PCIe no longer reaches it.");
    if (f)
        pc__name_cards(e, f, &cards);
    if (cards.count > 1)
        pc__how(e, f, "What several cards share is suspect: power supply, riser or switch, a bridge above them.");
    return f;
}

void pc__check_lost(pc__exam *e)
{
    bool asleep = false;
    pc_finding *f = find_lost(e, &asleep);
    if (f) {
        pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid|AER|pcieport' | tail -n 20 # what came before");
        pc__fix(e, f, "sudo reboot # or, better, switch it off and on");
        if (asleep)
            pc__fix(e, f,
                    "echo 'options nvidia NVreg_DynamicPowerManagement=0x00' | sudo tee "
                    "/etc/modprobe.d/nvidia-power.conf # it did not come back from being switched off");
        pc__fix(e, f,
                "# if it is lost again: seat the card (and riser) again, look at its power cables, power supply "
                "and heat");
        return;
    }
    if (!e->machine->lost)
        return;
    f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "The driver cannot open a GPU that it lists.");
    pc__how(e, f, "NVML: %s.", e->machine->lost);
    pc__nvrm_quote(e, f, NULL);
    pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20 # why");
    pc__fix(e, f, "sudo reboot");
}

/* GPUs of one kind make one finding. The caller knows its sentence, which may stand for several of them. */
static pc_finding *found(pc__exam *e, pc__nvrm kind, char said[PC__NVRM_SAID], const char *what)
{
    pc__cards cards = {0};
    char one[PC__NVRM_SAID];
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (!left_out(e, d) || pc__nvrm_reason(e, d, one) != kind)
            continue;
        if (!cards.count)
            snprintf(said, PC__NVRM_SAID, "%s", one);
        pc__add_card(&cards, d);
    }
    if (!cards.first || (kind == PC__NVRM_OTHER && pc__found_by(e, "gpu-refused")))
        return NULL;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, cards.first);
    pc__what(e, f, "%s", what);
    pc__name_cards(e, f, &cards);
    pc__nvrm_quote(e, f, cards.first);
    return f;
}

void pc__check_power_cables(pc__exam *e)
{
    char said[PC__NVRM_SAID];
    pc_finding *f =
        found(e, PC__NVRM_POWER, said, "The GPU has no power: its power cables are not connected, or not all of them.");
    if (!f)
        return;
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

static pc_finding *find_without_window(pc__exam *e, const char *what)
{
    pc__cards cards = {0};
    pc_finding *f = NULL;
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        bool registers = without_window(e, d, 0);
        if (!left_out(e, d) || answers_ones(e, d) || (!registers && !without_window(e, d, 1)))
            continue;
        f = f ? f : pc__found(e, PC_SEVERITY_WRONG, d);
        pc__add_card(&cards, d);
        pc__how(e, f, "/sys/bus/pci/devices/%s/resource has no window %d, of its %s.", d->address.text, !registers,
                registers ? "registers" : "memory");
    }
    if (f)
        pc__what(e, f, "%s", what);
    if (f)
        pc__name_cards(e, f, &cards);
    return f;
}

void pc__check_windows(pc__exam *e)
{
    static const char what[] = "The firmware (BIOS) gave the GPU no room in the address space (a BAR of 0 bytes): the "
                               "driver cannot reach it.";
    char said[PC__NVRM_SAID];
    pc_finding *f = found(e, PC__NVRM_WINDOWS, said, what);
    if (!f && (e->machine->driver.known || e->machine->driver_library.known))
        f = find_without_window(e, what);
    if (!f)
        return;
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
    pc_finding *f =
        found(e, PC__NVRM_NO_FIRMWARE, said,
              "The driver does not find the GPU's firmware (GSP) of its own version, and does not start it.");
    if (f)
        fix_firmware_package(e, f);
    if ((f = found(e, PC__NVRM_FIRMWARE, said,
                   "The GPU's own processor (GSP) does not start: the driver gives the GPU up."))) {
        if (said[0])
            pc__how(e, f, "%s", said);
        pc__fix(e, f, "# switch the machine off, take it off the power for a minute, and start it again");
        pc__fix(e, f,
                "# then, in this order: the other kind of kernel modules or another version of the driver, a newer "
                "firmware (BIOS) of the board, power cables and slot, the card in another machine");
        pc__fix(e, f, "sudo nvidia-bug-report.sh # for NVIDIA, if nothing helps");
    }
    if ((f = found(e, PC__NVRM_RESET, said,
                   "The GPU still runs the firmware of an earlier start, and needs a real reset."))) {
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
        pc_finding *f = found(e, causes[i].kind, said, causes[i].what);
        if (!f)
            continue;
        if (said[0])
            pc__how(e, f, "%s", said);
        pc__fix(e, f, "%s", causes[i].fix);
    }
}

/* doctor_driver.c: is there a driver, is it the one in use, do its parts fit together? */
#include "probe/doctor.h"

static bool driver_on_disk(const pc__exam *e)
{
    return e->machine->driver_library.known;
}

bool pc__module_on_disk(const pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (d->modules.known && pc__has_word(d->modules.text, "nvidia"))
            return true;
    return false;
}

/* Systems of rpm-ostree (Silverblue, Kinoite) take packages in a layer, and options of the kernel by a command. */
static void fix_by_layer(pc__exam *e, pc_finding *f)
{
    pc__fix(e, f,
            "sudo rpm-ostree install "
            "https://mirrors.rpmfusion.org/nonfree/fedora/rpmfusion-nonfree-release-$(rpm -E %%fedora).noarch.rpm && "
            "sudo reboot");
    pc__fix(e, f, "sudo rpm-ostree install akmod-nvidia xorg-x11-drv-nvidia-cuda");
    pc__fix(e, f,
            "sudo rpm-ostree kargs --append=rd.driver.blacklist=nouveau,nova_core "
            "--append=modprobe.blacklist=nouveau,nova_core");
    pc__fix(e, f, "sudo reboot");
}

void pc__fix_by_install(pc__exam *e, pc_finding *f)
{
    if (pc__root_exists(e->m->root, "run/ostree-booted")) {
        fix_by_layer(e, f);
        return;
    }
    switch (e->packages) {
    case PC__APT_UBUNTU:
        pc__fix(e, f, "sudo apt update && sudo ubuntu-drivers install --gpgpu");
        pc__fix(e, f, "sudo reboot");
        return;
    case PC__APT:
        pc__fix(e, f, "# in /etc/apt/sources.list: add contrib non-free non-free-firmware to the lines of deb");
        pc__fix(e, f, "sudo apt update && sudo apt install linux-headers-$(uname -r) nvidia-driver");
        break;
    case PC__DNF_FEDORA:
        pc__fix(e, f,
                "sudo dnf install "
                "https://mirrors.rpmfusion.org/nonfree/fedora/rpmfusion-nonfree-release-$(rpm -E %%fedora).noarch.rpm");
        pc__fix(e, f, "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda");
        break;
    case PC__DNF:
        pc__fix(
            e, f,
            "sudo dnf config-manager --add-repo "
            "https://developer.download.nvidia.com/compute/cuda/repos/rhel$(rpm -E %%rhel)/x86_64/cuda-rhel$(rpm -E "
            "%%rhel).repo");
        pc__fix(e, f, "sudo dnf install kernel-devel-$(uname -r) nvidia-open");
        break;
    case PC__ZYPPER:
        pc__fix(e, f, "sudo zypper install nvidia-open-driver-G06-signed-kmp-default nvidia-compute-utils-G06");
        break;
    case PC__PACMAN:
        pc__fix(e, f, "sudo pacman -S nvidia-open nvidia-utils");
        break;
    case PC__NIX:
        pc__fix(e, f, "# in /etc/nixos/configuration.nix, with nixpkgs.config.allowUnfree = true:");
        pc__fix(e, f, "# hardware.graphics.enable = true; services.xserver.videoDrivers = [ \"nvidia\" ];");
        pc__fix(e, f, "# hardware.nvidia.open = true; (false for GPUs older than Turing)");
        pc__fix(e, f, "sudo nixos-rebuild boot");
        break;
    default:
        pc__fix(e, f, "# install NVIDIA's driver: https://www.nvidia.com/drivers");
        break;
    }
    pc__fix(e, f, "sudo reboot");
}

/* Every GPU of the machine is for virtual machines. */
static bool all_set_aside(const pc__exam *e)
{
    int i = 0, aside = 0, gpus = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i)); gpus++)
        aside += d->module.known && !strncmp(d->module.text, "vfio", 4);
    return gpus && aside == gpus;
}

void pc__check_driver_missing(pc__exam *e)
{
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (!d || e->container || e->machine->driver.known)
        return;
    if (all_set_aside(e)) {
        pc_finding *f = pc__found(e, PC_SEVERITY_ADVICE, d);
        pc__what(e, f, "The GPU is set aside for virtual machines.");
        pc__how(e, f, "The module %s has it.", d->module.text);
        pc__fix(e, f, "# nothing, if that is meant; otherwise take its id out of the vfio-pci options");
        return;
    }
    if (driver_on_disk(e) || pc__module_on_disk(e))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    bool nouveau = d->module.known && !strcmp(d->module.text, "nouveau");
    pc__what(e, f, "There is an NVIDIA GPU, but no NVIDIA driver%s.",
             nouveau ? ": the kernel's own module nouveau holds it, which shows pictures and cannot compute with CUDA"
                     : "");
    pc__how(e, f, "%s at %s; no /proc/driver/nvidia, no libnvidia-ml.so, no module nvidia for kernel %s.",
            d->model.known ? d->model.text : "An NVIDIA device", d->address.text,
            e->machine->kernel.known ? e->machine->kernel.text : "(unknown)");
    pc__fix_by_install(e, f);
    if (nouveau)
        pc__fix(e, f, "# the driver's package keeps nouveau away; paracord doctor says if it does not");
}

void pc__check_nouveau(pc__exam *e)
{
    int i = 0;
    pc__cards cards = {0};
    if (!driver_on_disk(e) && !pc__module_on_disk(e)) /* driver-missing says it all */
        return;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (d->module.known && !strcmp(d->module.text, "nouveau"))
            pc__add_card(&cards, d);
    if (!cards.count || pc__found_by(e, "module-blocked") || pc__found_by(e, "kernel-replaced"))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, cards.first);
    pc__what(e, f, "The kernel's own module nouveau holds the GPU: it shows pictures, and cannot compute with CUDA.");
    pc__name_cards(e, f, &cards);
    pc__how(e, f, "/sys/bus/pci/devices/%s/driver is nouveau.", cards.first->address.text);
    if (e->packages == PC__NIX) { /* the driver's own options keep nouveau away, from the next start on */
        pc__fix(e, f, "sudo nixos-rebuild boot && sudo reboot");
        return;
    }
    pc__fix(e, f,
            "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
            "/etc/modprobe.d/blacklist-nouveau.conf");
    pc__fix(e, f, "%s", pc__initramfs(e));
    pc__fix(e, f, "sudo reboot");
}

void pc__check_version_mismatch(pc__exam *e)
{
    const pc_machine *m = e->machine;
    bool nvml_says = !m->nvml.known && m->nvml.why && strstr(m->nvml.why, "mismatch");
    bool files_say = m->driver.known && m->driver_library.known && strcmp(m->driver.text, m->driver_library.text);
    if ((!nvml_says && !(files_say && !m->nvml.known)) || pc__found_by(e, "driver-mixed"))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f,
             "The driver in the kernel and its libraries are of different versions: it was upgraded, and the old "
             "module is still loaded.");
    pc__how(e, f, "The kernel has %s (/proc/driver/nvidia/version), the libraries are %s.",
            m->driver.known ? m->driver.text : "another one",
            m->driver_library.known ? m->driver_library.text : "of another version");
    if (nvml_says)
        pc__how(e, f, "NVML says: %s", m->nvml.why);
    pc__quote_words(e, f, "API mismatch");
    if (e->container) {
        pc__fix(e, f, "# the host's driver changed while the container ran: start the container again");
        return;
    }
    pc__fix(e, f, "sudo reboot");
    if (e->packages == PC__NIX) {
        pc__fix(e, f, "# nothing less: modprobe takes modules of the generation that was booted, not of the new one");
        return;
    }
    if (pc__kernel_gone(e)) {
        pc__fix(e, f, "# nothing less: a newer kernel was installed too, and the running one's modules are gone");
        return;
    }
    pc__fix(e, f, "# or, with nothing using the GPUs (sudo fuser -v /dev/nvidia* shows who does):");
    pc__fix(e, f, "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && sudo modprobe nvidia");
    if (e->packages == PC__APT_UBUNTU)
        pc__fix(e, f, "# so that it does not come back by itself: sudo apt-mark hold 'nvidia-*'");
}

void pc__check_driver_too_old(pc__exam *e)
{
    const pc_machine *m = e->machine;
    if (!m->cuda_driver.known || !m->toolkit_count)
        return;
    /* programs of one major version run on any driver of it, but for code that the driver must compile (PTX) */
    const pc_probe_toolkit *used = &m->toolkits[0];
    for (int i = m->toolkit_count; i-- > 0;)
        if (m->toolkits[i].on_path)
            used = &m->toolkits[i];
    int driver = pc__version_number(m->cuda_driver.text), toolkit = pc__version_number(used->version);
    if (driver < 0 || toolkit <= driver)
        return;
    bool major = toolkit / 100 > driver / 100;
    pc_finding *f = pc__found(e, major ? PC_SEVERITY_WRONG : PC_SEVERITY_ADVICE, NULL);
    if (major)
        pc__what(e, f, "The driver is too old for the CUDA toolkit: programs that it builds do not start.");
    else
        pc__what(e, f,
                 "The driver is a little older than the CUDA toolkit: programs run, but PTX of that toolkit does not.");
    pc__how(e, f, "Three versions: the driver is %s; the newest CUDA that it runs is %s; the toolkit in %s is CUDA %s.",
            m->driver.known ? m->driver.text : "unknown", m->cuda_driver.text, used->path, used->version);
    pc__fix_by_install(e, f);
    pc__fix(e, f, "# or build with a toolkit of CUDA %s or older", m->cuda_driver.text);
}

void pc__check_driver_hangs(pc__exam *e)
{
    int i = 0, asleep = 0, gpus = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i)); gpus++)
        asleep += d->asleep;
    if (gpus && asleep == gpus)
        pc__unseen(e, "the GPU sleeps to save power; --wake asks it, and wakes it");
    if (!e->machine->hung)
        return;
    const char *at = strstr(e->machine->hung, " for ");
    const pc_probe_device *d = at ? pc__device_at(e->m, at + strlen(" for ")) : NULL;
    static const char *const causes[] = {"gpu-lost", "power-cables", "address-space", "gsp-firmware", "gpu-start"};
    for (int c = 0; c < PC__COUNT(causes); c++)
        if (pc__found_by(e, causes[c]))
            return; /* whose consequence it is */
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    if (strstr(e->machine->hung, "(which ended")) {
        pc__what(e, f,
                 "The driver's library crashes: it is damaged or mixed with another version, or a GPU is failing.");
        pc__how(e, f, "It was in the call %s.", e->machine->hung);
    } else {
        pc__what(e, f, "The driver does not answer: a GPU hangs, or is failing.");
        pc__how(e, f, "The call %s did not come back in time.", e->machine->hung);
    }
    if (d)
        pc__xid_quote(e, f, d);
    pc__nvrm_quote(e, f, d);
    pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20");
    pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # nothing may use it",
            d ? pc__index_of(e, d) : "N # the GPU that the log names;");
    pc__fix(e, f, "sudo reboot # if the reset hangs too");
}

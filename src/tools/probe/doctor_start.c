/* doctor_start.c: a driver is there: why does it not take the GPU, or cannot be asked? */
#include "probe/doctor.h"

#include <stdlib.h>

#define LAST_CLOSED 580  /* the last branch whose proprietary modules drive GPUs older than Turing */
#define BLACKWELL 0x2900 /* device ids from here on are of GPUs that only the open modules drive */

/* "NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: ..." is the line before what is said of it, of each card again. */
static pc__cards told_of(pc__exam *e, const char *sentence)
{
    static const char words[] = "The NVIDIA GPU ";
    char address[48];
    pc__cards cards = {0};
    for (const char *at = strstr(e->log, words), *next; at; at = next) {
        at += sizeof words - 1;
        next = strstr(at, words);
        size_t n = next ? (size_t)(next - at) : strlen(at);
        snprintf(address, sizeof address, "%.*s", (int)PC__MIN(strcspn(at, " \n"), sizeof address - 1), at);
        const pc_probe_device *d = pc__device_at(e->m, address);
        if (d && memmem(at, n, sentence, strlen(sentence)) && !strstr(cards.list, d->address.text))
            pc__add_card(&cards, d);
    }
    return cards;
}

static int branch_of(const pc__exam *e)
{
    const pc_machine *m = e->machine;
    return m->driver.known ? atoi(m->driver.text) : m->driver_library.known ? atoi(m->driver_library.text) : 580;
}

/* Arch itself has the newest branch alone; older ones are its users' packages. */
static void fix_legacy_arch(pc__exam *e, pc_finding *f, int branch)
{
    pc__fix(e, f, "sudo pacman -S --needed base-devel linux-headers # or those of linux-lts, linux-zen");
    pc__fix(e, f, "# from the AUR, in place of nvidia-open and nvidia-utils:");
    pc__fix(e, f, "yay -S nvidia-%dxx-dkms nvidia-%dxx-utils # or another helper of the AUR", branch, branch);
}

static void fix_flavour(pc__exam *e, pc_finding *f, bool open)
{
    int branch = branch_of(e);
    switch (e->packages) {
    case PC__APT_UBUNTU:
        pc__fix(e, f, "sudo apt install nvidia-driver-%d%s", open ? branch : PC__MIN(branch, LAST_CLOSED),
                open ? "-open" : "");
        break;
    case PC__APT:
        pc__fix(e, f, "sudo apt install %s", open ? "nvidia-open-kernel-dkms" : "nvidia-kernel-dkms");
        break;
    case PC__DNF_FEDORA:
        pc__fix(e, f, "echo '%%_with%s_kmod_nvidia_open 1' | sudo tee /etc/rpm/macros.nvidia-kmod", open ? "" : "out");
        pc__fix(e, f, "sudo akmods --force --rebuild");
        break;
    case PC__DNF:
        pc__fix(e, f, "sudo dnf install %s --allowerasing", open ? "nvidia-open" : "cuda-drivers");
        break;
    case PC__ZYPPER:
        pc__fix(e, f, "sudo zypper install nvidia-%sdriver-G06-kmp-default", open ? "open-" : "");
        break;
    case PC__PACMAN:
        if (open)
            pc__fix(e, f, "sudo pacman -S nvidia-open");
        else
            fix_legacy_arch(e, f, LAST_CLOSED);
        break;
    default:
        pc__fix(e, f, "# install NVIDIA's driver with its %s kernel modules", open ? "open" : "proprietary");
    }
    pc__fix(e, f, "sudo reboot");
}

/* The kernel log cannot be read: the GPU's generation and the flavour of the modules say it too. */
static void refused_by_generation(pc__exam *e)
{
    const pc_machine *m = e->machine;
    pc__cards cards = {0};
    int i = 0;
    if (!m->driver_kind.known || strcmp(m->driver_kind.text, "proprietary") || !m->nvml.known)
        return;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (!d->nvml && d->device_id.known && strtol(d->device_id.text, NULL, 16) >= BLACKWELL)
            pc__add_card(&cards, d);
    if (!cards.count)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, cards.first);
    pc__what(e, f, "This GPU works with NVIDIA's open kernel modules only, and the proprietary ones are loaded.");
    pc__name_cards(e, f, &cards);
    pc__how(e, f, "Its device id is %s (Blackwell or newer), and the driver %s does not list it.",
            cards.first->device_id.text, m->driver.known ? m->driver.text : "");
    fix_flavour(e, f, true);
}

/* A GPU that the driver should have, and has not; the log may be of a driver that is gone since. */
static bool any_left_out(const pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (!d->nvml && !(d->module.known && !strncmp(d->module.text, "vfio", 4)))
            return true;
    return false;
}

void pc__check_refused(pc__exam *e)
{
    const pc_machine *m = e->machine;
    static const char open[] = "requires use of the NVIDIA open kernel modules", closed[] = "is not supported by open",
                      unknown[] = "installed in this system is not supported by the";
    const char *at = NULL, *log = e->log;
    char branch[16] = "";
    pc__cards cards;
    int i = 0;
    pc_severity others = PC_SEVERITY_WRONG; /* an old card beside one that computes may be there for the screen */
    if (e->container || !any_left_out(e))
        return;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        others = d->nvml ? PC_SEVERITY_ADVICE : others;
    if (!log) {
        refused_by_generation(e);
    } else if (strstr(log, open)) {
        cards = told_of(e, open);
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, cards.first);
        pc__what(e, f,
                 "This GPU works with NVIDIA's open kernel modules only, and the proprietary ones are installed.");
        pc__name_cards(e, f, &cards);
        pc__how(e, f, "The kernel log: \"installed in this system requires use of the NVIDIA open kernel modules\".");
        fix_flavour(e, f, true);
    } else if (strstr(log, closed)) {
        cards = told_of(e, closed);
        pc_finding *f = pc__found(e, others, cards.first);
        pc__what(e, f, "NVIDIA's open kernel modules do not drive this GPU: it is older than Turing.");
        pc__name_cards(e, f, &cards);
        pc__how(e, f,
                "The kernel log: \"not supported by open nvidia.ko because it does not include the required GPU "
                "System Processor (GSP)\".");
        fix_flavour(e, f, false);
    } else if ((at = strstr(log, "supported through the NVIDIA "))) {
        pc_finding *f = pc__found(e, others, NULL);
        sscanf(at, "supported through the NVIDIA %15s", branch);
        pc__what(e, f, "The installed driver no longer drives a GPU of this machine: it takes the older branch %s.",
                 branch);
        pc__how(e, f, "The kernel log: \"supported through the NVIDIA %s Legacy drivers\".", branch);
        if (e->packages == PC__APT_UBUNTU)
            pc__fix(e, f, "sudo apt install nvidia-driver-%d", atoi(branch));
        else if (e->packages == PC__PACMAN)
            fix_legacy_arch(e, f, atoi(branch));
        else
            pc__fix(e, f, "# install NVIDIA's driver of the branch %s: https://www.nvidia.com/drivers", branch);
        pc__fix(e, f, "sudo reboot");
    } else if (strstr(log, unknown)) {
        cards = told_of(e, unknown);
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, cards.first);
        pc__what(e, f, "The installed driver does not know this GPU: it is older than the GPU, or not for it.");
        pc__name_cards(e, f, &cards);
        pc__how(e, f,
                "The kernel log: \"installed in this system is not supported by the NVIDIA driver release\"; the "
                "driver is %s.",
                m->driver.known           ? m->driver.text
                : m->driver_library.known ? m->driver_library.text
                                          : "of an unknown version");
        pc__fix_by_install(e, f);
    }
}

/* Where libraries lie that the loader does not look at: NixOS has them there. */
#define NIX_LIBRARIES "run/opengl-driver/lib"

void pc__check_driver_libraries(pc__exam *e)
{
    const pc_machine *m = e->machine;
    bool nvml = !m->nvml.known && m->nvml.why && strstr(m->nvml.why, "cannot open shared object");
    bool cuda = !m->cuda_init.known && m->cuda_init.why && strstr(m->cuda_init.why, "cannot open shared object");
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (d && d->integrated) /* most releases have no NVML for them */
        nvml = false;
    if (pc__root_exists(e->m->root, "sys/module/nvidia_vgpu_vfio")) /* a host of virtual GPUs computes nothing itself */
        cuda = false;
    if (!m->driver.known || m->hung || !(nvml || cuda) || pc__any_wrong(e))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    const char *missing = nvml && cuda ? "libnvidia-ml.so.1 and libcuda.so.1"
                          : nvml       ? "libnvidia-ml.so.1"
                                       : "libcuda.so.1";
    pc__what(e, f, "The driver runs in the kernel, and its libraries are not found: %s.", missing);
    pc__how(e, f, "The loader: %s.", nvml ? m->nvml.why : m->cuda_init.why);
    const char *wanted = pc__root_env(e->m->root, "NVIDIA_DRIVER_CAPABILITIES");
    if (e->container) {
        pc__how(e, f, "NVIDIA_DRIVER_CAPABILITIES is %s%s%s.", wanted ? "\"" : "not set", wanted ? wanted : "",
                wanted ? "\"" : "");
        pc__fix(e, f, "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...");
    } else if (pc__root_exists(e->m->root, NIX_LIBRARIES "/libcuda.so.1")) {
        pc__how(e, f, "They are in /" NIX_LIBRARIES ", where programs of NixOS look.");
        pc__fix(e, f, "export LD_LIBRARY_PATH=/" NIX_LIBRARIES ":$LD_LIBRARY_PATH");
    } else if (e->packages == PC__APT_UBUNTU) {
        pc__fix(e, f, "sudo apt install nvidia-utils-%d libnvidia-compute-%d", branch_of(e), branch_of(e));
    } else if (e->packages == PC__DNF_FEDORA) {
        pc__fix(e, f, "sudo dnf install xorg-x11-drv-nvidia-cuda");
    } else {
        pc__fix(
            e, f, "%s",
            pc__install(e, "libnvidia-ml1 libcuda1", "nvidia-driver-cuda", "nvidia-compute-utils-G06", "nvidia-utils"));
    }
}

/* NVML is there, and does not start for a reason that no check before this one knows. */
void pc__check_nvml_start(pc__exam *e)
{
    const pc_machine *m = e->machine;
    int code;
    const char *at = !m->nvml.known && m->nvml.why ? strstr(m->nvml.why, "nvmlInit_v2: error ") : NULL;
    if (!at || sscanf(at, "nvmlInit_v2: error %d", &code) != 1 || pc__any_wrong(e))
        return;
    if (code == 9 && !m->driver.known) /* no driver is loaded: others say why, or it is meant */
        return;
    const char *kind = e->container ? m->container.text : "";
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__how(e, f, "NVML says: %s", m->nvml.why);
    if ((code == 4 || code == 999) && pc__is_lxc(e)) {
        pc__what(e, f, "This container (LXC) has the GPU's device files, and its rules for devices do not allow them.");
        pc__fix_lxc(e, f);
    } else if (code == 4 && e->container) {
        pc__what(e, f, "This container may not use the GPU's device files, though their modes allow it.");
        pc__how(e, f, "Mostly it is SELinux, or the container's list of devices (cgroups).");
        pc__fix(e, f, "%s run --security-opt=label=disable ...", strcmp(kind, "podman") ? "docker" : "podman");
        pc__fix(e, f, "# or, on the host, for good: sudo setsebool -P container_use_devices on");
    } else if (code == 999 && e->container) {
        pc__what(e, f,
                 "This container may not use the GPU's device files any more, or never might: its list of devices "
                 "(cgroups) lacks them.");
        pc__how(e, f,
                "If it worked before, the host's systemd renewed the list, as systemctl daemon-reload does with the "
                "cgroup driver systemd.");
        pc__fix(e, f,
                "# start the container again, with the device files named: docker run --gpus all "
                "--device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia0 ...");
        pc__fix(
            e, f,
            "# if it never worked: no-cgroups must be false in the host's /etc/nvidia-container-runtime/config.toml "
            "(true is for rootless containers), then: sudo systemctl restart docker");
    } else {
        pc__what(e, f, "The driver's management library (NVML) does not start.");
        pc__nvrm_quote(e, f, NULL);
        pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|nvidia|apparmor|avc' | tail -n 20 # why");
    }
}

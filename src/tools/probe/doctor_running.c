/* doctor_running.c: has the kernel that runs the driver's module, and is it loaded? */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

static const char *running(const pc__exam *e)
{
    return e->machine->kernel.known ? e->machine->kernel.text : "(unknown)";
}

static bool in_kernel(pc__exam *e, const char *kernel, const char *name)
{
    char path[320];
    snprintf(path, sizeof path, "lib/modules/%.200s%s%s", kernel, name[0] ? "/" : "", name);
    return pc__root_exists(e->m->root, path);
}

/* Something may be left of a folder whose kernel was removed: a module of DKMS, a link to headers. */
static bool is_whole(pc__exam *e, const char *kernel)
{
    return in_kernel(e, kernel, "modules.alias") || in_kernel(e, kernel, "kernel") || in_kernel(e, kernel, "vmlinuz");
}

static bool has_driver(pc__exam *e, const char *kernel)
{
    char path[320];
    snprintf(path, sizeof path, "lib/modules/%.200s/modules.alias", kernel);
    char *lines = pc__root_lines(e->m->root, path, "alias pci:v000010DE");
    bool found = lines && strstr(lines, " nvidia\n");
    pc__free(lines);
    return found;
}

/* "6.15.9-zen1-1-zen" and "6.16.1-zen1-1-zen" differ in digits alone. */
static bool of_one_flavour(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !isalpha((unsigned char)*a))
            a++;
        while (*b && !isalpha((unsigned char)*b))
            b++;
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* What else is in /lib/modules, the newest of each kind. */
typedef struct others {
    pc__exam *e;
    const char *any, *newer, *with_driver;
} others;

static void look_at(void *context, const char *name)
{
    others *o = context;
    const char *kernel = running(o->e);
    if (!strcmp(name, kernel) || !is_whole(o->e, name))
        return;
    bool driver = has_driver(o->e, name);
    name = pc__keep(o->e->m, name);
    o->any = name;
    o->with_driver = driver ? name : o->with_driver;
    if (driver && strverscmp(name, kernel) > 0 && of_one_flavour(name, kernel))
        o->newer = name;
}

static others find_others(pc__exam *e)
{
    others o = {.e = e};
    pc__root_list(e->m->root, "lib/modules", "", look_at, &o);
    return o;
}

/* NixOS has none there, nor has a system whose kernels have no modules. */
bool pc__kernel_gone(pc__exam *e)
{
    return e->machine->kernel.known && !e->container && !is_whole(e, running(e)) && find_others(e).any;
}

/* CUDA needs a second module, which is loaded when the first program starts. */
static bool lacks_uvm(pc__exam *e)
{
    bool works = e->machine->cuda_init.known && !strcmp(e->machine->cuda_init.text, "works");
    bool mismatch = !e->machine->nvml.known && e->machine->nvml.why && strstr(e->machine->nvml.why, "mismatch");
    return !works && !mismatch && !pc__root_exists(e->m->root, "sys/module/nvidia_uvm") &&
           !pc__root_exists(e->m->root, "dev/nvidia-uvm");
}

void pc__check_kernel_replaced(pc__exam *e)
{
    const pc_machine *m = e->machine;
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (!d || e->container || !m->kernel.known || e->wsl || pc__found_by(e, "module-blocked"))
        return;
    if (m->driver.known ? !lacks_uvm(e) : !m->driver_library.known)
        return;
    bool gone = pc__kernel_gone(e);
    others o = find_others(e);
    if (!gone && (m->driver.known || pc__module_on_disk(e) || !o.newer))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f,
             "A newer kernel was installed, and the old one still runs: modules that are not loaded yet, the NVIDIA "
             "driver's among them, cannot be loaded.");
    if (gone)
        pc__how(e, f, "The running kernel is %s, and its modules are gone: /lib/modules/%s is missing or empty.",
                m->kernel.text, m->kernel.text);
    else
        pc__how(e, f, "The running kernel is %s, and /lib/modules/%s has no module nvidia.", m->kernel.text,
                m->kernel.text);
    pc__how(e, f, "/lib/modules has %s%s.", o.newer ? o.newer : o.any, o.newer ? ", with the driver's module" : "");
    if (m->driver.known)
        pc__how(e, f, "The module nvidia is loaded, and nvidia_uvm, which CUDA needs, is not.");
    pc__fix(e, f, "sudo reboot");
}

static void fix_missing_module(pc__exam *e, pc_finding *f)
{
    int compiled = 0;
    const char *kernel = running(e), *version = e->machine->driver_library.known ? e->machine->driver_library.text : "";
    pc__root_list(e->m->root, "var/lib/dkms/nvidia", "", pc__count_name, &compiled);
    pc__root_list(e->m->root, "usr/src", "nvidia-", pc__count_name, &compiled);
    switch (e->packages) {
    case PC__APT_UBUNTU:
        if (compiled) {
            pc__fix(e, f, "sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall");
            break;
        }
        pc__fix(e, f, "# the package that ubuntu-drivers list --gpgpu names, for instance:");
        pc__fix(e, f,
                "sudo apt install linux-modules-nvidia-%d-$(uname -r) # or -%d-open-$(uname -r), or nvidia-dkms-%d",
                atoi(version), atoi(version), atoi(version));
        break;
    case PC__APT:
        pc__fix(e, f, "sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall");
        break;
    case PC__DNF_FEDORA:
        pc__fix(e, f, "sudo akmods --force");
        break;
    case PC__PACMAN:
        pc__fix(e, f, "sudo pacman -S nvidia-open-dkms linux%s-headers # compiles it for every kernel with headers",
                strstr(kernel, "-zen")        ? "-zen"
                : strstr(kernel, "-lts")      ? "-lts"
                : strstr(kernel, "-hardened") ? "-hardened"
                                              : "");
        break;
    case PC__NIX:
        pc__fix(e, f, "sudo nixos-rebuild boot && sudo reboot");
        return;
    default:
        pc__fix(e, f, "sudo dkms autoinstall");
    }
    pc__fix(e, f, "sudo modprobe nvidia");
}

static void say_no_module(pc__exam *e, pc_finding *f)
{
    const char *kernel = running(e);
    others o = find_others(e);
    pc__what(e, f,
             "The NVIDIA driver's libraries are installed, and there is no kernel module for the running kernel.");
    if (!in_kernel(e, kernel, "")) {
        pc__how(e, f, "libnvidia-ml.so.%s is there; there is no /lib/modules/%s.", e->machine->driver_library.text,
                kernel);
        pc__fix(e, f, "# install the modules of this kernel, or start one whose modules are there (ls /lib/modules):");
    } else if (!in_kernel(e, kernel, "modules.alias")) {
        pc__how(e, f,
                "libnvidia-ml.so.%s is there; there is no /lib/modules/%s/modules.alias, by which modules are found.",
                e->machine->driver_library.text, kernel);
        pc__fix(e, f, "sudo depmod -a && sudo modprobe nvidia");
        pc__fix(e, f, "# if that finds no module:");
    } else {
        pc__how(e, f, "libnvidia-ml.so.%s is there; /lib/modules/%s/modules.alias has no nvidia.",
                e->machine->driver_library.text, kernel);
    }
    if (o.with_driver) {
        pc__how(e, f, "Kernel %s has it.", o.with_driver);
        pc__fix(e, f, "# either start kernel %s, or give this one the module too:", o.with_driver);
    }
    fix_missing_module(e, f);
}

void pc__check_module_unloaded(pc__exam *e)
{
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (!d || d->module.known || e->container || e->machine->driver.known)
        return;
    if (pc__any_wrong(e)) /* a check before this one knows why */
        return;
    if (!pc__module_on_disk(e) && !e->machine->driver_library.known)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    if (!pc__module_on_disk(e)) {
        say_no_module(e, f);
        return;
    }
    pc__what(e, f, "The NVIDIA driver is installed, and its kernel module is not loaded.");
    pc__how(e, f, "modules.alias of kernel %s has nvidia for %s; no module has the device.", e->machine->kernel.text,
            d->address.text);
    pc__fix(e, f, "sudo modprobe nvidia");
    pc__fix(e, f, "sudo dmesg | grep -iE 'nvidia|nvrm' | tail # if that fails: why");
}

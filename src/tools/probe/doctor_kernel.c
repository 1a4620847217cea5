/* doctor_kernel.c: what keeps the driver's module out of the kernel. */
#include "probe/doctor.h"

void pc__check_secure_boot(pc__exam *e)
{
    const pc_machine *m = e->machine;
    if (!e->nvidia || e->container || m->driver.known || !m->secure_boot.known || m->secure_boot.number == 0)
        return;
    const char *refused = NULL;
    static const char *const words[] = {"Key was rejected", "key is rejected", "unsigned module is rejected",
                                        "unsigned module loading"};
    for (int i = 0; e->log && !refused && i < PC__COUNT(words); i++)
        refused = strstr(e->log, words[i]) ? words[i] : NULL;
    if (!refused && e->log)
        return; /* the log can be read, and nothing was refused */
    if (!refused) {
        int i = 0;
        const pc_probe_device *d = pc__next_gpu(e, &i);
        if (d->modules.known && strstr(d->modules.text, "nvidia"))
            pc__unseen(e, "Secure Boot is on and the module is not loaded; the kernel log, which says whether it was "
                          "refused, needs root");
        return;
    }
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "Secure Boot is on, and the kernel refuses the NVIDIA module: nobody it trusts has signed it.");
    pc__how(e, f, "The kernel log has \"%s\"; the module is not loaded.", refused);
    if (e->packages == PC__APT_UBUNTU) {
        pc__fix(e, f, "sudo update-secureboot-policy --enroll-key # choose a password");
        pc__fix(e, f, "sudo reboot # choose Enroll MOK on the blue screen, type the password");
        pc__fix(e, f, "# or use modules that Ubuntu has signed: sudo ubuntu-drivers install");
    } else if (e->packages == PC__APT) {
        pc__fix(e, f, "sudo mokutil --import /var/lib/dkms/mok.pub # choose a password");
        pc__fix(e, f, "sudo reboot # choose Enroll MOK on the blue screen, type the password");
    } else if (e->packages == PC__DNF_FEDORA) {
        pc__fix(e, f, "sudo kmodgenca -a && sudo mokutil --import /etc/pki/akmods/certs/public_key.der");
        pc__fix(e, f, "sudo akmods --force --rebuild && sudo reboot # then Enroll MOK on the blue screen");
    } else {
        pc__fix(e, f, "sudo mokutil --import KEY.der # the public half of the key that signs your modules");
        pc__fix(e, f, "sudo reboot # choose Enroll MOK on the blue screen");
    }
    pc__fix(e, f, "# or switch Secure Boot off in the firmware's set-up");
}

void pc__check_headers(pc__exam *e)
{
    char path[512];
    int versions = 0;
    if (!e->nvidia || e->container || e->machine->driver.known || !e->machine->kernel.known ||
        pc__found_by(e, "kernel-replaced"))
        return;
    const char *kernel = e->machine->kernel.text;
    pc__root_list(e->m->root, "var/lib/dkms/nvidia", "", pc__count_name, &versions);
    pc__root_list(e->m->root, "usr/src", "nvidia-", pc__count_name, &versions);
    if (!versions)
        return; /* no driver that is compiled on the machine */
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (d->modules.known && strstr(d->modules.text, "nvidia"))
        return; /* it was compiled */
    snprintf(path, sizeof path, "lib/modules/%.200s/build", kernel);
    if (pc__root_exists(e->m->root, path))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "The NVIDIA module was not compiled for the running kernel: the kernel's headers are missing.");
    pc__how(e, f, "DKMS has the driver (/var/lib/dkms/nvidia or /usr/src), and there is no /%s.", path);
    pc__fix(e, f, "%s",
            pc__install(e, "linux-headers-$(uname -r)", "kernel-devel-$(uname -r)", "kernel-default-devel",
                        "linux-headers"));
    pc__fix(e, f, "sudo dkms autoinstall && sudo modprobe nvidia");
}

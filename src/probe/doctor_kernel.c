/* doctor_kernel.c: what keeps the driver out of the kernel, and what the kernel's log says of GPUs. */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

#define SHOWN_MAX 4 /* Xids of a log that are told one by one */

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
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
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

static void count_one(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
}

void pc__check_headers(pc__exam *e)
{
    char path[512];
    int versions = 0;
    if (!e->nvidia || e->container || e->machine->driver.known || !e->machine->kernel.known)
        return;
    const char *kernel = e->machine->kernel.text;
    pc__root_list(e->m->root, "var/lib/dkms/nvidia", "", count_one, &versions);
    pc__root_list(e->m->root, "usr/src", "nvidia-", count_one, &versions);
    if (!versions)
        return; /* no driver that is compiled on the machine */
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    if (d->modules.known && strstr(d->modules.text, "nvidia"))
        return; /* it was compiled */
    snprintf(path, sizeof path, "lib/modules/%.200s/build", kernel);
    if (pc__root_exists(e->m->root, path))
        return;
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "The NVIDIA module was not compiled for the running kernel: the kernel's headers are missing.");
    pc__how(e, f, "DKMS has the driver (/var/lib/dkms/nvidia or /usr/src), and there is no /%s.", path);
    pc__fix(e, f, "%s",
            pc__install(e, "linux-headers-$(uname -r)", "kernel-devel-$(uname -r)", "kernel-default-devel",
                        "linux-headers"));
    pc__fix(e, f, "sudo dkms autoinstall && sudo modprobe nvidia");
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=..." */
static const char *next_xid(const char *log, char address[48], int *xid)
{
    for (const char *at = log; (at = strstr(at, "Xid (PCI:")); at++) {
        const char *begin = at + strlen("Xid (PCI:"), *end = memchr(begin, ')', strnlen(begin, 40));
        if (!end || strncmp(end, "): ", 3) || !isdigit((unsigned char)end[3]))
            continue;
        *xid = atoi(end + 3); /* sscanf would measure the rest of the log each time */
        snprintf(address, 48, "%.*s%s", (int)(end - begin), begin,
                 memchr(begin, '.', (size_t)(end - begin)) ? "" : ".0");
        return end;
    }
    return NULL;
}

typedef struct seen {
    int xid, count;
    char address[48];
} seen;

void pc__check_xid(pc__exam *e)
{
    seen all[32];
    int count = 0, xid;
    char address[48];
    if (!e->nvidia)
        return;
    if (!e->log) {
        pc__unseen(e, "the kernel log needs root, or membership in the group adm or systemd-journal");
        return;
    }
    for (const char *at = e->log; (at = next_xid(at, address, &xid));) {
        int i = 0;
        while (i < count && (all[i].xid != xid || strcmp(all[i].address, address)))
            i++;
        if (i == PC__COUNT(all))
            continue;
        if (i == count) {
            all[count] = (seen){.xid = xid};
            snprintf(all[count++].address, sizeof address, "%s", address);
        }
        all[i].count++;
    }
    int shown = 0;
    for (int i = 0; i < count && shown < SHOWN_MAX; i++) {
        bool harmless = false;
        const char *advice = NULL, *meaning = pc__xid_meaning(all[i].xid, &harmless, &advice);
        pc_finding *f = pc__found(e, harmless ? PC_ADVICE : PC_WRONG, pc__device_at(e->m, all[i].address));
        pc__what(e, f, "The driver reported Xid %d: %s.", all[i].xid,
                 meaning ? meaning : "an error that NVIDIA's list of Xids explains");
        pc__how(e, f, "The kernel log has it %d time%s, for %s.", all[i].count, all[i].count > 1 ? "s" : "",
                all[i].address);
        pc__fix(e, f, "%s", advice ? advice : "# https://docs.nvidia.com/deploy/xid-errors");
        shown++;
    }
}

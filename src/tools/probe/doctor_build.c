/* doctor_build.c: was the driver's kernel module compiled, and for the kernel that runs? */
#include "probe/doctor.h"

#include <stdio.h>

enum { LOG_MAX = 1 << 20, LINE_MAX = 400 };

static bool has_error(const char *line)
{
    static const char *const words[] = {
        "error:",       "Error!",        "fatal error", "ERROR:", "not found",  "is missing",
        "No such file", "No space left", "undefined!",  "Killed", "cannot stat"};
    for (int i = 0; i < PC__COUNT(words); i++)
        if (strstr(line, words[i]) && !strstr(line, "CONFTEST"))
            return true;
    return false;
}

typedef struct build {
    pc__exam *e;
    const char *parent; /* "var/lib/dkms/nvidia" */
    char path[256], error[LINE_MAX];
} build;

/* The first error of a log of compiling for the running kernel. */
static void read_log(build *b, const char *path)
{
    char line[LINE_MAX], whole[64];
    const char *kernel = b->e->machine->kernel.text;
    char *text = b->error[0] ? NULL : pc__root_whole(b->e->m->root, path, LOG_MAX, false);
    snprintf(whole, sizeof whole, "%.60s", kernel);
    bool ours = text && (strstr(text, whole) || strstr(path, whole));
    for (const char *at = ours ? text : NULL; at && *at && !b->error[0];) {
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)PC__MIN(n, sizeof line - 1), at);
        at += n + (at[n] == '\n');
        if (!has_error(line))
            continue;
        snprintf(b->path, sizeof b->path, "%s", path);
        snprintf(b->error, sizeof b->error, "%s", line + strspn(line, " \t"));
        pc__root_note(b->e->m->root, path, pc__keepf(b->e->m, "for kernel %s\n%s\n", kernel, line));
    }
    pc__free(text);
}

static void look_version(void *context, const char *version)
{
    build *b = context;
    char path[256];
    if (!strcmp(version, "original_module") || !strncmp(version, "kernel-", 7))
        return;
    snprintf(path, sizeof path, "%s/%.60s/build/make.log", b->parent, version);
    read_log(b, path);
    snprintf(path, sizeof path, "%s/%.60s/%.60s/%s/log/make.log", b->parent, version, b->e->machine->kernel.text,
             "x86_64");
    read_log(b, path);
}

static void look_akmods(void *context, const char *name)
{
    build *b = context;
    char path[256];
    snprintf(path, sizeof path, "var/cache/akmods/nvidia/%.180s", name);
    if (strstr(name, ".failed.log"))
        read_log(b, path);
}

/* What to do about an error of the compiler, by its words. */
static void fix_build(pc__exam *e, pc_finding *f, const char *error)
{
    if (strstr(error, "unrecognized command")) {
        pc__how(e, f, "The kernel was compiled by a newer gcc than the one that compiles the module.");
        pc__fix(e, f, "cat /proc/version # which gcc made the kernel: install that one, gcc-12 for instance");
        pc__fix(e, f, "%s", pc__install(e, "gcc-12", "gcc", "gcc", "gcc"));
    } else if (strstr(error, "No space left")) {
        pc__fix(e, f, "df -h /var /boot /tmp # make room");
    } else if (strstr(error, "Module.symvers") || strstr(error, "Kernel headers") || strstr(error, "No such file")) {
        pc__fix(e, f, "%s # the headers are not complete",
                pc__install(e, "--reinstall linux-headers-$(uname -r)", "kernel-devel-$(uname -r)",
                            "kernel-default-devel", "linux-headers"));
    } else if (strstr(error, "not found") && (strstr(error, "cc:") || strstr(error, "gcc") || strstr(error, "make"))) {
        pc__fix(e, f, "%s", pc__install(e, "build-essential", "gcc make", "gcc make", "base-devel"));
    } else {
        pc__how(e, f, "Mostly the kernel is newer than what this version of the driver was written for.");
        pc__fix(e, f, "# install a newer version of the driver, or start the kernel before this one:");
        pc__fix_by_install(e, f);
        return;
    }
    pc__fix(e, f, "%s", e->packages == PC__DNF_FEDORA ? "sudo akmods --force" : "sudo dkms autoinstall");
    pc__fix(e, f, "sudo modprobe nvidia");
}

void pc__check_build(pc__exam *e)
{
    static const char *const parents[] = {"var/lib/dkms/nvidia", "var/lib/dkms/nvidia-open",
                                          "var/lib/dkms/nvidia-current", "var/lib/dkms/nvidia-current-open",
                                          "var/lib/dkms/nvidia-srv"};
    build b = {.e = e};
    if (!e->nvidia || e->container || e->machine->driver.known || !e->machine->kernel.known || pc__any_wrong(e) ||
        pc__module_on_disk(e))
        return;
    for (int i = 0; i < PC__COUNT(parents); i++) {
        b.parent = parents[i];
        pc__root_list(e->m->root, parents[i], "", look_version, &b);
    }
    pc__root_list(e->m->root, "var/cache/akmods/nvidia", "", look_akmods, &b);
    if (!b.error[0])
        read_log(&b, "var/log/nvidia-installer.log");
    if (!b.error[0])
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "The NVIDIA module could not be compiled for the running kernel, %s.", e->machine->kernel.text);
    pc__how(e, f, "/%s, its first error: \"%s\"", b.path, b.error);
    fix_build(e, f, b.error);
}

void pc__check_symbols(pc__exam *e)
{
    static const char *const words[] = {"disagrees about version of symbol", "version magic '", "Invalid module format",
                                        "Unknown symbol"};
    char line[PC__LOG_LINE], first[PC__LOG_LINE] = "", module[64] = "";
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    bool uvm = e->machine->driver.known;
    for (const char *at = e->log; d && at && *at && !e->container && !first[0];) {
        at = pc__log_line(at, line);
        for (int w = 0; w < PC__COUNT(words); w++)
            if (strstr(line, words[w]) && sscanf(line, "%63[a-z0-9_]:", module) == 1 && !strncmp(module, "nvidia", 6))
                snprintf(first, sizeof first, "%s", line);
        bool peripheral = !strcmp(module, "nvidia_peermem") || !strcmp(module, "nvidia_fs");
        if (peripheral ||
            (uvm && (strcmp(module, "nvidia_uvm") || pc__root_exists(e->m->root, "sys/module/nvidia_uvm"))))
            first[0] = 0;
    }
    if (!first[0])
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    pc__what(e, f, "The kernel refuses the module %s: it was compiled for another kernel than the one that runs.",
             module);
    pc__how(e, f, "The kernel log: \"%s\"", first);
    pc__how(e, f, "The running kernel is %s.", e->machine->kernel.known ? e->machine->kernel.text : "unknown");
    if (e->packages == PC__DNF_FEDORA)
        pc__fix(e, f, "sudo akmods --force --rebuild");
    else if (e->packages == PC__APT_UBUNTU || e->packages == PC__APT)
        pc__fix(e, f, "sudo apt install --reinstall linux-headers-$(uname -r) && dkms status nvidia");
    if (e->packages != PC__DNF_FEDORA) {
        pc__fix(e, f, "# for each VERSION that dkms status names:");
        pc__fix(e, f,
                "sudo dkms remove nvidia/VERSION -k $(uname -r); sudo dkms install nvidia/VERSION -k $(uname -r)");
        pc__fix(e, f,
                "ls /lib/modules/$(uname -r)/updates/dkms /lib/modules/$(uname -r)/kernel/drivers/video # no old "
                "nvidia.ko may lie beside it");
    }
    pc__fix(e, f, "sudo reboot");
}

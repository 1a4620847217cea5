/* The doctor on machines that are broken in known ways, and on healthy ones: each recording in golden/machines says in
 * its comments where it is from ("# source: ..."), what was broken ("# broken: ecc xid") and what is worth a word
 * ("# advice: ..."); that is found, in that order and once each, and nothing else. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <paracord-tools/doctor.h>
#include <paracord/memory.h>

#include "support.h"

#define MACHINES PC_TEST_GOLDEN "/machines"

typedef struct expected {
    char broken[256], advice[256], job[32], source[256];
} expected;

static void read_comment(const char *line, const char *key, char *value, size_t n)
{
    if (!strncmp(line, key, strlen(key)))
        snprintf(value, n, "%.*s", (int)strcspn(line + strlen(key), "\n"), line + strlen(key));
}

static expected read_expected(const char *path)
{
    expected e = {0};
    char line[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        read_comment(line, "# broken: ", e.broken, sizeof e.broken);
        read_comment(line, "# advice: ", e.advice, sizeof e.advice);
        read_comment(line, "# for: ", e.job, sizeof e.job);
        read_comment(line, "# source: ", e.source, sizeof e.source);
    }
    fclose(file);
    return e;
}

/* The names of what was found of this severity, with blanks between. */
static const char *found_of(const pc_diagnosis *d, pc_severity severity, char text[512])
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < d->finding_count; i++)
        if (d->findings[i].severity == severity)
            used += (size_t)snprintf(text + used, 512 - used, "%s%s", used ? " " : "", d->findings[i].check);
    return text;
}

typedef struct score {
    int machines, broken, advised, diagnoses;
} score;

static int words_of(const char *text)
{
    int words = 0;
    for (const char *c = text; *c; c++)
        words += *c != ' ' && (c == text || c[-1] == ' ');
    return words;
}

static void check_machine(const char *name, score *all)
{
    char path[1024];
    snprintf(path, sizeof path, MACHINES "/%s", name);
    expected e = read_expected(path);
    pc_machine *m = pc_machine(.root = path);
    assert_not_null_ok(m);
    pc_job job = !strcmp(e.job, "build") ? PC_JOB_BUILD : !strcmp(e.job, "train") ? PC_JOB_TRAIN : PC_JOB_ANY;
    pc_diagnosis *d = pc_diagnosis(m, .job = job);
    assert_not_null_ok(d);
    for (int i = 0; i < d->finding_count; i++) {
        const pc_finding *f = &d->findings[i];
        if (!f->what[0] || !f->how[0] || !f->fix[0])
            fail_msg("%s: %s does not say what, how and what to do", name, f->check);
    }
    char text[512];
    if (strcmp(found_of(d, PC_SEVERITY_WRONG, text), e.broken))
        fail_msg("%s: wrong is \"%s\", and was found \"%s\"", name, e.broken, text);
    if (strcmp(found_of(d, PC_SEVERITY_ADVICE, text), e.advice))
        fail_msg("%s: advice is \"%s\", and was found \"%s\"", name, e.advice, text);
    if (!e.source[0])
        fail_msg("%s does not name its public source (# source: ...)", name);
    assert_int_equal(d->wrong_count > 0, e.broken[0] != 0);
    if (!strncmp(name, "healthy", 7))
        assert_int_equal(d->finding_count, 0);
    all->machines++;
    all->broken += e.broken[0] != 0;
    all->advised += !e.broken[0] && e.advice[0];
    all->diagnoses += words_of(e.broken) + words_of(e.advice);
    pc_diagnosis_free(d);
    pc_machine_free(m);
}

static void every_machine_is_diagnosed(void **state)
{
    (void)state;
    DIR *folder = opendir(MACHINES);
    assert_non_null(folder);
    score all = {0};
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            check_machine(entry->d_name, &all);
    closedir(folder);
    print_message(
        "%d machines: %d broken and %d that could be better, all %d diagnoses right; no alarm on %d healthy ones\n",
        all.machines, all.broken, all.advised, all.diagnoses, all.machines - all.broken - all.advised);
    assert_in_range(all.broken, 90, 1000);
    assert_int_equal(pc_allocator_live(), 0);
}

static void found_on(const char *path, const char *record, pc_job job, char *text, size_t n)
{
    pc_machine *m = pc_machine(.root = path, .recording = record != NULL);
    assert_not_null_ok(m);
    pc_diagnosis *d = pc_diagnosis(m, .job = job);
    assert_not_null_ok(d);
    text[0] = 0;
    for (int i = 0; i < d->finding_count; i++)
        snprintf(text + strlen(text), n - strlen(text), "%s %s %s\n%s\n", d->findings[i].check,
                 d->findings[i].device ? d->findings[i].device : "", d->findings[i].how, d->findings[i].fix);
    pc_diagnosis_free(d);
    if (record)
        assert_int_equal(pc_machine_record(m, record), PC_OK);
    pc_machine_free(m);
}

/* What the checks read is in a recording: users' machines come as those. */
static void recordings_hold_what_the_checks_read(void **state)
{
    (void)state;
    static char before[32768], after[32768];
    char path[1024], record[] = "/tmp/paracord-doctor-XXXXXX";
    int file = mkstemp(record);
    assert_true(file >= 0);
    close(file);
    DIR *folder = opendir(MACHINES);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, MACHINES "/%s", entry->d_name);
        found_on(path, record, PC_JOB_ANY, before, sizeof before);
        found_on(record, NULL, PC_JOB_ANY, after, sizeof after);
        if (strcmp(before, after))
            fail_msg("%s: found\n%s\nand on a recording of it\n%s", entry->d_name, before, after);
    }
    closedir(folder);
    unlink(record);
}

/* Each check has a machine on which it finds something: otherwise nobody would notice if it found nothing any more. */
static void every_check_has_its_machine(void **state)
{
    (void)state;
    const char *name, *title;
    int jobs;
    for (int i = 0; pc_doctor_check(i, &name, &title, &jobs); i++) {
        char line[256];
        snprintf(line, sizeof line, "grep -qE '^# (broken|advice): (.* )?%s( |$)' " MACHINES "/*.txt", name);
        if (system(line))
            fail_msg("no machine in golden/machines is broken in a way that %s finds", name);
        assert_true(title[0] && jobs);
    }
}

static const pc_finding *first(const char *machine, pc_machine **m, pc_diagnosis **d)
{
    char path[1024];
    snprintf(path, sizeof path, MACHINES "/%s", machine);
    *m = pc_machine(.root = path);
    assert_not_null_ok(*m);
    *d = pc_diagnosis(*m, .job = PC_JOB_ANY);
    assert_not_null_ok(*d);
    assert_true((*d)->finding_count > 0);
    return (*d)->findings;
}

static void assert_says(const char *machine, const char *what, const char *how, const char *fix)
{
    pc_machine *m;
    pc_diagnosis *d;
    const pc_finding *f = first(machine, &m, &d);
    if (!strstr(f->what, what) || !strstr(f->how, how) || !strstr(f->fix, fix))
        fail_msg("%s: got\n%s\n%s\n%s", machine, f->what, f->how, f->fix);
    pc_diagnosis_free(d);
    pc_machine_free(m);
}

static void assert_never_fixes(const char *machine, const char *words)
{
    pc_machine *m;
    pc_diagnosis *d;
    if (strstr(first(machine, &m, &d)->fix, words))
        fail_msg("%s: got\n%s", machine, d->findings[0].fix);
    pc_diagnosis_free(d);
    pc_machine_free(m);
}

/* The words that users look for: all versions, the command of this distribution. */
static void findings_name_versions_and_commands(void **state)
{
    (void)state;
    assert_says("no-driver-ubuntu.txt", "no NVIDIA driver", "0000:01:00.0", "ubuntu-drivers install");
    assert_says("no-driver-fedora.txt", "no NVIDIA driver", "6.8.0-60-generic", "akmod-nvidia");
    assert_says("version-mismatch.txt", "different versions", "580.65.06", "reboot");
    assert_says("version-mismatch.txt", "different versions", "580.82.07", "rmmod");
    assert_says(
        "driver-too-old.txt", "too old for the CUDA toolkit",
        "the driver is 535.183.01; the newest CUDA that it runs is 12.2; the toolkit in /usr/local/cuda-13.0 is "
        "CUDA 13.0.1",
        "ubuntu-drivers");
    assert_says("toolkit-not-on-path.txt", "13.0.1", "/usr/local/cuda-13.0",
                "echo 'export PATH=/usr/local/cuda-13.0/bin:$PATH' >> ~/.bashrc\n"
                "echo 'export LD_LIBRARY_PATH=/usr/local/cuda-13.0/lib64:$LD_LIBRARY_PATH' >> ~/.bashrc");
    assert_says("fabric-manager.txt", "fabric manager", "4 NVSwitches", "nvidia-fabricmanager-580");
    assert_says("nvswitch-fatal.txt", "fatal error (SXid 20034)", "1 of these, of the NVSwitch 0000:a9:00.0", "reset");
    assert_says("nvswitch-corrected.txt", "not fatal (SXid 12028)", "Link 32 egress", "# nothing");
    assert_says("cpus-that-take-turns.txt", "far from the GPU", "near the GPU are 1,3,5", ",249,251,253,255 COMMAND");
    assert_says("narrow-link.txt", "narrower", "x8, and could at x16", "seat the card");
    assert_says("used-elsewhere.txt", "no process is listed", "The GPU computes", "sudo fuser -v /dev/nvidia*");
    assert_never_fixes("used-elsewhere.txt", "--gpu-reset");
    assert_says("hidden-holder.txt", "no process is listed", "Process 5150 (python3) has a GPU open", "kill 5150 #");
    assert_says("gsp-firmware-fails.txt", "does not start", "RmInitAdapter failed! (0x62:0x65:1792)",
                "take it off the power");
    assert_says("gsp-firmware-fails.txt", "GSP", "0x62 (starting its firmware) with status 0x65 (it did not answer",
                "");
    assert_says("power-cables.txt", "power cables", "necessary power cables connected", "switch the machine off");
    assert_says("no-address-space-in-vm.txt", "2 GPUs: 0000:14:00.0, 0000:1c:00.0", "", "Above 4G");
    assert_says("dkms-failed.txt", "could not be compiled", "implicit declaration of function 'sys_close'", "newer");
    assert_says("compiler-of-another-age.txt", "could not be compiled", "a newer gcc", "gcc-12");
    assert_says("prime-select-intel.txt", "forbids", "\"blacklist nvidia\"", "prime-select on-demand");
    assert_says("runfile-over-packages.txt", "mixed", "/usr/lib64/libnvidia-ml.so.1, which is 570.86.15",
                "nvidia-uninstall");
    assert_says("half-the-lanes.txt", "narrower", "can do x4 (LnkCap)", "LnkSta");
    assert_says("memory-row-pending.txt", "waits for a reset", "Xid (PCI:0000:01:00): 63", "--gpu-reset -i 0");
    assert_says("second-card-hangs.txt", "Xid 62", "0000:81:00.0", "--gpu-reset -i 1");
    assert_says("version-mismatch.txt", "different versions", "the client has the version 580.82.07, but this",
                "rmmod");
    assert_says("orphan.txt", "python3", "Process 4711 has 9114 MiB", "kill 4711");
    assert_says("blackwell-proprietary.txt", "open kernel modules only", "requires use of", "nvidia-driver-580-open");
    assert_says("pascal-open.txt", "older than Turing", "GSP", "_without_kmod_nvidia_open");
    assert_says("pascal-legacy.txt", "580.xx", "Legacy", "nvidia-driver-580\n");
    assert_says("b200-old-driver.txt", "does not know this GPU", "550.54.15", "ubuntu-drivers");
    assert_says("wsl-linux-driver.txt", "hides the driver of Windows", "/dev/dxg", "apt purge");
    assert_says("nixos-libraries.txt", "not found", "libnvidia-ml.so.1: cannot open", "/run/opengl-driver/lib");
    assert_says("container-utility-only.txt", "libcuda.so.1", "\"utility\"", "compute,utility");
    assert_says("podman-selinux.txt", "may not use", "Insufficient Permissions", "podman run --security-opt");
    assert_says("mig-without-instances.txt", "MIG is on", "error 100", "nvidia-smi mig -cgi");
    assert_says("passthrough-host.txt", "set aside for virtual machines", "vfio-pci", "vfio-pci");
    assert_says("driver-crashes.txt", "library crashes", "nvmlDeviceGetMemoryInfo_v2", "dmesg");
    assert_says("driver-hangs.txt", "does not answer", "nvmlDeviceGetMemoryInfo_v2 for 0000:01:00.0", "dmesg");
}

/* What is missing where somebody else than the distribution brings the driver or the kernel; every card by its address.
 */
static void findings_name_what_is_missing(void **state)
{
    (void)state;
    assert_says("two-off-the-bus.txt", "2 GPUs: 0000:41:00.0, 0000:81:00.0", "Xid (PCI:0000:81:00): 79", "reboot");
    assert_says("two-without-power.txt", "2 GPUs: 0000:08:00.0, 0000:09:00.0", "power cables", "plug every power");
    assert_says("two-same-start-code.txt", "2 GPUs: 0000:08:00.0, 0000:09:00.0", "0x22:0x56:894", "bug-report");
    assert_says("wsl-without-gpu.txt", "does not let its GPU through", "no /dev/dxg", "wsl --update\nwsl --shutdown");
    assert_says("wsl-without-gpu.txt", "", "4.19.128-microsoft-standard", "21H2");
    assert_says("wsl-linux-driver-without-gpu.txt", "does not let", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                "apt purge");
    assert_says("wsl-without-driver.txt", "do not come with it", "Of the 1 driver", "driver for Windows");
    assert_says("wsl-1.txt", "WSL 1", "4.4.0-17763-Microsoft", "wsl --set-version NAME 2");
    assert_says("wsl-systemd-linux-driver.txt", "hides the driver of Windows", "/dev/dxg", "apt purge");
    assert_says("wsl-loader-misses-driver.txt", "does not look there", "cannot open shared",
                "ld.wsl.conf && sudo ldconfig");
    assert_says("wsl-gpu-blocked.txt", "does not start", "error 100", "TCC");
    assert_says("wsl-container-without-gpu.txt", "without the GPU", "docker", "--gpus all");
    assert_says("rolling-kernel-replaced.txt", "newer kernel", "/lib/modules/6.15.9-arch1-1 is missing", "sudo reboot");
    assert_says("rolling-kernel-kept-without-module.txt", "newer kernel", "6.16.1-arch1-1, with the driver",
                "sudo reboot");
    assert_says("rolling-uvm-not-loaded.txt", "newer kernel", "nvidia_uvm, which CUDA needs", "sudo reboot");
    assert_says("rolling-other-flavour.txt", "no kernel module", "Kernel 6.16.1-arch1-1 has it", "linux-zen-headers");
    assert_says("modules-not-indexed.txt", "no kernel module",
                "there is no /lib/modules/6.8.0-60-generic/modules.alias", "depmod -a");
}

/* Advice that fits who brings the driver: NixOS's configuration, Arch's users, the host of a container, a cloud. */
static void advice_fits_the_system(void **state)
{
    (void)state;
    assert_says("copies-hang-iommu.txt", "do not end", "has \"intel_iommu=on\"",
                "export NCCL_P2P_DISABLE=1 # at once: what NCCL sends goes through the host's memory\nsudo sed");
    assert_says("copies-hang-iommu.txt", "", "With NCCL_P2P_DISABLE=1 an all-reduce over all 2 of them comes out right",
                "iommu=pt");
    assert_says("copies-hang-acs.txt", "do not end", "cuda:1 to cuda:0", "sudo setpci -s $b ECAP_ACS+6.w=0000");
    assert_says("all-reduce-hangs.txt", "does not end", "ended after 30.0 s", "NCCL_P2P_DISABLE=1");
    assert_says("all-reduce-corrupt.txt", "wrong sums", "neither IOMMU nor ACS is the cause", "nvidia-smi nvlink");
    assert_says("corrupt-copies.txt", "something else", "cuda:0 to cuda:1", "NCCL_P2P_DISABLE=1");
    assert_says("nixos-nouveau.txt", "no NVIDIA driver", "0000:01:00.0", "videoDrivers = [ \"nvidia\" ]");
    assert_says("nixos-switched.txt", "different versions", "580.95.05", "reboot\n# nothing less");
    assert_says("ubuntu-hwe.txt", "no kernel module", "Kernel 6.8.0-60-generic has it",
                "linux-modules-nvidia-580-$(uname -r)");
    assert_says("container-compat.txt", "compatibility library", "/usr/local/cuda-12.4/compat/libcuda.so",
                "grep -r '/usr/local/cuda-12.4/compat' /etc/ld.so.conf.d");
    assert_says("mig-stale.txt", "hides every GPU", "MIG-c6d4f1ef", "nvidia-smi -L");
    assert_says("vgpu-unlicensed.txt", "licence", "NVIDIA A10-24Q", "nvidia-gridd");
    assert_says("b200-fabric.txt", "fabric manager", "0000:4e:00.0", "modprobe -a mlx5_ib ib_umad");
    assert_says("envycontrol.txt", "forbids", "/etc/udev/rules.d/50-remove-nvidia.rules", "envycontrol -s hybrid");
    assert_says("arch-pascal.txt", "older than Turing", "GSP", "nvidia-580xx-dkms");
    assert_says("container-without-uvm.txt", "/dev/nvidia-uvm is missing", "", "# on the host");
    assert_says("silverblue-no-driver.txt", "no NVIDIA driver", "0000:01:00.0", "rpm-ostree install akmod-nvidia");
    assert_says("container-no-cgroups.txt", "cgroups", "error 999", "no-cgroups must be false");
    assert_says("wsl-container-blocked.txt", "This container has the GPU of WSL", "error 100",
                "nvidia-container-toolkit");
    assert_says("fedora-secure-boot.txt", "Secure Boot", "key is rejected", "mokutil --import /etc/pki/akmods");
}

/* Also those that leave no file, and name themselves to the first process alone or not at all. */
static void containers_are_told_from_machines(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {{"lxc-openrc-without-devices.txt", "lxc"},
                                           {"healthy-lxc.txt", "lxc"},
                                           {"healthy-container-of-containerd.txt", "none"},
                                           {"nouveau-in-a-sandbox.txt", "none"},
                                           {"used-elsewhere.txt", "none"},
                                           {"healthy-wsl2-pids.txt", "none"},
                                           {"healthy-h200.txt", "none"}};
    for (int i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++) {
        char path[1024];
        snprintf(path, sizeof path, MACHINES "/%s", kinds[i][0]);
        pc_machine *m = pc_machine(.root = path);
        assert_not_null_ok(m);
        assert_string_equal(m->container.text, kinds[i][1]);
        pc_machine_free(m);
    }
    assert_says("lxc-openrc-without-devices.txt", "This container (LXC)", "container (lxc)", "lxc.mount.entry");
    assert_says("nspawn-without-devices.txt", "without GPUs", "container (systemd-nspawn)", "# give the container");
    assert_never_fixes("nspawn-without-devices.txt", "docker");
}

/* In a folder proc/self is nobody's. */
static void folders_are_examined_from_anywhere(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-folder-XXXXXX", command[1024];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command,
             "cd %s && mkdir -p proc/self/ns proc/1 && ln -s 'pid:[4026532716]' proc/self/ns/pid && "
             "echo 'State: S' > proc/1/status && mkdir answers sys && printf 'gpu 0000:41:00.0\nprocess 4711 compute "
             "9556721664\n' > answers/nvml && "
             "mkdir -p proc/4711 && echo python3 > proc/4711/comm",
             folder);
    assert_int_equal(system(command), 0);
    pc_machine *m = pc_machine(.root = folder);
    assert_not_null_ok(m);
    assert_int_equal(m->device_count, 1);
    assert_int_equal(m->devices[0].process_count, 1);
    assert_string_equal(m->devices[0].processes[0].name, "python3");
    pc_machine_free(m);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_is_diagnosed),        cmocka_unit_test(recordings_hold_what_the_checks_read),
        cmocka_unit_test(every_check_has_its_machine),       cmocka_unit_test(findings_name_versions_and_commands),
        cmocka_unit_test(findings_name_what_is_missing),     cmocka_unit_test(advice_fits_the_system),
        cmocka_unit_test(containers_are_told_from_machines), cmocka_unit_test(folders_are_examined_from_anywhere),
    };
    return cmocka_run_group_tests_name("probe.doctor", tests, NULL, NULL);
}

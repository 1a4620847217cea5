/* doctor.c: the table of checks, and running them. */
#include "probe/doctor.h"

#define ALL (PC_JOB_TRAIN | PC_JOB_SERVE | PC_JOB_BUILD)
#define RUN (PC_JOB_TRAIN | PC_JOB_SERVE)

typedef struct row {
    const char *name, *title;
    int jobs;
    pc__check check;
} row;

/* From what stands below to what stands on it: a cause comes before what follows from it. */
static const row rows[] = {
    {"gpu-lost", "no GPU fell off the bus", RUN, pc__check_lost},
    {"power-cables", "every GPU has its power cables", RUN, pc__check_power_cables},
    {"address-space", "the firmware gave every GPU room in the address space", RUN, pc__check_windows},
    {"module-blocked", "nothing forbids the driver's module", RUN, pc__check_blocked},
    {"kernel-replaced", "no newer kernel waits for a reboot", RUN, pc__check_kernel_replaced},
    {"nouveau", "nouveau does not hold the GPU", RUN, pc__check_nouveau},
    {"driver-missing", "an NVIDIA driver is there", RUN, pc__check_driver_missing},
    {"secure-boot", "Secure Boot lets the driver in", RUN, pc__check_secure_boot},
    {"module-symbols", "the driver's module is of the running kernel", RUN, pc__check_symbols},
    {"gpu-refused", "the driver takes the GPU", RUN, pc__check_refused},
    {"gsp-firmware", "the GPU's own firmware is there and starts", RUN, pc__check_firmware},
    {"gpu-start", "every GPU starts", RUN, pc__check_gpu_start},
    {"kernel-headers", "the kernel's headers are there for DKMS", RUN, pc__check_headers},
    {"module-build", "the driver's module was compiled", RUN, pc__check_build},
    {"module-unloaded", "the driver's module is loaded", RUN, pc__check_module_unloaded},
    {"driver-mixed", "the loader takes the libraries of the driver that runs", RUN, pc__check_mixed},
    {"version-mismatch", "the driver in the kernel and its libraries are of one version", RUN,
     pc__check_version_mismatch},
    {"container", "the container was started with its GPUs", RUN, pc__check_container},
    {"device-files", "the device files are there and may be used", RUN, pc__check_device_files},
    {"wsl-driver", "in WSL, Windows lends its GPU and driver", RUN, pc__check_wsl},
    {"driver-hangs", "the driver answers", RUN, pc__check_driver_hangs},
    {"driver-stub", "the loader finds the driver's library and no stub of it", RUN, pc__check_stub},
    {"driver-libraries", "the driver's libraries are found", RUN, pc__check_driver_libraries},
    {"nvml-start", "the driver's management library starts", RUN, pc__check_nvml_start},
    {"driver-too-old", "the driver is new enough for the toolkit", ALL, pc__check_driver_too_old},
    {"fabric-manager", "the fabric manager runs where it is needed", RUN, pc__check_fabric},
    {"cuda-start", "CUDA starts", RUN, pc__check_cuda_start},
    {"vgpu-licence", "a slice of a GPU (vGPU) has its licence", RUN, pc__check_licence},
    {"this-build", "this build of Paracord works on the GPU", RUN, pc__check_this_build},
    {"ecc", "the GPU's memory is sound", RUN, pc__check_ecc},
    {"xid", "the kernel log has no errors of the GPU", RUN, pc__check_xid},
    {"nvswitch", "the kernel log has no errors of the NVSwitches", RUN, pc__check_nvswitch},
    {"pcie-link", "PCIe links are as wide and fast as both ends can", RUN, pc__check_pcie},
    {"throttling", "nothing holds the clocks down", RUN, pc__check_throttle},
    {"orphans", "no process without an owner holds GPU memory", RUN, pc__check_orphans},
    {"peer-copies", "copies between GPUs arrive as they were sent", PC_JOB_TRAIN, pc__check_peers},
    {"all-reduce", "an all-reduce over all GPUs ends, with the right sums", PC_JOB_TRAIN, pc__check_all_reduce},
    {"iommu-acs", "neither IOMMU nor ACS stands between GPUs", PC_JOB_TRAIN, pc__check_iommu},
    {"shared-memory", "/dev/shm is large enough for NCCL", PC_JOB_TRAIN, pc__check_shared_memory},
    {"placement", "the process runs on CPUs near its GPUs", PC_JOB_TRAIN, pc__check_placement},
    {"toolkit-path", "the CUDA toolkit is on the paths", PC_JOB_BUILD, pc__check_toolkit},
    {"host-compiler", "the host's compiler is one that nvcc takes", PC_JOB_BUILD, pc__check_compiler},
    {"library-order", "the loader finds the right cuDNN and NCCL first", RUN, pc__check_libraries},
    {"gpudirect-storage", "GPUDirect Storage is installed", PC_JOB_TRAIN, pc__check_storage},
};

bool pc_doctor_check(int i, const char **name, const char **title, int *jobs)
{
    PC__NEED_OR(false, name);
    PC__NEED_OR(false, title);
    PC__NEED_OR(false, jobs);
    if (i < 0 || i >= PC__COUNT(rows))
        return false;
    *name = rows[i].name;
    *title = rows[i].title;
    *jobs = rows[i].jobs;
    return true;
}

pc_finding *pc__found(pc__exam *e, pc_severity severity, const pc_probe_device *device)
{
    static _Thread_local pc_finding nowhere; /* so that checks need not look whether memory ran out */
    pc_finding *f = pc__more(e->m, &e->diagnosis->findings, &e->diagnosis->finding_count, &e->finding_capacity,
                             sizeof *e->diagnosis->findings);
    if (!f)
        f = &nowhere;
    *f = (pc_finding){e->check, device ? device->address.text : NULL, severity, "", "", ""};
    e->diagnosis->wrong_count += severity == PC_SEVERITY_WRONG;
    return f;
}

/* One of the three texts, with a further line behind what is there. */
static void write_text(pc__exam *e, const char **to, const char *format, va_list arguments)
{
    const char *line = pc__keepv(e->m, format, arguments);
    *to = **to ? pc__keepf(e->m, "%s\n%s", *to, line) : line;
}

#define WRITES(member)                                                                                                 \
    do {                                                                                                               \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        write_text(e, &f->member, format, arguments);                                                                  \
        va_end(arguments);                                                                                             \
    } while (0)

void pc__what(pc__exam *e, pc_finding *f, const char *format, ...)
{
    WRITES(what);
}

void pc__how(pc__exam *e, pc_finding *f, const char *format, ...)
{
    WRITES(how);
}

void pc__fix(pc__exam *e, pc_finding *f, const char *format, ...)
{
    WRITES(fix);
}

void pc__add_card(pc__cards *cards, const pc_probe_device *device)
{
    size_t used = strlen(cards->list);
    snprintf(cards->list + used, sizeof cards->list - used, "%s%s", used ? ", " : "", device->address.text);
    cards->first = cards->first ? cards->first : device;
    cards->count++;
}

void pc__name_cards(pc__exam *e, pc_finding *f, const pc__cards *cards)
{
    if (cards->count > 1)
        f->what = pc__keepf(e->m, "%s So it is with %d GPUs: %s.", f->what, cards->count, cards->list);
}

void pc__unseen(pc__exam *e, const char *format, ...)
{
    pc_unseen *u = pc__more(e->m, &e->diagnosis->unseen, &e->diagnosis->unseen_count, &e->unseen_capacity,
                            sizeof *e->diagnosis->unseen);
    if (!u)
        return;
    *u = (pc_unseen){e->check, ""};
    va_list arguments;
    va_start(arguments, format);
    write_text(e, &u->why, format, arguments);
    va_end(arguments);
}

static pc__packages packages_of(pc__machine *m)
{
    static const struct {
        const char *id;
        pc__packages packages;
    } known[] = {{"ubuntu", PC__APT_UBUNTU},
                 {"pop", PC__APT_UBUNTU},
                 {"linuxmint", PC__APT_UBUNTU},
                 {"debian", PC__APT},
                 {"fedora", PC__DNF_FEDORA},
                 {"rhel", PC__DNF},
                 {"rocky", PC__DNF},
                 {"almalinux", PC__DNF},
                 {"centos", PC__DNF},
                 {"amzn", PC__DNF},
                 {"ol", PC__DNF},
                 {"suse", PC__ZYPPER},
                 {"opensuse", PC__ZYPPER},
                 {"arch", PC__PACMAN},
                 {"manjaro", PC__PACMAN},
                 {"nixos", PC__NIX}};
    char id[64] = "", like[128] = "";
    pc__os_release(m, "ID", id, sizeof id);
    pc__os_release(m, "ID_LIKE", like, sizeof like);
    for (int i = 0; i < PC__COUNT(known); i++)
        if (!strncmp(id, known[i].id, strlen(known[i].id)))
            return known[i].packages;
    for (int i = 0; i < PC__COUNT(known); i++)
        if (strstr(like, known[i].id))
            return known[i].packages;
    return PC__OTHER;
}

const char *pc__install(pc__exam *e, const char *apt, const char *dnf, const char *zypper, const char *pacman)
{
    switch (e->packages) {
    case PC__APT_UBUNTU:
    case PC__APT:
        return pc__keepf(e->m, "sudo apt install %s", apt);
    case PC__DNF_FEDORA:
    case PC__DNF:
        return pc__keepf(e->m, "sudo dnf install %s", dnf);
    case PC__ZYPPER:
        return pc__keepf(e->m, "sudo zypper install %s", zypper);
    case PC__PACMAN:
        return pc__keepf(e->m, "sudo pacman -S %s", pacman);
    default:
        return pc__keepf(e->m, "# install the package that holds %s with this system's tools", apt);
    }
}

const char *pc__initramfs(const pc__exam *e)
{
    return e->packages == PC__APT || e->packages == PC__APT_UBUNTU ? "sudo update-initramfs -u"
           : e->packages == PC__PACMAN                             ? "sudo mkinitcpio -P"
           : e->packages == PC__NIX                                ? "sudo nixos-rebuild boot"
                                                                   : "sudo dracut --force";
}

bool pc__any_wrong(const pc__exam *e)
{
    for (int i = 0; i < e->diagnosis->finding_count; i++)
        if (e->diagnosis->findings[i].severity == PC_SEVERITY_WRONG)
            return true;
    return false;
}

bool pc__found_by(const pc__exam *e, const char *check)
{
    for (int i = 0; i < e->diagnosis->finding_count; i++)
        if (!strcmp(e->diagnosis->findings[i].check, check))
            return true;
    return false;
}

bool pc__has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; at; at = pc__behind(at, ' '))
        if (!strncmp(at, word, n) && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

bool pc__add_word(char *words, size_t room, const char *word)
{
    const size_t used = strlen(words);
    if (pc__has_word(words, word) || used + strlen(word) + 2 > room)
        return false;
    snprintf(words + used, room - used, "%s%s", used ? " " : "", word);
    return true;
}

void pc__count_name(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
}

const pc_probe_device *pc__next_gpu(const pc__exam *e, int *i)
{
    while (*i < e->machine->device_count)
        if (e->machine->devices[(*i)++].nvidia)
            return &e->machine->devices[*i - 1];
    return NULL;
}

int pc__gpu_count(const pc__exam *e)
{
    int there = 0, usable = 0, i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        there++;
        usable += d->nvml;
    }
    return usable ? usable : there;
}

int pc__version_number(const char *text)
{
    int major, minor = 0;
    if (!text || sscanf(text, "%d.%d", &major, &minor) < 1 || major < 0 || major > 100000)
        return -1;
    return major * 100 + PC__MIN(minor, 99);
}

/* Findings keep the order of the table within each severity. */
static void sort(pc_diagnosis *d)
{
    for (int i = 1; i < d->finding_count; i++) {
        pc_finding f = d->findings[i];
        int j = i;
        for (; j > 0 && d->findings[j - 1].severity > f.severity; j--)
            d->findings[j] = d->findings[j - 1];
        d->findings[j] = f;
    }
}

pc_diagnosis *pc_diagnosis_new(pc_machine *machine, pc_diagnosis_options options)
{
    PC__NEED_OR(NULL, machine);
    pc__machine *m = (pc__machine *)machine;
    pc_diagnosis *d = pc__calloc(1, sizeof *d);
    if (!d)
        return NULL;
    pc__exam e = {.m = m, .machine = machine, .options = &options, .diagnosis = d};
    e.packages = packages_of(m);
    e.nvidia = pc__gpu_count(&e) > 0;
    e.container = machine->container.known && strcmp(machine->container.text, "none") != 0;
    e.wsl = pc__wsl_of(&e);
    e.log = pc__kernel_log(m);
    if (options.cuda_reason && options.cuda_reason[0])
        pc__root_note(m->root, "answers/paracord-cuda", options.cuda_reason);
    if (options.peers && options.peers[0])
        pc__root_note(m->root, "answers/peers", options.peers);
    for (int i = 0; i < PC__COUNT(rows); i++) {
        if (options.job != PC_JOB_ANY && !(rows[i].jobs & (int)options.job))
            continue;
        e.check = rows[i].name;
        rows[i].check(&e);
        d->checked_count++;
    }
    pc__free(e.log);
    pc__free(e.starts);
    pc__free(e.xids);
    sort(d);
    if (!m->failed && !pc__root_starved(m->root))
        return d;
    pc_diagnosis_free(d);
    return pc__null(PC_ERR_MEMORY, "no memory for the diagnosis");
}

void pc_diagnosis_free(pc_diagnosis *d)
{
    if (!d)
        return;
    pc__free(d->findings);
    pc__free(d->unseen);
    pc__free(d);
}

/* doctor.h: what a check of the doctor gets, and how it tells what it finds. */
#ifndef PC__PROBE_DOCTOR_H
#define PC__PROBE_DOCTOR_H

#include "probe/probe.h"

#include <paracord-tools/doctor.h>

/* How packages come to the machine. */
typedef enum pc__packages {
    PC__APT_UBUNTU,
    PC__APT,
    PC__DNF_FEDORA,
    PC__DNF,
    PC__ZYPPER,
    PC__PACMAN,
    PC__NIX,
    PC__OTHER
} pc__packages;

/* nvrm.c: why the driver did not start a GPU, in its own words. The smaller, the nearer to the cause. */
typedef enum pc__nvrm {
    PC__NVRM_NOTHING, /* it said nothing */
    PC__NVRM_LOST,
    PC__NVRM_POWER,
    PC__NVRM_WINDOWS,
    PC__NVRM_NO_FIRMWARE,
    PC__NVRM_RESET,
    PC__NVRM_VBIOS,
    PC__NVRM_FIRMWARE,
    PC__NVRM_INTERRUPT,
    PC__NVRM_MEMORY,
    PC__NVRM_OTHER
} pc__nvrm;
enum { PC__NVRM_SAID = 200 };

/* doctor_wsl.c: the Windows Subsystem for Linux, and which of the two. */
typedef enum pc__wsl { PC__WSL_NONE, PC__WSL_1, PC__WSL_2 } pc__wsl;

/* What the log says of one device's start. */
typedef struct pc__start {
    bool read;
    pc__nvrm kind;
    char said[PC__NVRM_SAID];
} pc__start;

typedef struct pc__exam {
    pc__machine *m;
    const pc_machine *machine;
    const pc_diagnosis_options *options;
    pc_diagnosis *diagnosis;
    const char *check; /* the one that is running */
    pc__packages packages;
    pc__wsl wsl;
    char *log; /* of the kernel; NULL: cannot be read */
    int finding_capacity, unseen_capacity;
    struct pc__seen_xid *xids; /* doctor_xid.c: of the log, once xids_read */
    int xid_count, xid_capacity;
    pc__start *starts;              /* a row for each device; NULL: nobody asked yet */
    int64_t xids_told, memory_told; /* devices (by bits) whose Xids, or those of memory, are evidence of a finding */
    bool xids_read;
    bool nvidia;    /* an NVIDIA device is there */
    bool container; /* this is one */
} pc__exam;

/* A finding about a device (NULL: the machine), to be filled in by the three that follow. */
pc_finding *pc__found(pc__exam *e, pc_severity severity, const pc_probe_device *device);
void pc__what(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);
void pc__how(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);
void pc__fix(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);

/* GPUs with one fault of one cause: one finding, which has the first one's address and names all of them. */
typedef struct pc__cards {
    const pc_probe_device *first;
    int count;
    char list[640];
} pc__cards;
void pc__add_card(pc__cards *cards, const pc_probe_device *device);

/* To be called when the finding has its sentence; of one card it says nothing. */
void pc__name_cards(pc__exam *e, pc_finding *f, const pc__cards *cards);

/* The check cannot be made. */
void pc__unseen(pc__exam *e, const char *format, ...) PC_PRINTF(2, 3);

/* The package's name on this kind of machine decides: "sudo apt install X". */
const char *pc__install(pc__exam *e, const char *apt, const char *dnf, const char *zypper, const char *pacman);

/* doctor_loader.c: take the folder of this library out of where the loader looks. */
void pc__fix_order(pc__exam *e, pc_finding *f, const char *path);
const pc_probe_library *pc__library_named(const pc__exam *e, const char *name);
bool pc__by_variable(pc__exam *e, const char *path);

/* doctor_driver.c: the commands that install a driver here. */
void pc__fix_by_install(pc__exam *e, pc_finding *f);

/* The command that makes the initial RAM disk anew. */
const char *pc__initramfs(const pc__exam *e);

/* What nvidia-smi -i takes: the GPU's number, or its address where the driver does not list it. */
const char *pc__index_of(pc__exam *e, const pc_probe_device *d);

/* A check before this one found something wrong; this check found anything. */
bool pc__any_wrong(const pc__exam *e);
bool pc__found_by(const pc__exam *e, const char *check);

/* `word` is one of `words`, which blanks part; for pc__root_list: count. */
bool pc__has_word(const char *words, const char *word);
bool pc__add_word(char *words, size_t room,
                  const char *word); /* false, and nothing is added: it is there, or it does not fit */
void pc__count_name(void *count, const char *name);

/* The running kernel has the driver's module. */
bool pc__module_on_disk(const pc__exam *e);

/* doctor_running.c: other kernels are installed, and the running one's modules are not there any more. */
bool pc__kernel_gone(pc__exam *e);

/* A toolkit with its compiler. */
bool pc__has_nvcc(pc__exam *e, const pc_probe_toolkit *toolkit);

/* doctor_access.c: the number of a device file's driver (/proc/devices), 0: unknown; is this a container of LXC, and
 * the lines that give it its GPUs. */
int pc__device_major(pc__exam *e, const char *file);
bool pc__is_lxc(const pc__exam *e);
void pc__fix_lxc(pc__exam *e, pc_finding *f);

/* doctor_many.c: "0-15,32-47", of CPUs or of nodes, into bits; false when it is no such list. */
enum { PC__LIST_BYTES = 512 };
bool pc__read_list(const char *list, unsigned char bits[PC__LIST_BYTES]);

/* The next NVIDIA GPU from *i on, or NULL. */
const pc_probe_device *pc__next_gpu(const pc__exam *e, int *i);

/* GPUs that this process may use, as far as the driver lists them; else those that are there. */
int pc__gpu_count(const pc__exam *e);

/* "13.0.1" as 13.0: 1300; -1 for none. */
int pc__version_number(const char *text);

/* The checks, each in the file of its subject. */
typedef void (*pc__check)(pc__exam *e);
void pc__check_lost(pc__exam *e); /* doctor_gpu.c */
void pc__check_power_cables(pc__exam *e);
void pc__check_windows(pc__exam *e);
void pc__check_firmware(pc__exam *e);
void pc__check_gpu_start(pc__exam *e);
void pc__check_blocked(pc__exam *e); /* doctor_blocked.c */
void pc__check_build(pc__exam *e);   /* doctor_build.c */
void pc__check_symbols(pc__exam *e);
void pc__check_mixed(pc__exam *e); /* doctor_loader.c */
void pc__check_stub(pc__exam *e);
void pc__check_driver_missing(pc__exam *e); /* doctor_driver.c */
void pc__check_nouveau(pc__exam *e);
void pc__check_version_mismatch(pc__exam *e);
void pc__check_driver_too_old(pc__exam *e);
void pc__check_driver_hangs(pc__exam *e);
void pc__check_kernel_replaced(pc__exam *e); /* doctor_running.c */
void pc__check_module_unloaded(pc__exam *e);
void pc__check_refused(pc__exam *e); /* doctor_start.c */
void pc__check_driver_libraries(pc__exam *e);
void pc__check_nvml_start(pc__exam *e);
void pc__check_wsl(pc__exam *e);          /* doctor_wsl.c */
void pc__check_device_files(pc__exam *e); /* doctor_access.c */
void pc__check_container(pc__exam *e);
void pc__check_cuda_start(pc__exam *e); /* doctor_cuda.c */
void pc__check_this_build(pc__exam *e);
void pc__check_licence(pc__exam *e);     /* doctor_licence.c */
void pc__check_secure_boot(pc__exam *e); /* doctor_kernel.c */
void pc__check_headers(pc__exam *e);
void pc__check_xid(pc__exam *e);      /* doctor_xid.c */
void pc__check_nvswitch(pc__exam *e); /* doctor_sxid.c */
void pc__check_toolkit(pc__exam *e);  /* doctor_toolkit.c */
void pc__check_compiler(pc__exam *e); /* doctor_compiler.c */
void pc__check_libraries(pc__exam *e);
void pc__check_storage(pc__exam *e);
void pc__check_ecc(pc__exam *e); /* doctor_health.c */
void pc__check_throttle(pc__exam *e);
void pc__check_pcie(pc__exam *e);    /* doctor_link.c */
void pc__check_orphans(pc__exam *e); /* doctor_processes.c */
void pc__check_peers(pc__exam *e);   /* doctor_peers.c */
void pc__check_all_reduce(pc__exam *e);
void pc__check_iommu(pc__exam *e);  /* doctor_between.c */
void pc__check_fabric(pc__exam *e); /* doctor_many.c */
void pc__check_shared_memory(pc__exam *e);
void pc__check_placement(pc__exam *e);

pc__wsl pc__wsl_of(pc__exam *e);

/* doctor_between.c: why what goes between GPUs may hang or come out wrong, and what ends that, for a finding. */
void pc__say_between(pc__exam *e, pc_finding *f);

/* holders.c: lines of "PID NAME", of processes that have a GPU open and can be seen, from pc__alloc; NULL: none. */
char *pc__holders(pc__exam *e);

/* kernel_log.c: the end of the kernel's log, from pc__alloc; NULL when it cannot be read. */
char *pc__kernel_log(pc__machine *m);

/* kernel_log.c: a line of the log at `at` without the kernel's time and a log file's head; the next one, or NULL. */
enum { PC__LOG_LINE = 400 };
const char *pc__log_line(const char *at, char line[PC__LOG_LINE]);

/* doctor_xid.c: how often the log has this Xid for a device; its Xids (or those of memory) as evidence of a finding,
 * which the check of Xids then leaves out. */
int pc__xid_count(pc__exam *e, const pc_probe_device *d, int xid);
void pc__xid_quote(pc__exam *e, pc_finding *f, const pc_probe_device *d);
void pc__xid_quote_memory(pc__exam *e, pc_finding *f, const pc_probe_device *d);

/* said: its last error code in words, or "". */
pc__nvrm pc__nvrm_reason(pc__exam *e, const pc_probe_device *d, char said[PC__NVRM_SAID]);
void pc__nvrm_words(int step, int status, char said[PC__NVRM_SAID]); /* nvrm_words.c */

/* The last line of the log with these words, and those that continue it, as evidence. */
void pc__quote_words(pc__exam *e, pc_finding *f, const char *words);

/* The driver's last lines about a device (NULL: about any) as evidence. */
void pc__nvrm_quote(pc__exam *e, pc_finding *f, const pc_probe_device *d);

/* xid.c: what an Xid of the kernel log means; NULL: not known here. *harmless: of the program, not of the machine. */
const char *pc__xid_meaning(int xid, bool *harmless, const char **advice);

#endif

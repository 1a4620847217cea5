/* doctor.h: what a check of the doctor gets, and how it tells what it finds. */
#ifndef PC__PROBE_DOCTOR_H
#define PC__PROBE_DOCTOR_H

#include "probe/probe.h"

#include <paracord/doctor.h>

/* How packages come to the machine. */
typedef enum pc__packages {
    PC__APT_UBUNTU,
    PC__APT,
    PC__DNF_FEDORA,
    PC__DNF,
    PC__ZYPPER,
    PC__PACMAN,
    PC__OTHER
} pc__packages;

typedef struct pc__exam {
    pc__machine *m;
    const pc_machine *machine;
    const pc_doctor_options *options;
    pc_diagnosis *diagnosis;
    const char *check; /* the one that is running */
    pc__packages packages;
    char *log; /* of the kernel; NULL: cannot be read */
    int finding_capacity, unseen_capacity;
    bool nvidia;    /* an NVIDIA device is there */
    bool container; /* this is one */
} pc__exam;

/* A finding about a device (NULL: the machine), to be filled in by the three that follow. */
pc_finding *pc__found(pc__exam *e, pc_severity severity, const pc_probe_device *device);
void pc__what(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);
void pc__how(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);
void pc__fix(pc__exam *e, pc_finding *f, const char *format, ...) PC_PRINTF(3, 4);

/* The check cannot be made. */
void pc__unseen(pc__exam *e, const char *format, ...) PC_PRINTF(2, 3);

/* The package's name on this kind of machine decides: "sudo apt install X". */
const char *pc__install(pc__exam *e, const char *apt, const char *dnf, const char *zypper, const char *pacman);

/* doctor_driver.c: the commands that install a driver here. */
void pc__fix_by_install(pc__exam *e, pc_finding *f);

/* The next NVIDIA GPU from *i on, or NULL. */
const pc_probe_device *pc__next_gpu(const pc__exam *e, int *i);

/* GPUs that this process may use, as far as the driver lists them; else those that are there. */
int pc__gpu_count(const pc__exam *e);

/* "13.0.1" as 13.0: 1300; -1 for none. */
int pc__version_number(const char *text);

/* The checks, each in the file of its subject. */
typedef void (*pc__check)(pc__exam *e);
void pc__check_driver_missing(pc__exam *e); /* doctor_driver.c */
void pc__check_nouveau(pc__exam *e);
void pc__check_module_unloaded(pc__exam *e);
void pc__check_version_mismatch(pc__exam *e);
void pc__check_driver_too_old(pc__exam *e);
void pc__check_driver_hangs(pc__exam *e);
void pc__check_refused(pc__exam *e); /* doctor_start.c */
void pc__check_driver_libraries(pc__exam *e);
void pc__check_nvml_start(pc__exam *e);
void pc__check_wsl(pc__exam *e);
void pc__check_device_files(pc__exam *e); /* doctor_access.c */
void pc__check_container(pc__exam *e);
void pc__check_cuda_start(pc__exam *e);
void pc__check_this_build(pc__exam *e);
void pc__check_secure_boot(pc__exam *e); /* doctor_kernel.c */
void pc__check_headers(pc__exam *e);
void pc__check_xid(pc__exam *e);
void pc__check_toolkit(pc__exam *e); /* doctor_toolkit.c */
void pc__check_libraries(pc__exam *e);
void pc__check_storage(pc__exam *e);
void pc__check_ecc(pc__exam *e); /* doctor_health.c */
void pc__check_pcie(pc__exam *e);
void pc__check_throttle(pc__exam *e);
void pc__check_lost(pc__exam *e);
void pc__check_orphans(pc__exam *e);
void pc__check_fabric(pc__exam *e); /* doctor_many.c */
void pc__check_iommu(pc__exam *e);
void pc__check_peers(pc__exam *e);
void pc__check_shared_memory(pc__exam *e);
void pc__check_placement(pc__exam *e);

/* holders.c: lines of "PID NAME", of processes that have a GPU open and can be seen, from pc__alloc; NULL: none. */
char *pc__holders(pc__exam *e);

/* kernel_log.c: the end of the kernel's log, from pc__alloc; NULL when it cannot be read. */
char *pc__kernel_log(pc__machine *m);

/* xid.c: what an Xid of the kernel log means; NULL: not known here. *harmless: of the program, not of the machine. */
const char *pc__xid_meaning(int xid, bool *harmless, const char **advice);

#endif

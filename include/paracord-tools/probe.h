/* probe.h: what a machine has to compute on, whether or not a driver runs, and what is wrong with it.
 *
 *     pc_machine *m = pc_machine();
 *     for (int i = 0; m && i < m->device_count; i++)
 *         if (m->devices[i].memory_total.known)
 *             printf("%s has %.0f bytes\n", m->devices[i].model.text, m->devices[i].memory_total.number);
 *     pc_machine_free(m);
 *
 * Everything is a fact: known, or unknown with the reason. Nothing unknown is 0. No root is needed, no CUDA context is
 * made; the driver's libraries are asked in a child process, which is ended when they do not answer in time.
 *
 * A machine can also be read from a folder that holds its proc/, sys/, etc/ and so on, or from a recording: one text
 * file that pc_machine_record wrote on it (docs/devices.md has the format). Programs' and libraries' answers lie under
 * answers/ there.
 */
#ifndef PARACORD_TOOLS_PROBE_H
#define PARACORD_TOOLS_PROBE_H

#include <paracord/device.h>

PC_BEGIN

typedef enum pc_unit {
    PC_UNIT_TEXT, /* a fact of this unit has text and no number */
    PC_UNIT_NUMBER,
    PC_UNIT_YES_NO, /* 0 or 1 */
    PC_UNIT_BYTES,
    PC_UNIT_PERCENT,
    PC_UNIT_CELSIUS,
    PC_UNIT_WATTS,
    PC_UNIT_MHZ,
    PC_UNITS
} pc_unit;

typedef struct pc_fact {
    bool known;
    double number;
    const char *text; /* of a known fact whose unit is text; otherwise NULL */
    const char *why;  /* of an unknown one: the reason, NULL when nobody asked */
} pc_fact;

/* member, unit, whether it changes from moment to moment (then pc_machine_sample asks again), what people call it.
 * JSON's keys are the members' names with the unit behind: memory_used_bytes. */
#define PC_DEVICE_FACTS(X)                                                                                             \
    X(address, TEXT, false, "PCI address")                                                                             \
    X(class_name, TEXT, false, "Class")                                                                                \
    X(vendor, TEXT, false, "Vendor")                                                                                   \
    X(model, TEXT, false, "Model")                                                                                     \
    X(vendor_id, TEXT, false, "Vendor id")                                                                             \
    X(device_id, TEXT, false, "Device id")                                                                             \
    X(subsystem_id, TEXT, false, "Subsystem id")                                                                       \
    X(class_id, TEXT, false, "Class id")                                                                               \
    X(board_vendor, TEXT, false, "Maker of the board")                                                                 \
    X(revision, TEXT, false, "Revision")                                                                               \
    X(module, TEXT, false, "Kernel module in use")                                                                     \
    X(modules, TEXT, false, "Kernel modules for it")                                                                   \
    X(boot_display, YES_NO, false, "Shows the console")                                                                \
    X(device_files, TEXT, false, "Device files")                                                                       \
    X(bar_largest, BYTES, false, "Largest memory window")                                                              \
    X(irq, NUMBER, false, "Interrupt")                                                                                 \
    X(numa_node, NUMBER, false, "NUMA node")                                                                           \
    X(cpu_affinity, TEXT, false, "Nearest CPUs")                                                                       \
    X(iommu_group, NUMBER, false, "IOMMU group")                                                                       \
    X(power_state, TEXT, false, "Power state")                                                                         \
    X(index_pci, NUMBER, false, "Index in PCI order")                                                                  \
    X(index_cuda, NUMBER, false, "Index in CUDA order")                                                                \
    X(minor, NUMBER, false, "Number of its device file")                                                               \
    X(uuid, TEXT, false, "UUID")                                                                                       \
    X(serial, TEXT, false, "Serial number")                                                                            \
    X(compute_capability, TEXT, false, "Compute capability")                                                           \
    X(architecture, TEXT, false, "Architecture")                                                                       \
    X(vbios, TEXT, false, "VBIOS")                                                                                     \
    X(gsp_firmware, TEXT, false, "GSP firmware")                                                                       \
    X(persistence, YES_NO, false, "Persistence mode")                                                                  \
    X(compute_mode, TEXT, false, "Compute mode")                                                                       \
    X(display_active, YES_NO, false, "Display active")                                                                 \
    X(mig, YES_NO, false, "MIG mode")                                                                                  \
    X(mig_pending, YES_NO, false, "MIG mode after a reset")                                                            \
    X(ecc, YES_NO, false, "ECC")                                                                                       \
    X(ecc_pending, YES_NO, false, "ECC after a reset")                                                                 \
    X(fabric_state, TEXT, false, "Fabric state")                                                                       \
    X(nvlinks, NUMBER, false, "NVLinks")                                                                               \
    X(nvlinks_active, NUMBER, false, "NVLinks active")                                                                 \
    X(nvlink_version, NUMBER, false, "NVLink version")                                                                 \
    X(pcie_generation_max, NUMBER, false, "PCIe generation, at most")                                                  \
    X(pcie_generation_device, NUMBER, false, "PCIe generation, device's most")                                         \
    X(pcie_generation_host, NUMBER, false, "PCIe generation, host's most")                                             \
    X(pcie_width_max, NUMBER, false, "PCIe width, at most")                                                            \
    X(pcie_width_device, NUMBER, false, "PCIe width, device's most")                                                   \
    X(pcie_width_host, NUMBER, false, "PCIe width, host's most")                                                       \
    X(pcie_generation, NUMBER, true, "PCIe generation now")                                                            \
    X(pcie_width, NUMBER, true, "PCIe width now")                                                                      \
    X(pcie_replays, NUMBER, true, "PCIe replays")                                                                      \
    X(memory_total, BYTES, false, "Memory")                                                                            \
    X(memory_reserved, BYTES, true, "Memory reserved")                                                                 \
    X(memory_used, BYTES, true, "Memory used")                                                                         \
    X(memory_free, BYTES, true, "Memory free")                                                                         \
    X(bar1_total, BYTES, false, "BAR1")                                                                                \
    X(bar1_used, BYTES, true, "BAR1 used")                                                                             \
    X(utilization_gpu, PERCENT, true, "Utilisation")                                                                   \
    X(utilization_memory, PERCENT, true, "Memory utilisation")                                                         \
    X(utilization_encoder, PERCENT, true, "Encoder utilisation")                                                       \
    X(utilization_decoder, PERCENT, true, "Decoder utilisation")                                                       \
    X(temperature, CELSIUS, true, "Temperature")                                                                       \
    X(temperature_slowdown, CELSIUS, false, "Slows down at")                                                           \
    X(temperature_shutdown, CELSIUS, false, "Shuts down at")                                                           \
    X(fan, PERCENT, true, "Fan")                                                                                       \
    X(power, WATTS, true, "Power")                                                                                     \
    X(power_limit, WATTS, false, "Power limit")                                                                        \
    X(power_limit_default, WATTS, false, "Power limit, default")                                                       \
    X(power_limit_enforced, WATTS, true, "Power limit enforced")                                                       \
    X(power_limit_min, WATTS, false, "Power limit, least")                                                             \
    X(power_limit_max, WATTS, false, "Power limit, most")                                                              \
    X(performance_state, TEXT, true, "Performance state")                                                              \
    X(clock_graphics, MHZ, true, "Graphics clock")                                                                     \
    X(clock_sm, MHZ, true, "SM clock")                                                                                 \
    X(clock_memory, MHZ, true, "Memory clock")                                                                         \
    X(clock_video, MHZ, true, "Video clock")                                                                           \
    X(clock_graphics_max, MHZ, false, "Graphics clock, at most")                                                       \
    X(clock_sm_max, MHZ, false, "SM clock, at most")                                                                   \
    X(clock_memory_max, MHZ, false, "Memory clock, at most")                                                           \
    X(clock_video_max, MHZ, false, "Video clock, at most")                                                             \
    X(clock_reasons, TEXT, true, "Clocks held down by")                                                                \
    X(ecc_corrected, NUMBER, true, "ECC errors corrected since load")                                                  \
    X(ecc_uncorrected, NUMBER, true, "ECC errors not corrected since load")                                            \
    X(ecc_corrected_ever, NUMBER, true, "ECC errors corrected ever")                                                   \
    X(ecc_uncorrected_ever, NUMBER, true, "ECC errors not corrected ever")                                             \
    X(rows_remapped_corrected, NUMBER, true, "Rows replaced, corrected errors")                                        \
    X(rows_remapped_uncorrected, NUMBER, true, "Rows replaced, uncorrected errors")                                    \
    X(rows_pending, YES_NO, true, "Memory rows waiting for a reset")                                                   \
    X(rows_failed, YES_NO, true, "Replacing memory rows failed")

#define PC_MACHINE_FACTS(X)                                                                                            \
    X(kernel, TEXT, false, "Kernel")                                                                                   \
    X(system, TEXT, false, "System")                                                                                   \
    X(system_id, TEXT, false, "System id")                                                                             \
    X(container, TEXT, false, "Container")                                                                             \
    X(secure_boot, YES_NO, false, "Secure Boot")                                                                       \
    X(shared_memory, BYTES, false, "Size of /dev/shm")                                                                 \
    X(shared_memory_free, BYTES, true, "Free in /dev/shm")                                                             \
    X(driver, TEXT, false, "NVIDIA kernel driver")                                                                     \
    X(driver_kind, TEXT, false, "Its kind")                                                                            \
    X(driver_library, TEXT, false, "NVIDIA driver library")                                                            \
    X(cuda_driver, TEXT, false, "Newest CUDA the driver supports")                                                     \
    X(cuda_init, TEXT, false, "Starting CUDA")                                                                         \
    X(nvml, TEXT, false, "NVML")

typedef struct pc_probe_process {
    int64_t pid;
    const char *name; /* NULL: it lives where this process cannot see it */
    const char *kind; /* "compute", "graphics", "compute and graphics" */
    pc_fact memory;   /* bytes */
} pc_probe_process;

typedef struct pc_probe_connector {
    const char *name;   /* "HDMI-A-1" */
    const char *status; /* "connected", "disconnected", "unknown" */
    const char *mode;   /* the largest it offers, "1920x1080"; NULL: none */
    const char *now;    /* the one in use, "1920x1080 at 60 Hz"; NULL: none, or unknown without root (debugfs) */
    bool in_use;
} pc_probe_connector;

typedef struct pc_probe_mig {
    const char *uuid;
    pc_fact memory; /* bytes */
} pc_probe_mig;

/* A link of NVLink that is up. */
typedef struct pc_probe_link {
    int link;
    const char *to;      /* PCI address of the other end, NULL: unknown */
    const char *to_kind; /* "gpu", "switch", "cpu", "unknown" */
} pc_probe_link;

typedef struct pc_probe_device {
#define PC_PROBE_MEMBER(member, unit, changes, label) pc_fact member;
    PC_DEVICE_FACTS(PC_PROBE_MEMBER)
    bool nvidia;     /* made by NVIDIA */
    bool integrated; /* part of a system on a chip (Tegra): in no PCI tree, its address is a name of the kernel's */
    bool asleep;     /* switched off until it is used; with .wake it is asked all the same */
    bool nvml;       /* the driver's library answered for it */
    const char *bus_path; /* the bridges above it, "pci0000:00/0000:00:01.0/0000:01:00.0"; NULL: unknown */
    pc_fact processes_known;
    pc_probe_process *processes;
    pc_probe_connector *connectors;
    pc_probe_mig *migs;
    pc_probe_link *links;
    int process_count, connector_count, mig_count, link_count;
} pc_probe_device;

typedef struct pc_probe_toolkit {
    const char *version, *path;
    bool on_path, on_library_path; /* its nvcc is the first one of PATH; its libraries are found by the loader */
} pc_probe_toolkit;

/* A library that a part of Paracord opens when it needs it. */
typedef struct pc_probe_library {
    const char *name;    /* "cuDNN" */
    const char *purpose; /* what it is for */
    const char *path;    /* where the loader finds it first; NULL: not found */
    const char *version; /* as its file name says; NULL: unknown */
    const char *why;     /* not found: where it was looked for */
    const char *others;  /* further ones behind it, "PATH (VERSION) PATH (VERSION)"; NULL: none */
} pc_probe_library;

typedef struct pc_machine {
#define PC_PROBE_MACHINE_MEMBER(member, unit, changes, label) pc_fact member;
    PC_MACHINE_FACTS(PC_PROBE_MACHINE_MEMBER)
    pc_probe_device *devices; /* in PCI order: graphics and accelerators */
    int device_count;
    pc_probe_toolkit *toolkits; /* the newest first */
    int toolkit_count;
    pc_probe_library *libraries;
    int library_count;
    int nvswitch_count;
    const char *hung; /* the call into the driver that did not answer in time; NULL: none */
    const char
        *lost; /* what the driver says of a GPU that it lists and cannot open, unless this process may not: or NULL */
    bool live; /* this machine, not a folder or recording */
} pc_machine;

typedef struct pc_machine_options {
    int reserved_;
    const char *root;    /* a folder or a recording; NULL: this machine */
    const char *nvml;    /* the library to open; NULL: libnvidia-ml.so.1 */
    int timeout_ms;      /* how long the driver's libraries may take to answer one call; 0: 3000 */
    bool without_driver; /* ask neither NVML nor CUDA */
    bool recording;      /* keep what is read, for pc_machine_record */
    bool wake;           /* ask a GPU too that sleeps to save power, which wakes it */
} pc_machine_options;

/* Look at a machine: pc_machine(), or pc_machine(.root = "folder"). NULL with an error when there is no such folder or
 * recording, or memory runs out: a machine without anything is no error. The machine belongs to the caller; one thread
 * at a time. */
PC_API PC_MUST_USE pc_machine *pc_machine_new(pc_machine_options options);
#define pc_machine(...) pc_machine_new(PC_OPTIONS(pc_machine_options, __VA_ARGS__))
PC_API void pc_machine_free(pc_machine *machine);

/* Ask again for the facts that change. Pointers into the machine's arrays of processes become invalid. */
PC_API PC_MUST_USE pc_status pc_machine_sample(pc_machine *machine);

/* Write what probe and doctor read of this machine into a file, from which it can be examined again anywhere. Serial
 * numbers, UUIDs and names of processes are in it, host names, users' files and environment variables but for a few
 * paths are not. PC_ERR_STATE when it was probed without .recording. */
PC_API PC_MUST_USE pc_status pc_machine_record(pc_machine *machine, const char *path);

/* The facts one by one, in the order of the lists above. NULL behind the last. */
typedef struct pc_fact_row {
    const char *name, *label; /* "memory_used", "Memory used" */
    pc_unit unit;
    bool changes;
    size_t offset; /* in pc_probe_device or pc_machine */
} pc_fact_row;
PC_API const pc_fact_row *pc_device_fact(int i);
PC_API const pc_fact_row *pc_machine_fact(int i);

/* A fact of `owner` (the device or the machine). */
PC_API const pc_fact *pc_fact_of(const pc_fact_row *row, const void *owner);

/* A fact for people in text[0..n-1]: "143771 MiB", "42 %", "on", "unknown". Returns text. */
PC_API char *pc_fact_text(const pc_fact_row *row, const pc_fact *fact, char *text, size_t n);

/* The name of a fact with its unit, as JSON and CSV have it: "memory_used_bytes". Returns text. */
PC_API char *pc_fact_key(const pc_fact_row *row, char *text, size_t n);

/* The whole machine as one JSON object on `out`, without a newline behind. Unknown facts are null, and "unknown" says
 * for each of them why. */
PC_API PC_MUST_USE pc_status pc_machine_json(const pc_machine *machine, FILE *out);

/* How two devices are connected, as `nvidia-smi topo -m` names it. */
typedef enum pc_link_kind {
    PC_LINK_UNKNOWN,
    PC_LINK_SELF, /* X */
    PC_LINK_NV,   /* by NVLink, directly or through switches; count says by how many */
    PC_LINK_PIX,  /* at most one PCIe bridge between */
    PC_LINK_PXB,  /* several PCIe bridges, no host bridge */
    PC_LINK_PHB,  /* a PCIe host bridge */
    PC_LINK_NODE, /* host bridges of one NUMA node */
    PC_LINK_SYS   /* the link between NUMA nodes */
} pc_link_kind;

typedef struct pc_link {
    pc_link_kind kind;
    int count;
} pc_link;

/* The link between devices a and b of the machine, and its name, "NV18", in text. */
PC_API pc_link pc_machine_link(const pc_machine *machine, int a, int b);
PC_API char *pc_link_text(pc_link link, char text[16]);

/* How data goes from one GPU to another in a collective, as NCCL chooses it. */
typedef enum pc_way_kind {
    PC_WAY_UNKNOWN,
    PC_WAY_NVLINK,
    PC_WAY_P2P,    /* directly, over PCIe */
    PC_WAY_HOST,   /* through memory of the host that both share (NCCL's SHM) */
    PC_WAY_NETWORK /* by network cards or sockets, which NCCL_SHM_DISABLE leaves */
} pc_way_kind;

typedef struct pc_way {
    pc_way_kind kind;
    double bandwidth; /* bytes a second in each direction that its links carry at most; NaN: unknown */
    const char *why;  /* lent by the machine */
} pc_way;

/* Between devices a and b. The choice is NCCL 2.30's: NVLink; over PCIe where no host bridge is between (or as
 * NCCL_P2P_LEVEL says; on AMD's boards with two GPUs anywhere); else the host's memory. Bandwidths are links times what one
 * carries: NVLink by its version (NVIDIA's datasheets), PCIe by generation and width, at most what the card can. */
PC_API pc_way pc_machine_way(pc_machine *machine, int a, int b);

/* Over all NVIDIA GPUs of the machine. */
typedef struct pc_ways {
    int gpus;            /* fewer than 2: nothing else is said */
    pc_way all;          /* the slowest kind that a ring has to take */
    const char *engine;  /* "NCCL" */
    const char *nvls;    /* whether NVSwitches add up (NVLink SHARP), and why not */
    const char *network; /* to other machines */
    const char *advice;  /* what to change, a line each; "": nothing */
} pc_ways;
PC_API pc_ways pc_machine_ways(pc_machine *machine);

PC_END
#endif

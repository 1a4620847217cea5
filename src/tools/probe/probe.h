/* probe.h: what the parts of the probe share: the machine with what it stands on, and setting facts. */
#ifndef PC__PROBE_H
#define PC__PROBE_H

#include "probe/root.h"

#include <paracord-tools/probe.h>
#include <stdarg.h>

typedef struct pc__asker pc__asker;

typedef struct pc__machine {
    pc_machine public;
    pc__root *root;
    pc_machine_options options;
    char **strings; /* the one copy of each text, in a table of `string_room` places */
    int string_count, string_room;
    int device_capacity, toolkit_capacity, library_capacity;
    pc__asker *asker;       /* the child that asks the driver's libraries, while pc_machine_sample may come again */
    bool failed;            /* memory ran out for what the machine keeps */
    bool numbers_elsewhere; /* the driver's numbers of processes are the host's, and others here */
    const char *forbidden;  /* a GPU that NVML lists and this process may not use, and NVML's words; NULL: none */
} pc__machine;

/* The machine's own copy of a text, the same for equal ones; "" when memory runs out. Whole, however long: a list or a
 * command that is cut says something else. */
const char *pc__keep(pc__machine *m, const char *text);
const char *pc__keepv(pc__machine *m, const char *format, va_list arguments);
const char *pc__keepf(pc__machine *m, const char *format, ...) PC_PRINTF(2, 3);

void pc__fact_text(pc__machine *m, pc_fact *fact, const char *text);
void pc__fact_number(pc_fact *fact, double number);
void pc__fact_unknown(pc__machine *m, pc_fact *fact, const char *format, ...) PC_PRINTF(3, 4);

/* Give a reason to every fact that is neither known nor has one. */
void pc__facts_default(pc__machine *m, const pc_fact_row *(*row)(int), void *owner, const char *why);

/* One more element in an array of the machine's, zeroed; NULL when memory runs out. */
void *pc__more(pc__machine *m, void *array, int *count, int *capacity, size_t size);

/* The device at a PCI address ("0000:01:00.0", domains of four or eight digits, any case), or NULL. */
pc_probe_device *pc__device_at(pc__machine *m, const char *address);

/* Each fills in its part of the machine. */
void pc__probe_pci(pc__machine *m);       /* pci.c: devices, links, modules in use */
void pc__probe_tegra(pc__machine *m);     /* tegra.c: the GPU of a system on a chip */
void pc__sample_tegra(pc__machine *m);    /* its load, which changes */
void pc__probe_names(pc__machine *m);     /* pci_names.c: vendors and models */
void pc__probe_modules(pc__machine *m);   /* modules.c: modules for devices */
void pc__probe_amd(pc__machine *m);       /* amdgpu.c: what AMD's module tells */
void pc__probe_displays(pc__machine *m);  /* drm.c: connectors */
void pc__probe_system(pc__machine *m);    /* system.c: kernel, distribution, container, Secure Boot, shared memory */
void pc__probe_driver(pc__machine *m);    /* driver.c: versions of the NVIDIA driver in the kernel and on disk */
void pc__probe_libraries(pc__machine *m); /* libraries.c: what Paracord opens */
void pc__probe_toolkits(pc__machine *m);  /* toolkits.c: CUDA toolkits */
void pc__probe_answers(pc__machine *m);   /* answers.c: what NVML and CUDA say */

/* pci.c: the kernel has switched the device off, and whoever asks for more than it remembers would wake it. */
bool pc__asleep(pc__machine *m, const pc_probe_device *d);

/* pci.c: a device's configuration: 64 bytes for everybody, all of it for root; how many, -1: none. Not of one that
 * sleeps: reading wakes it. */
enum { PC__CONFIG = 4097 };
ssize_t pc__pci_config(pc__machine *m, const char *address, unsigned char config[PC__CONFIG]);

/* libraries.c: call back for each folder in which the loader looks, in its order, until `each` says false. */
void pc__loader_folders(pc__machine *m, bool (*each)(void *context, const char *folder), void *context);

/* loader_cache.c: call back for each file that the loader's index (/etc/ld.so.cache) has for one of the driver's
 * libraries, in its order, until `each` says false; how many. LD_LIBRARY_PATH comes before it. */
int pc__loader_cached(pc__machine *m, const char *name, bool (*each)(void *context, const char *path), void *context);

/* system.c: the version that follows "name=" in etc/os-release, or the like; false when it is not there. */
bool pc__os_release(pc__machine *m, const char *name, char *value, size_t n);

/* system.c: the kernel is one that Microsoft gives to Linux in Windows, or is made from it. */
bool pc__kernel_of_microsoft(pc__machine *m);

/* ask.c: a child process that asks NVML and CUDA and writes lines (ask.h). */
pc__asker *pc__asker_start(const pc_machine_options *options);
void pc__asker_end(pc__asker *asker);

/* Send what it writes, up to "done", to `line`; with `again` only what changes. False when it hung or ended: then
 * `hung` is the call it was in, and says so where that ended it; "" when it was never reached. */
bool pc__asker_ask(pc__asker *asker, bool again, void (*line)(void *context, char *line), void *context,
                   char hung[128]);

#endif

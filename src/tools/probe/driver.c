/* driver.c: the NVIDIA driver in the kernel and its libraries on disk, as files tell of them. */
#include "probe/probe.h"

#include <ctype.h>
#include <stdlib.h>

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..." */
static bool read_proc(pc__machine *m)
{
    char line[512];
    if (!pc__root_line(m->root, "proc/driver/nvidia/version", line, sizeof line))
        return false;
    for (char *c = line; *c; c++) {
        char before = c == line ? ' ' : c[-1];
        size_t n = strspn(c, "0123456789.");
        if (before != ' ' || !isdigit((unsigned char)*c) || !memchr(c, '.', n))
            continue;
        char version[64];
        snprintf(version, sizeof version, "%.*s", (int)PC__MIN(n, 63), c);
        pc__fact_text(m, &m->public.driver, version);
        pc__fact_text(m, &m->public.driver_kind, strstr(line, "Open Kernel") ? "open" : "proprietary");
        return true;
    }
    return false;
}

/* "# R36 (release), REVISION: 4.3, GCID: ...": on a Jetson the driver is of the system's release. */
static bool read_tegra(pc__machine *m)
{
    char line[256], revision[32];
    int release;
    if (!pc__root_line(m->root, "etc/nv_tegra_release", line, sizeof line) ||
        sscanf(line, "# R%d (release), REVISION: %31[0-9.]", &release, revision) != 2)
        return false;
    pc__fact_text(m, &m->public.driver, pc__keepf(m, "L4T %d.%s", release, revision));
    return true;
}

/* libnvidia-ml.so.580.65.06 and the like carry the version in their names; the loader's first one counts. */
typedef struct on_disk {
    pc__machine *m;
    char version[64];
} on_disk;

static void look(void *context, const char *name)
{
    on_disk *found = context;
    const char *version = name + strlen("libnvidia-ml.so.");
    if (strlen(name) > strlen("libnvidia-ml.so.") && strchr(version, '.'))
        snprintf(found->version, sizeof found->version, "%.63s", version);
}

static bool in_folder(void *context, const char *folder)
{
    on_disk *found = context;
    pc__root_list(found->m->root, folder, "libnvidia-ml.so.", look, found);
    return !found->version[0];
}

void pc__probe_driver(pc__machine *m)
{
    char line[64];
    pc_machine *machine = &m->public;
    if (!read_proc(m)) {
        if (read_tegra(m))
            ;
        else if (pc__root_line(m->root, "sys/module/nvidia/version", line, sizeof line))
            pc__fact_text(m, &machine->driver, line);
        else
            pc__fact_unknown(m, &machine->driver, "the module nvidia is not loaded (no /proc/driver/nvidia/version)");
        pc__fact_unknown(m, &machine->driver_kind, "no /proc/driver/nvidia/version");
    }
    on_disk found = {.m = m};
    pc__loader_folders(m, in_folder, &found);
    if (found.version[0])
        pc__fact_text(m, &machine->driver_library, found.version);
    else
        pc__fact_unknown(m, &machine->driver_library, "no libnvidia-ml.so.VERSION where the loader looks");
}

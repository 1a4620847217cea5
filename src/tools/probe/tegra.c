/* tegra.c: the GPU of NVIDIA's systems on a chip (Jetson), which is in no PCI tree: the module nvgpu has it. */
#include "probe/probe.h"

#include <ctype.h>
#include <stdlib.h>

#define DRIVER "sys/bus/platform/drivers/gk20a" /* the name of the first one that the module drove */

void pc__sample_tegra(pc__machine *m)
{
    char path[256], line[32];
    for (int i = 0; i < m->public.device_count; i++) {
        pc_probe_device *d = &m->public.devices[i];
        snprintf(path, sizeof path, DRIVER "/%.32s/load", d->address.text);
        if (!d->integrated)
            continue;
        if (pc__root_line(m->root, path, line, sizeof line) && isdigit((unsigned char)line[0]))
            pc__fact_number(&d->utilization_gpu, atoi(line) / 10.0); /* in parts of a thousand */
        else
            pc__fact_unknown(m, &d->utilization_gpu, "nvgpu does not say (/%s)", path);
    }
}

/* "17000000.gpu" beside bind, module, uevent and unbind. */
static void look(void *context, const char *name)
{
    pc__machine *m = context;
    char line[128], model[160];
    if (!isxdigit((unsigned char)name[0]) || !strchr(name, '.') || strlen(name) > 32)
        return;
    pc_probe_device *d =
        pc__more(m, &m->public.devices, &m->public.device_count, &m->device_capacity, sizeof *m->public.devices);
    if (!d)
        return;
    d->nvidia = d->integrated = true;
    pc__fact_text(m, &d->address, name);
    pc__fact_text(m, &d->class_name, "integrated GPU");
    pc__fact_text(m, &d->vendor, "NVIDIA Corporation");
    pc__fact_text(m, &d->module, "nvgpu");
    if (pc__root_line(m->root, "proc/device-tree/model", line, sizeof line))
        snprintf(model, sizeof model, "GPU of %s", line);
    else
        snprintf(model, sizeof model, "GPU of a Tegra");
    pc__fact_text(m, &d->model, model);
    pc__fact_unknown(m, &d->memory_total, "it computes in the machine's own memory");
}

void pc__probe_tegra(pc__machine *m)
{
    pc__root_list(m->root, DRIVER, "", look, m);
    pc__sample_tegra(m);
}

/* amdgpu.c: what the module amdgpu tells in files: memory, load, temperature, power, clocks. No library is needed. */
#include "probe/probe.h"

#include "base/number.h"

#define DEVICES "sys/bus/pci/devices"

typedef struct sensor {
    pc__machine *m;
    char folder[64]; /* the one of hwmon/, "hwmon3" */
} sensor;

static void look(void *context, const char *name)
{
    sensor *s = context;
    snprintf(s->folder, sizeof s->folder, "%.60s", name);
}

/* A file of one number, in parts of `unit`. */
static void read_fact(pc__machine *m, pc_fact *fact, const pc_probe_device *d, const char *folder, const char *file,
                      double unit)
{
    char path[256], line[64], *end;
    snprintf(path, sizeof path, DEVICES "/%.32s/%s%s", d->address.text, folder, file);
    if (!pc__root_line(m->root, path, line, sizeof line))
        return;
    double number = pc__number_of(line, &end);
    if (end != line && !*end && number >= 0 && number < 1e18)
        pc__fact_number(fact, number / unit);
}

static void read_device(pc__machine *m, pc_probe_device *d)
{
    char path[256], folder[96];
    sensor s = {.m = m};
    read_fact(m, &d->memory_total, d, "", "mem_info_vram_total", 1);
    read_fact(m, &d->memory_used, d, "", "mem_info_vram_used", 1);
    if (d->memory_total.known && d->memory_used.known)
        pc__fact_number(&d->memory_free, d->memory_total.number - d->memory_used.number);
    read_fact(m, &d->utilization_gpu, d, "", "gpu_busy_percent", 1);
    read_fact(m, &d->utilization_memory, d, "", "mem_busy_percent", 1);
    snprintf(path, sizeof path, DEVICES "/%.32s/hwmon", d->address.text);
    if (pc__root_list(m->root, path, "hwmon", look, &s) <= 0)
        return;
    snprintf(folder, sizeof folder, "hwmon/%s/", s.folder);
    read_fact(m, &d->temperature, d, folder, "temp1_input", 1e3);
    read_fact(m, &d->temperature_shutdown, d, folder, "temp1_emergency", 1e3);
    read_fact(m, &d->temperature_slowdown, d, folder, "temp1_crit", 1e3);
    read_fact(m, &d->power, d, folder, "power1_average", 1e6);
    if (!d->power.known)
        read_fact(m, &d->power, d, folder, "power1_input", 1e6);
    read_fact(m, &d->power_limit, d, folder, "power1_cap", 1e6);
    read_fact(m, &d->power_limit_enforced, d, folder, "power1_cap", 1e6);
    read_fact(m, &d->power_limit_default, d, folder, "power1_cap_default", 1e6);
    read_fact(m, &d->power_limit_max, d, folder, "power1_cap_max", 1e6);
    read_fact(m, &d->clock_graphics, d, folder, "freq1_input", 1e6);
    read_fact(m, &d->clock_sm, d, folder, "freq1_input", 1e6);
    read_fact(m, &d->clock_memory, d, folder, "freq2_input", 1e6);
}

void pc__probe_amd(pc__machine *m)
{
    for (int i = 0; i < m->public.device_count; i++) {
        pc_probe_device *d = &m->public.devices[i];
        if (!d->module.known || strcmp(d->module.text, "amdgpu"))
            continue;
        for (int j = 0; pc_device_fact(j); j++)
            if (pc_device_fact(j)->changes && strncmp(pc_device_fact(j)->name, "pcie_", 5))
                pc__fact_unknown(m, (pc_fact *)((char *)d + pc_device_fact(j)->offset), "amdgpu does not say");
        read_device(m, d);
    }
}

/* modules.c: which kernel modules there are for a device, by modules.alias of the running kernel. */
#include "probe/probe.h"

#include <fnmatch.h>

/* The device as the kernel writes it in modalias: vendor, device, subsystem and class. */
static void write_alias(const pc_probe_device *d, char *alias, size_t n)
{
    unsigned vendor = 0, device = 0, sub_vendor = 0, sub_device = 0, class = 0;
    sscanf(d->vendor_id.text, "%x", &vendor);
    sscanf(d->device_id.known ? d->device_id.text : "", "%x", &device);
    sscanf(d->subsystem_id.known ? d->subsystem_id.text : "", "%x:%x", &sub_vendor, &sub_device);
    sscanf(d->class_id.text, "%x", &class);
    snprintf(alias, n, "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", vendor, device, sub_vendor, sub_device,
             class >> 16 & 0xff, class >> 8 & 0xff, class & 0xff);
}

/* Lines of "alias PATTERN MODULE". */
static void match_lines(pc__machine *m, pc_probe_device *d, const char *lines)
{
    char alias[96], pattern[256], module[64], found[512] = "";
    size_t used = 0;
    write_alias(d, alias, sizeof alias);
    for (const char *line = lines; line && *line; line = pc__behind(line, '\n')) {
        if (sscanf(line, "alias %255s %63s", pattern, module) != 2 || fnmatch(pattern, alias, 0))
            continue;
        char *known = strstr(found, module);
        size_t n = strlen(module);
        if (known && (known == found || known[-1] == ' ') && (!known[n] || known[n] == ' '))
            continue;
        int wrote = snprintf(found + used, sizeof found - used, "%s%s", used ? " " : "", module);
        used = PC__MIN(used + (size_t)wrote, sizeof found - 1);
    }
    if (used)
        pc__fact_text(m, &d->modules, found);
    else
        pc__fact_unknown(m, &d->modules, "no module of this kernel is for the device");
}

void pc__probe_modules(pc__machine *m)
{
    char path[256], prefix[48];
    for (int i = 0; i < m->public.device_count; i++) {
        pc_probe_device *d = &m->public.devices[i];
        unsigned vendor = 0;
        if (!d->vendor_id.known || sscanf(d->vendor_id.text, "%x", &vendor) != 1)
            continue;
        if (!m->public.kernel.known) {
            pc__fact_unknown(m, &d->modules, "the kernel's release is unknown");
            continue;
        }
        snprintf(prefix, sizeof prefix, "alias pci:v%08X", vendor);
        snprintf(path, sizeof path, "lib/modules/%.200s/modules.alias", m->public.kernel.text);
        char *lines = pc__root_lines(m->root, path, prefix);
        if (!lines) { /* NixOS */
            char other[320];
            snprintf(other, sizeof other, "run/booted-system/kernel-modules/%s", path);
            lines = pc__root_lines(m->root, other, prefix);
        }
        if (lines)
            match_lines(m, d, lines);
        else
            pc__fact_unknown(m, &d->modules, "there is no /%s", path);
        pc__free(lines);
    }
}

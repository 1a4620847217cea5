/* pci_names.c: names of vendors and models from the PCI ids file that lspci uses. */
#include "probe/probe.h"

#include <stdlib.h>

/* Machines without the file still learn whose device it is. */
static const struct {
    const char *id, *name;
} vendors[] = {{"10de", "NVIDIA Corporation"},
               {"1002", "Advanced Micro Devices, Inc. [AMD/ATI]"},
               {"8086", "Intel Corporation"},
               {"1a03", "ASPEED Technology, Inc."},
               {"102b", "Matrox Electronics Systems Ltd."},
               {"1d0f", "Amazon.com, Inc."},
               {"1ae0", "Google, Inc."},
               {"1da3", "Habana Labs Ltd."},
               {"1234", "QEMU"},
               {"1af4", "Red Hat, Inc."},
               {"1b36", "Red Hat, Inc."},
               {"15ad", "VMware"},
               {"1414", "Microsoft Corporation"},
               {"80ee", "InnoTek Systemberatung GmbH"}};

/* Where an entry's lines end: at the next line that begins with no tab. */
static const char *end_of(const char *entry)
{
    for (entry = strchr(entry, '\n'); entry; entry = strchr(entry + 1, '\n'))
        if (entry[1] != '\t' && entry[1] != '#')
            return entry;
    return NULL;
}

/* The name behind "\n10de  " or "\n\t2335  " between `from` and `end`, in `name`; where it begins, or NULL. */
static const char *find_name(const char *from, const char *end, const char *key, char *name, size_t n)
{
    const char *at = strstr(from, key);
    if (!at || (end && at > end))
        return NULL;
    const char *text = at + strlen(key);
    size_t length = strcspn(text, "\n");
    snprintf(name, n, "%.*s", (int)PC__MIN(length, n - 1), text);
    return at + 1;
}

static void name_device(pc__machine *m, pc_probe_device *d, const char *ids)
{
    char key[32], name[256];
    const char *vendor = NULL;
    snprintf(key, sizeof key, "\n%s  ", d->vendor_id.text);
    if (ids && (vendor = find_name(ids, NULL, key, name, sizeof name)))
        pc__fact_text(m, &d->vendor, name);
    for (int i = 0; !vendor && i < PC__COUNT(vendors); i++)
        if (!strcmp(vendors[i].id, d->vendor_id.text))
            pc__fact_text(m, &d->vendor, vendors[i].name);
    if (!d->vendor.known)
        pc__fact_unknown(m, &d->vendor, ids ? "the PCI ids file does not know %s" : "no PCI ids file; vendor id %s",
                         d->vendor_id.text);
    snprintf(key, sizeof key, "\n\t%s  ", d->device_id.known ? d->device_id.text : "?");
    if (vendor && find_name(vendor, end_of(vendor), key, name, sizeof name))
        pc__fact_text(m, &d->model, name);
    else
        pc__fact_unknown(m, &d->model, ids ? "the PCI ids file does not know %s" : "no PCI ids file; device id %s",
                         d->device_id.known ? d->device_id.text : "it");
}

/* Who built the card around the chip. */
static void name_board(pc__machine *m, pc_probe_device *d, const char *ids)
{
    char key[32], name[256];
    snprintf(key, sizeof key, "\n%.4s  ", d->subsystem_id.known ? d->subsystem_id.text : "?");
    if (!d->subsystem_id.known)
        pc__fact_unknown(m, &d->board_vendor, "its subsystem id is unknown");
    else if (ids && find_name(ids, NULL, key, name, sizeof name))
        pc__fact_text(m, &d->board_vendor, name);
    else
        pc__fact_unknown(m, &d->board_vendor,
                         ids ? "the PCI ids file does not know %.4s" : "no PCI ids file; vendor id %.4s",
                         d->subsystem_id.text);
}

/* A recording holds the names of this machine's devices alone: the file is large. */
static void note_names(pc__machine *m, const char *path)
{
    const pc_probe_device *devices = m->public.devices;
    int count = m->public.device_count;
    pc__text kept = {0};
    for (int i = 0; i < count; i++) {
        bool before = !devices[i].vendor_id.known;
        for (int j = 0; j < i && !before; j++)
            before = devices[j].vendor_id.text == devices[i].vendor_id.text;
        if (before || !devices[i].vendor.known)
            continue;
        pc__text_add(&kept, "\n%s  %s\n", devices[i].vendor_id.text, devices[i].vendor.text);
        for (int j = i; j < count; j++)
            if (devices[j].vendor_id.text == devices[i].vendor_id.text && devices[j].model.known)
                pc__text_add(&kept, "\t%s  %s\n", devices[j].device_id.text, devices[j].model.text);
    }
    for (int i = 0; i < count; i++) {
        bool there = !devices[i].board_vendor.known;
        for (int j = 0; j < count && !there; j++)
            there =
                (devices[j].vendor_id.known && !strncmp(devices[j].vendor_id.text, devices[i].subsystem_id.text, 4)) ||
                (j < i && devices[j].board_vendor.text == devices[i].board_vendor.text);
        if (!there)
            pc__text_add(&kept, "\n%.4s  %s\n", devices[i].subsystem_id.text, devices[i].board_vendor.text);
    }
    if (kept.data)
        pc__root_note(m->root, path, kept.data);
    pc__text_free(&kept);
}

void pc__probe_names(pc__machine *m)
{
    static const char *const paths[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids",
                                        "var/lib/pciutils/pci.ids"};
    char *ids = NULL;
    int found = 0;
    for (int i = 0; !ids && m->public.device_count && i < PC__COUNT(paths); i++)
        ids = pc__root_whole(m->root, paths[found = i], 8 << 20, false);
    for (int i = 0; i < m->public.device_count; i++)
        if (m->public.devices[i].vendor_id.known) {
            name_device(m, &m->public.devices[i], ids);
            name_board(m, &m->public.devices[i], ids);
        }
    if (ids && m->options.recording)
        note_names(m, paths[found]);
    pc__free(ids);
}

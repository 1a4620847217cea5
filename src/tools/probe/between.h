/* between.h: what stands between GPUs that reach each other over PCIe. */
#ifndef PC__PROBE_BETWEEN_H
#define PC__PROBE_BETWEEN_H

#include "probe/probe.h"

/* GeForce cards since Turing are not let copy to each other over PCIe (NVIDIA's driver says "chipset not supported"):
 * their copies go through the host anyway. */
bool pc__without_peers(const pc_probe_device *d);

/* The IOMMU translates for this device, rather than letting addresses pass: true with its group's type ("DMA-FQ"). */
bool pc__iommu_translates(pc__machine *m, const pc_probe_device *d, char type[16]);

/* Bridges which send what goes from one GPU to another up to the CPU (PCI Express Base Specification,
 * Access Control Services: request and completion redirect). */
typedef struct pc__acs {
    char bridges[512]; /* their addresses, with blanks between; "": none is seen */
    bool hidden;       /* of some it cannot be seen: the kernel shows their configuration to root alone */
} pc__acs;

/* Add those above a device, to what begins with {0}. */
void pc__acs_above(pc__machine *m, const pc_probe_device *d, pc__acs *acs);

/* Words of the kernel's command line that concern both ("intel_iommu=on iommu=pt"), "" for none. Returns words. */
char *pc__iommu_words(pc__machine *m, char *words, size_t n);

#endif

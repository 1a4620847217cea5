/* ways.h: how NCCL goes from GPU to GPU, and why: what its choice follows from. */
#ifndef PC__PROBE_WAYS_H
#define PC__PROBE_WAYS_H

#include "probe/between.h"

/* The farthest link over which NCCL lets GPUs reach each other directly (NCCL_P2P_LEVEL): PC_LINK_SELF for none at all,
 * PC_LINK_NV, then as the enum goes; and why, for people. Of NODE and SYS it knows PHB and SYS. */
typedef struct pc__level {
    pc_link_kind farthest;
    const char *why;
    bool asked; /* by a variable of the environment */
} pc__level;
pc__level pc__p2p_level(pc__machine *m);

/* The same link in NCCL's count, where host bridges of one node are one. */
pc_link_kind pc__ncclwise(pc_link_kind kind);

/* The NVIDIA GPUs that compute: their places in the machine's devices, at most `room`; how many. */
int pc__ways_gpus(const pc_machine *machine, int index[], int room);
enum { PC__WAYS_GPUS = 64 };

/* All links of it go to NVSwitches. */
bool pc__behind_switches(const pc_probe_device *d);

#endif

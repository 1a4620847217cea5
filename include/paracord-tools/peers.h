/* peers.h: do several devices of this machine work together? Copies and an all-reduce are tried, where a hang harms
 * nobody.
 *
 *     char lines[PC_PEERS_TEXT];
 *     if (pc_peers_try(PC_OPTIONS(pc_peers_options, .type = PC_CUDA), lines) == PC_OK)
 *         d = pc_diagnosis(machine, .peers = lines);
 *
 * Between GPUs whose traffic goes through the IOMMU, or is redirected by PCIe's access control (ACS), copies may never
 * end, or arrive as something else without an error (NVIDIA NCCL User Guide, Troubleshooting; NVIDIA/nccl issues 257,
 * 1999, 2079). Training on them hangs, or learns nonsense.
 */
#ifndef PARACORD_TOOLS_PEERS_H
#define PARACORD_TOOLS_PEERS_H

#include <paracord/device.h>

PC_BEGIN

#define PC_PEERS_TEXT 32768
#define PC_PEERS_MAX 16 /* devices that are tried */

typedef struct pc_peers_options {
    int reserved_;
    pc_device_type type; /* PC_CUDA or PC_SIM */
    int timeout_ms;      /* how long copies from one device to another may take; opening a device and the all-reduce six
                            times as long; 0: 5000 */
} pc_peers_options;

/* Copy 16 MiB three times from each device of the type to each other, and all-reduce as much over all of them (NCCL on
 * GPUs, between threads of one process), and compare every byte with what it must be. All of it happens in child
 * processes: one that does not answer in time is ended, or left behind where not even that works, and another one goes
 * on with what is left, until three copies have hung. An all-reduce is not tried where a copy hangs. Where something is
 * wrong, an all-reduce with NCCL_P2P_DISABLE=1 shows whether that is the way out.
 *
 * What came out is in `lines`, one a line:
 *
 *     devices cuda 2                                 how many there are; behind 0 the reason
 *     cuda:0 cuda:1 intact
 *     cuda:0 cuda:1 corrupt 4096 of 16777216 bytes, the first at 0
 *     cuda:1 cuda:0 hangs 5.0 s
 *     cuda:1 cuda:0 failed WORDS                     an error said so: no memory, a device in exclusive use
 *     open cuda:1 hangs 30.0 s
 *     all-reduce 2 intact                            or corrupt, hangs, failed; missing WORDS: there is no NCCL
 *     all-reduce-without-p2p 2 intact
 *
 * To be called before the process uses devices of the type, which do not survive the fork. PC_ERR_ARGUMENT (another
 * type), PC_ERR_BACKEND (no child process), PC_ERR_MEMORY. Any thread. */
PC_API PC_MUST_USE pc_status pc_peers_try(pc_peers_options options, char lines[PC_PEERS_TEXT]);

PC_END
#endif

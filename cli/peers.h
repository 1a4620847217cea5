/* peers.h: copies between two devices: how fast, and whether the bytes arrive. */
#ifndef CLI_PEERS_H
#define CLI_PEERS_H

#include <paracord/device.h>

typedef struct cli_peer {
    double bandwidth; /* bytes a second of a large copy */
    double latency;   /* seconds of a copy of four bytes that the host waits for, median */
    bool intact;      /* what arrived is what was sent */
} cli_peer;

/* Copy from one device to another, `bytes` at a time. */
pc_status cli_peer_measure(pc_device from, pc_device to, int64_t bytes, cli_peer *result);

#endif

/* parts.h: the child that tries what devices do together, and what it tells its parent, a line each. */
#ifndef PC__PEERS_PARTS_H
#define PC__PEERS_PARTS_H

#include "base/base.h"

#include <paracord-tools/peers.h>

/* What a child is to do. */
typedef struct pc__peers_work {
    pc_device_type type;
    int socket;
    int pair;         /* the first pair that is left, in the order of from * count + to; -1: the all-reduce */
    bool without_p2p; /* the all-reduce with NCCL_P2P_DISABLE=1 */
} pc__peers_work;

/* Lines for the parent alone: what begins now and how long it may take ("begin cuda:0 cuda:1", "slow open cuda:0"), how
 * many devices there are ("devices 2"), and the end ("done"). All others are results. */
void pc__peers_say(int socket, const char *format, ...) PC_PRINTF(2, 3);

/* child.c: open the devices and copy. Never comes back. */
void pc__peers_work_on(const pc__peers_work *work);

/* reduce.c: the all-reduce over `count` devices, which tells its result under this name. */
void pc__peers_reduce(int socket, pc_device_type type, int count, const char *name);

/* Element i of what is sent in round `round`: names its place, so that a byte out of its place shows, and is no other
 * round's. */
static inline int32_t pc__peers_element(int64_t i, int round)
{
    return (int32_t)((uint32_t)i * 2654435761u + 0x9e3779b9u * (uint32_t)(round + 1));
}

enum { PC__PEERS_COUNT = 4 << 20 }; /* int32: 16 MiB */

/* "intact", or "corrupt 4096 of 16777216 bytes, the first at 0". Returns text. */
char *pc__peers_compare(const int32_t *arrived, const int32_t *sent, char text[96]);

#endif

/* journal.h: the last 1,000 collective calls of this process, of all its groups and ranks: what each was, and how far it has
 * come. Always on: a call costs two looks at the clock and some stores, no lock and no memory. Any thread. */
#ifndef PC__DIST_JOURNAL_H
#define PC__DIST_JOURNAL_H

#include "ops/collective.h"

enum { PC__JOURNAL_CALLS = 1000 };

typedef enum pc__journal_state {
    PC__CALL_QUEUED,  /* behind other work of its stream, or (CUDA) nobody sees when it begins */
    PC__CALL_RUNNING, /* in the engine, which may wait for other ranks */
    PC__CALL_DONE,
    PC__CALL_FAILED,
    PC__CALL_RECORDED, /* into a graph, whose launches are calls of their own */
} pc__journal_state;

/* Whole words alone, which are written one by one. */
typedef struct pc__journal_entry {
    uint64_t number; /* of the calls of all ranks of this group on this device, from 1; 0: not begun */
    int64_t queued, entered, finished; /* pc__now(), in the ring ticks; 0: not yet, or nobody knows */
    int64_t state;                     /* pc__journal_state */
    uint64_t ticket;                   /* of its stream; 0: it is done when its call is */
    int64_t count;                     /* elements that are the same in all ranks */
    int32_t op, dtype;                 /* op -1: the launch of a graph */
    int32_t rank, size;                /* in the group */
    int32_t member, peer;              /* rank in the world, or among the threads; root or other rank, -1: none */
    int32_t reduction;                 /* pc_group_op, -1: none */
    uint32_t stream;
    pc_device device;
    int32_t unused;
    char group[48];
} pc__journal_entry;

/* A call that a device is to do later. 0: it is done at once, and known when it begins. */
uint64_t pc__journal_queue(const pc_stream *stream, int op, const pc_tensor *to, const pc_tensor *from,
                           const pc__collective *attributes);
void pc__journal_set(uint64_t entry, pc__journal_state state);

/* The group's calls as their engines do them. */
extern const pc__comm_log pc__group_log;

/* The entries, oldest first: up to `capacity` of them. Those that are being written are left out. */
int pc__journal_read(pc__journal_entry *entries, int capacity);

/* "all_reduce"; "all_reduce", or that of a graph, for an entry. */
const char *pc__journal_op(const pc__journal_entry *entry);

#endif

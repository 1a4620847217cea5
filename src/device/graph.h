/* graph.h: recordings: which streams take part, what memory they hold, and why one was refused. */
#ifndef PC__GRAPH_H
#define PC__GRAPH_H

#include "device/storage.h"

typedef struct pc__graph_use {
    pc__storage *storage; /* one reference */
    bool write;
} pc__graph_use;

struct pc_graph {
    pc_device device;
    uint64_t number; /* never 0, never used again */
    const pc__backend *backend;
    pc_stream *stream;  /* that it was begun on; NULL when it is ended */
    pc_stream **others; /* that joined it, a reference each */
    int other_count, other_room;
    pc__graph_use *uses; /* a hash table by storage */
    int use_count, use_room;
    pc_error refused; /* why it cannot be ended, or PC_OK */
    void *implementation;
};

/* PC_OK when the stream is not being recorded; otherwise PC_ERR_STATE: `who` needs `what` ("waiting", "data on the
 * host"), which no recording can hold. The recording is refused with that. */
pc_status pc__graph_allows(pc_stream *stream, const char *who, const char *what);

/* `stream` is about to wait for work `ticket` of `other`. When that is part of a recording, `stream` joins it. */
pc_status pc__graph_meets(pc_stream *stream, pc_stream *other, uint64_t ticket, bool *joined);

/* Work that is being recorded on `stream` uses the storage: the graph keeps it. */
pc_status pc__graph_uses(pc_stream *stream, pc__storage *storage, bool write);

/* Work that was recorded on `stream` uses the storage: one of its references is the recording's. */
bool pc__graph_holds(const pc_stream *stream, const pc__storage *storage);

/* The recording that the stream is part of; 0: none. */
uint64_t pc__graph_number(const pc_stream *stream);

/* Drop the recording of the stream, if there is one. */
void pc__graph_abandon(pc_stream *stream);

#endif

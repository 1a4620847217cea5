/* storage.h: blocks of device memory, their caching allocator, and the order between streams that use them. */
#ifndef PC__STORAGE_H
#define PC__STORAGE_H

#include "device/backend.h"

#define PC__READERS 4

typedef struct pc__use {
    uint32_t stream; /* id; 0 for none */
    uint64_t ticket;
} pc__use;

/* One block, with the work that may still be under way on it. The struct travels with its memory through the cache,
 * so that a block handed to another stream waits for its last uses by the same rule as any other write. */
typedef struct pc__storage {
    atomic_int references;
    pc_device device;
    void *data;
    size_t bytes;        /* asked for */
    size_t capacity;     /* there */
    atomic_uint version; /* counts writes in place, for the tape's check */
    pc__use writer;
    pc__use readers[PC__READERS];
    int reader_count;
    struct pc__storage *next;               /* in the cache */
    bool foreign;                           /* memory that belongs to the program */
    void (*foreign_release)(void *context); /* may be NULL */
    void *foreign_context;
} pc__storage;

/* A block of at least `bytes` bytes for use on `stream`, from the cache where one fits. NULL: PC_ERR_MEMORY with the
 * figures of the device. One reference, the caller's. */
pc__storage *pc__storage_new(pc_stream *stream, size_t bytes) PC_MUST_USE;

/* Wrap memory of the program; release(context) is called (when not NULL) once nothing uses it. */
pc__storage *pc__storage_wrap(pc_device device, void *data, size_t bytes, void (*release)(void *),
                              void *context) PC_MUST_USE;

void pc__storage_retain(pc__storage *storage);
void pc__storage_drop(pc__storage *storage);

/* Note that the work numbered stream->ticket + 1, about to be enqueued, reads or writes the storage, and make the
 * stream wait for what it must not overtake (where work is immediate: the host). */
pc_status pc__storage_reads(pc__storage *storage, pc_stream *stream);
pc_status pc__storage_writes(pc__storage *storage, pc_stream *stream);

/* Number the work that was just noted; call it before enqueuing. */
static inline void pc__stream_count(pc_stream *stream)
{
    atomic_fetch_add_explicit(&stream->ticket, 1, memory_order_relaxed);
}

/* Make the host wait until the storage's last writer is done. PC_ERR_STATE while its stream is being recorded. */
pc_status pc__storage_settle(pc__storage *storage, const char *who);

#endif

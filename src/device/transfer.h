/* transfer.h: bytes between the host and a device, or between devices. */
#ifndef PC__TRANSFER_H
#define PC__TRANSFER_H

#include "device/storage.h"

/* A run of bytes in a storage. */
typedef struct pc__bytes {
    pc__storage *storage;
    size_t offset;
} pc__bytes;

/* Queue a copy of `n` bytes on `stream`, which belongs to one of the two devices that is not the CPU. Host memory that
 * the program can change meanwhile is read, or waited for, before this returns; everything else is ordered. `who` is
 * the call it is for. With `wait` the host waits for it; it always waits for the source of a copy between devices of two
 * backends, of which `stream` is the destination's. */
pc_status pc__transfer(pc_stream *stream, pc__bytes to, pc__bytes from, size_t n, const char *who, bool wait);

/* The same from and to memory of the program: read before it returns; written before it returns. */
pc_status pc__transfer_in(pc_stream *stream, pc__bytes to, const void *from, size_t n, const char *who);
pc_status pc__transfer_out(pc_stream *stream, void *to, pc__bytes from, size_t n, const char *who);

#endif

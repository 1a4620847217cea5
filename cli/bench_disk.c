/* bench_disk.c: from a file on a disk to the device, in pieces: while one is copied the next is read. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <paracord/memory.h>
#include <paracord/ops.h>

enum { PIECES = 16, PIECE = 4 << 20, ROUNDS = 5 };

typedef struct disk {
    int file;
    pc_tensor *host[2], *device[2];
    int error; /* errno */
} disk;

/* A file without a name: nothing is left behind, whatever happens. */
static bool make(disk *d, const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/paracord-bench.XXXXXX", folder) >= (int)sizeof path)
        return errno = ENAMETOOLONG, false;
    d->file = mkostemp(path, O_CLOEXEC);
    if (d->file < 0)
        return false;
    unlink(path);
    char *piece = malloc(PIECE);
    bool fine = piece != NULL;
    uint32_t state = 1; /* no compression gets far with this */
    for (int i = 0; i < PIECES && fine; i++) {
        for (size_t at = 0; at < PIECE; at += sizeof state) {
            state = state * 1664525u + 1013904223u;
            memcpy(piece + at, &state, sizeof state);
        }
        for (ssize_t at = 0, n; at < PIECE && fine; at += n) {
            n = write(d->file, piece + at, (size_t)(PIECE - at));
            fine = n > 0;
        }
    }
    free(piece);
    return fine && !fsync(d->file);
}

/* One go through the whole file; to the device as well, or reading alone. */
static bool read_through(disk *d, bool copy, double *seconds)
{
    (void)posix_fadvise(d->file, 0, 0, POSIX_FADV_DONTNEED); /* forget what memory has of it */
    const double start = cli_now();
    for (int i = 0; i < PIECES; i++) {
        void *room = pc_map(d->host[i % 2], PC_MAP_WRITE); /* waits for the piece before the last */
        const ssize_t n = room ? pread(d->file, room, PIECE, (off_t)i * PIECE) : 0;
        d->error = n == PIECE ? 0 : n < 0 ? errno : EIO;
        if (!room || pc_unmap(d->host[i % 2]) != PC_OK || d->error)
            return false;
        if (copy && pc_copy(d->device[i % 2], d->host[i % 2]) != PC_OK)
            return false;
    }
    if (copy && pc_device_synchronize(pc_tensor_device(d->device[0])) != PC_OK)
        return false;
    *seconds = cli_now() - start;
    return true;
}

static bool in_memory(int file)
{
    struct statfs s;
    return !fstatfs(file, &s) && (s.f_type == 0x01021994 || s.f_type == (__typeof__(s.f_type))0x858458f6);
}

static bool measure(bench *b, disk *d, bench_result *r)
{
    double through[ROUNDS], alone[ROUNDS];
    for (int i = 0; i < 2; i++) {
        d->host[i] = pc_empty_pinned(PC_SHAPE(PIECE), PC_U8, b->p.device);
        d->device[i] = b->p.local ? NULL : pc_zeros(PC_SHAPE(PIECE), PC_U8, b->p.device);
        if (!d->host[i] || (!d->device[i] && !b->p.local) || pc_fill(d->host[i], 0) != PC_OK)
            return false;
    }
    if (!read_through(d, !b->p.local, &r->first))
        return false;
    for (int i = 0; i < ROUNDS; i++) /* in turn: a disk that others use slows both */
        if (!read_through(d, !b->p.local, &through[i]) || (!b->p.local && !read_through(d, false, &alone[i])))
            return false;
    bench_settle(through, ROUNDS, r);
    r->goes = 1;
    r->amount = (double)PIECES * PIECE;
    snprintf(r->size, sizeof r->size, "%d MiB%s", PIECES * (PIECE >> 20), in_memory(d->file) ? ", in memory" : "");
    r->beside = in_memory(d->file);
    r->limit = (bench_limit){NAN, NULL};
    if (!b->p.local) {
        bench_result reading = {0};
        bench_settle(alone, ROUNDS, &reading);
        r->limit = (bench_limit){r->amount / reading.median, "measured: reading the file alone"};
    }
    return true;
}

bool bench_disk(bench *b, const bench_row *row, bench_result *r)
{
    (void)row;
    disk d = {.file = -1};
    bool fine = make(&d, b->disk);
    if (!fine)
        d.error = errno;
    fine = fine && measure(b, &d, r);
    if (d.error) {
        snprintf(r->why, sizeof r->why, "a file in %.200s: %s; name another folder with --disk", b->disk,
                 strerror(d.error));
        r->broken = fine = true;
    }
    for (int i = 0; i < 2; i++) {
        pc_tensor_free(d.host[i]);
        pc_tensor_free(d.device[i]);
    }
    if (d.file >= 0)
        close(d.file);
    return fine;
}

/* tokens.c: files of tokens. */
#include "io/tokens.h"

#include "io/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 1024, MAGIC = 20240520, MAGIC_WIDE = 20240801 };

bool pc__is_token_file(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".bin") == 0;
}

void pc__token_file_close(pc__token_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    pc__free(file->path);
    *file = (pc__token_file){.fd = -1};
}

static pc_status read_bytes(const pc__token_file *f, int64_t from, void *to, size_t n)
{
    for (char *at = to; n;) {
        const ssize_t got = pread(f->fd, at, n, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pc__fail_file(errno, "cannot read %s", f->path);
        if (got == 0)
            return pc__fail(PC_ERR_FILE, "%s became shorter while it was read", f->path);
        at += got, from += got, n -= (size_t)got;
    }
    return PC_OK;
}

static int64_t number(const uint8_t *bytes)
{
    return (int32_t)((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24);
}

static pc_status take_header(pc__token_file *f)
{
    uint8_t head[12] = {0};
    PC__TRY(read_bytes(f, 0, head, (size_t)PC__MIN(f->size, (int64_t)sizeof head)));
    if (pc__is_lfs_pointer(head, sizeof head))
        return pc__fail_lfs(f->path);
    const bool wide = number(head) == MAGIC_WIDE;
    if (number(head) != MAGIC && !wide) {
        f->count = f->size / 2;
        return f->size % 2 == 0
                   ? PC_OK
                   : pc__fail(PC_ERR_FORMAT, "%s has %lld bytes; tokens of 16 bits are an even number of them", f->path,
                              (long long)f->size);
    }
    if (wide || number(head + 4) != 1)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s has llm.c's header of version %lld; version 1, 16-bit tokens, is read",
                        f->path, (long long)number(head + 4));
    f->start = HEADER;
    f->count = number(head + 8);
    if (f->size >= HEADER && f->count >= 0 && f->size - HEADER == 2 * f->count)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s is %s: its header says %lld tokens, and it has %lld", f->path,
                    f->count < 0 || f->size - HEADER > 2 * f->count ? "damaged" : "truncated", (long long)f->count,
                    (long long)PC__MAX(f->size - HEADER, 0) / 2);
}

static pc_status open_file(pc__token_file *f, const char *path)
{
    f->path = pc__strdup(path);
    if (!f->path)
        return PC_ERR_MEMORY;
    PC__TRY(pc__file_open(path, &f->fd, &f->size));
    if (f->size < 0)
        return pc__fail(PC_ERR_FILE, "%s is no regular file; tokens are read from any place of one", path);
    return take_header(f);
}

pc_status pc__token_file_open(pc__token_file *file, const char *path)
{
    *file = (pc__token_file){.fd = -1};
    const pc_status status = open_file(file, path);
    if (status != PC_OK)
        pc__token_file_close(file);
    return status;
}

static pc_status check_size(const pc__token_file *f)
{
    struct stat now;
    if (fstat(f->fd, &now) != 0)
        return pc__fail_file(errno, "cannot read %s", f->path);
    return now.st_size == f->size ? PC_OK
                                  : pc__fail(PC_ERR_FILE, "%s had %lld bytes when it was opened, and has %lld now",
                                             f->path, (long long)f->size, (long long)now.st_size);
}

/* The 16-bit numbers lie at the end of `to`, which is filled from the front: each is read before it is written over. */
pc_status pc__token_file_read(const pc__token_file *file, int64_t from, int64_t n, int64_t vocabulary, int64_t *to)
{
    uint8_t *raw = (uint8_t *)to + 6 * n;
    PC__TRY(check_size(file));
    PC__TRY(read_bytes(file, file->start + 2 * from, raw, (size_t)(2 * n)));
    for (int64_t i = 0; i < n; i++) {
        const int64_t token = raw[2 * i] | raw[2 * i + 1] << 8;
        if (token >= vocabulary)
            return pc__fail(PC_ERR_RANGE, "%s: token number %lld is %lld, beyond the vocabulary of %lld", file->path,
                            (long long)(from + i), (long long)token, (long long)vocabulary);
        to[i] = token;
    }
    return PC_OK;
}

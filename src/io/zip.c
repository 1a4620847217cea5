/* zip.c: the archive's directory, and its files. */
#include "io/zip.h"

#if PC_HAVE_ZLIB
#include <zlib.h>
#endif

enum { END = 22, COMMENT_MAX = 65535, CENTRAL = 46, LOCAL = 30 };
#define DEFLATE_MOST 1032 /* deflate cannot shrink further: what claims more is a trap or damaged */

typedef struct entry {
    size_t at, packed, size; /* `at`: of the local header */
    uint32_t crc;
    bool deflated;
} entry;

static size_t little(const uint8_t *bytes, int n)
{
    size_t value = 0;
    while (n--)
        value = value << 8 | bytes[n];
    return value;
}

static pc_status damaged(const pc__zip *zip)
{
    return pc__fail(PC_ERR_FORMAT, "%s: the zip archive is damaged or truncated", zip->path);
}

/* The record at the archive's end, which a comment may follow, says where the directory is. */
pc_status pc__zip_open(const char *path, const void *bytes, size_t n, pc__zip *zip)
{
    *zip = (pc__zip){.path = path, .bytes = bytes, .size = n};
    size_t least = n > END + COMMENT_MAX ? n - END - COMMENT_MAX : 0;
    for (size_t at = n >= END ? n - END + 1 : 0; at-- > least;) {
        const uint8_t *end = zip->bytes + at;
        if (memcmp(end, "PK\5\6", 4) != 0)
            continue;
        zip->directory_size = little(end + 12, 4);
        zip->directory = little(end + 16, 4);
        return zip->directory <= n && zip->directory_size <= n - zip->directory ? PC_OK : damaged(zip);
    }
    return damaged(zip);
}

static pc_status look(const pc__zip *zip, const char *name, const uint8_t *head, entry *e)
{
    size_t method = little(head + 10, 2);
    *e = (entry){.at = little(head + 42, 4),
                 .packed = little(head + 20, 4),
                 .size = little(head + 24, 4),
                 .crc = (uint32_t)little(head + 16, 4),
                 .deflated = method == 8};
    if (little(head + 8, 2) & 1)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: %s in it is encrypted, which is not supported", zip->path, name);
    if (method != 0 && method != 8)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: %s in it is packed by method %d, which is not supported", zip->path,
                        name, (int)method);
    if (e->at == UINT32_MAX || e->packed == UINT32_MAX || e->size == UINT32_MAX)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: it is over 4 GB, which is not supported", zip->path);
    bool fits = method == 0 ? e->size == e->packed : e->size / DEFLATE_MOST <= e->packed;
    return fits ? PC_OK : damaged(zip);
}

static pc_status find(const pc__zip *zip, const char *name, entry *e)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < zip->directory_size;) {
        const uint8_t *head = zip->bytes + zip->directory + at;
        size_t left = zip->directory_size - at;
        if (left < CENTRAL || memcmp(head, "PK\1\2", 4) != 0)
            return damaged(zip);
        size_t n = little(head + 28, 2), rest = little(head + 30, 2) + little(head + 32, 2);
        if (left - CENTRAL < n + rest)
            return damaged(zip);
        if (n == length && memcmp(head + CENTRAL, name, n) == 0)
            return look(zip, name, head, e);
        at += CENTRAL + n + rest;
    }
    return PC_ERR_NOT_FOUND;
}

/* A file's packed bytes: behind its local header, whose own sizes may be missing. */
static const uint8_t *packed(const pc__zip *zip, const entry *e)
{
    const uint8_t *head = zip->bytes + e->at;
    if (e->at > zip->size || zip->size - e->at < LOCAL || memcmp(head, "PK\3\4", 4) != 0)
        return NULL;
    size_t front = LOCAL + little(head + 26, 2) + little(head + 28, 2), left = zip->size - e->at;
    return front <= left && e->packed <= left - front ? head + front : NULL;
}

#if PC_HAVE_ZLIB

static pc_status unpack(const pc__zip *zip, const char *name, const entry *e, const uint8_t *from, uint8_t *to)
{
    z_stream z = {.next_in = (Bytef *)from, .avail_in = (uInt)e->packed, .next_out = to, .avail_out = (uInt)e->size};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return pc__fail(PC_ERR_MEMORY, "%s: no memory to unpack %s", zip->path, name);
    int code = inflate(&z, Z_FINISH);
    bool whole = code == Z_STREAM_END && z.total_out == e->size;
    inflateEnd(&z);
    return whole ? PC_OK : pc__fail(PC_ERR_FORMAT, "%s: %s in it is damaged", zip->path, name);
}

static pc_status check_sum(const pc__zip *zip, const char *name, const entry *e, const uint8_t *bytes)
{
    uint32_t crc = (uint32_t)crc32_z(0, bytes, e->size);
    return crc == e->crc ? PC_OK : pc__fail(PC_ERR_FORMAT, "%s: %s in it is damaged", zip->path, name);
}

#else

static pc_status unpack(const pc__zip *zip, const char *name, const entry *e, const uint8_t *from, uint8_t *to)
{
    (void)e, (void)from, (void)to;
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: %s in it is deflated, and this Paracord was built without zlib; install zlib1g-dev "
                    "(Debian, Ubuntu) and build again",
                    zip->path, name);
}

static pc_status check_sum(const pc__zip *zip, const char *name, const entry *e, const uint8_t *bytes)
{
    (void)zip, (void)name, (void)e, (void)bytes;
    return PC_OK;
}

#endif

pc_status pc__zip_take(const pc__zip *zip, const char *name, size_t most, const uint8_t **bytes, size_t *n,
                       uint8_t **own)
{
    entry e = {0};
    *own = NULL, *bytes = NULL, *n = 0;
    PC__TRY(find(zip, name, &e));
    const uint8_t *from = packed(zip, &e);
    if (!from)
        return damaged(zip);
    if (e.size > most)
        return pc__fail(PC_ERR_FORMAT, "%s: %s in it claims %zu bytes, which is absurd", zip->path, name, e.size);
    if (e.deflated) {
        *own = pc__alloc(e.size);
        PC__TRY(*own ? unpack(zip, name, &e, from, *own) : PC_ERR_MEMORY);
        from = *own;
    }
    *bytes = from;
    *n = e.size;
    return check_sum(zip, name, &e, from);
}

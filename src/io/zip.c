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

/* Numbers of 32 bits that say that larger ones lie elsewhere. Python writes them for whatever is above 2 GB. */
static pc_status is_zip64(const pc__zip *zip)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: something in it is over 2 GB or lies beyond 4 GB (zip64), which is not supported", zip->path);
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
        if (zip->directory == UINT32_MAX || zip->directory_size == UINT32_MAX)
            return is_zip64(zip);
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
        return is_zip64(zip);
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

/* ---- writing */

static uint32_t sum_of(const void *bytes, size_t n)
{
    uint32_t sum = ~(uint32_t)0;
    for (size_t i = 0; i < n; i++) {
        sum ^= ((const uint8_t *)bytes)[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320U : 0);
    }
    return ~sum;
}

static void put(uint8_t *to, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Entries go to the front, their rows of the directory to a room of its own, until both are there. */
typedef struct writer {
    uint8_t *bytes, *rows;
    size_t n, most, rows_n;
    int count;
} writer;

/* One file, whose row in the old directory is `row`; `e` and `from`: what it is to be. False: the archive names more
 * than it has. */
static bool put_entry(writer *w, const uint8_t *row, const entry *e, const uint8_t *from)
{
    enum { DESCRIPTOR = 8 }; /* flag: sizes stand behind the data; here they stand in front */
    const size_t name = little(row + 28, 2);
    if (w->most - w->n < LOCAL + name || w->most - w->n - LOCAL - name < e->packed)
        return false;
    uint8_t *local = w->bytes + w->n, *central = w->rows + w->rows_n;
    memcpy(central, row, CENTRAL + name);
    put(central + 8, little(row + 8, 2) & ~(size_t)DESCRIPTOR, 2);
    put(central + 10, e->deflated ? 8 : 0, 2);
    put(central + 16, e->crc, 4);
    put(central + 20, e->packed, 4);
    put(central + 24, e->size, 4);
    put(central + 30, 0, 4); /* no extra fields, no comment */
    put(central + 42, w->n, 4);
    memcpy(local, "PK\3\4", 4);
    memcpy(local + 4, central + 6, 26); /* the same fields, without the version that made it */
    memcpy(local + LOCAL, row + CENTRAL, name);
    memcpy(local + LOCAL + name, from, e->packed);
    w->n += LOCAL + name + e->packed;
    w->rows_n += CENTRAL + name;
    w->count++;
    return true;
}

static const char *text_for(const pc__zip_text *texts, int count, const uint8_t *name, size_t n)
{
    for (int i = 0; i < count; i++)
        if (strlen(texts[i].name) == n && memcmp(texts[i].name, name, n) == 0)
            return texts[i].text;
    return NULL;
}

static pc_status copy_all(const pc__zip *zip, const pc__zip_text *texts, int count, writer *w)
{
    for (size_t at = 0; at < zip->directory_size;) {
        const uint8_t *row = zip->bytes + zip->directory + at;
        const size_t left = zip->directory_size - at;
        entry e;
        if (left < CENTRAL || memcmp(row, "PK\1\2", 4) != 0)
            return damaged(zip);
        const size_t n = little(row + 28, 2), rest = little(row + 30, 2) + little(row + 32, 2);
        if (left - CENTRAL < n + rest)
            return damaged(zip);
        const char *text = text_for(texts, count, row + CENTRAL, n);
        PC__TRY(look(zip, "a file", row, &e));
        const uint8_t *from = text ? (const uint8_t *)text : packed(zip, &e);
        if (text)
            e = (entry){.packed = strlen(text), .size = strlen(text), .crc = sum_of(text, strlen(text))};
        if (!from || !put_entry(w, row, &e, from))
            return damaged(zip);
        at += CENTRAL + n + rest;
    }
    return PC_OK;
}

pc_status pc__zip_replace(const pc__zip *zip, const pc__zip_text *texts, int count, uint8_t **bytes, size_t *n)
{
    writer w = {.most = zip->size};
    *bytes = NULL, *n = 0;
    for (int i = 0; i < count; i++)
        w.most += strlen(texts[i].text);
    if (w.most > UINT32_MAX - END || zip->directory_size > UINT32_MAX - END - w.most)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: it would be over 4 GB, which is not supported", zip->path);
    w.bytes = pc__alloc(w.most + zip->directory_size + END);
    w.rows = pc__alloc(zip->directory_size + 1);
    pc_status status = w.bytes && w.rows ? copy_all(zip, texts, count, &w) : PC_ERR_MEMORY;
    if (status == PC_OK) {
        uint8_t *end = w.bytes + w.n + w.rows_n;
        memcpy(w.bytes + w.n, w.rows, w.rows_n);
        memcpy(end, "PK\5\6\0\0\0\0", 8);
        put(end + 8, (uint64_t)w.count, 2);
        put(end + 10, (uint64_t)w.count, 2);
        put(end + 12, w.rows_n, 4);
        put(end + 16, w.n, 4);
        put(end + 20, 0, 2);
        *bytes = w.bytes, *n = w.n + w.rows_n + END;
        w.bytes = NULL;
    }
    pc__free(w.bytes);
    pc__free(w.rows);
    return status;
}

/* rest.c: what stands behind the one frame or page of a file that is taken. A file that ends in there has lost none of
 * the picture's pixels, but is not whole. */
#include "io/codec.h"

#define CUT "the file ends too early, behind the frame or page that is taken"

/* `bytes` of a number at a place; false where the file ends before. */
typedef struct numbers {
    const uint8_t *bytes;
    size_t n;
    bool big_endian;
} numbers;

static bool read_number(const numbers *f, uint64_t at, int bytes, uint64_t *value)
{
    if (at > f->n || f->n - at < (uint64_t)bytes)
        return false;
    *value = 0;
    for (int i = 0; i < bytes; i++)
        *value |= (uint64_t)f->bytes[at + (uint64_t)i] << 8 * (f->big_endian ? bytes - 1 - i : i);
    return true;
}

/* --- WebP: it says how long it is, and so does each part of it --- */

const char *pc__webp_rest(const uint8_t *bytes, size_t n)
{
    enum { RIFF = 12, HEADER = 8 };
    const numbers f = {bytes, n, false};
    uint64_t length = 0;
    if (!read_number(&f, 4, 4, &length) || length > n - HEADER)
        return CUT;
    for (uint64_t at = RIFF, end = HEADER + length; at < end; at += HEADER + length + (length & 1))
        if (!read_number(&f, at + 4, 4, &length) || length > n - HEADER - at)
            return CUT;
    return NULL;
}

/* --- GIF: blocks up to a mark --- */

/* One behind the data of a block: parts with their length in front, up to an empty one. */
static size_t skip_parts(const uint8_t *bytes, size_t n, size_t at)
{
    while (at < n && bytes[at])
        at += 1u + bytes[at];
    return at + 1;
}

const char *pc__gif_rest(const uint8_t *bytes, size_t n, size_t at)
{
    enum { EXTENSION = 0x21, FRAME = 0x2c, END = 0x3b, FRAME_HEADER = 10, HAS_COLOURS = 0x80, COLOUR_BITS = 7 };
    while (at < n && bytes[at] != END) {
        if (bytes[at] == EXTENSION)
            at = skip_parts(bytes, n, at + 2);
        else if (bytes[at] == FRAME && n - at > FRAME_HEADER) {
            const int flags = bytes[at + FRAME_HEADER - 1];
            const size_t colours = flags & HAS_COLOURS ? (size_t)6 << (flags & COLOUR_BITS) : 0;
            at = skip_parts(bytes, n, at + FRAME_HEADER + colours + 1);
        } else
            return bytes[at] == FRAME ? CUT : "stray bytes behind the frame that is taken";
    }
    return at < n ? NULL : CUT;
}

/* --- TIFF: a chain of directories, each with the places of its page's data --- */

typedef struct array {
    uint64_t at, count;
    int bytes; /* of an element; 0: there is no such array */
} array;

typedef struct tiff {
    numbers file;
    int size;        /* of an offset: 4, or 8 in a BigTIFF */
    uint64_t budget; /* bytes yet to be looked at: pages that share their tables, or go round in circles, end there */
} tiff;

static bool spend(tiff *t, uint64_t bytes)
{
    const bool enough = bytes <= t->budget;
    t->budget -= PC__MIN(bytes, t->budget);
    return enough;
}

/* The array of a directory's entry; false: the file ends inside it. */
static bool find_array(const tiff *t, uint64_t entry, array *a)
{
    uint64_t type = 0;
    (void)read_number(&t->file, entry + 2, 2, &type);
    (void)read_number(&t->file, entry + 4, t->size, &a->count);
    a->bytes = type == 3 ? 2 : type == 4 ? 4 : type == 16 ? 8 : 0; /* SHORT, LONG, LONG8 */
    a->at = entry + 4 + (uint64_t)t->size;
    if (!a->bytes || a->count > t->file.n)
        return a->bytes == 0;
    if (a->count * (uint64_t)a->bytes > (uint64_t)t->size)
        (void)read_number(&t->file, a->at, t->size, &a->at);
    return a->at <= t->file.n && a->count * (uint64_t)a->bytes <= t->file.n - a->at;
}

static bool data_is_there(tiff *t, const array *places, const array *lengths)
{
    for (uint64_t i = 0; i < PC__MIN(places->count, lengths->count) && spend(t, 2); i++) {
        uint64_t place = 0, length = 0;
        (void)read_number(&t->file, places->at + i * (uint64_t)places->bytes, places->bytes, &place);
        (void)read_number(&t->file, lengths->at + i * (uint64_t)lengths->bytes, lengths->bytes, &length);
        if (place > t->file.n || length > t->file.n - place)
            return false;
    }
    return true;
}

/* The page whose directory is at `at`, and where the next one's is; false: the file ends inside it. */
static bool page_is_there(tiff *t, bool first, uint64_t at, uint64_t *next)
{
    enum { STRIPS = 273, STRIP_LENGTHS = 279, TILES = 324, TILE_LENGTHS = 325 };
    const uint64_t head = t->size == 8 ? 8 : 2, entry = t->size == 8 ? 20 : 12;
    array places = {0}, lengths = {0};
    uint64_t entries, tag = 0;
    if (!read_number(&t->file, at, (int)head, &entries) || entries > t->file.n ||
        !read_number(&t->file, at + head + entries * entry, t->size, next))
        return false;
    if (!spend(t, head + entries * entry)) {
        *next = 0;
        return true;
    }
    for (uint64_t i = 0, e = at + head; i < entries; i++, e += entry) {
        (void)read_number(&t->file, e, 2, &tag);
        if (((tag == STRIPS || tag == TILES) && !find_array(t, e, &places)) ||
            ((tag == STRIP_LENGTHS || tag == TILE_LENGTHS) && !find_array(t, e, &lengths)))
            return false;
    }
    return first || !places.bytes || !lengths.bytes || data_is_there(t, &places, &lengths);
}

const char *pc__tiff_rest(const uint8_t *bytes, size_t n)
{
    tiff t = {.file = {bytes, n, bytes[0] == 'M'}, .budget = n};
    uint64_t version = 0, at = 0;
    (void)read_number(&t.file, 2, 2, &version);
    t.size = version == 43 ? 8 : 4;
    (void)read_number(&t.file, (uint64_t)t.size, t.size, &at);
    for (bool first = true; at; first = false) {
        uint64_t next = 0;
        if (!page_is_there(&t, first, at, &next))
            return CUT;
        at = next;
    }
    return NULL;
}

/* bmp.c: Windows and OS/2 bitmaps: palettes, 16 to 32 bits by masks, run lengths. */
#include "io/resize.h"

#include "io/codec.h"

enum { FILE_HEADER = 14, PALETTE_MOST = 256, RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct bitmap {
    pc__picture *picture;
    int width, height, bits, compression;
    bool top_down, grey;
    size_t pixels;     /* where they begin */
    size_t stride;     /* bytes of a stored row */
    uint32_t masks[3]; /* red, green, blue of 16 and 32 bits */
    uint8_t palette[PALETTE_MOST][3];
    int colours;
    uint8_t *indices; /* of run lengths: width x height, as stored */
} bitmap;

static uint32_t number(const bitmap *b, size_t at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)b->picture->bytes[at + (size_t)i] << 8 * i;
    return value;
}

static pc_status broken(const bitmap *b, const char *how)
{
    return pc__fail_cause(PC_ERR_FORMAT, how, "%s is a BMP that cannot be decoded", b->picture->name);
}

static pc_status truncated(const bitmap *b)
{
    return pc__fail(PC_ERR_FORMAT, "%s is truncated: the file ends inside the picture", b->picture->name);
}

static bool is_usual(const bitmap *b)
{
    switch (b->compression) {
    case RGB:
        return b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 || b->bits == 32;
    case RLE8:
        return b->bits == 8 && !b->top_down;
    case RLE4:
        return b->bits == 4 && !b->top_down;
    case BITFIELDS:
    case ALPHA_BITFIELDS:
        return b->bits == 16 || b->bits == 32;
    default:
        return false;
    }
}

/* Palette entries that are not there are black. */
static void read_palette(bitmap *b, size_t at, size_t entry, uint32_t colours)
{
    const uint32_t most = b->bits <= 8 ? (uint32_t)1 << b->bits : 0u;
    colours = colours == 0 || colours > most ? most : colours;
    b->colours = (int)most;
    b->grey = most > 0;
    for (uint32_t i = 0; i < colours && at + entry <= b->picture->n; i++, at += entry) {
        for (int c = 0; c < 3; c++)
            b->palette[i][c] = b->picture->bytes[at + 2 - (size_t)c];
        b->grey &= b->palette[i][0] == b->palette[i][1] && b->palette[i][1] == b->palette[i][2];
    }
}

static void read_masks(bitmap *b, size_t at)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    for (int c = 0; c < 3; c++)
        b->masks[c] = b->compression == RGB ? usual[b->bits == 32][c] : number(b, at + 4 * (size_t)c, 4);
}

static pc_status read_header(bitmap *b)
{
    enum { CORE = 12, INFO = 40, MASKS_END = FILE_HEADER + 40 + 12 };
    const size_t n = b->picture->n;
    if (n < FILE_HEADER + CORE)
        return truncated(b);
    const uint32_t header = number(b, FILE_HEADER, 4);
    const bool core = header == CORE;
    if (!core && (header < INFO || header > 4096))
        return broken(b, "its header has a size that no version has");
    if (n < FILE_HEADER + (size_t)header)
        return truncated(b);
    const int64_t height = core ? (int64_t)number(b, 20, 2) : (int32_t)number(b, 22, 4);
    const int64_t width = core ? (int64_t)number(b, 18, 2) : (int32_t)number(b, 18, 4);
    b->bits = (int)number(b, core ? 24 : 28, 2);
    b->compression = core ? RGB : (int)number(b, 30, 4);
    b->top_down = height < 0;
    if (b->compression >= BITFIELDS && n < MASKS_END)
        return truncated(b);
    if (!is_usual(b))
        return broken(b, "its number of bits or its compression is none of a BMP's");
    if (width < 1 || width > PC__SIDE_MAX || height == 0 || height > PC__SIDE_MAX || height < -PC__SIDE_MAX)
        return broken(b, "its width or height is 0, negative or beyond 65535");
    b->width = (int)width;
    b->height = (int)(height < 0 ? -height : height);
    b->pixels = number(b, 10, 4);
    b->stride = ((size_t)b->width * (size_t)b->bits + 31) / 32 * 4;
    const size_t behind =
        FILE_HEADER + (size_t)header + (!core && header == INFO && b->compression >= BITFIELDS ? 12 : 0);
    read_masks(b, FILE_HEADER + INFO);
    read_palette(b, behind, core ? 3 : 4, core ? 0 : number(b, 46, 4));
    return PC_OK;
}

/* --- run lengths --- */

static void put(bitmap *b, int x, int y, uint8_t index)
{
    if (x < b->width && y < b->height)
        b->indices[(size_t)y * (size_t)b->width + (size_t)x] = index;
}

static uint8_t nibble(uint8_t byte, int i, bool four)
{
    return four ? i % 2 ? byte & 15 : byte >> 4 : byte;
}

/* A pair that begins with 0: an end, a jump, or bytes as they are. False: the picture ends here. */
static bool run_escape(bitmap *b, const uint8_t **at, const uint8_t *end, uint8_t code, int *x, int *y)
{
    const bool four = b->compression == RLE4;
    if (code == 0) {
        *x = 0, ++*y;
    } else if (code == 1) {
        return false;
    } else if (code == 2) {
        if (end - *at < 2)
            return false;
        *x += (*at)[0], *y += (*at)[1], *at += 2;
    } else {
        const int bytes = four ? (code + 1) / 2 : code, padded = (bytes + 1) & ~1;
        if (end - *at < bytes)
            return false;
        for (int i = 0; i < code; i++)
            put(b, (*x)++, *y, nibble((*at)[four ? i / 2 : i], i, four));
        *at += PC__MIN(padded, end - *at);
    }
    return true;
}

static pc_status read_runs(bitmap *b)
{
    enum { MOST = 255 }; /* pixels of two bytes */
    const uint8_t *at = b->picture->bytes + b->pixels, *end = b->picture->bytes + b->picture->n;
    const size_t pixels = (size_t)b->width * (size_t)b->height;
    if (pixels / MOST > b->picture->n)
        return truncated(b);
    b->indices = pc__calloc(pixels, 1);
    if (!b->indices)
        return PC_ERR_MEMORY;
    int x = 0, y = 0;
    while (end - at >= 2 && y < b->height) {
        const uint8_t count = *at++, value = *at++;
        for (int i = 0; i < count; i++)
            put(b, x++, y, nibble(value, i, b->compression == RLE4));
        x = PC__MIN(x, b->width);
        if (!count && !run_escape(b, &at, end, value, &x, &y))
            return PC_OK;
    }
    return y >= b->height || (y == b->height - 1 && x >= b->width) ? PC_OK : truncated(b);
}

/* --- rows --- */

/* The bits under the mask, as 0 to 255, rounded down as PIL does it. */
static uint8_t masked(uint32_t word, uint32_t mask)
{
    if (!mask)
        return 0;
    const int shift = __builtin_ctz(mask);
    const uint32_t most = mask >> shift;
    return (uint8_t)((uint64_t)((word & mask) >> shift) * 255 / most);
}

static uint8_t index_at(const bitmap *b, const uint8_t *row, int x)
{
    const int per = 8 / b->bits;
    return (uint8_t)(row[x / per] >> (per - 1 - x % per) * b->bits & ((1 << b->bits) - 1));
}

static void colour_at(const bitmap *b, const uint8_t *row, int x, uint8_t rgb[3])
{
    const uint8_t *pixel = row + (size_t)x * (size_t)b->bits / 8;
    if (b->indices || b->bits <= 8) {
        memcpy(rgb, b->palette[b->indices ? row[x] : index_at(b, row, x)], 3);
        return;
    }
    if (b->bits == 24) {
        rgb[0] = pixel[2], rgb[1] = pixel[1], rgb[2] = pixel[0];
        return;
    }
    uint32_t word = 0;
    for (int i = 0; i < b->bits / 8; i++)
        word |= (uint32_t)pixel[i] << 8 * i;
    for (int c = 0; c < 3; c++)
        rgb[c] = masked(word, b->masks[c]);
}

static void convert_row(const bitmap *b, const uint8_t *row, uint8_t *out)
{
    for (int x = 0; x < b->width; x++) {
        uint8_t rgb[3];
        colour_at(b, row, x, rgb);
        memcpy(out, rgb, b->grey ? 1 : 3);
        out += b->grey ? 1 : 3;
    }
}

static void take_rows(const bitmap *b, pc__rows *rows)
{
    const uint8_t *stored = b->indices ? b->indices : b->picture->bytes + b->pixels;
    const size_t stride = b->indices ? (size_t)b->width : b->stride;
    for (int y = 0; y < b->height; y++) {
        convert_row(b, stored + stride * (size_t)(b->top_down ? y : b->height - 1 - y), pc__rows_next(rows));
        pc__rows_done(rows);
    }
}

static pc_status decode(bitmap *b)
{
    PC__TRY(read_header(b));
    const bool runs = b->compression == RLE8 || b->compression == RLE4;
    if (b->pixels > b->picture->n || (!runs && b->stride * (size_t)b->height > b->picture->n - b->pixels))
        return truncated(b);
    PC__TRY(pc__picture_begin(b->picture, b->width, b->height, b->grey ? 1 : 3));
    PC__TRY(runs ? read_runs(b) : PC_OK);
    pc__rows rows;
    const pc_status status =
        pc__rows_open(&rows, b->width, b->height, b->picture->options->resize, false, false, &b->picture->image);
    if (status == PC_OK)
        take_rows(b, &rows);
    pc__rows_close(&rows);
    return status;
}

pc_status pc__bmp_decode(pc__picture *picture)
{
    bitmap b = {.picture = picture};
    const pc_status status = decode(&b);
    pc__free(b.indices);
    return status;
}

/* gif.c: the first frame of a GIF by giflib. */
#include "io/library.h"

#define WHAT "a GIF"
#define PACKAGE "libgif7"

#if PC_HAVE_GIF
#include "io/resize.h"

#include <gif_lib.h>
#include <pthread.h>

#define FUNCTIONS(X)                                                                                                   \
    X(DGifOpen)                                                                                                        \
    X(DGifCloseFile)                                                                                                   \
    X(DGifGetRecordType)                                                                                               \
    X(DGifGetImageDesc)                                                                                                \
    X(DGifGetLine)                                                                                                     \
    X(DGifGetExtension)                                                                                                \
    X(DGifGetExtensionNext)                                                                                            \
    X(GifErrorString)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} gif;

static pc_status open_library(const char *picture)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const files[] = {"libgif.so.7", NULL};
#define SYMBOL(name) {#name, (void **)&gif.name},
    const pc__symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL
    pthread_mutex_lock(&lock);
    const pc_status status =
        gif.GifErrorString ? PC_OK : pc__library_open(picture, WHAT, PACKAGE, files, symbols, PC__COUNT(symbols));
    pthread_mutex_unlock(&lock);
    return status;
}

typedef struct decoder {
    pc__picture *picture;
    size_t position;
    bool ended;      /* giflib asked for bytes behind the last one */
    int transparent; /* the index that is, or -1 */
    GifFileType *file;
    uint8_t *indices; /* the canvas */
} decoder;

static int read_bytes(GifFileType *file, GifByteType *bytes, int n)
{
    decoder *d = file->UserData;
    const size_t left = d->picture->n - d->position, got = PC__MIN((size_t)n, left);
    d->ended |= got < (size_t)n;
    memcpy(bytes, d->picture->bytes + d->position, got);
    d->position += got;
    return (int)got;
}

static pc_status broken(const decoder *d, int code)
{
    if (d->ended)
        return pc__fail(PC_ERR_FORMAT, "%s is truncated: the file ends inside the picture", d->picture->name);
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return pc__fail(PC_ERR_MEMORY, "out of memory while decoding %s", d->picture->name);
    const char *words = gif.GifErrorString(code);
    return pc__fail_cause(PC_ERR_FORMAT, words ? words : "no reason given", "%s is a GIF that cannot be decoded",
                          d->picture->name);
}

static pc_status read_extension(decoder *d)
{
    enum { IS_TRANSPARENT = 1 };
    int code;
    GifByteType *block;
    if (gif.DGifGetExtension(d->file, &code, &block) != GIF_OK)
        return broken(d, d->file->Error);
    if (code == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4 && block[1] & IS_TRANSPARENT)
        d->transparent = block[4];
    while (block)
        if (gif.DGifGetExtensionNext(d->file, &block) != GIF_OK)
            return broken(d, d->file->Error);
    return PC_OK;
}

/* Up to the first frame. */
static pc_status find_frame(decoder *d)
{
    for (;;) {
        GifRecordType type;
        if (gif.DGifGetRecordType(d->file, &type) != GIF_OK)
            return broken(d, d->file->Error);
        if (type == TERMINATE_RECORD_TYPE)
            return pc__fail(PC_ERR_FORMAT, "%s is a GIF without a picture", d->picture->name);
        if (type == IMAGE_DESC_RECORD_TYPE)
            return gif.DGifGetImageDesc(d->file) == GIF_OK ? PC_OK : broken(d, d->file->Error);
        if (type == EXTENSION_RECORD_TYPE)
            PC__TRY(read_extension(d));
    }
}

/* The data of a frame: codes of growing width, least significant bit first, in blocks with their length in front. */
typedef struct codes {
    const uint8_t *at, *end;
    unsigned left; /* bytes of the block */
    uint32_t bits;
    int count; /* of bits */
} codes;

/* -1: there are no more. */
static int next_code(codes *c, int width)
{
    for (; c->count < width; c->count += 8) {
        if (!c->left && c->at < c->end)
            c->left = *c->at++;
        if (!c->left || c->at == c->end)
            return -1;
        c->bits |= (uint32_t)*c->at++ << c->count;
        c->left--;
    }
    const int code = (int)(c->bits & ((1u << width) - 1));
    c->bits >>= width;
    c->count -= width;
    return code;
}

/* False where the frame's pixels are made with a code that no earlier one has defined: giflib makes something up then.
 * `first`: bits of a colour. Where the data ends too early is giflib's to see. */
static bool codes_are_defined(const decoder *d, int first)
{
    enum { MOST = 4096, WIDEST = 12 };
    codes c = {.at = d->picture->bytes + d->position, .end = d->picture->bytes + d->picture->n};
    uint16_t length[MOST] = {0};
    const int clear = 1 << first;
    int next = clear + 2, width = first + 1, before = -1, code;
    int64_t pixels = (int64_t)d->file->Image.Width * d->file->Image.Height;
    for (int i = 0; i < clear; i++)
        length[i] = 1;
    while (pixels > 0 && (code = next_code(&c, width)) >= 0 && code != clear + 1) {
        if (code == clear) {
            next = clear + 2, width = first + 1, before = -1;
            continue;
        }
        if (before >= 0 && next < MOST)
            length[next++] = (uint16_t)(length[before] + 1);
        if (code >= next || (before < 0 && code >= clear))
            return false;
        pixels -= length[code];
        before = code;
        width += next == 1 << width && width < WIDEST;
    }
    return true;
}

/* Rows of the frame in the order in which they come. */
static pc_status read_frame(decoder *d)
{
    static const int firsts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const GifImageDesc *f = &d->file->Image;
    const size_t width = (size_t)d->file->SWidth;
    for (int pass = 0; pass < (f->Interlace ? 4 : 1); pass++)
        for (int y = f->Interlace ? firsts[pass] : 0; y < f->Height; y += f->Interlace ? steps[pass] : 1)
            if (gif.DGifGetLine(d->file, d->indices + (size_t)(f->Top + y) * width + (size_t)f->Left, f->Width) !=
                GIF_OK)
                return broken(d, d->file->Error);
    return PC_OK;
}

static void colour_row(const decoder *d, const ColorMapObject *map, const uint8_t *indices, uint8_t *out)
{
    for (int x = 0; x < d->file->SWidth; x++, out += 3) {
        const GifColorType none = {0, 0, 0}, c = indices[x] < map->ColorCount ? map->Colors[indices[x]] : none;
        out[0] = c.Red, out[1] = c.Green, out[2] = c.Blue;
    }
}

static pc_status put_rows(decoder *d, const ColorMapObject *map)
{
    pc__rows rows;
    pc_status status = pc__rows_open(&rows, d->file->SWidth, d->file->SHeight, d->picture->options->resize, false,
                                     false, &d->picture->image);
    for (int y = 0; status == PC_OK && y < d->file->SHeight; y++) {
        colour_row(d, map, d->indices + (size_t)y * (size_t)d->file->SWidth, pc__rows_next(&rows));
        pc__rows_done(&rows);
    }
    pc__rows_close(&rows);
    return status;
}

/* What the frame leaves of the canvas is transparent, or of the first colour, as PIL has it. */
static pc_status decode(decoder *d)
{
    enum { LZW_MOST = 4096 }; /* pixels of a byte */
    PC__TRY(find_frame(d));
    const GifImageDesc *f = &d->file->Image;
    const ColorMapObject *map = f->ColorMap ? f->ColorMap : d->file->SColorMap;
    const int64_t pixels = (int64_t)d->file->SWidth * d->file->SHeight;
    if (!map || f->Width < 1 || f->Height < 1 || f->Left < 0 || f->Top < 0 ||
        (int64_t)f->Left + f->Width > d->file->SWidth || (int64_t)f->Top + f->Height > d->file->SHeight)
        return pc__fail(PC_ERR_FORMAT, "%s is a GIF whose first frame has no colours, or lies outside the picture",
                        d->picture->name);
    PC__TRY(pc__picture_begin(d->picture, d->file->SWidth, d->file->SHeight, 3));
    if ((int64_t)f->Width * f->Height / LZW_MOST > (int64_t)d->picture->n)
        return pc__fail(PC_ERR_FORMAT, "%s is truncated: the file ends inside the picture", d->picture->name);
    const int first = d->position ? d->picture->bytes[d->position - 1] : 0;
    if (first >= 1 && first <= 8 && !codes_are_defined(d, first))
        return pc__fail(PC_ERR_FORMAT, "%s is a damaged GIF: its pixels are made of codes that it does not define",
                        d->picture->name);
    d->indices = pc__alloc((size_t)pixels);
    if (!d->indices)
        return PC_ERR_MEMORY;
    memset(d->indices, d->transparent < 0 ? 0 : d->transparent, (size_t)pixels);
    PC__TRY(read_frame(d));
    PC__TRY(put_rows(d, map));
    const char *damage = pc__gif_rest(d->picture->bytes, d->picture->n, d->position);
    return damage ? pc__picture_damaged(d->picture, damage) : PC_OK;
}

pc_status pc__gif_decode(pc__picture *picture)
{
    decoder d = {.picture = picture, .transparent = -1};
    int code = 0;
    PC__TRY(open_library(picture->name));
    d.file = gif.DGifOpen(&d, read_bytes, &code);
    if (!d.file)
        return broken(&d, code);
    const pc_status status = decode(&d);
    (void)gif.DGifCloseFile(d.file, &code);
    pc__free(d.indices);
    return status;
}

#else

pc_status pc__gif_decode(pc__picture *picture)
{
    return pc__library_missing(picture->name, WHAT, "libgif-dev");
}

#endif

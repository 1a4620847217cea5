/* webp.c: WebP by libwebp; of an animation its first frame. */
#include "io/library.h"

#define WHAT "a WebP"
#define PACKAGE "libwebp7"

#if PC_HAVE_WEBP
#include "io/resize.h"

#include <pthread.h>
#include <webp/decode.h>

#define FUNCTIONS(X)                                                                                                   \
    X(WebPGetFeaturesInternal)                                                                                         \
    X(WebPDecodeRGBInto)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} webp;

static pc_status open_library(const char *picture)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const files[] = {"libwebp.so.7", NULL};
#define SYMBOL(name) {#name, (void **)&webp.name},
    const pc__symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL
    pthread_mutex_lock(&lock);
    const pc_status status =
        webp.WebPDecodeRGBInto ? PC_OK : pc__library_open(picture, WHAT, PACKAGE, files, symbols, PC__COUNT(symbols));
    pthread_mutex_unlock(&lock);
    return status;
}

/* A piece of the file. */
typedef struct part {
    const uint8_t *bytes;
    size_t n;
} part;

static size_t number(const uint8_t *at, int bytes)
{
    size_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (size_t)at[i] << 8 * i;
    return value;
}

/* The content of the first chunk of that name; empty when there is none. */
static part find_chunk(part in, const char *name)
{
    enum { HEADER = 8 };
    while (in.n >= HEADER) {
        const size_t said = number(in.bytes + 4, 4), n = PC__MIN(said, in.n - HEADER);
        if (memcmp(in.bytes, name, 4) == 0)
            return (part){in.bytes + HEADER, n};
        const size_t step = HEADER + n + PC__MIN(n & 1, in.n - HEADER - n);
        in.bytes += step, in.n -= step;
    }
    return (part){NULL, 0};
}

static int orientation_of(part chunks)
{
    enum { PREFIX = 6 };
    const part exif = find_chunk(chunks, "EXIF");
    const bool prefixed = exif.n > PREFIX && memcmp(exif.bytes, "Exif\0\0", PREFIX) == 0;
    const size_t before = prefixed ? PREFIX : 0;
    const int orientation = exif.n ? pc__exif_orientation(exif.bytes + before, exif.n - before) : 0;
    const part xmp = find_chunk(chunks, "XMP ");
    return orientation ? orientation : xmp.n ? pc__xmp_orientation(xmp.bytes, xmp.n) : 1;
}

/* What is decoded, and where it lies on the canvas. The stream, not the file: that may end too early behind it. */
typedef struct frame {
    part stream;
    int width, height, x, y, canvas_width, canvas_height;
} frame;

static part stream_of(part chunks)
{
    const part lossy = find_chunk(chunks, "VP8 ");
    return lossy.n ? lossy : find_chunk(chunks, "VP8L");
}

static pc_status broken(const pc__picture *picture, VP8StatusCode code)
{
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return pc__fail(PC_ERR_MEMORY, "out of memory while decoding %s", picture->name);
    if (code == VP8_STATUS_NOT_ENOUGH_DATA)
        return pc__fail(PC_ERR_FORMAT, "%s is truncated: the file ends inside the picture", picture->name);
    return pc__fail(PC_ERR_FORMAT, "%s is a WebP that cannot be decoded", picture->name);
}

static pc_status look(const pc__picture *picture, part chunks, frame *f)
{
    enum { FRAME_HEADER = 16 };
    WebPBitstreamFeatures whole, own;
    VP8StatusCode code = webp.WebPGetFeaturesInternal(picture->bytes, picture->n, &whole, WEBP_DECODER_ABI_VERSION);
    if (code != VP8_STATUS_OK)
        return broken(picture, code);
    *f = (frame){stream_of(chunks), whole.width, whole.height, 0, 0, whole.width, whole.height};
    if (!whole.has_animation)
        return PC_OK;
    const part first = find_chunk(chunks, "ANMF");
    if (first.n < FRAME_HEADER)
        return broken(picture, VP8_STATUS_NOT_ENOUGH_DATA);
    f->x = 2 * (int)number(first.bytes, 3), f->y = 2 * (int)number(first.bytes + 3, 3);
    f->stream = stream_of((part){first.bytes + FRAME_HEADER, first.n - FRAME_HEADER});
    code = webp.WebPGetFeaturesInternal(f->stream.bytes, f->stream.n, &own, WEBP_DECODER_ABI_VERSION);
    if (code != VP8_STATUS_OK)
        return broken(picture, code);
    f->width = own.width, f->height = own.height;
    if (f->x + f->width > f->canvas_width || f->y + f->height > f->canvas_height)
        return broken(picture, VP8_STATUS_BITSTREAM_ERROR);
    return PC_OK;
}

static pc_status decode(pc__picture *picture, const frame *f, uint8_t *canvas)
{
    const size_t stride = (size_t)f->canvas_width * 3, size = stride * (size_t)f->canvas_height;
    const size_t first = (size_t)f->y * stride + (size_t)f->x * 3;
    const pc__turn turn = pc__turn_of(picture->orientation);
    /* NULL says no more than that it failed: a stream that ends early is what it mostly is */
    if (!webp.WebPDecodeRGBInto(f->stream.bytes, f->stream.n, canvas + first, size - first, (int)stride))
        return pc__fail(PC_ERR_FORMAT, "%s is a WebP that is truncated or broken", picture->name);
    pc__rows rows;
    const pc_status status = pc__rows_open(&rows, f->canvas_width, f->canvas_height, picture->options->resize,
                                           turn.mirror_x, turn.mirror_y, &picture->image);
    for (int y = 0; status == PC_OK && y < f->canvas_height; y++)
        pc__rows_take(&rows, canvas + (size_t)y * stride);
    pc__rows_close(&rows);
    return status;
}

pc_status pc__webp_decode(pc__picture *picture)
{
    enum { RIFF = 12, EACH = 7 }; /* bytes a pixel: of the decoder, lossless, and of the canvas */
    frame f = {0};
    PC__TRY(open_library(picture->name));
    if (picture->n <= RIFF)
        return broken(picture, VP8_STATUS_NOT_ENOUGH_DATA);
    const part chunks = {picture->bytes + RIFF, picture->n - RIFF};
    picture->orientation = picture->options->no_exif ? 1 : orientation_of(chunks);
    PC__TRY(look(picture, chunks, &f));
    PC__TRY(pc__library_room(picture, WHAT, f.canvas_width, f.canvas_height, EACH));
    PC__TRY(pc__picture_begin(picture, f.canvas_width, f.canvas_height, 3));
    uint8_t *canvas = pc__calloc((size_t)f.canvas_width * (size_t)f.canvas_height, 3);
    const pc_status status = canvas ? decode(picture, &f, canvas) : PC_ERR_MEMORY;
    const char *damage = pc__webp_rest(picture->bytes, picture->n);
    pc__free(canvas);
    return status == PC_OK && damage ? pc__picture_damaged(picture, damage) : status;
}

#else

pc_status pc__webp_decode(pc__picture *picture)
{
    return pc__library_missing(picture->name, WHAT, "libwebp-dev");
}

#endif

/* png.c: PNG by libpng, whose memory comes from the one allocator. */
#include "io/codec.h"

#if PC_HAVE_PNG
#include "io/resize.h"

#include <png.h>

typedef struct decoder {
    png_structp png;
    png_infop info;
    pc__picture *picture;
    size_t position;
    bool ended;        /* libpng asked for bytes behind the last one */
    bool behind;       /* all pixels are there, their checksums too; reading up to the end */
    pc_status status;  /* why libpng was left */
    bool starved;      /* an allocation failed: recorded by the allocator */
    char warning[128]; /* the first one */
    pc__rows rows;
    uint8_t *whole; /* all rows, for interlaced pictures */
} decoder;

/* libpng can do without some blocks: whoever passed `starved` in must look at it even when all went well. */
static png_voidp allocate(png_structp png, png_alloc_size_t bytes)
{
    void *block = pc__alloc(bytes);
    if (!block)
        *(bool *)png_get_mem_ptr(png) = true;
    return block;
}

static void release(png_structp png, png_voidp block)
{
    (void)png;
    pc__free(block);
}

_Noreturn static void leave(decoder *d, pc_status status)
{
    d->status = status;
    png_longjmp(d->png, 1);
}

_Noreturn static void leave_truncated(decoder *d, const char *cause)
{
    leave(d,
          pc__fail_cause(PC_ERR_FORMAT, cause, "%s is truncated: the file ends inside the picture", d->picture->name));
}

_Noreturn static void on_error(png_structp png, png_const_charp words)
{
    decoder *d = png_get_error_ptr(png);
    if (d->starved)
        leave(d, PC_ERR_MEMORY);
    if (d->ended && (!d->behind || d->picture->options->strict))
        leave_truncated(d, words);
    if (d->behind)
        leave(d, pc__picture_damaged(d->picture, words));
    leave(d, pc__fail_cause(PC_ERR_FORMAT, words, "%s is a PNG that cannot be decoded", d->picture->name));
}

static void on_warning(png_structp png, png_const_charp words)
{
    decoder *d = png_get_error_ptr(png);
    if (!d->warning[0])
        snprintf(d->warning, sizeof d->warning, "%s", words);
}

static void read_bytes(png_structp png, png_bytep bytes, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if (n > d->picture->n - d->position) {
        d->ended = true;
        png_error(png, "the file ends");
    }
    memcpy(bytes, d->picture->bytes + d->position, n);
    d->position += n;
}

/* libpng offers the eXIf chunk only when it stands before the pixels; so look for it in the bytes, and for XMP that is not
 * compressed. */
static int orientation_of(const pc__picture *picture)
{
    static const char xmp[] = "XML:com.adobe.xmp\0"; /* and a zero: plain text */
    enum { SIGNATURE = 8, FRAME = 12 };
    const uint8_t *bytes = picture->bytes;
    int orientation = 0, other = 1;
    for (size_t at = SIGNATURE; at + FRAME <= picture->n && !orientation;) {
        const size_t length =
            (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        const uint8_t *content = bytes + at + 8;
        if (length > picture->n - at - FRAME)
            break;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
            orientation = pc__exif_orientation(content, length);
        if (memcmp(bytes + at + 4, "iTXt", 4) == 0 && length > sizeof xmp && memcmp(content, xmp, sizeof xmp) == 0)
            other = pc__xmp_orientation(content + sizeof xmp, length - sizeof xmp);
        at += length + FRAME;
    }
    return orientation ? orientation : other;
}

/* Deflate shrinks by at most 1032 to 1: so a short file cannot make a huge picture. */
static void check_plausible(decoder *d, png_uint_32 width, png_uint_32 height)
{
    enum { DEFLATE_MOST = 1040 };
    const uint64_t bits = (uint64_t)width * png_get_channels(d->png, d->info) * png_get_bit_depth(d->png, d->info);
    if (bits / 8 * height > (uint64_t)d->picture->n * DEFLATE_MOST)
        leave_truncated(d, "too few bytes for its size");
}

static void read_rows(decoder *d, int height, size_t stride)
{
    const int passes = png_set_interlace_handling(d->png);
    if (passes == 1) {
        for (int y = 0; y < height; y++) {
            png_read_row(d->png, pc__rows_next(&d->rows), NULL);
            pc__rows_done(&d->rows);
        }
        return;
    }
    d->whole = pc__alloc(stride * (size_t)height);
    if (!d->whole)
        leave(d, PC_ERR_MEMORY);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++)
            png_read_row(d->png, d->whole + (size_t)y * stride, NULL);
    for (int y = 0; y < height; y++)
        pc__rows_take(&d->rows, d->whole + (size_t)y * stride);
}

/* 8-bit grey or RGB of whatever there is: the high byte of 16 bits, no alpha. */
static int plain_samples(decoder *d)
{
    const int colour = png_get_color_type(d->png, d->info);
    png_set_strip_16(d->png);
    png_set_strip_alpha(d->png);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(d->png);
    else if (colour == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(d->png);
    return colour & PNG_COLOR_MASK_COLOR ? 3 : 1;
}

static void decode(decoder *d)
{
    const pc_image_options *options = d->picture->options;
    png_set_read_fn(d->png, d, read_bytes);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "iCCP\0iTXt\0tEXt\0zTXt", 4);
    png_set_user_limits(d->png, PC__SIDE_MAX, PC__SIDE_MAX);
    png_read_info(d->png, d->info);
    const png_uint_32 width = png_get_image_width(d->png, d->info), height = png_get_image_height(d->png, d->info);
    const int channels = plain_samples(d);
    pc_status status = pc__picture_begin(d->picture, (int)width, (int)height, channels);
    if (status == PC_OK)
        check_plausible(d, width, height);
    const pc__turn turn = pc__turn_of(d->picture->orientation);
    if (status == PC_OK)
        status = pc__rows_open(&d->rows, (int)width, (int)height, options->resize, turn.mirror_x, turn.mirror_y,
                               &d->picture->image);
    if (status != PC_OK)
        leave(d, status);
    read_rows(d, (int)height, (size_t)width * (size_t)channels);
    d->behind = true;
    png_read_end(d->png, NULL);
    if (d->warning[0])
        leave(d, pc__picture_damaged(d->picture, d->warning));
}

/* In a function of its own: no local variable is alive across the jump. */
static pc_status guard(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return d->status;
    d->info = png_create_info_struct(d->png);
    if (d->info)
        decode(d);
    return d->starved ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__png_decode(pc__picture *picture)
{
    decoder d = {.picture = picture};
    picture->orientation = picture->options->no_exif ? 1 : orientation_of(picture);
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning, &d.starved, allocate, release);
    if (!d.png)
        return PC_ERR_MEMORY;
    pc_status status = guard(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    pc__rows_close(&d.rows);
    pc__free(d.whole);
    return status;
}

typedef struct encoder {
    png_structp png;
    png_infop info;
    const pc_image *image;
    pc__text *out;
    pc_status status; /* why libpng was left */
    bool starved;
} encoder;

_Noreturn static void on_encode_error(png_structp png, png_const_charp words)
{
    encoder *e = png_get_error_ptr(png);
    if (e->starved || e->out->failed)
        e->status = PC_ERR_MEMORY;
    else
        e->status = pc__fail_cause(PC_ERR_ARGUMENT, words, "a picture of %d x %d pixels cannot become a PNG",
                                   e->image->width, e->image->height);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp words)
{
    (void)png, (void)words;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t n)
{
    encoder *e = png_get_io_ptr(png);
    pc__text_append(e->out, (const char *)bytes, n);
    if (e->out->failed)
        png_error(png, "out of memory");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void encode(encoder *e)
{
    const pc_image *image = e->image;
    png_set_write_fn(e->png, e, write_bytes, flush_nothing);
    png_set_IHDR(e->png, e->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(e->png, e->info);
    for (int y = 0; y < image->height; y++)
        png_write_row(e->png, image->pixels + (size_t)y * (size_t)image->width * (size_t)image->channels);
    png_write_end(e->png, e->info);
}

static pc_status guard_encode(encoder *e)
{
    if (setjmp(png_jmpbuf(e->png)))
        return e->status;
    e->info = png_create_info_struct(e->png);
    if (e->info)
        encode(e);
    return e->starved ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__png_encode(const pc_image *image, pc__text *out)
{
    encoder e = {.image = image, .out = out};
    e.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &e, on_encode_error, ignore_warning, &e.starved, allocate,
                                      release);
    if (!e.png)
        return PC_ERR_MEMORY;
    pc_status status = guard_encode(&e);
    png_destroy_write_struct(&e.png, &e.info);
    return status;
}

#else

pc_status pc__png_decode(pc__picture *picture)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s is a PNG, and this build is without libpng: install it (Debian: "
                    "libpng-dev) and build again",
                    picture->name);
}

pc_status pc__png_encode(const pc_image *image, pc__text *out)
{
    (void)image, (void)out;
    return pc__fail(PC_ERR_UNSUPPORTED, "cannot write a PNG: this build is without libpng: install it (Debian: "
                                        "libpng-dev) and build again");
}

#endif

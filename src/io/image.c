/* image.c: pictures, told apart by their first bytes. What is special to a format is in files of its name. */
#include "io/codec.h"
#include "io/file.h"

#include <strings.h>

enum { WRITE_QUALITY = 92 };

static bool size_is_sane(int64_t width, int64_t height)
{
    return width >= 1 && height >= 1 && width <= PC__SIDE_MAX && height <= PC__SIDE_MAX &&
           width * height <= PC__PIXELS_MAX;
}

/* A picture whose pixels are not set yet. */
static pc_status allocate(int width, int height, int channels, pc_image *image)
{
    *image = (pc_image){0};
    if (!size_is_sane(width, height))
        return pc__fail(PC_ERR_ARGUMENT, "a picture of %d x %d pixels: sides are 1 to %d, at most %lld pixels in all",
                        width, height, PC__SIDE_MAX, (long long)PC__PIXELS_MAX);
    if (channels != 1 && channels != 3)
        return pc__fail(PC_ERR_ARGUMENT, "a picture of %d channels: pictures have 1 (grey) or 3 (RGB)", channels);
    uint8_t *pixels = pc__alloc((size_t)width * (size_t)height * (size_t)channels);
    if (!pixels)
        return PC_ERR_MEMORY;
    *image = (pc_image){pixels, width, height, channels};
    return PC_OK;
}

pc_status pc_image_new(int width, int height, int channels, pc_image *image)
{
    PC__NEED(image);
    PC__TRY(allocate(width, height, channels, image));
    memset(image->pixels, 0, (size_t)width * (size_t)height * (size_t)channels);
    return PC_OK;
}

void pc_image_free(pc_image *image)
{
    if (!image)
        return;
    pc__free(image->pixels);
    *image = (pc_image){0};
}

pc_status pc__picture_begin(pc__picture *picture, int width, int height, int channels)
{
    if (!size_is_sane(width, height))
        return pc__fail(
            PC_ERR_FORMAT,
            "%s claims to be %d x %d pixels: sides are 1 to %d, and at most %lld pixels in all; make it smaller",
            picture->name, width, height, PC__SIDE_MAX, (long long)PC__PIXELS_MAX);
    const pc_image_options *options = picture->options;
    if (options->shorter) {
        PC__TRY(pc__cover_size(picture->name, width, height, options->shorter, &width, &height));
    } else if (options->width) {
        const bool transposed = pc__turn_of(picture->orientation).transposed;
        width = transposed ? options->height : options->width;
        height = transposed ? options->width : options->height;
    }
    return allocate(width, height, channels, &picture->image);
}

pc_status pc__picture_damaged(pc__picture *picture, const char *words)
{
    if (picture->options->strict)
        return pc__fail_cause(PC_ERR_FORMAT, words, "%s is damaged", picture->name);
    if (picture->options->damage)
        snprintf(picture->options->damage->words, sizeof picture->options->damage->words, "%s", words);
    return PC_OK;
}

pc_status pc__image_set_channels(pc_image *image, int channels)
{
    if (!channels || channels == image->channels)
        return PC_OK;
    pc_image made;
    PC__TRY(allocate(image->width, image->height, channels, &made));
    const size_t n = (size_t)image->width * (size_t)image->height;
    const uint8_t *from = image->pixels;
    if (channels == 3)
        for (size_t i = 0; i < n; i++)
            memset(made.pixels + 3 * i, from[i], 3);
    else /* ITU-R 601 luma in 16-bit fixed point, as PIL's convert("L") rounds it */
        for (size_t i = 0; i < n; i++, from += 3)
            made.pixels[i] = (uint8_t)((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
    pc_image_free(image);
    *image = made;
    return PC_OK;
}

void pc__cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, int n)
{
    for (int i = 0; i < n; i++, cmyk += 4)
        for (int c = 0; c < 3; c++) {
            const int key = cmyk[3], product = (255 - cmyk[c]) * key + 128;
            *rgb++ = (uint8_t)(key - ((product >> 8) + product) / 256);
        }
}

/* Formats that people have and that are not read, by magic bytes at an offset. */
static const struct {
    int offset, length;
    const char *magic, *what;
} others[] = {
    {4, 8, "ftypavif", "an AVIF"},     {4, 7, "ftyphei", "a HEIC"},        {4, 7, "ftyphev", "a HEIC"},
    {4, 8, "ftypmif1", "a HEIC"},      {4, 8, "ftypmsf1", "a HEIC"},       {4, 4, "ftyp", "a video (MP4 family)"},
    {0, 5, "%PDF-", "a PDF"},          {4, 4, "jP  ", "a JPEG 2000"},      {0, 2, "\xff\x0a", "a JPEG XL"},
    {4, 4, "JXL ", "a JPEG XL"},       {0, 4, "8BPS", "a Photoshop file"}, {0, 4, "\0\0\1\0", "an icon (ICO)"},
    {0, 4, "PK\3\4", "a ZIP archive"}, {0, 2, "\x1f\x8b", "a gzip file"},  {1, 3, "HDF", "an HDF5 file"},
};

static bool begins_with(const char *text, size_t n, const char *word)
{
    return n >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

static const char *name_text(const uint8_t *bytes, size_t n)
{
    size_t seen = PC__MIN(n, 256);
    for (size_t i = 0; i < seen; i++)
        if ((bytes[i] < ' ' && !strchr("\t\n\r\f", bytes[i])) || bytes[i] == 0 || bytes[i] == 127 || bytes[i] >= 0xf8)
            return "no picture format that is known here";
    const char *text = (const char *)bytes;
    while (seen && strchr(" \t\n\r\f", *text))
        text++, seen--;
    if (begins_with(text, seen, "<!doctype html") || begins_with(text, seen, "<html"))
        return "an HTML page";
    if (begins_with(text, seen, "<svg") || begins_with(text, seen, "<?xml"))
        return "an XML or SVG file";
    return "a text file";
}

/* Formats that are read. */
static const struct {
    int offset, length;
    const char *magic;
    pc_status (*decode)(pc__picture *picture);
} formats[] = {
    {0, 2, "\xff\xd8", pc__jpeg_decode}, {0, 4, "\x89PNG", pc__png_decode}, {8, 4, "WEBP", pc__webp_decode},
    {0, 4, "GIF8", pc__gif_decode},      {0, 4, "II*\0", pc__tiff_decode},  {0, 4, "MM\0*", pc__tiff_decode},
    {0, 4, "II+\0", pc__tiff_decode},    {0, 4, "MM\0+", pc__tiff_decode},  {0, 2, "BM", pc__bmp_decode},
};

/* PBM, PGM or PPM: P1 to P6, which texts can begin with, too, and the end of a word. */
static bool is_pnm(const pc__picture *picture)
{
    const uint8_t *front = picture->bytes;
    return picture->n > 2 && front[0] == 'P' && front[1] >= '1' && front[1] <= '6' &&
           (front[2] == '#' || front[2] == ' ' || (front[2] >= '\t' && front[2] <= '\r'));
}

static bool has_magic(const pc__picture *picture, int offset, int length, const char *magic)
{
    return picture->n >= (size_t)(offset + length) && memcmp(picture->bytes + offset, magic, (size_t)length) == 0;
}

static const char *name_other(const pc__picture *picture)
{
    for (int i = 0; i < PC__COUNT(others); i++)
        if (has_magic(picture, others[i].offset, others[i].length, others[i].magic))
            return others[i].what;
    return name_text(picture->bytes, picture->n);
}

static pc_status decode_stored(pc__picture *picture)
{
    if (picture->n == 0)
        return pc__fail(PC_ERR_FORMAT, "%s is an empty file", picture->name);
    for (int i = 0; i < PC__COUNT(formats); i++)
        if (has_magic(picture, formats[i].offset, formats[i].length, formats[i].magic))
            return formats[i].decode(picture);
    if (is_pnm(picture))
        return pc__pnm_decode(picture);
    return pc__fail(PC_ERR_FORMAT, "%s is %s, not a JPEG, PNG, WebP, GIF, BMP, TIFF or PNM picture", picture->name,
                    name_other(picture));
}

static pc_status check_options(const pc_image_options *options)
{
    if (options->channels != 0 && options->channels != 1 && options->channels != 3)
        return pc__fail(PC_ERR_ARGUMENT, "reading a picture with %d channels: use 1 (grey), 3 (RGB) or 0 (its own)",
                        options->channels);
    if (options->resize != PC_RESIZE_NEAREST && options->resize != PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT,
                        "reading a picture: %d is no resize mode; use PC_RESIZE_NEAREST or "
                        "PC_RESIZE_AREA",
                        options->resize);
    const int width = options->width, height = options->height;
    if ((width == 0) != (height == 0) || width < 0 || height < 0 || width > PC__SIDE_MAX || height > PC__SIDE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "reading a picture at %d x %d: give both sides (1 to %d) or neither", width,
                        height, PC__SIDE_MAX);
    return pc__cover_check("reading a picture", width, height, options->shorter);
}

pc_status pc_image_decode(const void *bytes, size_t n, const char *name, pc_image_options options, pc_image *image)
{
    PC__NEED(image);
    *image = (pc_image){0};
    if (options.damage)
        *options.damage = (pc_image_damage){""};
    PC__NEED(bytes);
    PC__TRY(check_options(&options));
    pc__picture picture = {
        .bytes = bytes, .n = n, .name = name ? name : "picture", .options = &options, .orientation = 1};
    pc_status status = decode_stored(&picture);
    if (status == PC_OK)
        status = pc__image_set_channels(&picture.image, options.channels);
    if (status == PC_OK)
        status = pc__turn_image(&picture.image, picture.orientation);
    if (status == PC_OK && options.shorter)
        pc__image_middle(&picture.image, options.width, options.height);
    if (status != PC_OK)
        pc_image_free(&picture.image);
    *image = picture.image;
    return status;
}

pc_status pc_image_read(const char *path, pc_image_options options, pc_image *image)
{
    PC__NEED(image);
    *image = (pc_image){0};
    PC__NEED(path);
    uint8_t *bytes;
    size_t n;
    if (options.damage)
        *options.damage = (pc_image_damage){""};
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = pc_image_decode(bytes, n, path, options, image);
    pc__free(bytes);
    return status;
}

pc_status pc__image_check(const pc_image *image, const char *who)
{
    if (!image->pixels || image->width < 1 || image->height < 1 || image->width > PC__SIDE_MAX ||
        image->height > PC__SIDE_MAX || (image->channels != 1 && image->channels != 3))
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s a picture: it is empty, has neither 1 nor 3 channels, or a side that is not 1 to %d", who,
                        PC__SIDE_MAX);
    return PC_OK;
}

static pc_status encode(const pc_image *image, int jpeg_quality, uint8_t **bytes, size_t *n)
{
    PC__TRY(pc__image_check(image, "encoding"));
    pc__text out = {0};
    pc_status status = jpeg_quality ? pc__jpeg_encode(image, jpeg_quality, &out) : pc__png_encode(image, &out);
    if (status != PC_OK) {
        pc__text_free(&out);
        return status;
    }
    *bytes = (uint8_t *)out.data;
    *n = out.length;
    return PC_OK;
}

pc_status pc_image_encode_jpeg(const pc_image *image, int quality, uint8_t **bytes, size_t *n)
{
    PC__NEED(bytes);
    PC__NEED(n);
    *bytes = NULL, *n = 0;
    PC__NEED(image);
    if (quality < 1 || quality > 100)
        return pc__fail(PC_ERR_ARGUMENT, "JPEG quality %d: it goes from 1 to 100", quality);
    return encode(image, quality, bytes, n);
}

pc_status pc_image_encode_png(const pc_image *image, uint8_t **bytes, size_t *n)
{
    PC__NEED(bytes);
    PC__NEED(n);
    *bytes = NULL, *n = 0;
    PC__NEED(image);
    return encode(image, 0, bytes, n);
}

void pc_image_bytes_free(uint8_t *bytes)
{
    pc__free(bytes);
}

pc_status pc_image_write(const pc_image *image, const char *path)
{
    PC__NEED(image);
    PC__NEED(path);
    const char *suffix = strrchr(path, '.');
    const bool png = suffix && strcasecmp(suffix, ".png") == 0;
    const bool jpeg = suffix && (strcasecmp(suffix, ".jpg") == 0 || strcasecmp(suffix, ".jpeg") == 0);
    if (!png && !jpeg)
        return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: pictures end in .jpg, .jpeg or .png", path);
    uint8_t *bytes;
    size_t n;
    PC__TRY(encode(image, png ? 0 : WRITE_QUALITY, &bytes, &n));
    pc_status status = pc__file_write(path, bytes, n);
    pc__free(bytes);
    return status;
}

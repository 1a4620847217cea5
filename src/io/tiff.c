/* tiff.c: the first page of a TIFF by libtiff: the usual kinds from their samples (tiff_samples.c), the others by its
 * conversion to 8-bit RGBA. Its handlers of errors belong to one open file (libtiff 4.5): the program may use libtiff
 * too. */
#include "io/tiff.h"

#if PC__TIFF
#include "io/resize.h"

#include <pthread.h>

#define PACKAGE "libtiff6"

pc__tiff_functions pc__tiff;

static pc_status open_library(const char *picture)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const files[] = {"libtiff.so.6", NULL};
#define SYMBOL(name) {#name, (void **)&pc__tiff.name},
    const pc__symbol symbols[] = {PC__TIFF_FUNCTIONS(SYMBOL)};
#undef SYMBOL
    pthread_mutex_lock(&lock);
    const pc_status status = pc__tiff.TIFFReadRGBAImageOriented ? PC_OK
                                                                : pc__library_open(picture, PC__TIFF_WHAT, PACKAGE,
                                                                                   files, symbols, PC__COUNT(symbols));
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- the file is memory --- */

static tmsize_t read_bytes(thandle_t handle, void *bytes, tmsize_t n)
{
    pc__tiff_file *d = handle;
    const uint64_t size = d->picture->n, left = d->position < size ? size - d->position : 0;
    const size_t got = PC__MIN((size_t)n, left);
    memcpy(bytes, d->picture->bytes + PC__MIN(d->position, size), got);
    d->position += got;
    return (tmsize_t)got;
}

static tmsize_t write_nothing(thandle_t handle, void *bytes, tmsize_t n)
{
    (void)handle, (void)bytes, (void)n;
    return 0;
}

static toff_t seek(thandle_t handle, toff_t to, int whence)
{
    pc__tiff_file *d = handle;
    d->position = to + (whence == SEEK_CUR ? d->position : whence == SEEK_END ? d->picture->n : 0);
    return d->position;
}

static int close_nothing(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle)
{
    const pc__tiff_file *d = handle;
    return d->picture->n;
}

/* An orientation beyond 1 to 8 is no reason to refuse the picture, as in other formats: it is taken as it is stored. */
static int on_error(TIFF *file, void *context, const char *module, const char *format, va_list arguments)
{
    pc__tiff_file *d = context;
    (void)file, (void)module;
    if (d->error[0])
        return 1;
    vsnprintf(d->error, sizeof d->error, format, arguments);
    if (strstr(d->error, "Bad value") && strstr(d->error, "\"Orientation\""))
        d->error[0] = 0;
    return 1;
}

/* Fields that libtiff does not know are no damage: every scanner has some. */
static int on_warning(TIFF *file, void *context, const char *module, const char *format, va_list arguments)
{
    pc__tiff_file *d = context;
    (void)file, (void)module;
    if (!d->warning[0] && !strstr(format, "nknown field"))
        vsnprintf(d->warning, sizeof d->warning, format, arguments);
    return 1;
}

static TIFF *open_file(pc__tiff_file *d)
{
    enum { BLOCK_MOST = 1 << 28 };
    TIFFOpenOptions *options = pc__tiff.TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    pc__tiff.TIFFOpenOptionsSetMaxSingleMemAlloc(options, BLOCK_MOST);
    pc__tiff.TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, d);
    pc__tiff.TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, d);
    /* m: not by mapping it; the name would only stand in messages */
    TIFF *file = pc__tiff.TIFFClientOpenExt("picture", "rm", d, read_bytes, write_nothing, seek, close_nothing, size_of,
                                            NULL, NULL, options);
    pc__tiff.TIFFOpenOptionsFree(options);
    return file;
}

/* --- the picture --- */

pc_status pc__tiff_broken(const pc__tiff_file *d)
{
    return pc__fail_cause(PC_ERR_FORMAT, d->error[0] ? d->error : "no reason given",
                          "%s is a TIFF that is truncated, broken or of an unusual kind", d->picture->name);
}

static pc_status put_rows(pc__tiff_file *d, const pc__tiff_form *form, const uint32_t *raster)
{
    const pc__turn turn = pc__turn_of(d->picture->orientation);
    const int channels = d->picture->image.channels;
    pc__rows rows;
    const pc_status status = pc__rows_open(&rows, (int)form->width, (int)form->height, d->picture->options->resize,
                                           turn.mirror_x, turn.mirror_y, &d->picture->image);
    for (uint32_t y = 0; status == PC_OK && y < form->height; y++, raster += form->width) {
        uint8_t *out = pc__rows_next(&rows);
        for (uint32_t x = 0; x < form->width; x++)
            for (int c = 0; c < channels; c++)
                *out++ = (uint8_t)(raster[x] >> 8 * c);
        pc__rows_done(&rows);
    }
    pc__rows_close(&rows);
    return status;
}

/* Of kinds that are rare: libtiff's conversion. */
static pc_status convert(pc__tiff_file *d, TIFF *file, const pc__tiff_form *form)
{
    enum { EACH = 8 }; /* bytes a pixel: the raster, and the file's own samples */
    PC__TRY(pc__library_room(d->picture, PC__TIFF_WHAT, form->width, form->height, EACH));
    uint32_t *raster = pc__calloc((size_t)form->width * form->height, sizeof *raster);
    if (!raster)
        return PC_ERR_MEMORY;
    /* asked for as it is stored, it is not turned: the picture is, like all others */
    pc_status status =
        pc__tiff.TIFFReadRGBAImageOriented(file, form->width, form->height, raster, form->orientation, 1) &&
                !d->error[0]
            ? put_rows(d, form, raster)
            : pc__tiff_broken(d);
    pc__free(raster);
    return status;
}

/* What would come out in wrong colours. Signed samples of 8 bits are taken for unsigned ones, as PIL does. */
static pc_status check_colours(const pc__tiff_file *d, TIFF *file, pc__tiff_form *form)
{
    uint16_t kind = SAMPLEFORMAT_UINT;
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &form->bits);
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &kind);
    if (form->photometric == PHOTOMETRIC_CIELAB || form->photometric == PHOTOMETRIC_ICCLAB ||
        form->photometric == PHOTOMETRIC_ITULAB)
        return pc__fail(PC_ERR_FORMAT,
                        "%s is a TIFF in the colours of CIE L*a*b*, which are not read: convert it to sRGB "
                        "(ImageMagick: -colorspace sRGB)",
                        d->picture->name);
    if (kind == SAMPLEFORMAT_UINT || kind == SAMPLEFORMAT_VOID || (kind == SAMPLEFORMAT_INT && form->bits == 8))
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT,
                    "%s is a TIFF of signed or floating-point samples, which are not read: convert it to unsigned ones "
                    "of 8 bits (ImageMagick: -auto-level -depth 8)",
                    d->picture->name);
}

static pc_status decode(pc__tiff_file *d, TIFF *file)
{
    pc__picture *picture = d->picture;
    pc__tiff_form form = {.photometric = PC__TIFF_NONE, .orientation = ORIENTATION_TOPLEFT};
    if (!pc__tiff.TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &form.width) ||
        !pc__tiff.TIFFGetField(file, TIFFTAG_IMAGELENGTH, &form.height))
        return pc__tiff_broken(d);
    (void)pc__tiff.TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &form.photometric);
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_ORIENTATION, &form.orientation);
    PC__TRY(check_colours(d, file, &form));
    picture->orientation =
        picture->options->no_exif || form.orientation < 1 || form.orientation > 8 ? 1 : form.orientation;
    const bool grey = form.photometric == PHOTOMETRIC_MINISBLACK || form.photometric == PHOTOMETRIC_MINISWHITE;
    PC__TRY(pc__picture_begin(picture, (int)PC__MIN(form.width, INT32_MAX), (int)PC__MIN(form.height, INT32_MAX),
                              grey ? 1 : 3));
    PC__TRY(pc__tiff_is_usual(file, &form) ? pc__tiff_samples(d, file, &form) : convert(d, file, &form));
    const char *damage = d->warning[0] ? d->warning : pc__tiff_rest(picture->bytes, picture->n);
    return damage ? pc__picture_damaged(picture, damage) : PC_OK;
}

pc_status pc__tiff_decode(pc__picture *picture)
{
    pc__tiff_file d = {.picture = picture};
    PC__TRY(open_library(picture->name));
    TIFF *file = open_file(&d);
    if (!file)
        return pc__tiff_broken(&d);
    const pc_status status = decode(&d, file);
    pc__tiff.TIFFClose(file);
    return status;
}

#else

pc_status pc__tiff_decode(pc__picture *picture)
{
    return pc__library_missing(picture->name, PC__TIFF_WHAT, "libtiff-dev");
}

#endif

/* tiff.c: the first page of a TIFF by libtiff, whose own conversion to 8-bit RGB it is. Its handlers of errors belong
 * to one open file (libtiff 4.5): the program may use libtiff too. */
#include "io/library.h"

#define WHAT "a TIFF"
#define PACKAGE "libtiff6"

#if PC_HAVE_TIFF
#include <tiffio.h>
#endif

#if PC_HAVE_TIFF && TIFFLIB_VERSION >= 20221213
#include "io/resize.h"

#include <pthread.h>

#define FUNCTIONS(X)                                                                                                   \
    X(TIFFOpenOptionsAlloc)                                                                                            \
    X(TIFFOpenOptionsFree)                                                                                             \
    X(TIFFOpenOptionsSetMaxSingleMemAlloc)                                                                             \
    X(TIFFOpenOptionsSetErrorHandlerExtR)                                                                              \
    X(TIFFOpenOptionsSetWarningHandlerExtR)                                                                            \
    X(TIFFClientOpenExt)                                                                                               \
    X(TIFFClose)                                                                                                       \
    X(TIFFGetField)                                                                                                    \
    X(TIFFGetFieldDefaulted)                                                                                           \
    X(TIFFReadRGBAImageOriented)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} tiff;

static pc_status open_library(const char *picture)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const files[] = {"libtiff.so.6", NULL};
#define SYMBOL(name) {#name, (void **)&tiff.name},
    const pc__symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL
    pthread_mutex_lock(&lock);
    const pc_status status = tiff.TIFFReadRGBAImageOriented
                                 ? PC_OK
                                 : pc__library_open(picture, WHAT, PACKAGE, files, symbols, PC__COUNT(symbols));
    pthread_mutex_unlock(&lock);
    return status;
}

typedef struct decoder {
    pc__picture *picture;
    uint64_t position;
    char error[128], warning[128]; /* the first ones */
} decoder;

/* --- the file is memory --- */

static tmsize_t read_bytes(thandle_t handle, void *bytes, tmsize_t n)
{
    decoder *d = handle;
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
    decoder *d = handle;
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
    const decoder *d = handle;
    return d->picture->n;
}

static int on_error(TIFF *file, void *context, const char *module, const char *format, va_list arguments)
{
    decoder *d = context;
    (void)file, (void)module;
    if (!d->error[0])
        vsnprintf(d->error, sizeof d->error, format, arguments);
    return 1;
}

/* Fields that libtiff does not know are no damage: every scanner has some. */
static int on_warning(TIFF *file, void *context, const char *module, const char *format, va_list arguments)
{
    decoder *d = context;
    (void)file, (void)module;
    if (!d->warning[0] && !strstr(format, "nknown field"))
        vsnprintf(d->warning, sizeof d->warning, format, arguments);
    return 1;
}

static TIFF *open_file(decoder *d)
{
    enum { BLOCK_MOST = 1 << 28 };
    TIFFOpenOptions *options = tiff.TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    tiff.TIFFOpenOptionsSetMaxSingleMemAlloc(options, BLOCK_MOST);
    tiff.TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, d);
    tiff.TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, d);
    /* m: not by mapping it; the name would only stand in messages */
    TIFF *file = tiff.TIFFClientOpenExt("picture", "rm", d, read_bytes, write_nothing, seek, close_nothing, size_of,
                                        NULL, NULL, options);
    tiff.TIFFOpenOptionsFree(options);
    return file;
}

/* --- the picture --- */

static pc_status broken(const decoder *d)
{
    return pc__fail_cause(PC_ERR_FORMAT, d->error[0] ? d->error : "no reason given",
                          "%s is a TIFF that is truncated, broken or of an unusual kind", d->picture->name);
}

static pc_status put_rows(decoder *d, const uint32_t *raster, uint32_t width, uint32_t height)
{
    const pc__turn turn = pc__turn_of(d->picture->orientation);
    const int channels = d->picture->image.channels;
    pc__rows rows;
    const pc_status status = pc__rows_open(&rows, (int)width, (int)height, d->picture->options->resize, turn.mirror_x,
                                           turn.mirror_y, &d->picture->image);
    for (uint32_t y = 0; status == PC_OK && y < height; y++, raster += width) {
        uint8_t *out = pc__rows_next(&rows);
        for (uint32_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *out++ = (uint8_t)(raster[x] >> 8 * c);
        pc__rows_done(&rows);
    }
    pc__rows_close(&rows);
    return status;
}

static pc_status decode(decoder *d, TIFF *file)
{
    enum { EACH = 8 }; /* bytes a pixel: the raster, and the file's own samples */
    pc__picture *picture = d->picture;
    uint32_t width = 0, height = 0;
    uint16_t photometric = PHOTOMETRIC_RGB, orientation = ORIENTATION_TOPLEFT;
    if (!tiff.TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &width) || !tiff.TIFFGetField(file, TIFFTAG_IMAGELENGTH, &height))
        return broken(d);
    (void)tiff.TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &photometric);
    (void)tiff.TIFFGetFieldDefaulted(file, TIFFTAG_ORIENTATION, &orientation);
    picture->orientation = picture->options->no_exif || orientation < 1 || orientation > 8 ? 1 : orientation;
    const bool grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    PC__TRY(pc__picture_begin(picture, (int)PC__MIN(width, INT32_MAX), (int)PC__MIN(height, INT32_MAX), grey ? 1 : 3));
    PC__TRY(pc__library_room(picture, WHAT, width, height, EACH));
    uint32_t *raster = pc__calloc((size_t)width * height, sizeof *raster);
    if (!raster)
        return PC_ERR_MEMORY;
    /* asked for as it is stored, it is not turned: the picture is, like all others */
    pc_status status =
        tiff.TIFFReadRGBAImageOriented(file, width, height, raster, orientation, 1) && !d->error[0] ? PC_OK : broken(d);
    if (status == PC_OK)
        status = put_rows(d, raster, width, height);
    if (status == PC_OK && d->warning[0])
        status = pc__picture_damaged(picture, d->warning);
    pc__free(raster);
    return status;
}

pc_status pc__tiff_decode(pc__picture *picture)
{
    decoder d = {.picture = picture};
    PC__TRY(open_library(picture->name));
    TIFF *file = open_file(&d);
    if (!file)
        return broken(&d);
    const pc_status status = decode(&d, file);
    tiff.TIFFClose(file);
    return status;
}

#else

pc_status pc__tiff_decode(pc__picture *picture)
{
    return pc__library_missing(picture->name, WHAT, "libtiff-dev");
}

#endif

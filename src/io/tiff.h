/* tiff.h: between the parts of the TIFF decoder. */
#ifndef PC__TIFF_H
#define PC__TIFF_H

#include "io/library.h"

#define PC__TIFF_WHAT "a TIFF"

#if PC_HAVE_TIFF
#include <tiffio.h>
#define PC__TIFF (TIFFLIB_VERSION >= 20221213)
#endif

#if PC__TIFF

#define PC__TIFF_FUNCTIONS(X)                                                                                          \
    X(TIFFOpenOptionsAlloc)                                                                                            \
    X(TIFFOpenOptionsFree)                                                                                             \
    X(TIFFOpenOptionsSetMaxSingleMemAlloc)                                                                             \
    X(TIFFOpenOptionsSetErrorHandlerExtR)                                                                              \
    X(TIFFOpenOptionsSetWarningHandlerExtR)                                                                            \
    X(TIFFClientOpenExt)                                                                                               \
    X(TIFFClose)                                                                                                       \
    X(TIFFGetField)                                                                                                    \
    X(TIFFGetFieldDefaulted)                                                                                           \
    X(TIFFIsTiled)                                                                                                     \
    X(TIFFScanlineSize64)                                                                                              \
    X(TIFFTileRowSize64)                                                                                               \
    X(TIFFComputeStrip)                                                                                                \
    X(TIFFComputeTile)                                                                                                 \
    X(TIFFReadEncodedStrip)                                                                                            \
    X(TIFFReadEncodedTile)                                                                                             \
    X(TIFFReadRGBAImageOriented)

typedef struct pc__tiff_functions {
#define PC__TIFF_MEMBER(name) __typeof__(name) *name;
    PC__TIFF_FUNCTIONS(PC__TIFF_MEMBER)
#undef PC__TIFF_MEMBER
} pc__tiff_functions;
extern pc__tiff_functions pc__tiff;

typedef struct pc__tiff_file {
    pc__picture *picture;
    uint64_t position;
    char error[128], warning[128]; /* the first ones */
} pc__tiff_file;

enum { PC__TIFF_NONE = UINT16_MAX }; /* a photometric interpretation that is not said */

/* How a page is stored. */
typedef struct pc__tiff_form {
    uint32_t width, height;
    uint16_t photometric, orientation;
    uint16_t bits;      /* of a sample */
    uint16_t samples;   /* of a pixel */
    int colours;        /* samples of a pixel in front of what is no colour */
    bool premultiplied; /* the sample behind the colours is the alpha that they were multiplied by */
    bool separate;      /* samples in planes of their own */
    bool tiled;         /* else in strips, which are tiles as wide as the picture */
    uint32_t tile_width, tile_height;
    uint64_t row_bytes;         /* of a tile's row, of one plane where these are separate */
    const uint16_t *palette[3]; /* libtiff's */
    int palette_shift;
} pc__tiff_form;

/* Whether pc__tiff_samples reads it: grey, RGB, a palette or CMYK in samples of 1 to 16 bits. Fills in the form but for
 * its first three rows, which are there. */
bool pc__tiff_is_usual(TIFF *file, pc__tiff_form *form);

/* The picture from its samples, as PIL has it: alpha is dropped, colours that were multiplied by it are divided again;
 * of more than 8 bits the high ones. */
pc_status pc__tiff_samples(pc__tiff_file *d, TIFF *file, const pc__tiff_form *form);

pc_status pc__tiff_broken(const pc__tiff_file *d);

#endif
#endif

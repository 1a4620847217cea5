/* jpeg.h: a libjpeg decoder whose errors come back as pc_status; between jpeg.c and jpeg_planes.c. */
#ifndef PC__JPEG_H
#define PC__JPEG_H

#include "io/resize.h"
#include "io/codec.h"

#include <setjmp.h>

#include <jpeglib.h>
#include <jerror.h>

/* libjpeg's interface 8 tells the two directions of scaled decoding apart; libjpeg-turbo scales both alike. */
#if JPEG_LIB_VERSION >= 70
#define PC__DCT_SIZE(component) ((component)->DCT_h_scaled_size)
#define PC__MIN_DCT_SIZE(cinfo) ((cinfo)->min_DCT_h_scaled_size)
#else
#define PC__DCT_SIZE(component) ((component)->DCT_scaled_size)
#define PC__MIN_DCT_SIZE(cinfo) ((cinfo)->min_DCT_scaled_size)
#endif

/* One component (Y, Cb or Cr) of a picture that is read in planes. */
typedef struct pc__plane {
    int width, height; /* samples that belong to the picture */
    int across, down;  /* picture pixels per sample */
    int group;         /* rows that one MCU row brings */
    size_t stride;     /* bytes from row to row */
    uint8_t *samples;  /* the last two MCU rows: row y is at y modulo 2 * group */
    int *at, *beside;  /* nearest: the sample of each column taken, and the one beside it that is mixed in */
    uint8_t *picked;   /* nearest: one row of output samples; area: the whole averaged plane */
    pc__area area;
} pc__plane;

typedef struct pc__jpeg {
    struct jpeg_decompress_struct c; /* client_data points back here */
    struct jpeg_error_mgr error;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    pc__picture *picture;
    pc_status status;              /* why the jump happened */
    bool ended;                    /* libjpeg asked for bytes behind the last one */
    bool behind;                   /* all pixels are there; reading up to the end mark */
    char warning[JMSG_LENGTH_MAX]; /* the first one */
    int source_width, source_height;
    pc__rows rows;
    uint8_t *row;         /* one row of four channels, for CMYK */
    int *columns, *lines; /* nearest maps */
    pc__plane planes[3];
} pc__jpeg;

/* Leave the decoder with `status`, which has been recorded. */
_Noreturn void pc__jpeg_leave(pc__jpeg *jpeg, pc_status status);

/* Decode without ever having full rows of RGB: only the pixels that the resized picture takes are upsampled and
 * converted, or planes are averaged at the resolution they have. `_fits` says when that is possible and pays. */
bool pc__jpeg_planes_fit(const pc__jpeg *jpeg);
void pc__jpeg_planes_decode(pc__jpeg *jpeg);
void pc__jpeg_planes_close(pc__jpeg *jpeg);

#endif

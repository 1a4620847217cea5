/* resize.h: resizing while a decoder hands over rows, so that a picture need never be held at its full size. */
#ifndef PC__RESIZE_H
#define PC__RESIZE_H

#include "base/base.h"

#include <paracord/image.h>

/* map[i] is the source pixel of output pixel i, as PIL's NEAREST picks it. With `mirror` the picture is stored the
 * other way round: the map picks the pixels that a mirrored copy of the picture would have given. */
void pc__nearest_map(int source, int target, bool mirror, int *map);

/* One axis of area averaging. Lengths are in units that make all of them whole numbers: sample i covers
 * [i * sample, (i + 1) * sample) up to `total`, output j covers [j * output, (j + 1) * output). */
typedef struct pc__area_axis {
    int64_t sample, output, total;
    int samples, targets;
} pc__area_axis;

/* `pixels` picture pixels, stored as samples that cover `cover / parts` pixels each, become `targets`. */
pc__area_axis pc__area_axis_of(int pixels, int cover, int parts, int targets);

/* Where an output ends along x: after `whole` samples and `rest` of the next one's length. */
typedef struct pc__area_cut {
    int whole;
    uint32_t rest;
} pc__area_cut;

/* Exact area averaging of one plane of interleaved channels, fed row by row from the top. */
typedef struct pc__area {
    pc__area_axis x, y;
    int channels;
    uint32_t *sums;  /* of the rows since the last output row, each times the length it covers of this one */
    uint64_t *below; /* the sum of all sums left of a sample */
    pc__area_cut *cuts;
    uint8_t *out; /* the next output row: x.targets times channels bytes */
    int row, target;
} pc__area;

pc_status pc__area_open(pc__area *area, pc__area_axis x, pc__area_axis y, int channels, uint8_t *out);
void pc__area_row(pc__area *area, const uint8_t *row);
void pc__area_close(pc__area *area);

/* Rows of width x height pixels in (the channels of `out`), the resized picture `out` (allocated, stored frame) filled.
 *
 *     for (int y = 0; y < height; y++) {
 *         decode_row_into(pc__rows_next(&rows));
 *         pc__rows_done(&rows);
 *     }
 */
typedef struct pc__rows {
    pc_image *out;
    pc_resize mode;
    bool direct; /* the same size: rows go straight into the picture */
    int row, target;
    int *columns, *lines; /* nearest maps */
    uint8_t *scratch;     /* one source row */
    pc__area area;
} pc__rows;

pc_status pc__rows_open(pc__rows *rows, int width, int height, pc_resize mode, bool mirror_x, bool mirror_y,
                        pc_image *out);
uint8_t *pc__rows_next(pc__rows *rows);
void pc__rows_done(pc__rows *rows);
void pc__rows_take(pc__rows *rows, const uint8_t *row); /* next and done, for a row that is there already */
void pc__rows_close(pc__rows *rows);

#endif

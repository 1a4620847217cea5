/* augment.h: the op that transforms byte pictures, its table of values, and one picture of it on the host.
 *
 * Inputs: pictures uint8 [total, height, width, channels]; a table float64 [n, 17], a pc__augment_row each; and where
 * there is a third, an index int64 [n] of the pictures to take (else picture i, total is n). Output: float32
 * [n, channels, height, width] in channels-last memory. All that needs sines has gone into the table, so a
 * kernel only adds, multiplies and compares: devices that round as IEEE does, without fusing, give the same bits. */
#ifndef PC__OP_AUGMENT_H
#define PC__OP_AUGMENT_H

#include "ops/epoch_draw.h"
#include "tensor/tensor.h"

/* What stands beyond the edge: pc_fill_mode, which belongs to the floor above, number for number. */
typedef enum pc__edge { PC__EDGE_NEAREST, PC__EDGE_CONSTANT, PC__EDGE_REFLECT, PC__EDGE_WRAP } pc__edge;

enum {
    PC__AUGMENT_COLUMNS = sizeof(pc__augment_row) / sizeof(double),
    PC__AUGMENT_SIDE_MAX = 65535,
    PC__AUGMENT_CHANNELS = 4
};

typedef struct pc__augment_attributes {
    pc__edge edge;
    float cval, scale;  /* beyond the edge with PC__EDGE_CONSTANT; multiplies every result behind all changes */
    int32_t colours;    /* rows may have colours to change and parts to erase */
    int32_t normalises; /* the end is (value - mean) / std, by channel */
    int32_t
        crops; /* rows have a crop, which enlarges whole pixels: half of one lies beyond the picture's last centre */
    float mean[PC__AUGMENT_CHANNELS], std[PC__AUGMENT_CHANNELS];
} pc__augment_attributes;

/* Sides and channels that the op takes: 1 to 65535, 1 to 4, 2 GiB in all. PC_ERR_ARGUMENT names them. */
pc_status pc__augment_check_size(int64_t height, int64_t width, int64_t channels);

/* The op; index may be NULL. What is not contiguous is copied first. */
pc_tensor *pc__augment(pc_tensor *pictures, pc_tensor *table, pc_tensor *index,
                       const pc__augment_attributes *attributes) PC_MUST_USE;

/* --- on the host: what the CPU's kernel and pc_augment_apply both run --- */

/* `pixels` (height x width x channels bytes) into `out`, as many floats (augment_host.c). */
PC__FOR_LEVELS void pc__augment_one(const pc__augment_attributes *attributes, const pc__augment_row *row,
                                    const uint8_t *pixels, int height, int width, int channels, float *out);

/* Changes of colour, and zeros in the erased part, of what is there (augment_colour.c). */
void pc__augment_jitter(const pc__augment_row *row, float *out, size_t pixels, int channels);
void pc__augment_erase(const pc__augment_row *row, int width, int channels, float *out);

/* The geometry of it (augment_warp.c). */
typedef struct pc__warp {
    const uint8_t *pixels;
    int height, width, channels;
    double rows[3], columns[3]; /* as in the row */
    pc__edge edge;
    float cval, scale; /* scale multiplies every result */
    double margin; /* what lies so far beyond the edge has the edge's pixels, whatever the edge: 0 or half a pixel */
} pc__warp;

/* Fill `out` (height x width x channels) by bilinear interpolation. */
void pc__warp_run(const pc__warp *warp, float *out);

/* The same where every output pixel is an input pixel: only flips. */
void pc__warp_copy(const pc__warp *warp, bool flip_horizontal, bool flip_vertical, float *out);

#endif

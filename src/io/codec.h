/* codec.h: between image.c and the decoders and encoders of single formats. */
#ifndef PC__CODEC_H
#define PC__CODEC_H

#include "base/base.h"

#include <paracord/image.h>

/* One picture may have this many pixels (PIL refuses a few less): a header that claims more is a mistake or an attack.
 */
#define PC__PIXELS_MAX ((int64_t)1 << 28)
#define PC__SIDE_MAX 65535

/* What a decoder is asked for, and fills in. The image is in the stored frame: image.c turns it as `orientation` says
 * and converts its channels (1 or 3) afterwards. */
typedef struct pc__picture {
    const uint8_t *bytes;
    size_t n;
    const char *name;
    const pc_image_options *options;
    int orientation; /* Exif's 1..8 */
    pc_image image;
} pc__picture;

/* Once a decoder knows the stored size and the orientation: check the size and allocate the image, of the size that
 * the options ask for, in the stored frame. */
pc_status pc__picture_begin(pc__picture *picture, int width, int height, int channels);

/* Damage that left all pixels there: noted for whoever asks, or, where the options are strict, PC_ERR_FORMAT. */
pc_status pc__picture_damaged(pc__picture *picture, const char *words);

pc_status pc__jpeg_decode(pc__picture *picture);
pc_status pc__png_decode(pc__picture *picture);
pc_status pc__webp_decode(pc__picture *picture);
pc_status pc__gif_decode(pc__picture *picture);
pc_status pc__tiff_decode(pc__picture *picture);
pc_status pc__bmp_decode(pc__picture *picture);
pc_status pc__pnm_decode(pc__picture *picture);

/* What is wrong behind the frame or page that is taken, in words for pc__picture_damaged: that the file ends in there.
 * NULL: nothing. `at`: one behind the GIF's first frame. */
const char *pc__webp_rest(const uint8_t *bytes, size_t n);
const char *pc__gif_rest(const uint8_t *bytes, size_t n, size_t at);
const char *pc__tiff_rest(const uint8_t *bytes, size_t n);

/* A picture of the program's: PC_ERR_ARGUMENT unless it has pixels, sides and 1 or 3 channels. */
pc_status pc__image_check(const pc_image *image, const char *who);

/* Make the picture grey (1), RGB (3), or leave it (0). */
pc_status pc__image_set_channels(pc_image *image, int channels);

/* The size of a picture whose shorter side becomes `shorter` (cover.c); PC_ERR_FORMAT where the longer one grows beyond all
 * sizes. */
pc_status pc__cover_size(const char *name, int width, int height, int shorter, int *new_width, int *new_height);

/* What is left is the middle, which fits in. */
void pc__image_middle(pc_image *image, int width, int height);

/* Resize a picture as the options width, height, shorter and resize say, into a new one. */
pc_status pc__image_cover(const pc_image *image, int width, int height, int shorter, pc_resize mode, pc_image *fitted);

/* PC_ERR_ARGUMENT for a `shorter` that does not cover width and height. 0 is none. */
pc_status pc__cover_check(const char *who, int width, int height, int shorter);

/* n pixels of the inverse of CMYK, which is how Adobe stores it in a JPEG; the arithmetic is PIL's. */
void pc__cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, int n);

/* Append the encoded picture. `name` is for messages. */
pc_status pc__jpeg_encode(const pc_image *image, int quality, pc__text *out);
pc_status pc__png_encode(const pc_image *image, pc__text *out);

/* The orientation (1..8) in a TIFF block, which is what Exif is: the bytes behind "Exif\0\0" in a JPEG, the eXIf
 * chunk of a PNG. 1 when it makes no sense, 0 when there is none. */
int pc__exif_orientation(const uint8_t *tiff, size_t n);

/* That in a packet of XMP, which counts where Exif has none, as for PIL; 1 when there is none. */
int pc__xmp_orientation(const uint8_t *xmp, size_t n);

/* How a stored frame becomes the picture: the picture's (x, y) is the stored (y, x) when transposed, else (x, y); each
 * stored axis is counted from its end when mirrored. */
typedef struct pc__turn {
    bool transposed, mirror_x, mirror_y;
} pc__turn;
pc__turn pc__turn_of(int orientation);
pc_status pc__turn_image(pc_image *image, int orientation);

#endif

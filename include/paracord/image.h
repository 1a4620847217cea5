/* image.h: pictures as arrays of bytes: decode, encode, resize.
 *
 *     pc_image cat;
 *     if (pc_image_read("cat.jpg", PC_OPTIONS(pc_image_options, .channels = 3), &cat) != PC_OK)
 *         return pc_report(stderr);
 *     printf("%d x %d\n", cat.width, cat.height);
 *     pc_image_free(&cat);
 *
 * Formats are told by their first bytes, not by the suffix. Any thread; no global state.
 */
#ifndef PARACORD_IMAGE_H
#define PARACORD_IMAGE_H

#include <paracord/error.h>

PC_BEGIN

/* Rows from the top, pixels from the left, channels together (height x width x channels bytes, no padding).
 * channels: 1 grey, 3 RGB. The caller owns `pixels` and releases them with pc_image_free. */
typedef struct pc_image {
    uint8_t *pixels;
    int width, height, channels;
} pc_image;

typedef enum pc_resize {
    PC_RESIZE_NEAREST, /* the same pixels as PIL's Image.resize(NEAREST), Keras's default */
    PC_RESIZE_AREA     /* antialiased: every source pixel counts by the area it covers, exactly. While a JPEG is decoded
                          it starts from the decoder's reduced size, at least twice the size asked for: on photographs
                          within 1 of 255 on average of the exact result, nearer than PIL's BOX */
} pc_resize;

/* What a decoder got over, in one line: "Corrupt JPEG data: 8 extraneous bytes before marker 0xd9". Empty: nothing. */
#define PC_IMAGE_DAMAGE_MAX 160
typedef struct pc_image_damage {
    char words[PC_IMAGE_DAMAGE_MAX];
} pc_image_damage;

typedef struct pc_image_options {
    int reserved_;
    int channels;      /* 1 or 3: convert to that; 0: 1 for grey pictures, 3 for all others */
    int width, height; /* resize to this while decoding, whatever the proportions: both, or neither (0: own size) */
    /* The shorter side becomes so many pixels, at least as many as width and height, the longer one in proportion, and the
     * middle width x height is cut out: torchvision's Resize(shorter) and CenterCrop. 0: width and height are the whole. */
    int shorter;
    pc_resize resize;
    /* false: take every picture whose pixels are all there; damage that the decoder reports but gets over
     * (stray bytes, a bad checksum of a chunk without pixels, no end mark, an end inside a later frame or page) is told
     * in `damage`. true: such damage is PC_ERR_FORMAT. A file that ends or breaks inside the pixel data, so that the
     * decoder would make up the rest, is PC_ERR_FORMAT either way. */
    bool strict;
    bool no_exif;            /* leave the picture as it is stored, whatever its Exif orientation says (Keras does) */
    pc_image_damage *damage; /* written with the picture; NULL: nobody asks */
} pc_image_options;

/* Read or decode a JPEG, PNG or BMP, a PBM, PGM or PPM, a WebP or GIF (the first frame) or a TIFF (the first page). Formats are told by
 * their first bytes. What comes out is what PIL's exif_transpose and convert("RGB") or convert("L") give: Exif
 * (or XMP's) orientation applied unless no_exif (width and height above are those of the upright picture), CMYK and YCCK as Adobe
 * stores them, palettes looked up, transparency dropped; of 16 bits the high byte, also where PIL would cut grey off at
 * 255; of a PGM or PPM with another greatest value than 255 the share of that, rounded. A TIFF in CIE L*a*b*, or of signed or floating-point samples, is refused with the way out. `name` is used in
 * messages. On failure *image is empty:
 *
 *     PC_ERR_FILE          the file cannot be read
 *     PC_ERR_FORMAT        it is empty, no picture, of another format (the message names it: "a HEIC"), truncated,
 *                          broken, damaged inside the picture, of more than 2^28 pixels, or a progressive JPEG of more
 *                          than 100 scans
 *     PC_ERR_UNSUPPORTED   this build is without libjpeg or libpng
 *     PC_ERR_ARGUMENT      options that make no sense
 *     PC_ERR_MEMORY        out of memory
 */
PC_API PC_MUST_USE pc_status pc_image_read(const char *path, pc_image_options options, pc_image *image);
PC_API PC_MUST_USE pc_status pc_image_decode(const void *bytes, size_t n, const char *name, pc_image_options options,
                                             pc_image *image);

/* Resize into a new picture (not the same struct). PC_ERR_ARGUMENT, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_status pc_image_resize(const pc_image *image, int width, int height, pc_resize mode,
                                             pc_image *resized);

/* Encode into memory: *bytes is owned by the caller (pc_image_bytes_free). quality 1..100, 4:2:0 chroma. */
PC_API PC_MUST_USE pc_status pc_image_encode_jpeg(const pc_image *image, int quality, uint8_t **bytes, size_t *n);
PC_API PC_MUST_USE pc_status pc_image_encode_png(const pc_image *image, uint8_t **bytes, size_t *n);
PC_API void pc_image_bytes_free(uint8_t *bytes);

/* Encode into a file, by its suffix (.jpg and .jpeg: quality 92; .png), written whole or not at all. PC_ERR_ARGUMENT
 * for another suffix, PC_ERR_FILE when it cannot be written. */
PC_API PC_MUST_USE pc_status pc_image_write(const pc_image *image, const char *path);

/* A new picture of zeros. channels: 1 or 3; sides 1 to 65535, at most 2^28 pixels. */
PC_API PC_MUST_USE pc_status pc_image_new(int width, int height, int channels, pc_image *image);

/* Release the pixels and zero the struct. */
PC_API void pc_image_free(pc_image *image);

PC_END
#endif

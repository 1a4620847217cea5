/* image.h: pictures as arrays of bytes: decode, encode, resize.
 *
 *     pc_image cat;
 *     if (pc_image_read("cat.jpg", PC_OPTIONS(pc_image_options, .channels = 3), &cat) != PC_OK) return pc_report(stderr);
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
    PC_RESIZE_AREA     /* antialiased: every source pixel counts by the area it covers; uses scaled JPEG decoding */
} pc_resize;

typedef struct pc_image_options {
    int reserved_;
    int channels;      /* 1 or 3: convert to that; 0: 1 for grey pictures, 3 for all others */
    int width, height; /* resize to this while decoding; 0: the picture's own size */
    pc_resize resize;
    bool strict; /* fail on damage that a decoder can paper over (a truncated file); otherwise that is a failure only
                    when nothing could be decoded. */
} pc_image_options;

/* Read or decode a JPEG or PNG. Exif orientation is applied; CMYK, YCCK, palette, 16-bit and transparent pictures
 * become RGB or grey. `name` is used in messages. PC_ERR_FILE when the file cannot be read; PC_ERR_FORMAT when it is
 * empty, no picture, of an unsupported format (the message names it: "a GIF"), truncated or broken. */
PC_API PC_MUST_USE pc_status pc_image_read(const char *path, pc_image_options options, pc_image *image);
PC_API PC_MUST_USE pc_status pc_image_decode(const void *bytes, size_t n, const char *name, pc_image_options options,
                                             pc_image *image);

/* Resize into a new picture. */
PC_API PC_MUST_USE pc_status pc_image_resize(const pc_image *image, int width, int height, pc_resize mode,
                                             pc_image *resized);

/* Encode into memory: *bytes is owned by the caller (pc_image_bytes_free). quality 1..100, 4:2:0 chroma. */
PC_API PC_MUST_USE pc_status pc_image_encode_jpeg(const pc_image *image, int quality, uint8_t **bytes, size_t *n);
PC_API PC_MUST_USE pc_status pc_image_encode_png(const pc_image *image, uint8_t **bytes, size_t *n);
PC_API void pc_image_bytes_free(uint8_t *bytes);

/* Encode into a file, by its suffix (.jpg, .jpeg, .png), written whole or not at all. */
PC_API PC_MUST_USE pc_status pc_image_write(const pc_image *image, const char *path);

/* A new picture of zeros. */
PC_API PC_MUST_USE pc_status pc_image_new(int width, int height, int channels, pc_image *image);

/* Release the pixels and zero the struct. */
PC_API void pc_image_free(pc_image *image);

PC_END
#endif

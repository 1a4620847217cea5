/* exif.c: the one thing of Exif that changes pixels: the orientation. */
#include "io/codec.h"

static unsigned number(const uint8_t *at, int bytes, bool big_endian)
{
    unsigned value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (unsigned)at[i] << 8 * (big_endian ? bytes - 1 - i : i);
    return value;
}

int pc__exif_orientation(const uint8_t *tiff, size_t n)
{
    enum { HEADER = 8, ENTRY = 12, TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4 };
    if (n < HEADER || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return 0;
    const bool big = tiff[0] == 'M';
    const size_t first = number(tiff + 4, 4, big);
    if (first > n - 2)
        return 0;
    const unsigned entries = number(tiff + first, 2, big);
    for (size_t i = 0, at = first + 2; i < entries && at + ENTRY <= n; i++, at += ENTRY) {
        const unsigned type = number(tiff + at + 2, 2, big);
        if (number(tiff + at, 2, big) == TAG_ORIENTATION && (type == TYPE_SHORT || type == TYPE_LONG)) {
            const unsigned value = number(tiff + at + 8, type == TYPE_SHORT ? 2 : 4, big);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 0;
}

int pc__xmp_orientation(const uint8_t *xmp, size_t n)
{
    static const char word[] = "tiff:Orientation";
    const size_t length = sizeof word - 1;
    for (size_t at = 0; n >= length + 3 && at <= n - length - 3; at++) {
        const uint8_t *behind = xmp + at + length;
        const bool quoted = behind[0] == '=' && behind[1] == '"';
        const uint8_t digit = behind[quoted ? 2 : 1];
        if ((quoted || behind[0] == '>') && digit >= '0' && digit <= '9' && memcmp(xmp + at, word, length) == 0)
            return digit >= '1' && digit <= '8' ? digit - '0' : 1;
    }
    return 1;
}

pc__turn pc__turn_of(int orientation)
{
    return (pc__turn){
        .transposed = orientation >= 5,
        .mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
        .mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
    };
}

pc_status pc__turn_image(pc_image *image, int orientation)
{
    if (orientation <= 1 || orientation > 8)
        return PC_OK;
    const pc__turn turn = pc__turn_of(orientation);
    const int width = image->width, height = image->height, channels = image->channels;
    pc_image turned;
    PC__TRY(pc_image_new(turn.transposed ? height : width, turn.transposed ? width : height, channels, &turned));
    uint8_t *out = turned.pixels;
    for (int y = 0; y < turned.height; y++)
        for (int x = 0; x < turned.width; x++) {
            int sx = turn.transposed ? y : x, sy = turn.transposed ? x : y;
            sx = turn.mirror_x ? width - 1 - sx : sx;
            sy = turn.mirror_y ? height - 1 - sy : sy;
            const uint8_t *pixel = image->pixels + ((size_t)sy * (size_t)width + (size_t)sx) * (size_t)channels;
            for (int c = 0; c < channels; c++)
                *out++ = pixel[c];
        }
    pc_image_free(image);
    *image = turned;
    return PC_OK;
}

/* cover.c: pictures in their own proportions: the shorter side to so many pixels, then the middle cut out. Sizes and places
 * are torchvision's, of Resize(shorter) and CenterCrop((height, width)). */
#include "io/codec.h"

#include <math.h>

pc_status pc__cover_size(const char *name, int width, int height, int shorter, int *new_width, int *new_height)
{
    const bool wide = width > height;
    const double longer = floor((double)shorter * (wide ? width : height) / (wide ? height : width));
    if (longer > PC__SIDE_MAX)
        return pc__fail(PC_ERR_FORMAT, "%s is %d x %d pixels: with a shorter side of %d the longer one is beyond %d",
                        name, width, height, shorter, PC__SIDE_MAX);
    *new_width = wide ? (int)longer : shorter;
    *new_height = wide ? shorter : (int)longer;
    return PC_OK;
}

/* Half of what is left over; of a half pixel the even number, as Python rounds. */
static int middle(int length, int part)
{
    const int over = length - part, half = over / 2;
    return over % 2 && half % 2 ? half + 1 : half;
}

void pc__image_middle(pc_image *image, int width, int height)
{
    const size_t pixel = (size_t)image->channels, stride = (size_t)image->width * pixel, bytes = (size_t)width * pixel;
    const uint8_t *from =
        image->pixels + (size_t)middle(image->height, height) * stride + (size_t)middle(image->width, width) * pixel;
    for (int y = 0; y < height; y++)
        memmove(image->pixels + (size_t)y * bytes, from + (size_t)y * stride, bytes);
    image->width = width, image->height = height;
}

pc_status pc__image_cover(const pc_image *image, int width, int height, int shorter, pc_resize mode, pc_image *fitted)
{
    int new_width = width, new_height = height;
    if (shorter)
        PC__TRY(pc__cover_size("the picture", image->width, image->height, shorter, &new_width, &new_height));
    PC__TRY(pc_image_resize(image, new_width, new_height, mode, fitted));
    pc__image_middle(fitted, width, height);
    return PC_OK;
}

pc_status pc__cover_check(const char *who, int width, int height, int shorter)
{
    if (shorter == 0 || (width > 0 && height > 0 && shorter >= width && shorter >= height && shorter <= PC__SIDE_MAX))
        return PC_OK;
    return pc__fail(
        PC_ERR_ARGUMENT,
        "%s: a shorter side of %d, of which the middle %d x %d (height x width) is taken: it must be as much "
        "as both, at most %d",
        who, shorter, height, width, PC__SIDE_MAX);
}

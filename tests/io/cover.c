/* Pictures in their own proportions, the middle cut out: places against torchvision's Resize and CenterCrop, orientation,
 * classifiers that prepare so, and what is refused. */
#include "device.h"
#include "io/codec.h"
#include "support.h"

#include <paracord/image.h>

/* The status as an argument: assert_fails would ignore it, and it must not be ignored. */
static pc_status used(pc_status status)
{
    return status;
}

/* Red is the column, green the row. */
static pc_image places(int width, int height)
{
    pc_image image;
    assert_ok(pc_image_new(width, height, 3, &image));
    for (int i = 0; i < width * height; i++)
        image.pixels[3 * i] = (uint8_t)(i % width), image.pixels[3 * i + 1] = (uint8_t)(i / width);
    return image;
}

static void assert_pixel(const pc_image *image, int x, int y, int red, int green)
{
    const uint8_t *pixel = image->pixels + 3 * (y * image->width + x);
    assert_int_equal(pixel[0], red);
    assert_int_equal(pixel[1], green);
}

/* Corners of what Resize(shorter, NEAREST) and CenterCrop((height, width)) of torchvision 0.29 give. */
static void the_pixels_of_torchvision(void **state)
{
    (void)state;
    static const struct {
        int width, height, shorter, crop_height, crop_width, left, top, right, bottom;
    } cases[] = {
        {100, 60, 32, 28, 28, 23, 4, 74, 55},
        {60, 100, 32, 28, 28, 4, 23, 55, 74},
        {61, 100, 33, 28, 28, 4, 24, 54, 75},
        {100, 61, 32, 27, 30, 22, 4, 77, 54},
        {200, 37, 40, 40, 40, 81, 0, 118, 36},
        {37, 200, 25, 20, 9, 12, 86, 24, 114},
        {50, 50, 64, 61, 64, 0, 1, 49, 48},
        {3, 200, 2, 1, 2, 0, 100, 2, 100},
        {255, 254, 224, 160, 222, 1, 36, 253, 217},
        {9, 7, 7, 7, 7, 1, 0, 7, 6},
        {10, 7, 5, 5, 4, 3, 0, 7, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_image image = places(cases[i].width, cases[i].height), got, again;
        uint8_t *bytes;
        size_t n;
        assert_ok(pc_image_encode_png(&image, &bytes, &n));
        assert_ok(pc_image_decode(bytes, n, "places",
                                  PC_OPTIONS(pc_image_options, .width = cases[i].crop_width,
                                             .height = cases[i].crop_height, .shorter = cases[i].shorter),
                                  &got));
        assert_int_equal(got.width, cases[i].crop_width);
        assert_int_equal(got.height, cases[i].crop_height);
        assert_pixel(&got, 0, 0, cases[i].left, cases[i].top);
        assert_pixel(&got, got.width - 1, got.height - 1, cases[i].right, cases[i].bottom);
        assert_ok(pc__image_cover(&image, got.width, got.height, cases[i].shorter, PC_RESIZE_NEAREST, &again));
        assert_memory_equal(got.pixels, again.pixels, (size_t)(got.width * got.height * 3));
        pc_image_bytes_free(bytes);
        pc_image_free(&image);
        pc_image_free(&got);
        pc_image_free(&again);
    }
}

/* Of the upright picture, as it is seen: decoding on the way or afterwards gives the same. */
static void the_middle_is_of_the_upright_picture(void **state)
{
    (void)state;
    static const char *const files[] = {"webp_turned.webp", "turn1.jpg", "bmp_rgb.bmp", "interlaced.png",
                                        "gif_plain.gif"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (int resize = PC_RESIZE_NEAREST; resize <= PC_RESIZE_AREA; resize++) {
            char path[512];
            pc_image whole, want, got;
            snprintf(path, sizeof path, PC_TEST_GOLDEN "/images/%s", files[i]);
            if (pc_image_read(path, PC_OPTIONS(pc_image_options, .channels = 3), &whole) != PC_OK &&
                strstr(pc_error_last()->message, "which needs lib")) { /* this machine lacks it */
                pc_error_clear();
                continue;
            }
            assert_ok(pc_error_last()->status);
            assert_ok(pc__image_cover(&whole, 9, 7, 17, (pc_resize)resize, &want));
            assert_ok(pc_image_read(path,
                                    PC_OPTIONS(pc_image_options, .channels = 3, .width = 9, .height = 7, .shorter = 17,
                                               .resize = (pc_resize)resize),
                                    &got));
            for (int k = 0; k < 9 * 7 * 3; k++) /* averages may round a little otherwise */
                assert_close(got.pixels[k], want.pixels[k], resize == PC_RESIZE_AREA ? 6 : 0);
            pc_image_free(&whole);
            pc_image_free(&want);
            pc_image_free(&got);
        }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    pc_image thin = places(2, 255), got;
    uint8_t *bytes;
    size_t n;
    assert_ok(pc_image_encode_png(&thin, &bytes, &n));
    const pc_image_options bad[] = {
        {.shorter = 8},
        {.width = 9, .height = 8, .shorter = 8},
        {.width = 8, .height = 9, .shorter = 8},
        {.width = 8, .height = 8, .shorter = -8},
        {.width = 8, .height = 8, .shorter = 65536},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(used(pc_image_decode(bytes, n, "thin", bad[i], &got)), PC_ERR_ARGUMENT, "shorter side of");
    assert_fails(
        used(pc_image_decode(bytes, n, "thin", (pc_image_options){.width = 8, .height = 8, .shorter = 1000}, &got)),
        PC_ERR_FORMAT, "thin is 2 x 255 pixels");
    pc_image_bytes_free(bytes);
    pc_image_free(&thin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_pixels_of_torchvision),
                                       cmocka_unit_test(the_middle_is_of_the_upright_picture),
                                       cmocka_unit_test(nonsense_is_refused)};
    return cmocka_run_group_tests_name("io.cover", tests, NULL, NULL);
}

/* Which pixels nearest picks, against Pillow; area averaging against its definition in double. */
#include "io/resize.h"
#include "io/pictures.h"

static void the_positions_that_pillow_picks(void **state)
{
    (void)state;
    size_t n;
    uint8_t *golden = read_golden("nearest.bin", &n);
    int pairs = 0;
    for (size_t at = 0; at < n; pairs++) {
        const int source = golden[at] + 256 * golden[at + 1], target = golden[at + 2] + 256 * golden[at + 3];
        int map[300], mirrored[300];
        assert_true(target <= 300);
        pc__nearest_map(source, target, false, map);
        pc__nearest_map(source, target, true, mirrored);
        for (int i = 0; i < target; i++) {
            const uint8_t *want = golden + at + 4 + 2 * (size_t)i;
            assert_int_equal(map[i], want[0] + 256 * want[1]);
            assert_int_equal(mirrored[target - 1 - i], source - 1 - map[i]);
        }
        at += 4 + 2 * (size_t)target;
    }
    assert_true(pairs >= 10);
    free(golden);
}

static double covered(double low, double high, int pixel)
{
    return fmax(0, fmin(high, pixel + 1) - fmax(low, pixel));
}

static double mean_of_area(const pc_image *image, double x0, double x1, double y0, double y1, int c)
{
    double sum = 0;
    for (int y = (int)y0; y < image->height && y < y1; y++)
        for (int x = (int)x0; x < image->width && x < x1; x++)
            sum +=
                covered(x0, x1, x) * covered(y0, y1, y) * image->pixels[(y * image->width + x) * image->channels + c];
    return sum / ((x1 - x0) * (y1 - y0));
}

static void area_is_exact(void **state)
{
    (void)state;
    static const int sizes[][4] = {{45, 37, 9, 7}, {45, 37, 45, 7}, {45, 37, 44, 36}, {7, 5, 20, 13},
                                   {1, 1, 4, 3},   {300, 2, 7, 2},  {64, 64, 32, 32}, {3, 90, 2, 1}};
    for (int s = 0; s < 8 * 2; s++) {
        const int *size = sizes[s / 2], channels = s % 2 ? 3 : 1;
        pc_image image = paint(size[0], size[1], channels), got;
        const double dx = (double)size[0] / size[2], dy = (double)size[1] / size[3];
        assert_ok(pc_image_resize(&image, size[2], size[3], PC_RESIZE_AREA, &got));
        for (int i = 0; i < size[2] * size[3] * channels; i++) {
            const int x = i / channels % size[2], y = i / channels / size[2];
            assert_close(got.pixels[i], mean_of_area(&image, x * dx, (x + 1) * dx, y * dy, (y + 1) * dy, i % channels),
                         0.5 + 1e-6);
        }
        pc_image_free(&image);
        pc_image_free(&got);
    }
}

/* The largest sums that the whole numbers must hold. */
static void white_stays_white(void **state)
{
    (void)state;
    static const int sizes[][2] = {{65535, 64}, {64, 65535}, {16384, 16384}};
    for (int s = 0; s < 3; s++) {
        pc_image image, got;
        assert_ok(pc_image_new(sizes[s][0], sizes[s][1], 1, &image));
        memset(image.pixels, 255, bytes_of(&image));
        assert_ok(pc_image_resize(&image, 3, 1, PC_RESIZE_AREA, &got));
        for (int i = 0; i < 3; i++)
            assert_int_equal(got.pixels[i], 255);
        pc_image_free(&image);
        pc_image_free(&got);
    }
}

/* A plane whose samples cover several pixels, the last one only in part, as JPEG's chroma does. */
static void samples_larger_than_pixels(void **state)
{
    (void)state;
    const uint8_t row[3] = {10, 20, 200};
    uint8_t out[2];
    pc__area area;
    assert_ok(pc__area_open(&area, pc__area_axis_of(5, 2, 1, 2), pc__area_axis_of(1, 2, 1, 1), 1, out));
    pc__area_row(&area, row);
    pc__area_close(&area);
    assert_int_equal(out[0], (2 * 10 + 0.5 * 20) / 2.5);
    assert_int_equal(out[1], (1.5 * 20 + 200) / 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_positions_that_pillow_picks),
        cmocka_unit_test(area_is_exact),
        cmocka_unit_test(white_stays_white),
        cmocka_unit_test(samples_larger_than_pixels),
    };
    return cmocka_run_group_tests_name("data.resize", tests, NULL, NULL);
}

/* Pictures against Pillow (golden/images.py), round trips, orientation, options. */
#include "io/pictures.h"

#include <unistd.h>

#if PC_HAVE_JPEG && PC_HAVE_PNG
#include <jpeglib.h>

static void the_same_pixels_as_pillow(void **state)
{
    (void)state;
    static const char *const names[] = {
        "420.jpg",        "422.jpg",        "444.jpg",        "progressive.jpg", "restart.jpg",
        "grey.jpg",       "cmyk.jpg",       "thin.jpg",       "rgb.png",         "alpha.png",
        "palette.png",    "grey_alpha.png", "bits1.png",      "bits4.png",       "bits16.png",
        "interlaced.png", "stored_rgb.jpg", "xmp_turned.png", "xmp_turned2.jpg", "xmp_exif.png",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        char stem[32];
        snprintf(stem, sizeof stem, "%.*s", (int)strcspn(names[i], "."), names[i]);
        compare_with_golden(bytes, n, stem);
        free(bytes);
    }
}

static void all_eight_orientations(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("turn1.jpg", &n);
    uint8_t *tag = memmem(bytes, n, "\x01\x12\x00\x03\x00\x00\x00\x01\x00", 9);
    assert_non_null(tag);
    for (int orientation = 1; orientation <= 8; orientation++) {
        char stem[16];
        snprintf(stem, sizeof stem, "turn%d", orientation);
        tag[9] = (uint8_t)orientation;
        compare_with_golden(bytes, n, stem);
        pc_image whole, small, direct;
        assert_ok(pc_image_decode(bytes, n, stem, PC_OPTIONS(pc_image_options, .channels = 0), &whole));
        assert_int_equal(whole.width, orientation < 5 ? 26 : 18);
        assert_ok(pc_image_resize(&whole, 17, 12, PC_RESIZE_AREA, &small));
        assert_ok(pc_image_decode(bytes, n, stem,
                                  PC_OPTIONS(pc_image_options, .width = 17, .height = 12, .resize = PC_RESIZE_AREA),
                                  &direct));
        assert_true(mean_difference(&small, &direct) < 1);
        pc_image_free(&whole);
        pc_image_free(&small);
        pc_image_free(&direct);
    }
    pc_image stored, upright; /* orientation 8, as it is stored and as it is meant */
    assert_ok(pc_image_decode(bytes, n, "stored", PC_OPTIONS(pc_image_options, .no_exif = true), &stored));
    assert_int_equal(stored.width, 26);
    tag[9] = 1;
    assert_ok(pc_image_decode(bytes, n, "upright", PC_OPTIONS(pc_image_options, .channels = 0), &upright));
    assert_memory_equal(stored.pixels, upright.pixels, (size_t)stored.width * (size_t)stored.height * 3);
    pc_image_free(&stored);
    pc_image_free(&upright);
    tag[9] = 77;
    compare_with_golden(bytes, n, "turn1");
    memcpy(tag + 2, "\0\4\0\0\0\1\0\0\0\6", 10); /* a LONG, as some programs write it */
    compare_with_golden(bytes, n, "turn6");
    memcpy(tag + 2, "\0\4\0\0\0\1\0\6\0\6", 10);
    compare_with_golden(bytes, n, "turn1");
    free(bytes);
}

enum { WIDTH_MAX = 256 };

/* A few waves in all components. */
static void paint_waves(JSAMPLE *line, int width, int components, int y)
{
    for (int x = 0; x < width * components; x++)
        line[x] = (JSAMPLE)(128 + 100 * sin(x / 11.0 + y / 3.0) + (x * y) % 27);
}

/* Red bars on green. */
static void paint_bars(JSAMPLE *line, int width, int components, int y)
{
    static const JSAMPLE colours[2][3] = {{40, 160, 60}, {220, 40, 40}};
    for (int x = 0; x < width * components; x++)
        line[x] = colours[(x / components / 20 + y / 60) % 2][x % components];
}

/* A JPEG with these sampling factors of Y and K (1x1 for the others), of 1, 3 or 4 components. */
static uint8_t *sampled_jpeg(int width, int height, int components, int h, int v,
                             void (*paint_line)(JSAMPLE *line, int width, int components, int y), size_t *n)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    unsigned char *buffer = NULL;
    unsigned long size = 0;
    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &buffer, &size);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = components;
    c.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    if (components == 4)
        jpeg_set_colorspace(&c, JCS_YCCK);
    for (int i = 0; i < components; i++) {
        c.comp_info[i].h_samp_factor = i % 3 == 0 ? h : 1;
        c.comp_info[i].v_samp_factor = i % 3 == 0 ? v : 1;
    }
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < height; y++) {
        JSAMPLE line[4 * WIDTH_MAX];
        JSAMPROW row = line;
        paint_line(line, width, components, y);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    *n = size;
    return buffer;
}

/* Whole pictures come from libjpeg's own upsampling and conversion: resized while decoding must give the same. */
static void every_sampling_by_planes_and_by_rows(void **state)
{
    (void)state;
    static const int sizes[][2] = {{70, 53}, {64, 48}, {33, 17}, {4, 90}, {97, 3}, {1, 1}};
    static const int targets[][2] = {{5, 7}, {16, 11}, {1, 1}, {31, 29}, {64, 64}};
    for (int s = 0; s < 6; s++)
        for (int kind = 0; kind < 3 * 16; kind++) {
            const int components = 1 + kind / 16 + (kind >= 16), h = 1 + kind % 4, v = 1 + kind / 4 % 4;
            if (h * v * (components == 4 ? 2 : 1) + 2 > 10) /* an MCU has ten blocks at most */
                continue;
            char what[64];
            snprintf(what, sizeof what, "%d x %d, %d components, %dx%d", sizes[s][0], sizes[s][1], components, h, v);
            size_t n;
            uint8_t *bytes = sampled_jpeg(sizes[s][0], sizes[s][1], components, h, v, paint_waves, &n);
            pc_image whole;
            assert_ok(pc_image_decode(bytes, n, what, PC_OPTIONS(pc_image_options, .strict = true), &whole));
            assert_int_equal(whole.channels, components == 1 ? 1 : 3);
            for (int t = 0; t < 5; t++) {
                const int width = targets[t][0], height = targets[t][1];
                pc_image want, got;
                assert_ok(pc_image_resize(&whole, width, height, PC_RESIZE_NEAREST, &want));
                assert_ok(pc_image_decode(bytes, n, what,
                                          PC_OPTIONS(pc_image_options, .width = width, .height = height), &got));
                assert_same_pixels(&got, &want, what);
                pc_image_free(&want);
                pc_image_free(&got);
                assert_ok(pc_image_resize(&whole, width, height, PC_RESIZE_AREA, &want));
                assert_ok(pc_image_decode(
                    bytes, n, what,
                    PC_OPTIONS(pc_image_options, .width = width, .height = height, .resize = PC_RESIZE_AREA), &got));
                assert_true(mean_difference(&got, &want) < 16);
                pc_image_free(&want);
                pc_image_free(&got);
            }
            pc_image_free(&whole);
            free(bytes);
        }
}

/* Where there are fewer samples of colour than of brightness, the reduced size that is decoded must have enough of both. */
static void area_keeps_colours_apart(void **state)
{
    (void)state;
    static const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}};
    for (int i = 0; i < 6; i++) {
        char what[32];
        size_t n;
        pc_image whole, want, got;
        snprintf(what, sizeof what, "%d x %d samples", samplings[i][0], samplings[i][1]);
        uint8_t *bytes = sampled_jpeg(WIDTH_MAX, 192, 3, samplings[i][0], samplings[i][1], paint_bars, &n);
        assert_ok(pc_image_decode(bytes, n, what, PC_OPTIONS(pc_image_options, .strict = true), &whole));
        assert_ok(pc_image_resize(&whole, 24, 20, PC_RESIZE_AREA, &want));
        assert_ok(pc_image_decode(
            bytes, n, what, PC_OPTIONS(pc_image_options, .width = 24, .height = 20, .resize = PC_RESIZE_AREA), &got));
        if (mean_difference(&got, &want) > 1)
            fail_msg("%s: a mean difference of %g", what, mean_difference(&got, &want));
        pc_image_free(&whole);
        pc_image_free(&want);
        pc_image_free(&got);
        free(bytes);
    }
}

static void area_of_a_smooth_picture(void **state)
{
    (void)state;
    pc_image picture = paint(403, 307, 3), want, got;
    uint8_t *bytes;
    size_t n;
    assert_ok(pc_image_encode_jpeg(&picture, 95, &bytes, &n));
    static const int targets[][2] = {{64, 64}, {20, 31}, {150, 100}, {300, 7}};
    for (int t = 0; t < 4; t++) {
        const int width = targets[t][0], height = targets[t][1];
        assert_ok(pc_image_resize(&picture, width, height, PC_RESIZE_AREA, &want));
        assert_ok(pc_image_decode(
            bytes, n, "area", PC_OPTIONS(pc_image_options, .width = width, .height = height, .resize = PC_RESIZE_AREA),
            &got));
        assert_true(mean_difference(&got, &want) < 1.5);
        pc_image_free(&want);
        pc_image_free(&got);
    }
    pc_image_bytes_free(bytes);
    pc_image_free(&picture);
}

static void round_trips(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        pc_image picture = paint(61, 43, channels), back;
        uint8_t *bytes;
        size_t n;
        assert_ok(pc_image_encode_png(&picture, &bytes, &n));
        assert_ok(pc_image_decode(bytes, n, "png", PC_OPTIONS(pc_image_options, .strict = true), &back));
        assert_same_pixels(&back, &picture, "png");
        pc_image_free(&back);
        pc_image_bytes_free(bytes);
        assert_ok(pc_image_encode_jpeg(&picture, 95, &bytes, &n));
        assert_ok(pc_image_decode(bytes, n, "jpeg", PC_OPTIONS(pc_image_options, .strict = true), &back));
        assert_true(mean_difference(&back, &picture) < 3);
        pc_image_free(&back);
        pc_image_bytes_free(bytes);
        pc_image_free(&picture);
    }
}

static void files_by_suffix(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-image-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    pc_image picture = paint(20, 10, 3), back;
    static const char *const names[] = {"a.png", "b.JPG", "c.jpeg"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_ok(pc_image_write(&picture, path));
        assert_ok(pc_image_read(path, PC_OPTIONS(pc_image_options, .strict = true), &back));
        assert_true(mean_difference(&back, &picture) < 8);
        pc_image_free(&back);
        unlink(path);
    }
    assert_fails(used(pc_image_write(&picture, "x.gif")), PC_ERR_ARGUMENT, "x.gif");
    assert_fails(used(pc_image_write(&picture, "/nowhere/x.png")), PC_ERR_FILE, "/nowhere/x.png");
    snprintf(path, sizeof path, "%s/none.jpg", folder);
    assert_fails(used(pc_image_read(path, PC_OPTIONS(pc_image_options, .channels = 3), &back)), PC_ERR_FILE, path);
    assert_null(back.pixels);
    rmdir(folder);
    pc_image_free(&picture);
}

static void channels_as_asked(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("420.jpg", &n);
    pc_image rgb, grey, again;
    assert_ok(pc_image_decode(bytes, n, "x", PC_OPTIONS(pc_image_options, .channels = 3), &rgb));
    assert_ok(pc_image_decode(bytes, n, "x", PC_OPTIONS(pc_image_options, .channels = 1), &grey));
    assert_int_equal(grey.channels, 1);
    for (int i = 0; i < rgb.width * rgb.height; i++) {
        const uint8_t *p = rgb.pixels + 3 * i;
        assert_int_equal(grey.pixels[i], (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 32768) >> 16);
    }
    free(bytes);
    bytes = read_golden("grey.jpg", &n);
    assert_ok(pc_image_decode(bytes, n, "x", PC_OPTIONS(pc_image_options, .channels = 0), &again));
    assert_int_equal(again.channels, 1);
    free(bytes);
    pc_image_free(&rgb);
    pc_image_free(&grey);
    pc_image_free(&again);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("420.jpg", &n);
    pc_image image, other;
    const pc_image_options bad[] = {
        {.channels = 2},
        {.width = 10},
        {.height = 10},
        {.width = -1, .height = -1},
        {.width = 1 << 20, .height = 1},
        {.resize = (pc_resize)5},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(used(pc_image_decode(bytes, n, "x", bad[i], &image)), PC_ERR_ARGUMENT, "reading a picture");
    assert_fails(used(pc_image_new(0, 4, 3, &image)), PC_ERR_ARGUMENT, "0 x 4");
    assert_fails(used(pc_image_new(60000, 60000, 3, &image)), PC_ERR_ARGUMENT, "60000 x 60000");
    assert_fails(used(pc_image_new(4, 4, 2, &image)), PC_ERR_ARGUMENT, "2 channels");
    assert_fails(used(pc_image_resize(&image, 4, 4, PC_RESIZE_AREA, &other)), PC_ERR_ARGUMENT, "empty");
    image = paint(4, 4, 3);
    uint8_t *out;
    assert_fails(used(pc_image_encode_jpeg(&image, 0, &out, &n)), PC_ERR_ARGUMENT, "quality 0");
    assert_fails(used(pc_image_encode_jpeg(&image, 101, &out, &n)), PC_ERR_ARGUMENT, "quality 101");
    assert_fails(used(pc_image_resize(&image, 4, 0, PC_RESIZE_AREA, &other)), PC_ERR_ARGUMENT, "4 x 0");
    pc_image_free(&image);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_pixels_as_pillow),
        cmocka_unit_test(all_eight_orientations),
        cmocka_unit_test(every_sampling_by_planes_and_by_rows),
        cmocka_unit_test(area_keeps_colours_apart),
        cmocka_unit_test(area_of_a_smooth_picture),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(files_by_suffix),
        cmocka_unit_test(channels_as_asked),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("io.image", tests, NULL, NULL);
}

#else

/* What is said without the libraries is checked in damage.c. */
static void libraries_missing(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(libraries_missing)};
    return cmocka_run_group_tests_name("io.image", tests, NULL, NULL);
}

#endif

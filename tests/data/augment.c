/* Augmentation against Keras with scipy (golden/augment.py), the draws, and what is refused. */
#include <paracord/augment.h>

#include "data/golden_pictures.h"

#include <math.h>
#include <stdlib.h>

enum { PIXELS_MAX = 4096, COLUMNS = 16 };

/* Columns as golden/augment.py writes them. */
static size_t check_case(const double *row, int number, const float *want)
{
    const int height = (int)row[0], width = (int)row[1], channels = (int)row[2];
    const pc_augment_values values = {.theta = row[3],
                                      .tx = row[4],
                                      .ty = row[5],
                                      .shear = row[6],
                                      .zx = row[7],
                                      .zy = row[8],
                                      .channel_shift = row[9],
                                      .brightness = row[10],
                                      .flip_horizontal = row[11] != 0,
                                      .flip_vertical = row[12] != 0};
    const pc_augment plan = {.fill = (pc_fill_mode)row[13], .cval = row[14], .rescale = row[15]};
    const size_t n = (size_t)(height * width * channels);
    const double unit = plan.rescale != 0 ? plan.rescale : 1;
    /* PIL cuts at the point: an interpolated value that is a whole number but for rounding may end on either side */
    const bool cuts = values.brightness >= 0 && (values.theta != 0 || values.shear != 0);
    uint8_t *pixels = malloc(n); /* blocks of their own: reading beside them is noticed */
    float *got = malloc(n * sizeof *got);
    assert_true(pixels && got);
    draw_picture(pixels, height, width, channels);
    assert_ok(pc_augment_apply(&plan, &values, pixels, height, width, channels, got));
    int cut = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-3 * unit)) {
            if (!cuts || fabs(got[i] - want[i]) > 2)
                fail_msg("case %d, value %zu: got %.9g, want %.9g", number, i, got[i], want[i]);
            cut++;
        }
    assert_true(cut <= 3);
    free(pixels);
    free(got);
    return n;
}

static void the_same_as_keras(void **state)
{
    (void)state;
    size_t case_bytes, want_bytes, at = 0;
    double *cases = read_npy("augment/cases.npy", &case_bytes);
    float *want = read_npy("augment/want.npy", &want_bytes);
    const int count = (int)(case_bytes / sizeof *cases / COLUMNS);
    assert_true(count > 20);
    for (int i = 0; i < count; i++)
        at += check_case(cases + i * COLUMNS, i, want + at);
    assert_int_equal(at, want_bytes / sizeof *want);
    free(cases);
    free(want);
}

/* Wide pictures run through several blocks of the fast way, and end in each possible rest: compare every pixel with
 * the mean of its two neighbours. */
static void every_width(void **state)
{
    (void)state;
    for (int width = 2; width < 140; width += 3) {
        const pc_augment plan = {.fill = PC_FILL_CONSTANT, .cval = 7};
        pc_augment_values values = pc_augment_neutral();
        values.tx = 0.5; /* columns move by half a pixel */
        uint8_t pixels[PIXELS_MAX];
        float got[PIXELS_MAX];
        draw_picture(pixels, 3, width, 3);
        assert_ok(pc_augment_apply(&plan, &values, pixels, 3, width, 3, got));
        for (int i = 0; i < 3 * width * 3; i++) {
            const bool last = i / 3 % width == width - 1;
            assert_close(got[i], last ? 7 : (pixels[i] + pixels[i + 3]) / 2.0, 1e-4);
        }
    }
}

static void draws_depend_on_the_key_alone(void **state)
{
    (void)state;
    const pc_augment plan = {.rotation = 10,
                             .width_shift = 0.1,
                             .height_shift = 3,
                             .shear = 0.2,
                             .zoom_low = 0.8,
                             .zoom_high = 1.2,
                             .flip_horizontal = true,
                             .flip_vertical = true,
                             .channel_shift = 5,
                             .brightness_low = 0.5,
                             .brightness_high = 1.5};
    assert_ok(pc_augment_check(&plan));
    const pc_augment_values first = pc_augment_draw(&plan, 1, 2, 3, 40, 50);
    (void)pc_augment_draw(&plan, 1, 2, 4, 40, 50);
    const pc_augment_values again = pc_augment_draw(&plan, 1, 2, 3, 40, 50);
    assert_true(first.theta == again.theta && first.zx == again.zx && first.brightness == again.brightness);
    int flips = 0;
    double zoom = 0, last = 0, shift = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        const pc_augment_values v = pc_augment_draw(&plan, 1, i % 20, i / 20, 40, 50);
        assert_true(fabs(v.theta) <= 10 && fabs(v.tx) <= 3 && fabs(v.ty) <= 5 && fabs(v.shear) <= 0.2);
        assert_true(v.zx >= 0.8 && v.zx <= 1.2 && v.zy >= 0.8 && v.zy <= 1.2 && v.zx != v.zy && v.zx != last);
        assert_true(fabs(v.channel_shift) <= 5 && v.brightness >= 0.5 && v.brightness <= 1.5);
        flips += v.flip_horizontal;
        zoom += v.zx;
        last = v.zx;
        shift = fmax(shift, fabs(v.ty));
    }
    assert_close(flips / 4000.0, 0.5, 0.04);
    assert_close(zoom / 4000, 1.0, 0.01);
    assert_close(shift, 5, 0.1);
}

static void no_ranges_change_nothing(void **state)
{
    (void)state;
    const pc_augment plan = {.rescale = 1 / 255.0};
    const pc_augment_values values = pc_augment_draw(&plan, 9, 9, 9, 8, 8);
    uint8_t pixels[8 * 8 * 3];
    float got[8 * 8 * 3];
    draw_picture(pixels, 8, 8, 3);
    assert_ok(pc_augment_apply(&plan, &values, pixels, 8, 8, 3, got));
    for (int i = 0; i < 8 * 8 * 3; i++)
        assert_close(got[i], pixels[i] / 255.0, 1e-7);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const pc_augment bad[] = {
        {.shear = -1},
        {.rotation = NAN},
        {.zoom_low = 0.8},
        {.zoom_low = 1.2, .zoom_high = 0.8},
        {.zoom_low = -0.1, .zoom_high = 1.9},
        {.brightness_low = 2, .brightness_high = 1},
        {.fill = (pc_fill_mode)9},
        {.rescale = INFINITY},
        {.width_shift = 1e300},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(used(pc_augment_check(&bad[i])), PC_ERR_ARGUMENT, "augmentation");
    const pc_augment plan = {0};
    pc_augment_values values = pc_augment_neutral();
    uint8_t pixel[3] = {1, 2, 3};
    float out[3];
    assert_fails(used(pc_augment_apply(&plan, &values, pixel, 0, 1, 3, out)), PC_ERR_ARGUMENT, "1 x 0");
    assert_fails(used(pc_augment_apply(&plan, &values, pixel, 1, 1, 9, out)), PC_ERR_ARGUMENT, "9 channels");
    values.zx = NAN;
    assert_fails(used(pc_augment_apply(&plan, &values, pixel, 1, 1, 3, out)), PC_ERR_ARGUMENT, "nan");
}

/* Values at the end of what is allowed reach far outside: still defined. */
static void extremes_stay_in_bounds(void **state)
{
    (void)state;
    uint8_t pixels[5 * 6 * 3];
    float out[5 * 6 * 3];
    draw_picture(pixels, 5, 6, 3);
    for (int fill = PC_FILL_NEAREST; fill <= PC_FILL_WRAP; fill++) {
        const pc_augment plan = {.fill = (pc_fill_mode)fill, .cval = 3};
        pc_augment_values values = pc_augment_neutral();
        values.zx = 1e6, values.zy = -1e6, values.tx = 1e6, values.theta = 1e6;
        assert_ok(pc_augment_apply(&plan, &values, pixels, 5, 6, 3, out));
        for (int i = 0; i < 5 * 6 * 3; i++)
            assert_true(out[i] >= 0 && out[i] <= 255);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_as_keras),
        cmocka_unit_test(every_width),
        cmocka_unit_test(draws_depend_on_the_key_alone),
        cmocka_unit_test(no_ranges_change_nothing),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(extremes_stay_in_bounds),
    };
    return cmocka_run_group_tests_name("data.augment", tests, NULL, NULL);
}

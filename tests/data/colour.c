/* Crop, shift, colour jitter and erased parts against torchvision (golden/torchvision_augment.py); their draws; batches on
 * the device; what is refused. */
#include <paracord/augment.h>

#include "device.h"
#include "data/golden_pictures.h"

#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 23, PIXELS_MAX = 4096 };

/* Columns as the script writes them. */
static size_t check_case(const double *row, int number, const float *want)
{
    const int height = (int)row[0], width = (int)row[1], channels = (int)row[2];
    const size_t n = (size_t)(height * width * channels);
    pc_augment plan = {.fill = PC_FILL_CONSTANT, .rescale = 1 / 255.0};
    pc_augment_values values = pc_augment_neutral();
    values.crop = (pc_part){(int)row[3], (int)row[4], (int)row[5], (int)row[6]};
    values.down = (int)row[7], values.right = (int)row[8];
    for (int k = 0; k < 4; k++) {
        values.jitter[k] = row[9 + k];
        values.order[k] = (pc_jitter)row[13 + k];
    }
    values.erased = (pc_part){(int)row[17], (int)row[18], (int)row[19], (int)row[20]};
    for (int c = 0; c < channels; c++)
        plan.mean[c] = row[21], plan.std[c] = row[22];
    uint8_t *pixels = malloc(n); /* blocks of their own: reading beside them is noticed */
    float *got = malloc(n * sizeof *got);
    assert_true(pixels && got);
    draw_picture(pixels, height, width, channels);
    assert_ok(pc_augment_apply(&plan, &values, pixels, height, width, channels, got));
    for (size_t i = 0; i < n; i++)
        if (!isnan(want[i]) && !(fabs(got[i] - want[i]) <= 2e-5))
            fail_msg("case %d, value %zu: got %.9g, want %.9g", number, i, got[i], want[i]);
    free(pixels);
    free(got);
    return n;
}

static void the_same_as_torchvision(void **state)
{
    (void)state;
    size_t case_bytes, want_bytes, at = 0;
    double *cases = read_npy("torchvision_augment/cases.npy", &case_bytes);
    float *want = read_npy("torchvision_augment/want.npy", &want_bytes);
    const int count = (int)(case_bytes / sizeof *cases / COLUMNS);
    assert_true(count > 60);
    for (int i = 0; i < count; i++)
        at += check_case(cases + i * COLUMNS, i, want + at);
    assert_int_equal(at, want_bytes / sizeof *want);
    free(cases);
    free(want);
}

/* --- draws --- */

enum { DRAWS = 6000 };

/* What a crop enlarges reaches half a pixel beyond the centre of the picture's last: that is the picture, and not what stands
 * beyond it; what a shift brings in from beyond is not. */
static void a_crop_ends_where_its_picture_ends(void **state)
{
    (void)state;
    enum { SIDE = 8, BEYOND = 200 };
    static const pc_part corners[] = {{0, 0, 4, 3}, {4, 5, 4, 3}, {0, 2, 8, 4}, {0, 0, 1, 1}};
    uint8_t pixels[SIDE * SIDE * 3];
    float got[SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        for (int fill = PC_FILL_NEAREST; fill <= PC_FILL_WRAP; fill++) {
            const pc_augment plan = {.fill = (pc_fill_mode)fill, .cval = BEYOND};
            pc_augment_values values = pc_augment_neutral();
            values.crop = corners[i];
            for (int at = 0; at < SIDE * SIDE * 3; at++) {
                const int row = at / (SIDE * 3), column = at / 3 % SIDE;
                const bool in = row >= values.crop.top && row < values.crop.top + values.crop.height &&
                                column >= values.crop.left && column < values.crop.left + values.crop.width;
                pixels[at] = in || row % 7 || column % 7 ? 10 : 90; /* the other corners differ */
            }
            values.flip_horizontal = fill % 2;
            assert_ok(pc_augment_apply(&plan, &values, pixels, SIDE, SIDE, 3, got));
            for (int at = 0; at < SIDE * SIDE * 3; at++)
                assert_close(got[at], 10, 1e-4);
        }
    const pc_augment plan = {.fill = PC_FILL_CONSTANT, .cval = BEYOND};
    pc_augment_values values = pc_augment_neutral();
    values.crop = corners[0], values.down = 1;
    assert_ok(pc_augment_apply(&plan, &values, pixels, SIDE, SIDE, 3, got));
    for (int at = 0; at < SIDE * SIDE * 3; at++)
        assert_true((got[at] == BEYOND) == (at / (SIDE * 3) == 0));
}

static void crops_are_as_drawn_there(void **state)
{
    (void)state;
    const int height = 60, width = 80;
    const pc_augment plan = {.crop_low = 0.08, .crop_high = 1};
    double area = 0, ratio = 0, top = 0;
    assert_ok(pc_augment_check(&plan));
    for (int i = 0; i < DRAWS; i++) {
        const pc_part p = pc_augment_draw(&plan, 5, 1, (uint64_t)i, height, width).crop;
        assert_true(p.height > 0 && p.width > 0 && p.top >= 0 && p.left >= 0);
        assert_true(p.top + p.height <= height && p.left + p.width <= width);
        area += (double)p.height * p.width / (height * width) / DRAWS;
        ratio += log((double)p.width / p.height) / DRAWS;
        top += (p.top + p.height / 2.0) / height / DRAWS;
    }
    /* means of 60,000 draws of torchvision's RandomResizedCrop.get_params */
    assert_close(area, 0.438, 0.012);
    assert_close(ratio, 0.031, 0.012);
    assert_close(top, 0.5, 0.01);
    const pc_part narrow = pc_augment_draw(&plan, 5, 1, 2, 3, 2000).crop; /* no try fits: the middle */
    assert_int_equal(narrow.height, 3);
    assert_int_equal(narrow.width, 4);
    assert_int_equal(narrow.left, 998);
}

static void moves_are_whole_and_even(void **state)
{
    (void)state;
    enum { PAD = 4 };
    int seen[2 * PAD + 1] = {0};
    const pc_augment plan = {.pad = PAD};
    for (int i = 0; i < DRAWS; i++) {
        const pc_augment_values v = pc_augment_draw(&plan, 5, 1, (uint64_t)i, 32, 32);
        assert_in_range(v.down + PAD, 0, 2 * PAD);
        assert_in_range(v.right + PAD, 0, 2 * PAD);
        seen[v.down + PAD]++;
    }
    for (int i = 0; i <= 2 * PAD; i++)
        assert_close(seen[i], DRAWS / 9.0, 110);
}

static void jitters_are_even_in_every_order(void **state)
{
    (void)state;
    int first[4] = {0}, seen[256] = {0}, orders = 0;
    double least = 9, most = -9, sum = 0, contrast = 9;
    const pc_augment plan = {
        .jitter_brightness = 0.4, .jitter_contrast = 2, .jitter_saturation = 0.2, .jitter_hue = 0.1};
    for (int i = 0; i < DRAWS; i++) {
        const pc_augment_values v = pc_augment_draw(&plan, 5, 1, (uint64_t)i, 32, 32);
        unsigned found = 0;
        int code = 0;
        for (int k = 0; k < 4; k++) {
            found |= 1u << v.order[k];
            code |= (int)v.order[k] << 2 * k;
        }
        assert_int_equal(found, 15);
        first[v.order[0]]++;
        orders += seen[code]++ == 0;
        sum += v.jitter[PC_JITTER_BRIGHTNESS] / DRAWS;
        least = fmin(least, v.jitter[PC_JITTER_HUE]), most = fmax(most, v.jitter[PC_JITTER_HUE]);
        contrast = fmin(contrast, v.jitter[PC_JITTER_CONTRAST]);
        assert_true(v.jitter[PC_JITTER_CONTRAST] >= -1 && v.jitter[PC_JITTER_CONTRAST] <= 2);
    }
    assert_int_equal(orders, 24);
    for (int k = 0; k < 4; k++)
        assert_close(first[k], DRAWS / 4.0, 150);
    assert_close(sum, 0, 0.01);
    assert_true(least >= -0.1 && least < -0.098 && most <= 0.1 && most > 0.098);
    assert_close(contrast, -1, 0.01); /* a factor is 0 or more */
}

static void parts_are_erased_by_chance(void **state)
{
    (void)state;
    int erased = 0;
    const pc_augment plan = {.erase = 0.3};
    for (int i = 0; i < DRAWS; i++) {
        const pc_part p = pc_augment_draw(&plan, 5, 1, (uint64_t)i, 40, 30).erased;
        assert_true(p.top >= 0 && p.left >= 0 && p.top + p.height <= 40 && p.left + p.width <= 30);
        const double share = p.height * p.width / 1200.0;
        assert_true(p.height == 0 || (share > 0.01 && share < 0.36));
        erased += p.height > 0;
    }
    assert_close(erased, 0.3 * DRAWS, 150);
}

/* --- batches --- */

static const pc_augment whole = {.rotation = 20,
                                 .zoom_low = 0.9,
                                 .zoom_high = 1.1,
                                 .flip_horizontal = true,
                                 .crop_low = 0.3,
                                 .crop_high = 1,
                                 .pad = 2,
                                 .jitter_brightness = 0.4,
                                 .jitter_contrast = 0.4,
                                 .jitter_saturation = 0.4,
                                 .jitter_hue = 0.1,
                                 .erase = 0.5,
                                 .rescale = 1 / 255.0,
                                 .mean = {0.485, 0.456, 0.406},
                                 .std = {0.229, 0.224, 0.225}};

static void check_batch(const pc_augment *plan, int height, int width, int channels)
{
    enum { N = 6 };
    static const int64_t samples[N] = {3, 0, 77, 5, 5, 1000000007};
    const int size = height * width * channels;
    static uint8_t pictures[N * PIXELS_MAX];
    static float got[N * PIXELS_MAX], want[PIXELS_MAX];
    assert_in_range(size, 1, PIXELS_MAX);
    for (int i = 0; i < N; i++)
        draw_picture(pictures + i * size, height, width, channels);
    PC_SCOPE {
        pc_tensor *p = pc_from_data(pictures, PC_SHAPE(N, height, width, channels), PC_U8, test_device());
        pc_tensor *x = pc_augment_batch(plan, p, NULL, 7, 2, samples);
        assert_ok(pc_read(pc_permute(x, PC_SHAPE(0, 2, 3, 1)), got, sizeof *got * (size_t)(N * size)));
    }
    for (int i = 0; i < N; i++) {
        const pc_augment_values v = pc_augment_draw(plan, 7, 2, (uint64_t)samples[i], height, width);
        assert_ok(pc_augment_apply(plan, &v, pictures + i * size, height, width, channels, want));
        assert_memory_equal(got + i * size, want, sizeof *want * (size_t)size);
    }
}

/* To the same bits: whatever is drawn, alone and with everything else, small pictures and such as need several tiles. */
static void batches_have_the_bits_of_single_pictures(void **state)
{
    (void)state;
    const pc_augment plans[] = {
        whole,
        {.crop_low = 0.08, .crop_high = 1, .erase = 1},
        {.crop_low = 0.08, .crop_high = 1, .pad = 2, .fill = PC_FILL_CONSTANT, .cval = 200},
        {.crop_low = 0.08, .crop_high = 1, .fill = PC_FILL_WRAP},
        {.jitter_contrast = 0.5, .fill = PC_FILL_CONSTANT, .pad = 3},
        {.jitter_hue = 0.5, .channel_shift = 20, .brightness_low = 0.5, .brightness_high = 1.5, .mean = {1, 2, 3, 4}},
        {.mean = {0.5, 0.5, 0.5, 0.5}, .std = {0.25, 0.5, 0.1, 1}, .rescale = 1 / 255.0},
    };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        check_batch(&plans[i], 32, 32, 3);
        check_batch(&plans[i], 9, 13, 1);
        check_batch(&plans[i], 37, 36, 3);
        check_batch(&plans[i], 1, 7, 3);
    }
    check_batch(&plans[1], 9, 13, 4);
    check_batch(&plans[6], 9, 13, 2);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const pc_augment bad[] = {
        {.crop_low = 0.5},
        {.crop_low = 0.5, .crop_high = 1.5},
        {.crop_low = 0.5, .crop_high = 1, .ratio_low = 2, .ratio_high = 1},
        {.ratio_low = -1},
        {.ratio_high = 1e9},
        {.pad = -1},
        {.jitter_brightness = -1},
        {.jitter_contrast = NAN},
        {.jitter_hue = 0.6},
        {.erase = 1.1},
        {.mean = {NAN}},
        {.std = {0, INFINITY}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(used(pc_augment_check(&bad[i])), PC_ERR_ARGUMENT, "augmentation");
    const pc_augment plan = {0};
    uint8_t pixels[4 * 4 * 4] = {0};
    float out[4 * 4 * 4];
    pc_augment_values v = pc_augment_neutral();
    v.crop = (pc_part){2, 0, 3, 4};
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out)), PC_ERR_ARGUMENT, "not inside");
    v = pc_augment_neutral(), v.erased = (pc_part){0, -1, 3, 4};
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out)), PC_ERR_ARGUMENT, "not inside");
    v = pc_augment_neutral(), v.down = -2000000;
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out)), PC_ERR_ARGUMENT, "-2000000 pixels down");
    v = pc_augment_neutral(), v.jitter[PC_JITTER_HUE] = 0.1; /* the order has brightness four times */
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out)), PC_ERR_ARGUMENT, "jitter");
    for (int k = 0; k < 4; k++)
        v.order[k] = (pc_jitter)k;
    assert_ok(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out));
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 4, out)), PC_ERR_ARGUMENT, "jitter of 4 channels");
    v.jitter[PC_JITTER_HUE] = 0, v.jitter[PC_JITTER_CONTRAST] = -1.5;
    assert_fails(used(pc_augment_apply(&plan, &v, pixels, 4, 4, 3, out)), PC_ERR_ARGUMENT, "by 0, -1.5");
    PC_SCOPE {
        pc_tensor *p = pc_zeros(PC_SHAPE(1, 4, 4, 2), PC_U8, test_device());
        assert_null(pc_augment_batch(&whole, p, NULL, 1, 1, (int64_t[]){1}));
        assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
        pc_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_as_torchvision),
        cmocka_unit_test(crops_are_as_drawn_there),
        cmocka_unit_test(a_crop_ends_where_its_picture_ends),
        cmocka_unit_test(moves_are_whole_and_even),
        cmocka_unit_test(jitters_are_even_in_every_order),
        cmocka_unit_test(parts_are_erased_by_chance),
        cmocka_unit_test(batches_have_the_bits_of_single_pictures),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("data.colour", tests, NULL, NULL);
}

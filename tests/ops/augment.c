/* Augmenting batches on a device: bit for bit what pc_augment_apply makes of the pictures one by one, at every SIMD
 * level. (That this is what Keras makes of them: tests/data/augment.c.) */
#include "ops/golden.h"

#include <paracord/augment.h>

enum { COUNT = 7, SIDE = 33, FLOATS = COUNT * SIDE * SIDE * 4 };
static uint8_t pixels[FLOATS];
static float got[FLOATS], want[FLOATS];
static const int64_t samples[COUNT] = {5, 0, 1ll << 40, 17, 3, 2, 5};

typedef struct size {
    int height, width, channels;
} size;

static const size sizes[] = {{33, 31, 3}, {8, 9, 1}, {5, 12, 4}, {7, 6, 2}, {1, 9, 3}, {9, 1, 3}, {1, 1, 3}};

static size_t bytes_of(size s)
{
    return (size_t)(s.height * s.width * s.channels);
}

static pc_augment everything(pc_fill_mode fill)
{
    return (pc_augment){.rotation = 40,
                        .width_shift = 0.2,
                        .height_shift = 2,
                        .shear = 15,
                        .zoom_low = 0.7,
                        .zoom_high = 1.4,
                        .flip_horizontal = true,
                        .flip_vertical = true,
                        .fill = fill,
                        .cval = 90,
                        .rescale = 1 / 255.0};
}

static void draw_pixels(void)
{
    uint32_t noise = 1;
    for (int i = 0; i < FLOATS; i++) {
        noise = noise * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)(noise >> 24);
    }
}

static pc_tensor *pictures_of(size s)
{
    draw_pixels();
    return pc_from_data(pixels, PC_SHAPE(COUNT, s.height, s.width, s.channels), PC_U8, test_device());
}

/* Picture places[i] (i itself where NULL) under the name samples[i], n of them, into `want`. */
static void apply_one_by_one(const pc_augment *plan, size s, const int64_t *places, int n)
{
    for (int i = 0; i < n; i++) {
        const pc_augment_values v = pc_augment_draw(plan, 3, 4, (uint64_t)samples[i], s.height, s.width);
        const size_t from = (size_t)(places ? places[i] : i) * bytes_of(s);
        assert_ok(
            pc_augment_apply(plan, &v, pixels + from, s.height, s.width, s.channels, want + (size_t)i * bytes_of(s)));
    }
}

/* What lies in memory, n, h, w, c. */
static void read_batch(pc_tensor *batch, size s, int n)
{
    assert_not_null_ok(batch);
    const pc_shape shape = pc_tensor_shape(batch);
    assert_int_equal(pc_tensor_dtype(batch), PC_F32);
    assert_int_equal(shape.ndim, 4);
    assert_int_equal(shape.dim[0], n);
    assert_int_equal(shape.dim[1], s.channels);
    assert_int_equal(shape.dim[2], s.height);
    assert_int_equal(shape.dim[3], s.width);
    assert_int_equal(pc_tensor_stride(batch, 1), 1);
    assert_int_equal(pc_tensor_stride(batch, 3), s.channels);
    assert_true(pc_device_equal(pc_tensor_device(batch), test_device()));
    assert_ok(pc_read(pc_permute(batch, PC_SHAPE(0, 2, 3, 1)), got, (size_t)n * bytes_of(s) * sizeof *got));
}

static void check(const pc_augment *plan, size s)
{
    PC_SCOPE {
        pc_tensor *pictures = pictures_of(s);
        apply_one_by_one(plan, s, NULL, COUNT);
        read_batch(pc_augment_batch(plan, pictures, NULL, 3, 4, samples), s, COUNT);
        assert_memory_equal(got, want, COUNT * bytes_of(s) * sizeof *got);
    }
}

static void as_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int fill = PC_FILL_NEAREST; fill <= PC_FILL_WRAP; fill++) {
            pc_augment plan = everything((pc_fill_mode)fill);
            check(&plan, sizes[i]);
            plan.channel_shift = 40, plan.cval = -30;
            check(&plan, sizes[i]);
            plan.brightness_low = 0.5, plan.brightness_high = 1.5;
            check(&plan, sizes[i]);
            check(&(pc_augment){.flip_horizontal = true, .flip_vertical = true, .fill = (pc_fill_mode)fill}, sizes[i]);
            check(&(pc_augment){.brightness_low = 1, .brightness_high = 1}, sizes[i]);
        }
    assert_no_leak();
}

static void an_index_picks_pictures(void **state)
{
    (void)state;
    const size s = sizes[0];
    const pc_augment plan = everything(PC_FILL_REFLECT);
    const int64_t places[5] = {6, 0, 6, 3, 1};
    PC_SCOPE {
        pc_tensor *pictures = pictures_of(s);
        pc_tensor *index = pc_from_data(places, PC_SHAPE(5), PC_I64, test_device());
        apply_one_by_one(&plan, s, places, 5);
        read_batch(pc_augment_batch(&plan, pictures, index, 3, 4, samples), s, 5);
        assert_memory_equal(got, want, 5 * bytes_of(s) * sizeof *got);
        memset(got, 0, sizeof got);
        read_batch(pc_augment_batch(&plan, pictures, pc_cast(index, PC_I32), 3, 4, samples), s, 5);
        assert_memory_equal(got, want, 5 * bytes_of(s) * sizeof *got);
        read_batch(pc_augment_batch(&plan, pictures, pc_slice(index, 0, 0, 0, 1), 3, 4, samples), s, 0);
    }
    assert_no_leak();
}

/* Pictures in another memory order, and a part of a tensor. */
static void views_are_copied_first(void **state)
{
    (void)state;
    const size s = sizes[0];
    const pc_augment plan = everything(PC_FILL_NEAREST);
    PC_SCOPE {
        pc_tensor *pictures = pictures_of(s);
        pc_tensor *planes = pc_contiguous(pc_permute(pictures, PC_SHAPE(0, 3, 1, 2)));
        apply_one_by_one(&plan, s, NULL, COUNT);
        read_batch(pc_augment_batch(&plan, pc_permute(planes, PC_SHAPE(0, 2, 3, 1)), NULL, 3, 4, samples), s, COUNT);
        assert_memory_equal(got, want, COUNT * bytes_of(s) * sizeof *got);
        const int64_t places[2] = {4, 5};
        apply_one_by_one(&plan, s, places, 2);
        read_batch(pc_augment_batch(&plan, pc_slice(pictures, 0, 4, 6, 1), NULL, 3, 4, samples), s, 2);
        assert_memory_equal(got, want, 2 * bytes_of(s) * sizeof *got);
    }
    assert_no_leak();
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const size s = sizes[0];
    const pc_augment plan = everything(PC_FILL_NEAREST), bad = {.shear = -1};
    const int64_t beyond[2] = {0, COUNT};
    PC_SCOPE {
        pc_tensor *pictures = pictures_of(s);
        pc_tensor *floats = pc_cast(pictures, PC_F32), *flat = pc_reshape(pictures, PC_SHAPE(-1));
        pc_tensor *index = pc_from_data(beyond, PC_SHAPE(2), PC_I64, test_device());
        assert_fails(pc_augment_batch(&plan, NULL, NULL, 0, 0, samples), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_augment_batch(NULL, pictures, NULL, 0, 0, samples), PC_ERR_ARGUMENT, "plan is NULL");
        assert_fails(pc_augment_batch(&plan, pictures, NULL, 0, 0, NULL), PC_ERR_ARGUMENT, "samples");
        assert_fails(pc_augment_batch(&bad, pictures, NULL, 0, 0, samples), PC_ERR_ARGUMENT, "shear");
        assert_fails(pc_augment_batch(&plan, floats, NULL, 0, 0, samples), PC_ERR_DTYPE, "float32");
        assert_fails(pc_augment_batch(&plan, flat, NULL, 0, 0, samples), PC_ERR_SHAPE, "[n, height, width, channels]");
        assert_fails(pc_augment_batch(&plan, pc_permute(pictures, PC_SHAPE(0, 3, 1, 2)), NULL, 0, 0, samples),
                     PC_ERR_ARGUMENT, "31 channels");
        assert_fails(pc_augment_batch(&plan, pictures, floats, 0, 0, samples), PC_ERR_ARGUMENT, "index is float32");
        assert_fails_on_device(pc_augment_batch(&plan, pictures, index, 0, 0, samples), PC_ERR_RANGE,
                               "entry 1 of the index is 7");
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_one_by_one),
        cmocka_unit_test(an_index_picks_pictures),
        cmocka_unit_test(views_are_copied_first),
        cmocka_unit_test(nonsense_is_refused),
    };
    return run_with_golden("ops.augment", NULL, 0, tests, GOLDEN_COUNT(tests));
}

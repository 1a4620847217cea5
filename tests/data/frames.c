/* Pictures that are not square, and grey ones: batches of any height, width and channels are the decoded pictures,
 * augmented as one by one on the host, wherever they live. */
#include "pictures.h"

#include "device.h"

#include <paracord/loader.h>
#include <paracord/ops.h>

#define TWO ((const char *[]){"cat", "dog"})

static test_path root;

static int make_pictures(void **state)
{
    (void)state;
    root = new_root();
    put_classes(root.s, TWO, 2, 5);
    return 0;
}

static int remove_pictures(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static void assert_batch(const pc_loader *loader, const pc_batch *batch, pc_loader_options o, int epoch)
{
    const size_t each = (size_t)o.height * (size_t)o.width * (size_t)o.channels;
    float *got = malloc((size_t)batch->n * each * sizeof *got), *want = malloc(each * sizeof *want);
    const int64_t sides[4] = {batch->n, o.channels, o.height, o.width};
    assert_int_equal(pc_tensor_ndim(batch->x), 4);
    for (int d = 0; d < 4; d++)
        assert_int_equal(pc_tensor_size(batch->x, d), sides[d]);
    PC_SCOPE {
        assert_ok(pc_read(pc_permute(batch->x, PC_SHAPE(0, 2, 3, 1)), got, (size_t)batch->n * each * sizeof *got));
    }
    pc_augment plan = o.augment;
    plan.rescale = 1 / 255.0;
    for (int64_t i = 0; i < batch->n; i++) {
        pc_picture picture;
        assert_ok(pc_loader_picture(loader, batch->sample[i], &picture));
        assert_int_equal(picture.image.width, o.width);
        assert_int_equal(picture.image.height, o.height);
        assert_int_equal(picture.image.channels, o.channels);
        const pc_augment_values v =
            pc_augment_draw(&plan, o.seed, (uint64_t)epoch, (uint64_t)batch->sample[i], o.height, o.width);
        assert_ok(pc_augment_apply(&plan, &v, picture.image.pixels, o.height, o.width, o.channels, want));
        for (size_t k = 0; k < each; k++)
            assert_close(got[(size_t)i * each + k], want[k], 1e-6);
    }
    free(got);
    free(want);
}

static void any_frame(void **state)
{
    (void)state;
    const struct {
        int height, width, channels;
    } frames[] = {{8, 8, 1}, {6, 11, 3}, {11, 6, 1}, {1, 9, 1}, {9, 1, 3}, {28, 28, 1}, {16, 32, 3}};
    for (size_t f = 0; f < sizeof frames / sizeof *frames; f++)
        for (int home = 0; home < 2; home++) {
            const pc_loader_options o = {.height = frames[f].height,
                                         .width = frames[f].width,
                                         .channels = frames[f].channels,
                                         .batch = 4,
                                         .shuffle = true,
                                         .seed = 3,
                                         .device = test_device(),
                                         .augment = {.rotation = 20, .zoom_low = 0.8, .zoom_high = 1.2},
                                         .resident = home ? PC_RESIDENCE_NO : PC_RESIDENCE_AUTO};
            pc_loader *loader = pc_loader_new(root.s, o);
            assert_not_null_ok(loader);
            pc_batch batch;
            for (int epoch = 0; epoch < 2; epoch++)
                while (pc_loader_next(loader, &batch))
                    assert_batch(loader, &batch, o, epoch);
            assert_false(pc_failed());
            pc_loader_free(loader);
        }
}

/* The pixels are those that reading the file so gives: grey by PIL's convert("L"). */
static void pixels_are_those_of_the_file(void **state)
{
    (void)state;
    pc_loader *loader = pc_loader(root.s, .height = 5, .width = 7, .channels = 1);
    assert_not_null_ok(loader);
    for (int64_t i = 0; i < pc_loader_count(loader); i++) {
        pc_picture picture;
        pc_image read;
        assert_ok(pc_loader_picture(loader, i, &picture));
        assert_ok(pc_image_read(joined(root.s, picture.path).s,
                                PC_OPTIONS(pc_image_options, .channels = 1, .width = 7, .height = 5), &read));
        assert_memory_equal(picture.image.pixels, read.pixels, 35);
        pc_image_free(&read);
    }
    pc_loader_free(loader);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    assert_fails(pc_loader(root.s, .height = 5), PC_ERR_ARGUMENT, "height 5 and width 0: give both");
    assert_fails(pc_loader(root.s, .height = 5, .width = -1), PC_ERR_ARGUMENT, "width -1");
    assert_fails(pc_loader(root.s, .channels = 2), PC_ERR_ARGUMENT, "2 channels: use 1 (grey) or 3 (RGB)");
    assert_fails(pc_loader(root.s, .size = 99999), PC_ERR_ARGUMENT, "size 99999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_frame),
        cmocka_unit_test(pixels_are_those_of_the_file),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("data.frames", tests, make_pictures, remove_pictures);
}

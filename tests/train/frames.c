/* Grey and non-square pictures through a training: the networks by name, the file, and what uses it. */
#include "group.h"

#include "device.h"

#include <paracord/train.h>

static int prepare(void **state)
{
    open_folder(state);
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog"}, 2, 4);
    return 0;
}

static pc_status train(const char *out, const char *arch, int height, int width, int channels, bool resume)
{
    const test_path data = joined(root.s, "data"), to = joined(root.s, out);
    const pc_train_options settings = {.data = data.s,
                                       .out = to.s,
                                       .arch = arch,
                                       .device = test_device_name(),
                                       .epochs = resume ? 2 : 1,
                                       .batch = 4,
                                       .height = height,
                                       .width = width,
                                       .channels = channels,
                                       .val_split = 0.25,
                                       .resume = resume};
    pc_train_summary summary;
    return pc_train_folder(settings, &summary);
}

static void the_file_remembers(void **state)
{
    (void)state;
    static const char *const archs[] = {"article", "two-conv", "mlp", "lenet"};
    for (int i = 0; i < 4; i++) {
        const int channels = i % 2 ? 3 : 1;
        assert_ok(train(archs[i], archs[i], 16, 28, channels, false));
        pc_classifier *c = pc_classifier_open(joined(joined(root.s, archs[i]).s, "model.h5").s, test_device_name());
        assert_not_null_ok(c);
        char *text, *json;
        assert_ok(pc_classifier_summary(c, &text, &json));
        assert_non_null(strstr(text, channels == 1 ? "takes pictures of 16x28 grey" : "takes pictures of 16x28 RGB"));
        assert_non_null(strstr(json, "\"height\": 16, \"width\": 28, \"channels\": "));
        pc_text_free(text);
        pc_text_free(json);
        pc_prediction p;
        assert_ok(pc_classifier_predict(c, joined(root.s, "data/dog/a00.jpg").s, &p));
        pc_evaluation e;
        assert_ok(pc_classifier_evaluate(c, joined(root.s, "data").s, 3, NULL, &e));
        assert_int_equal(e.pictures, 8);
        pc_evaluation_free(&e);
        pc_classifier_free(c);
    }
}

/* A checkpoint belongs to one frame. */
static void another_frame_is_another_run(void **state)
{
    (void)state;
    assert_ok(train("once", "mlp", 12, 9, 1, false));
    assert_fails(train("once", "mlp", 9, 12, 1, true), PC_ERR_STATE, "--size 12x9");
    assert_fails(train("once", "mlp", 12, 9, 3, true), PC_ERR_STATE, "--channels 1");
    assert_ok(train("once", "mlp", 12, 9, 1, true));
}

static void too_small_or_nonsense(void **state)
{
    (void)state;
    assert_fails(train("none", "lenet", 15, 40, 3, false), PC_ERR_SHAPE, "15 x 40 are too small for lenet");
    assert_fails(train("none", "lenet", 40, 0, 3, false), PC_ERR_ARGUMENT, "height 40 and width 0");
    assert_fails(train("none", "lenet", 40, 40, 4, false), PC_ERR_ARGUMENT, "4 channels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_file_remembers),
                                       cmocka_unit_test(another_frame_is_another_run),
                                       cmocka_unit_test(too_small_or_nonsense)};
    return cmocka_run_group_tests_name("train.frames", tests, prepare, tidy);
}

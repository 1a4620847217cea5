/* Class names through training, the file, and the answers: long ones, ones that are numbers, and another folder order.
 */
#include "group.h"

#include "device.h"

#include <math.h>
#include <paracord.h>

static pc_classifier *trained(const char *place, const char *const *classes, int count)
{
    test_path data = joined(root.s, place), out = joined(data.s, "out"), model = joined(data.s, "out/model.h5");
    char in[128];
    snprintf(in, sizeof in, "%s/train/", place);
    put_classes(placed(root.s, in).s, classes, count, 4);
    test_path folder = joined(data.s, "train");
    pc_train_options settings = {.data = folder.s,
                                 .out = out.s,
                                 .arch = "mlp",
                                 .device = test_device_name(),
                                 .epochs = 1,
                                 .batch = 4,
                                 .size = 8};
    pc_train_summary summary;
    assert_ok(pc_train_folder(settings, &summary));
    pc_classifier *c = pc_classifier_open(model.s, test_device_name());
    assert_not_null_ok(c);
    return c;
}

/* Two names that are the same for 200 bytes. */
static void long_names(void **state)
{
    (void)state;
    char first[256], second[256];
    memset(first, 'a', sizeof first);
    first[200] = 0;
    memcpy(second, first, sizeof second);
    first[199] = '1';
    second[199] = '2';
    pc_classifier *c = trained("long", (const char *[]){first, second}, 2);
    pc_evaluation e;
    assert_ok(pc_classifier_evaluate(c, joined(root.s, "long/train").s, 3, NULL, &e));
    assert_int_equal(e.pictures, 8);
    assert_string_equal(e.class_names[0], first);
    assert_string_equal(e.class_names[1], second);
    pc_evaluation_free(&e);
    pc_classifier_free(c);
}

/* Folders called 0, 1, 2 are names, not the lack of names: a folder with others does not fit. */
static void names_that_are_numbers(void **state)
{
    (void)state;
    pc_classifier *c = trained("digits", (const char *[]){"0", "1", "2"}, 3);
    put_classes(placed(root.s, "others/").s, (const char *[]){"cat", "dog", "fox"}, 3, 1);
    pc_evaluation e;
    assert_fails(pc_classifier_evaluate(c, joined(root.s, "others").s, 3, NULL, &e), PC_ERR_NOT_FOUND, "0");
    assert_ok(pc_classifier_evaluate(c, joined(root.s, "digits/train").s, 3, NULL, &e));
    int64_t sum = 0;
    for (int i = 0; i < 9; i++)
        sum += e.confusion[i];
    assert_int_equal(sum, 12);
    pc_evaluation_free(&e);
    pc_prediction p;
    assert_ok(pc_classifier_predict(c, joined(root.s, "digits/train/1/a00.jpg").s, &p));
    assert_true(p.label >= 0 && p.label < 3 && p.name[0] == '0' + p.label);
    assert_true(p.probability > 0.3 && p.probability <= 1);
    pc_classifier_free(c);
}

/* What the answers to a folder's pictures come to. */
static void count_answers(pc_classifier *c, const char *folder, double *loss, int64_t *correct)
{
    static const char *const classes[] = {"cat", "dog"};
    *loss = 0, *correct = 0;
    for (int i = 0; i < 8; i++) {
        pc_prediction p;
        char name[64];
        const int k = i % 4;
        snprintf(name, sizeof name, "%s/%c%02d.%s", classes[i / 4], 'a' + k % 3, k, k % 2 ? "png" : "jpg");
        assert_ok(pc_classifier_predict(c, joined(folder, name).s, &p));
        *correct += p.label == i / 4;
        *loss -= log(p.label == i / 4 ? p.probability : 1 - p.probability) / 8;
    }
}

/* A network for two classes may have an output for each: as a file of Keras, and in a loop of one's own. */
static void two_outputs_for_two_classes(void **state)
{
    (void)state;
    test_path pictures = joined(root.s, "two"), file = joined(root.s, "two.h5");
    put_classes(placed(root.s, "two/").s, (const char *[]){"cat", "dog"}, 2, 4);
    for (int logits = 0; logits < 2; logits++) {
        pc_seed(3);
        pc_module *net = on_device(pc_sequential(pc_flatten(), pc_linear(3 * 8 * 8, 2)));
        pc_keras_options options = {.height = 8,
                                    .width = 8,
                                    .channels = 3,
                                    .head = logits ? PC_KERAS_LOGITS : PC_KERAS_SOFTMAX,
                                    .class_names = (const char *const[]){"cat", "dog"},
                                    .class_count = 2};
        assert_ok(pc_keras_save(file.s, net, options));
        pc_classifier *c = pc_classifier_open(file.s, test_device_name());
        assert_not_null_ok(c);
        pc_evaluation e;
        double loss;
        int64_t correct;
        assert_ok(pc_classifier_evaluate(c, pictures.s, 3, NULL, &e));
        count_answers(c, pictures.s, &loss, &correct);
        assert_close(e.loss, loss, 1e-5);
        assert_int_equal(e.correct, correct);
        pc_loader *loader =
            pc_loader(pictures.s, .size = 8, .batch = 3, .device = test_device(), .augment = {.rescale = 1. / 255});
        pc_score score;
        assert_ok(pc_evaluate(net, loader, &score));
        assert_close(score.loss, loss, 1e-5);
        assert_close(score.accuracy, (double)correct / 8, 1e-9);
        pc_optimizer *sgd = pc_sgd(net, .lr = 0.01);
        pc_epoch_result last;
        assert_ok(pc_fit(net, sgd, loader, PC_OPTIONS(pc_fit_options, .epochs = 3, .label_smoothing = 0.1), &last));
        assert_true(last.accuracy >= 0 && last.accuracy <= 1);
        pc_optimizer_free(sgd);
        pc_loader_free(loader);
        pc_evaluation_free(&e);
        pc_classifier_free(c);
        pc_module_free(net);
    }
}

static void nothing_given(void **state)
{
    (void)state;
    pc_evaluation e;
    pc_prediction p;
    char *text, *json;
    assert_fails(pc_classifier_open(NULL, NULL), PC_ERR_ARGUMENT, "model_path is NULL");
    assert_fails(pc_classifier_open("/nowhere/model.h5", "cpu"), PC_ERR_FILE, "/nowhere/model.h5");
    assert_fails(pc_classifier_evaluate(NULL, "x", 1, NULL, &e), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_classifier_predict(NULL, "x", &p), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_classifier_summary(NULL, &text, &json), PC_ERR_ARGUMENT, "NULL");
    pc_evaluation_free(&e);
    pc_classifier_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_names), cmocka_unit_test(names_that_are_numbers),
                                       cmocka_unit_test(two_outputs_for_two_classes), cmocka_unit_test(nothing_given)};
    return cmocka_run_group_tests_name("train.classifier", tests, open_folder, tidy);
}

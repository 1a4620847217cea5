/* answers.c: a network whose weights are NaN or overflow names no class: not of a picture, nor of a folder's. */
#include "../train/folder.h"

#include <math.h>
#include <paracord/fit.h>
#include <paracord/keras.h>
#include <paracord/no_grad.h>

enum { SIZE = 8 };

static test_path root;

static pc_module *broken(double bias)
{
    pc_module *net = pc_sequential(pc_flatten(), pc_linear(SIZE * SIZE * 3, 3));
    PC_NO_GRAD {
        assert_ok(pc_fill(pc_module_parameter(net, "1.bias"), bias));
    }
    return net;
}

static void a_classifier_names_no_class(void **state)
{
    (void)state;
    const double values[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        test_path path = placed(root.s, "broken.h5");
        pc_module *net = broken(values[i]);
        pc_keras_options options = {.height = SIZE, .width = SIZE, .channels = 3, .head = PC_KERAS_SOFTMAX};
        assert_ok(pc_keras_save(path.s, net, options));
        pc_module_free(net);
        pc_classifier *c = pc_classifier_open(path.s, "cpu");
        assert_not_null_ok(c);
        pc_prediction p;
        pc_evaluation e;
        assert_fails(pc_classifier_predict(c, joined(root.s, "data/cat/a00.jpg").s, &p), PC_ERR_FORMAT, "not a number");
        assert_int_equal(p.label, -1);
        assert_null(p.name);
        assert_fails(pc_classifier_evaluate(c, joined(root.s, "data").s, 4, NULL, &e), PC_ERR_FORMAT, "not a number");
        assert_null(e.confusion);
        p = pc_classifier_decide(c, (float[]){0.25f, NAN, 0.75f});
        assert_int_equal(p.label, -1);
        assert_null(p.name);
        pc_classifier_free(c);
    }
}

static void measuring_finds_no_share_of_right_answers(void **state)
{
    (void)state;
    pc_module *net = broken(NAN);
    pc_loader *pictures = pc_loader(joined(root.s, "data").s, .size = SIZE, .batch = 4);
    assert_not_null_ok(pictures);
    pc_score score;
    assert_ok(pc_evaluate(net, pictures, &score));
    assert_true(isnan(score.loss));
    assert_true(isnan(score.accuracy));
    assert_int_equal(score.correct, 0);
    pc_loader_free(pictures);
    pc_module_free(net);
}

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    mkdir(joined(root.s, "data").s, 0777);
    put_classes(joined(root.s, "data").s, (const char *[]){"cat", "dog", "fox"}, 3, 3);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    assert_no_leak();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_classifier_names_no_class),
                                       cmocka_unit_test(measuring_finds_no_share_of_right_answers)};
    return cmocka_run_group_tests(tests, prepare, tidy);
}

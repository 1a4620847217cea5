/* Networks that Keras drew (tests/golden/keras_zoo.py): each answers as Keras does to 1e-5, and so does what is written
 * of it. `test.io.keras_zoo FOLDER` does the same with a folder of one's own, says how far off each is, and leaves what
 * it wrote there as NAME_again.h5, for `keras_zoo.py FOLDER --again`. */
#include <math.h>
#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

#define TOLERANCE 1e-5

static char written[512];

static pc_tensor *array(const char *folder, const char *name, const char *suffix)
{
    char file[512];
    snprintf(file, sizeof file, "%s/%.3s_%s.npy", folder, name, suffix);
    return pc_npy_load(file, test_device());
}

static pc_tensor *answer(pc_module *net, const char *folder, const char *name, const pc_keras_info *info)
{
    pc_tensor *x = pc_permute(array(folder, name, "x"), PC_SHAPE(0, 3, 1, 2));
    if (info->rescale != 0 && info->rescale != 1)
        x = pc_mul_scalar(x, info->rescale);
    pc_tensor *y = pc_forward(net, x);
    return info->head == PC_KERAS_SOFTMAX ? pc_softmax(y, 1) : info->head == PC_KERAS_SIGMOID ? pc_sigmoid(y) : y;
}

/* The largest difference from Keras's answers, in parts of the answers' size where that is above 1; -1: an error. */
static double difference(pc_module *net, const char *folder, const char *name, const pc_keras_info *info)
{
    double worst = -1;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *y = array(folder, name, "y"), *d = pc_sub(answer(net, folder, name, info), y);
            if (d)
                worst = sqrt(pc_item(pc_max(pc_mul(d, d)))) / fmax(1, sqrt(pc_item(pc_max(pc_mul(y, y)))));
        }
    }
    return worst;
}

/* Load, compare; write, load, compare. */
static double check(const char *folder, const char *name, bool print)
{
    char file[512];
    pc_keras_info info, again;
    snprintf(file, sizeof file, "%s/%s", folder, name);
    if (print)
        snprintf(written, sizeof written, "%.400s/%.3s_again.h5", folder, name);
    pc_module *net = pc_keras_load(file, &info);
    if (!net)
        return -1;
    double worst = difference(on_device(net), folder, name, &info);
    pc_keras_options options = {
        .height = info.height, .width = info.width, .channels = info.channels, .head = info.head};
    if (worst >= 0 && pc_keras_save(written, net, options) != PC_OK) {
        if (print)
            printf("not written: %s\n", pc_error_last()->message);
        bool expected = pc_error_last()->status == PC_ERR_UNSUPPORTED;
        pc_error_clear();
        pc_module_free(net);
        return expected ? worst : -1;
    }
    pc_module_free(net);
    net = worst >= 0 ? pc_keras_load(written, &again) : NULL;
    again.rescale = info.rescale;
    double second = net ? difference(on_device(net), folder, name, &again) : -1;
    pc_module_free(net);
    return second < 0 ? -1 : fmax(worst, second);
}

/* Every line of FOLDER/list; how many are right. */
static int check_all(const char *folder, bool print, int *count)
{
    char file[512], line[1024];
    int right = 0;
    *count = 0;
    snprintf(file, sizeof file, "%s/list", folder);
    FILE *list = fopen(file, "r");
    while (list && fgets(line, sizeof line, list)) {
        char *name = strtok(line, " \n"), *words = strtok(NULL, "\n");
        double worst = check(folder, name, print);
        bool good = worst >= 0 && worst <= TOLERANCE;
        if (print || !good)
            printf("%s %s %.2g %s %s\n", good ? "ok " : "BAD", name, worst, pc_failed() ? pc_error_last()->message : "",
                   words ? words : "");
        pc_error_clear();
        right += good;
        ++*count;
    }
    if (list)
        fclose(list);
    return right;
}

static void they_answer_as_keras_does(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    int count, right = check_all(PC_TEST_GOLDEN "/keras_zoo", false, &count);
    assert_true(count > 8);
    assert_int_equal(right, count);
}

/* Half the sum of the squares of what comes out. */
static pc_tensor *loss_of(pc_module *net, pc_tensor *x)
{
    pc_tensor *y = pc_forward(net, x);
    return pc_mul_scalar(pc_sum(pc_mul(y, y)), 0.5);
}

static double nudged(pc_module *net, pc_tensor *x, pc_tensor *weight, float by)
{
    double loss = NAN;
    PC_NO_GRAD {
        PC_SCOPE {
            assert_ok(pc_copy(weight, pc_add_scalar(weight, (double)by)));
            loss = pc_item(loss_of(net, x));
            assert_ok(pc_copy(weight, pc_sub_scalar(weight, (double)by)));
        }
    }
    return loss;
}

/* A separable convolution, and a convolution that is called twice: the gradient of each weight's sum is what moving all
 * of it by a little shows. */
static void they_have_gradients(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    pc_module *net = on_device(pc_keras_load(PC_TEST_GOLDEN "/keras_zoo/004.h5", NULL));
    pc_parameter list[32];
    int count = pc_module_parameter_list(net, list, 32);
    assert_true(count > 4 && count <= 32);
    pc_seed(3);
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(2, 3, 8, 8), PC_F32, test_device());
        assert_ok(pc_backward(loss_of(net, x)));
        for (int i = 0; i < count; i++) {
            double grad = pc_item(pc_sum(pc_grad(list[i].tensor))), by = 1e-2;
            double slope =
                (nudged(net, x, list[i].tensor, (float)by) - nudged(net, x, list[i].tensor, (float)-by)) / (2 * by);
            assert_close(slope, grad, 0.02 * fmax(1, fabs(grad)));
        }
    }
    pc_module_free(net);
}

static void batch_normalisation_is_not_trained_yet(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    pc_module *net = on_device(pc_keras_load(PC_TEST_GOLDEN "/keras_zoo/003.keras", NULL));
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 3, 7, 10), PC_F32, test_device());
        pc_module_set_training(net, true);
        assert_fails(pc_forward(net, x), PC_ERR_UNSUPPORTED, "BatchNormalization");
        pc_module_set_training(net, false);
        assert_ok(pc_backward(loss_of(net, x)));
    }
    pc_module_free(net);
}

static void what_is_not_supported_is_shown(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    static const char path[] = PC_TEST_GOLDEN "/keras_zoo/unknown.keras";
    static const char *const words[] = {"Conv2D first", "2 x 4 x 6", "Conv2DTranspose wider (not supported)",
                                        "3 x 6 x 8",    "57",        "Flatten flat",
                                        "144",          "290"};
    char *text, *json;
    assert_fails(pc_keras_load(path, NULL), PC_ERR_UNSUPPORTED, "layer 'wider' of class Conv2DTranspose");
    assert_ok(pc_model_layers(path, &text, &json));
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        if (!strstr(text, words[i]))
            fail_msg("no '%s' in:\n%s", words[i], text);
    assert_non_null(strstr(json, "\"supported\": false"));
    assert_non_null(strstr(json, "\"problem\": \"of class Conv2DTranspose is not supported\""));
    pc_text_free(text);
    pc_text_free(json);
    assert_fails(pc_model_layers("/nonexistent.keras", &text, &json), PC_ERR_FILE, "/nonexistent.keras");
}

static void models_refused_as_a_whole_are_shown(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    static const struct {
        const char *path, *why, *words[6];
    } models[] = {
        {PC_TEST_GOLDEN "/keras_zoo/two_inputs.h5",
         "two_inputs.h5: the model has 2 inputs (left, right); models of one input and one output are supported",
         {"Conv2D first", "2 x 4 x 6", "Flatten flat", "Dense beside", "Concatenate both", "106"}},
        {PC_TEST_GOLDEN "/keras_zoo/two_outputs.keras",
         "the model has 2 outputs (last, other); models of one input and one output are supported",
         {"Conv2D first", "2 x 4 x 6", "Flatten flat", "Dense last", "Dense other", "56"}},
        {PC_TEST_GOLDEN "/keras_zoo/volume.keras",
         "the model's input has 4 dimensions without the batch",
         {"Conv3D deep (not supported)", "Flatten flat", "Dense last",
          "deep (not supported)  ?                        ?", "34", "deep"}},
    };
    for (int m = 0; m < (int)(sizeof models / sizeof *models); m++) {
        char *text, *json;
        assert_fails(pc_keras_load(models[m].path, NULL), PC_ERR_UNSUPPORTED, models[m].why);
        assert_ok(pc_model_layers(models[m].path, &text, &json));
        for (int i = 0; i < 6; i++)
            if (!strstr(text, models[m].words[i]))
                fail_msg("no '%s' in:\n%s", models[m].words[i], text);
        assert_non_null(strstr(json, "\"supported\": false"));
        pc_text_free(text);
        pc_text_free(json);
    }
}

static void keras_files_are_not_written(void **state)
{
    (void)state;
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
    pc_module *net = pc_sequential(pc_flatten(), pc_linear(12, 2));
    pc_keras_options options = {.height = 2, .width = 2, .channels = 3};
    assert_fails(pc_keras_save("/tmp/x.keras", net, options), PC_ERR_UNSUPPORTED, "name it .h5");
    pc_module_free(net);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_answer_as_keras_does),
        cmocka_unit_test(they_have_gradients),
        cmocka_unit_test(batch_normalisation_is_not_trained_yet),
        cmocka_unit_test(what_is_not_supported_is_shown),
        cmocka_unit_test(models_refused_as_a_whole_are_shown),
        cmocka_unit_test(keras_files_are_not_written),
    };
    snprintf(written, sizeof written, "/tmp/paracord-keras-zoo-%d.h5", (int)getpid());
    int count, failed = 0;
    if (argc > 1) {
        int right = check_all(argv[1], true, &count);
        printf("%d of %d\n", right, count);
        failed = right != count;
    } else {
        failed = cmocka_run_group_tests_name("io.keras_zoo", tests, NULL, NULL);
        unlink(written);
    }
    return failed;
}

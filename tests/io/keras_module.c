/* Networks to Keras files and back: the same answers, the same optimiser state, and errors by name. */
#include <math.h>
#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "io/keras.h"
#include "nn/optimizer.h"

static char path[64];

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/paracord-keras-module-%d.h5", (int)getpid());
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path) != 0 && access(path, F_OK) == 0;
}

static void needs_keras(void)
{
#if !defined(PC_HAVE_HDF5) || !defined(PC_HAVE_CJSON)
    skip();
#endif
}

static pc_module *network(void)
{
    pc_seed(5);
    return on_device(pc_sequential(pc_conv2d(3, 6, 3, .stride = 2, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                   pc_conv2d(6, 5, 3, .padding = 1), pc_activation(PC_ACTIVATION_TANH), pc_flatten(),
                                   pc_dropout(0.25), pc_linear(5 * 3 * 3, 7, .activation = PC_ACTIVATION_SIGMOID),
                                   pc_linear(7, 1)));
}

static const pc_keras_options options = {.height = 14, .width = 14, .channels = 3, .head = PC_KERAS_SIGMOID};

static void train_a_step(pc_module *net, pc_optimizer *optimizer)
{
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(4, 3, 14, 14), PC_F32, test_device());
        pc_tensor *loss = pc_bce_with_logits(pc_forward(net, x), pc_ones(PC_SHAPE(4, 1), PC_F32, test_device()));
        assert_ok(pc_backward(loss));
        assert_ok(pc_optimizer_step(optimizer));
    }
}

/* Largest difference of the two networks' answers. */
static double difference(pc_module *a, pc_module *b)
{
    double most = 0;
    pc_module_set_training(a, false);
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(8, 3, 14, 14), PC_F32, test_device());
        pc_tensor *d = pc_sub(pc_forward(a, x), pc_forward(b, x));
        most = pc_item(pc_max(pc_mul(d, d)));
    }
    pc_module_set_training(a, true);
    return most;
}

static void a_network_comes_back_the_same(void **state)
{
    (void)state;
    needs_keras();
    pc_module *net = network();
    assert_ok(pc_keras_save(path, net, options));
    pc_keras_info info;
    pc_module *again = pc_keras_load(path, &info);
    on_device(again);
    assert_int_equal(info.height, 14);
    assert_int_equal(info.channels, 3);
    assert_int_equal(info.head, PC_KERAS_SIGMOID);
    assert_string_equal(info.optimizer, "");
    assert_false(pc_module_is_training(again));
    assert_true(difference(net, again) == 0);
    pc_module_free(again);
    pc_module_free(net);
}

/* Parameters of 16 bits are written as the float32 numbers that they are. */
static void other_dtypes_are_written_as_float32(void **state)
{
    (void)state;
    needs_keras();
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F64};
    for (int i = 0; i < 3; i++) {
        pc_module *net = network();
        assert_ok(pc_module_to(net, test_device(), dtypes[i]));
        assert_ok(pc_keras_save(path, net, options));
        pc_module *again = pc_keras_load(path, NULL);
        on_device(again);
        assert_ok(pc_module_to(net, test_device(), PC_F32));
        assert_true(difference(net, again) == 0);
        pc_module_free(again);
        pc_module_free(net);
    }
}

/* A loss scaler's steps are counted by the device. */
static void left_out_steps_do_not_count(void **state)
{
    (void)state;
    needs_keras();
    pc_module *net = network();
    pc_optimizer *first = pc_adam(net), *second;
    pc_scaler *scaler = pc_scaler(test_device());
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            pc_tensor *x = pc_full(PC_SHAPE(1, 3, 14, 14), i == 1 ? INFINITY : 0.5, PC_F32, test_device());
            assert_ok(pc_backward(pc_scaler_scale(scaler, pc_sum(pc_forward(net, x)))));
            assert_ok(pc_scaler_step(scaler, first));
            assert_ok(pc_scaler_update(scaler));
        }
    pc_keras_options with = options;
    with.optimizer = first;
    with.optimizer_state = true;
    assert_ok(pc_keras_save(path, net, with));
    second = pc_adam(net);
    assert_ok(pc_keras_load_optimizer(path, second));
    assert_int_equal(second->settings.step, 2);
    pc_scaler_free(scaler);
    pc_optimizer_free(first);
    pc_optimizer_free(second);
    pc_module_free(net);
}

static pc_tensor *golden(const char *name, const char *suffix)
{
    char file[256];
    snprintf(file, sizeof file, PC_TEST_GOLDEN "/%s_%s.npy", name, suffix);
    return pc_npy_load(file, test_device());
}

/* The answers that Keras gave (tests/golden/keras_answers.py). */
static void keras_models_answer_the_same(void **state)
{
    (void)state;
    needs_keras();
    static const char *const names[] = {"keras_same", "keras3_adam", "keras2_adam"};
    for (int i = 0; i < 3; i++) {
        char file[256];
        snprintf(file, sizeof file, PC_TEST_GOLDEN "/%s.h5", names[i]);
        pc_keras_info info;
        pc_module *net = on_device(pc_keras_load(file, &info));
        PC_SCOPE {
            pc_tensor *x = pc_permute(golden(names[i], "x"), PC_SHAPE(0, 3, 1, 2));
            pc_tensor *y = pc_forward(net, x);
            y = info.head == PC_KERAS_SOFTMAX ? pc_softmax(y, 1) : info.head == PC_KERAS_SIGMOID ? pc_sigmoid(y) : y;
            pc_tensor *d = pc_sub(y, golden(names[i], "y"));
            assert_not_null_ok(d);
            assert_close(sqrt(pc_item(pc_max(pc_mul(d, d)))), 0, 1e-5);
        }
        /* and a second writing changes nothing */
        pc_keras_options again = {
            .height = info.height, .width = info.width, .channels = info.channels, .head = info.head};
        assert_ok(pc_keras_save(path, net, again));
        pc_module *copy = on_device(pc_keras_load(path, NULL));
        PC_SCOPE {
            pc_tensor *x = pc_permute(golden(names[i], "x"), PC_SHAPE(0, 3, 1, 2));
            assert_true(pc_item(pc_sum(pc_ne(pc_forward(net, x), pc_forward(copy, x)))) == 0);
        }
        pc_module_free(copy);
        pc_module_free(net);
    }
}

static void compare_states(const pc_optimizer *a, const pc_optimizer *b, double tolerance)
{
    assert_int_equal(a->settings.step, b->settings.step);
    assert_true(a->settings.lr == b->settings.lr);
    for (int i = 0; i < a->count * a->slots; i++)
        PC_SCOPE {
            double most = pc_item(pc_max(pc_abs(a->state[i])));
            assert_close(pc_item(pc_max(pc_abs(pc_sub(a->state[i], b->state[i])))), 0, tolerance * most);
        }
}

static void optimiser_state_comes_back(void **state)
{
    (void)state;
    needs_keras();
    for (int kind = 0; kind < 2; kind++) {
        pc_module *net = network();
        pc_optimizer *first = kind ? pc_sgd(net, .lr = 0.05, .momentum = 0.9) : pc_adam(net, .lr = 0.002);
        for (int i = 0; i < 3; i++)
            train_a_step(net, first);
        pc_keras_options with = options;
        with.optimizer = first;
        with.optimizer_state = true;
        assert_ok(pc_keras_save(path, net, with));
        pc_keras_info info;
        pc_module *again = pc_keras_load(path, &info);
        on_device(again);
        assert_string_equal(info.optimizer, kind ? "SGD" : "Adam");
        assert_close(info.lr, kind ? 0.05 : 0.002, 1e-9);
        pc_optimizer *second = kind ? pc_sgd(again, .momentum = 0.9) : pc_adam(again);
        pc_optimizer *other = kind ? pc_adam(again) : pc_sgd(again, .momentum = 0.9);
        assert_ok(pc_keras_load_optimizer(path, second));
        compare_states(first, second, kind ? 1e-6 : 0);
        assert_fails(pc_keras_load_optimizer(path, other), PC_ERR_STATE, kind ? "SGD" : "Adam");
        with.optimizer_state = false;
        assert_ok(pc_keras_save(path, net, with));
        assert_fails(pc_keras_load_optimizer(path, second), PC_ERR_NOT_FOUND, "no optimiser state");
        pc_optimizer_free(first);
        pc_optimizer_free(second);
        pc_optimizer_free(other);
        pc_module_free(again);
        pc_module_free(net);
    }
}

static int slots_of(const pc__keras_layer *layer)
{
    int slots = 0;
    for (int i = 0; i < layer->weight_count; i++)
        slots += layer->weights[i].slot[0] != NULL;
    return slots;
}

/* The first convolution is not trained, there and back. */
static void frozen_layers_stay_frozen(void **state)
{
    (void)state;
    needs_keras();
    pc_module *net = network();
    assert_ok(pc_module_freeze(net, "0.*"));
    pc_optimizer *first = pc_adam(net, .lr = 0.002);
    for (int i = 0; i < 2; i++)
        train_a_step(net, first);
    pc_keras_options with = options;
    with.optimizer = first;
    with.optimizer_state = true;
    assert_ok(pc_keras_save(path, net, with));
    pc__keras_model model;
    assert_ok(pc__keras_read(path, &model));
    assert_true(model.layers[0].frozen && model.training.has_state);
    assert_int_equal(slots_of(&model.layers[0]), 0);
    for (int l = 1; l < model.layer_count; l++) {
        assert_false(model.layers[l].frozen);
        assert_int_equal(slots_of(&model.layers[l]), model.layers[l].weight_count);
    }
    pc__keras_free(&model);
    pc_module *again = on_device(pc_keras_load(path, NULL));
    assert_false(pc_requires_grad(pc_module_parameter(again, "0.weight")));
    assert_false(pc_requires_grad(pc_module_parameter(again, "0.bias")));
    assert_true(pc_requires_grad(pc_module_parameter(again, "2.weight")));
    pc_optimizer *second = pc_adam(again);
    assert_ok(pc_keras_load_optimizer(path, second));
    compare_states(first, second, 0);
    pc_optimizer_free(second);
    pc_module_free(again);
    pc_optimizer_free(first);
    pc_module_free(net);
}

/* A file of Keras: its convolution has trainable=False, its dense layer a velocity (tests/golden/keras_files.py). */
static void a_frozen_layer_of_keras(void **state)
{
    (void)state;
    needs_keras();
    static const char *const file = PC_TEST_GOLDEN "/keras3_chain.h5";
    pc_module *net = pc_keras_load(file, NULL);
    assert_not_null_ok(net);
    pc_parameter list[4];
    assert_int_equal(pc_module_parameter_list(net, list, 4), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pc_requires_grad(list[i].tensor), i > 0);
    pc_optimizer *sgd = pc_sgd(net, .momentum = 0.9, .nesterov = true);
    assert_ok(pc_keras_load_optimizer(file, sgd));
    assert_int_equal(sgd->settings.step, 7);
    PC_SCOPE {
        assert_true(pc_item(pc_max(pc_abs(sgd->state[0]))) == 0);
        for (int i = 1; i < 3; i++) { /* 0.1, the rate, of what the file has: at most 31/64, 0.5 */
            double most = pc_item(pc_max(pc_abs(sgd->state[i])));
            assert_true(most > 0 && most <= 5);
        }
    }
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

/* Two inputs, one output, one step of the mean of their squares: what Keras 3.15.1 gave for the weights 1 and 2 with
 * SGD(0.1, momentum=0.9). */
static const struct keras_sgd {
    bool nesterov;
    float first[2], velocity[2], second[2];
} keras_sgd[] = {{false, {0.9F, 1.8F}, {-0.1F, -0.2F}, {0.71999997F, 1.43999994F}},
                 {true, {0.81F, 1.62F}, {-0.1F, -0.2F}, {0.57510000F, 1.15020001F}}};

static const pc_keras_options two_inputs = {.height = 1, .width = 2, .channels = 1, .optimizer_state = true};

static void mean_square_step(pc_module *net, pc_optimizer *optimizer)
{
    static const float eye[] = {1, 0, 0, 1};
    pc_module_set_training(net, true);
    PC_SCOPE {
        pc_tensor *y = pc_forward(net, pc_from_data(eye, PC_SHAPE(2, 1, 1, 2), PC_F32, test_device()));
        assert_ok(pc_backward(pc_mean(pc_mul(y, y))));
        assert_ok(pc_optimizer_step(optimizer));
    }
}

static void assert_two(pc_module *net, const float want[2])
{
    float has[2];
    assert_ok(pc_read(pc_module_parameter(net, "1.weight"), has, sizeof has));
    for (int i = 0; i < 2; i++)
        assert_close(has[i], want[i], 1e-6);
}

static pc_module *two_weights(const float values[2])
{
    pc_module *net = pc_sequential(pc_flatten(), pc_linear(2, 1, .no_bias = true));
    memcpy(pc_data(pc_module_parameter(net, "1.weight")), values, 2 * sizeof *values);
    return on_device(net);
}

static pc_optimizer *sgd_of(pc_module *net, bool nesterov, double rate)
{
    return pc_sgd(net, .lr = rate, .momentum = 0.9, .nesterov = nesterov);
}

static void momentum_is_written_as_keras_keeps_it(void **state)
{
    (void)state;
    needs_keras();
    static const float start[] = {1, 2};
    for (int i = 0; i < 2; i++) {
        pc_module *net = two_weights(start);
        pc_optimizer *sgd = sgd_of(net, keras_sgd[i].nesterov, 0.1);
        mean_square_step(net, sgd);
        assert_two(net, keras_sgd[i].first);
        pc_keras_options with = two_inputs;
        with.optimizer = sgd;
        assert_ok(pc_keras_save(path, net, with));
        pc__keras_model model;
        assert_ok(pc__keras_read(path, &model));
        for (int k = 0; k < 2; k++)
            assert_close(model.layers[1].weights[0].slot[0][k], keras_sgd[i].velocity[k], 1e-6);
        pc__keras_free(&model);
        sgd->settings.lr = 0;
        assert_fails(pc_keras_save(path, net, with), PC_ERR_UNSUPPORTED, "learning rate, which is 0");
        pc_optimizer_free(sgd);
        pc_module_free(net);
    }
}

/* The file of Keras's first step, and its second step done here. */
static void momentum_of_keras_goes_on_the_same(void **state)
{
    (void)state;
    needs_keras();
    for (int i = 0; i < 2; i++) {
        pc_module *net = two_weights(keras_sgd[i].first);
        pc_optimizer *sgd = sgd_of(net, keras_sgd[i].nesterov, 0.1);
        pc_keras_options with = two_inputs;
        with.optimizer = sgd;
        assert_ok(pc_keras_save(path, net, with));
        pc__keras_model model;
        assert_ok(pc__keras_read(path, &model));
        model.training.iterations = 1;
        memcpy(model.layers[1].weights[0].slot[0], keras_sgd[i].velocity, sizeof keras_sgd[i].velocity);
        assert_ok(pc__keras_write(path, &model));
        pc__keras_free(&model);
        pc_module *again = on_device(pc_keras_load(path, NULL));
        pc_optimizer *onward = sgd_of(again, keras_sgd[i].nesterov, 0.5);
        assert_ok(pc_keras_load_optimizer(path, onward));
        mean_square_step(again, onward);
        assert_two(again, keras_sgd[i].second);
        pc_optimizer_free(onward);
        pc_module_free(again);
        pc_optimizer_free(sgd);
        pc_module_free(net);
    }
}

static pc_tensor *forward_itself(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_add_scalar(x, 1);
}

static void what_keras_has_not_is_named(void **state)
{
    (void)state;
    needs_keras();
    static const pc_module_class own = {.name = "PlusOne", .forward = forward_itself};
    pc_module *net = pc_sequential(pc_flatten(), pc_module_new(&own, 0), pc_linear(3 * 14 * 14, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "PlusOne");
    pc_module_free(net);
    net = pc_sequential(pc_conv2d(3, 2, 5, .padding = 1), pc_flatten(), pc_linear(2 * 12 * 12, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "padding");
    assert_fails(pc_keras_save(path, net, (pc_keras_options){0}), PC_ERR_ARGUMENT, "height 0");
    pc_module_free(net);
    net = pc_sequential(pc_conv2d(3, 14, 3, .same = true), pc_linear(14, 2)); /* whichever axis it is, it fits */
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED,
                 "a Linear layer of 14 inputs that takes a picture");
    pc_module_free(net);
    net = pc_sequential(pc_linear(14, 2), pc_flatten(), pc_linear(3 * 14 * 2, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "Keras's Dense along the channels");
    pc_module_free(net);
    net = pc_sequential(pc_max_pool2d(5, .ceil_mode = true), pc_flatten(), pc_linear(3 * 3 * 3, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "ceil_mode");
    pc_module_free(net);
    net = pc_sequential(pc_adaptive_avg_pool2d(1, 1), pc_flatten(), pc_linear(3, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "AdaptiveAvgPool2d");
    pc_module_free(net);
    net = pc_sequential(pc_conv2d(3, 6, 3, .groups = 3), pc_flatten(), pc_linear(6 * 12 * 12, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "groups or a dilation");
    pc_module_free(net);
    net = pc_sequential(pc_conv_transpose2d(3, 2, 3), pc_flatten(), pc_linear(2 * 16 * 16, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "ConvTranspose2d");
    pc_module_free(net);
    net = pc_sequential(pc_conv2d(3, 2, 3, .activation = PC_ACTIVATION_GELU_TANH), pc_flatten(),
                        pc_linear(2 * 12 * 12, 1));
    assert_fails(pc_keras_save(path, net, options), PC_ERR_UNSUPPORTED, "a Conv2D layer has an activation that Keras");
    pc_module_free(net);
    assert_fails(pc_keras_load("/nonexistent.h5", NULL), PC_ERR_FILE, "/nonexistent.h5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_comes_back_the_same),
        cmocka_unit_test(other_dtypes_are_written_as_float32),
        cmocka_unit_test(left_out_steps_do_not_count),
        cmocka_unit_test(keras_models_answer_the_same),
        cmocka_unit_test(optimiser_state_comes_back),
        cmocka_unit_test(what_keras_has_not_is_named),
        cmocka_unit_test(frozen_layers_stay_frozen),
        cmocka_unit_test(a_frozen_layer_of_keras),
        cmocka_unit_test(momentum_is_written_as_keras_keeps_it),
        cmocka_unit_test(momentum_of_keras_goes_on_the_same),
    };
    return cmocka_run_group_tests_name("io.keras_module", tests, make_path, remove_path);
}

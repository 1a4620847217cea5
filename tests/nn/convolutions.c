/* Layers of convolutions with dilation, groups and same padding: what they compute, train and refuse. */
#include "nn/networks.h"

#include <paracord/random.h>
#include <paracord/step.h>

static pc_tensor *picture(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return pc_randn(PC_SHAPE(n, c, h, w), PC_F32, test_device());
}

static double difference(pc_tensor *a, pc_tensor *b)
{
    return pc_item(pc_max(pc_abs(pc_sub(a, b))));
}

/* The layer's result is the op's of its parameters. */
static void assert_layer(pc_module *layer, pc_tensor *x, pc_shape weight, pc_fn_conv2d_options options)
{
    assert_ok(pc_module_to(layer, test_device(), PC_F32));
    PC_SCOPE {
        pc_tensor *w = pc_module_parameter(layer, "weight"), *b = pc_module_parameter(layer, "bias");
        assert_int_equal(pc_tensor_ndim(w), weight.ndim);
        for (int i = 0; i < weight.ndim; i++)
            assert_int_equal(pc_tensor_size(w, i), weight.dim[i]);
        assert_true(difference(pc_forward(layer, x), pc_fn_conv2d(x, w, b, options)) < 1e-6);
    }
    pc_module_free(layer);
}

static void as_the_op(void **state)
{
    (void)state;
    pc_seed(2);
    PC_SCOPE {
        pc_tensor *x = picture(2, 4, 9, 8);
        assert_layer(pc_conv2d(4, 6, 3, .groups = 2, .padding = 1), x, PC_SHAPE(6, 2, 3, 3),
                     (pc_fn_conv2d_options){.groups = 2, .padding = {1, 1}});
        assert_layer(pc_conv2d(4, 6, 3, .dilation = 2), x, PC_SHAPE(6, 4, 3, 3),
                     (pc_fn_conv2d_options){.dilation = {2, 2}});
        assert_layer(pc_conv2d(4, 4, 3, .groups = 4, .kernel_size = {3, 2}, .strides = {2, 1}, .paddings = {0, 1},
                               .dilations = {1, 3}, .activation = PC_ACTIVATION_RELU),
                     x, PC_SHAPE(4, 1, 3, 2),
                     (pc_fn_conv2d_options){.groups = 4,
                                            .stride = {2, 1},
                                            .padding = {0, 1},
                                            .dilation = {1, 3},
                                            .activation = PC_ACTIVATION_RELU});
        for (int even = 0; even < 2; even++)
            assert_layer(pc_conv2d(4, 3, 3 + even, .same = true, .dilation = 3), x, PC_SHAPE(3, 4, 3 + even, 3 + even),
                         (pc_fn_conv2d_options){.same = true, .dilation = {3, 3}});
    }
    assert_no_leak();
}

static void led_back(void **state)
{
    (void)state;
    pc_seed(3);
    PC_SCOPE {
        pc_module *layer = pc_conv_transpose2d(4, 6, 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2,
                                               .activation = PC_ACTIVATION_TANH);
        assert_ok(pc_module_to(layer, test_device(), PC_F32));
        pc_tensor *x = picture(2, 4, 5, 6), *w = pc_module_parameter(layer, "weight");
        pc_tensor *b = pc_module_parameter(layer, "bias"), *y = pc_forward(layer, x);
        assert_true(pc_tensor_size(w, 0) == 4 && pc_tensor_size(w, 1) == 3 && pc_tensor_size(b, 0) == 6);
        assert_true(pc_tensor_size(y, 2) == 10 && pc_tensor_size(y, 3) == 12);
        const pc_fn_conv_transpose2d_options options = {
            .stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}, .groups = 2};
        assert_true(difference(y, pc_tanh(pc_fn_conv_transpose2d(x, w, b, options))) < 1e-6);
        assert_fails(pc_forward(layer, pc_sum_dims(x, PC_SHAPE(0), false)), PC_ERR_SHAPE, "[n, 4, h, w]");
        pc_module_free(layer);
    }
    assert_no_leak();
}

static void along_a_line(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_module *layer = pc_conv1d(4, 6, 4, .same = true, .dilation = 3, .activation = PC_ACTIVATION_RELU);
        assert_ok(pc_module_to(layer, test_device(), PC_F32));
        pc_tensor *x = pc_randn(PC_SHAPE(2, 4, 15), PC_F32, test_device()), *y = pc_forward(layer, x);
        assert_int_equal(pc_tensor_size(y, 2), 15);
        const pc_fn_conv1d_options options = {.same = true, .dilation = 3};
        assert_true(difference(y, pc_relu(pc_fn_conv1d(x, pc_module_parameter(layer, "weight"),
                                                       pc_module_parameter(layer, "bias"), options))) < 1e-6);
        pc_module_free(layer);
    }
    assert_no_leak();
}

static void refused(void **state)
{
    (void)state;
    assert_fails(pc_conv2d(4, 6, 3, .groups = 4), PC_ERR_ARGUMENT, "4 groups do not divide 4 channels in and 6 out");
    assert_fails(pc_conv2d(4, 6, 3, .groups = -2), PC_ERR_ARGUMENT, "-2 groups");
    assert_fails(pc_conv2d(4, 6, 3, .dilation = -1), PC_ERR_ARGUMENT, "dilation -1");
    assert_fails(pc_conv2d(4, 6, 3, .dilation = 2000), PC_ERR_ARGUMENT, "make no layer");
    assert_fails(pc_conv2d(4, 6, 3, .kernel_size = {3, 0}), PC_ERR_ARGUMENT, "make no layer");
    assert_fails(pc_conv2d(4, 6, 3, .same = true, .stride = 2), PC_ERR_ARGUMENT, "same padding needs stride 1");
    assert_fails(pc_conv2d(4, 6, 3, .same = true, .padding = 2), PC_ERR_ARGUMENT, "padding 2");
    assert_fails(pc_conv_transpose2d(4, 6, 3, .output_padding = 1), PC_ERR_ARGUMENT, "output padding 1");
    assert_fails(pc_conv_transpose2d(4, 6, 3, .groups = 4), PC_ERR_ARGUMENT, "4 groups");
    assert_fails(pc_conv_transpose2d(4, 6, 0), PC_ERR_ARGUMENT, "make no layer");
    assert_fails(pc_conv1d(4, 6, 3, .groups = 4), PC_ERR_ARGUMENT, "4 groups");
    assert_fails(pc_conv1d(4, 6, 3, .stride = -1), PC_ERR_ARGUMENT, "make no layer");
    assert_fails(pc_conv1d(4, 6, 3, .dilation = -1), PC_ERR_ARGUMENT, "dilation -1");
    assert_fails(pc_conv1d(4, 6, 3, .same = true, .stride = 3), PC_ERR_ARGUMENT, "stride 3");
    assert_no_leak();
}

typedef struct training {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x, *y, *loss;
} training;

static pc_status learn(void *context)
{
    training *t = context;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_mse(pc_forward(t->net, t->x), t->y);
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(t->optimizer);
        PC_NO_GRAD {
            status = status == PC_OK ? pc_copy(t->loss, loss) : status;
        }
    }
    return status;
}

/* A small network of the kind that phones have, recorded and not, has the same numbers in every step. */
static void learns(void **state)
{
    (void)state;
    double last[2] = {0}, first = 0;
    for (int recorded = 0; recorded < 2; recorded++) {
        pc_seed(4);
        pc_module *net = pc_sequential(
            pc_conv2d(3, 8, 3, .stride = 2, .padding = 1, .activation = PC_ACTIVATION_RELU),
            pc_conv2d(8, 8, 3, .groups = 8, .padding = 1), pc_batch_norm2d(8), pc_activation(PC_ACTIVATION_RELU),
            pc_conv2d(8, 16, 1), pc_conv2d(16, 16, 3, .dilation = 2, .same = true, .activation = PC_ACTIVATION_SILU),
            pc_conv2d(16, 8, 3, .groups = 4, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
            pc_linear(32, 1));
        training t = {.net = on_device(net), .optimizer = pc_adam(net, .lr = 1e-2)};
        PC_SCOPE {
            t.x = picture(4, 3, 12, 12), t.y = pc_randn(PC_SHAPE(4, 1), PC_F32, test_device());
            t.loss = pc_zeros(PC_SHAPE(), PC_F32, test_device());
            pc_step *recording = recorded ? pc_step_new(learn, &t, t.optimizer) : NULL;
            for (int i = 0; i < 12; i++) {
                assert_ok(recorded ? pc_step_run(recording) : learn(&t));
                last[recorded] = pc_item(t.loss);
                first = i ? first : last[recorded];
            }
            assert_true(!recorded || !pc_step_why(recording));
            assert_true(last[recorded] < first / 2);
            pc_step_free(recording);
        }
        pc_optimizer_free(t.optimizer);
        pc_module_free(net);
    }
    assert_true(last[0] == last[1]);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_op), cmocka_unit_test(led_back),
                                          cmocka_unit_test(along_a_line), cmocka_unit_test(refused),
                                          cmocka_unit_test(learns)};

int main(void)
{
    return cmocka_run_group_tests_name("nn.convolutions", tests, NULL, NULL);
}

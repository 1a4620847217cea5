/* The layers that normalise: parameters, buffers, modes, steps. */
#include "device.h"

#include <math.h>
#include <paracord.h>

static void layers_are_told_as_pytorch_tells_them(void **state)
{
    (void)state;
    pc_module *net = pc_sequential(
        pc_layer_norm(PC_SHAPE(3)), pc_layer_norm(PC_SHAPE(3, 4), .eps = 0.5, .no_bias = true),
        pc_layer_norm(PC_SHAPE(3), .no_affine = true), pc_rms_norm(PC_SHAPE(4)), pc_rms_norm(PC_SHAPE(4), .eps = 1e-6),
        pc_group_norm(2, 4), pc_batch_norm2d(3), pc_batch_norm1d(5, .no_affine = true, .no_running = true),
        pc_batch_norm2d(3, .cumulative = true, .no_bias = true));
    assert_not_null_ok(net);
    char *text = pc_module_text(net);
    assert_string_equal(
        text, "Sequential(\n"
              "  (0): LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)\n"
              "  (1): LayerNorm((3, 4), eps=0.5, elementwise_affine=True, bias=False)\n"
              "  (2): LayerNorm((3,), eps=1e-05, elementwise_affine=False, bias=False)\n"
              "  (3): RMSNorm((4,), eps=None, elementwise_affine=True)\n"
              "  (4): RMSNorm((4,), eps=1e-06, elementwise_affine=True)\n"
              "  (5): GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)\n"
              "  (6): BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
              "  (7): BatchNorm1d(5, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)\n"
              "  (8): BatchNorm2d(3, eps=1e-05, momentum=None, affine=True, bias=False, track_running_stats=True)\n"
              ")");
    pc_text_free(text);
    pc_module_free(net);
    assert_no_leak();
}

static void buffers_are_in_the_state_dict(void **state)
{
    (void)state;
    pc_module *net = pc_sequential(pc_linear(2, 3), pc_batch_norm1d(3), pc_layer_norm(PC_SHAPE(3)));
    static const char *const names[] = {
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked",
        "2.weight", "2.bias"};
    pc_parameter list[9];
    assert_int_equal(pc_module_state_list(net, list, 9), 9);
    for (int i = 0; i < 9; i++)
        assert_string_equal(list[i].name, names[i]);
    assert_int_equal(pc_module_parameter_list(net, NULL, 0), 6);
    assert_ptr_equal(pc_module_buffer(net, "1.running_var"), list[5].tensor);
    assert_fails(pc_module_buffer(net, "1.weight"), PC_ERR_NOT_FOUND, "no buffer named \"1.weight\"");
    assert_fails(pc_module_parameter(net, "1.running_mean"), PC_ERR_NOT_FOUND, "no parameter");
    assert_fails(pc_module_load(net, list, 8), PC_ERR_NOT_FOUND, "2.bias");
    PC_SCOPE {
        list[4].tensor = pc_full(PC_SHAPE(3), 7, PC_F64, PC_DEVICE_CPU);
        list[6].tensor = pc_full(PC_SHAPE_SCALAR, 5, PC_I32, PC_DEVICE_CPU);
        assert_ok(pc_module_load(net, list, 9));
        assert_close(pc_item(pc_sum(pc_module_buffer(net, "1.running_mean"))), 21, 0);
        assert_close(pc_item(pc_module_buffer(net, "1.num_batches_tracked")), 5, 0);
        assert_fails(pc_module_add_buffer(pc_module_child(net, 1), "weight", list[4].tensor), PC_ERR_ARGUMENT,
                     "already");
        assert_fails(pc_module_add_parameter(pc_module_child(net, 1), "running_mean", list[4].tensor), PC_ERR_ARGUMENT,
                     "already");
    }
    assert_ok(pc_module_to(net, test_device(), PC_BF16));
    assert_int_equal(pc_tensor_dtype(pc_module_buffer(net, "1.running_mean")), PC_BF16);
    assert_int_equal(pc_tensor_dtype(pc_module_buffer(net, "1.num_batches_tracked")), PC_I64);
    assert_true(pc_device_equal(pc_tensor_device(pc_module_buffer(net, "1.num_batches_tracked")), test_device()));
    pc_module_free(net);
    assert_no_leak();
}

static pc_tensor *pictures(double scale, double shift)
{
    float x[24];
    for (int i = 0; i < 24; i++)
        x[i] = (float)((i * 7 % 13 - 6) / 2.0 * scale + shift);
    return pc_from_data(x, PC_SHAPE(2, 3, 2, 2), PC_F32, test_device());
}

static void assert_values(const pc_tensor *t, const double *wanted, int count)
{
    float got[8];
    assert_ok(pc_read(t, got, (size_t)count * sizeof *got));
    for (int i = 0; i < count; i++)
        assert_close((double)got[i], wanted[i], 1e-5 * (1 + fabs(wanted[i])));
}

/* Figures of PyTorch's, of the same three batches. */
static void running_statistics_run(void **state)
{
    (void)state;
    static const double mean[2][3] = {{-0.840375, 0.626625, 2.093625}, {-1.25, 0.75, 2.75}},
                        var[2] = {11.864876, 14.583333};
    static const double first[] = {-0.62697, 0.38913, -0.481813, 0.534287, -0.762546, 0.253553};
    for (int k = 0; k < 2; k++) {
        pc_module *m = on_device(k ? pc_batch_norm2d(3, .cumulative = true) : pc_batch_norm2d(3, .momentum = 0.3));
        PC_SCOPE {
            for (int i = 0; i < 3; i++)
                assert_not_null_ok(pc_forward(m, pictures(i + 1, i)));
            assert_values(pc_module_buffer(m, "running_mean"), mean[k], 3);
            assert_values(pc_module_buffer(m, "running_var"), (const double[]){var[k], var[k], var[k]}, 3);
            assert_close(pc_item(pc_module_buffer(m, "num_batches_tracked")), 3, 0);
            pc_module_set_training(m, false);
            pc_tensor *y = pc_forward(m, pictures(1, 0));
            if (k == 0)
                assert_values(pc_contiguous(pc_slice(pc_reshape(y, PC_SHAPE(24)), 0, 0, 6, 1)), first, 6);
            assert_close(pc_item(pc_module_buffer(m, "num_batches_tracked")), 3, 0);
            pc_module_set_training(m, true);
            assert_not_null_ok(pc_forward(m, pc_zeros(PC_SHAPE(0, 3, 2, 2), PC_F32, test_device())));
            assert_values(pc_module_buffer(m, "running_mean"), mean[k], 3);
            assert_close(pc_item(pc_module_buffer(m, "num_batches_tracked")), 4, 0);
        }
        pc_module_free(m);
    }
    assert_no_leak();
}

static void bad_layers(void **state)
{
    (void)state;
    assert_fails(pc_layer_norm(PC_SHAPE_SCALAR), PC_ERR_ARGUMENT, "layer_norm");
    assert_fails(pc_rms_norm(PC_SHAPE(0)), PC_ERR_ARGUMENT, "rms_norm");
    assert_fails(pc_layer_norm(PC_SHAPE(3), .eps = -1), PC_ERR_ARGUMENT, "epsilon -1");
    assert_fails(pc_group_norm(3, 4), PC_ERR_ARGUMENT, "3 groups of 4 channels");
    assert_fails(pc_batch_norm2d(0), PC_ERR_ARGUMENT, "0 channels");
    assert_fails(pc_batch_norm1d(3, .momentum = 2), PC_ERR_ARGUMENT, "momentum 2");
    pc_module *two = on_device(pc_batch_norm2d(3)), *one = on_device(pc_batch_norm1d(3)),
              *group = on_device(pc_group_norm(3, 3));
    PC_SCOPE {
        pc_tensor *flat = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *four = pc_zeros(PC_SHAPE(2, 4, 1, 2), PC_F32, test_device());
        assert_fails(pc_forward(two, flat), PC_ERR_SHAPE, "it must be [n, 3, h, w]");
        assert_fails(pc_forward(one, four), PC_ERR_SHAPE, "it must be [n, 3] or with a length");
        assert_fails(pc_forward(group, four), PC_ERR_SHAPE, "it must be [n, 3, ...]");
    }
    pc_module_free(one);
    pc_module_free(two);
    pc_module_free(group);
    assert_no_leak();
}

typedef struct job {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *labels;
} job;

static job start(void)
{
    pc_seed(5);
    job j = {.net = on_device(pc_sequential(pc_conv2d(3, 4, 1), pc_batch_norm2d(4), pc_activation(PC_ACTIVATION_RELU),
                                            pc_group_norm(2, 4), pc_flatten(), pc_layer_norm(PC_SHAPE(16)),
                                            pc_linear(16, 8), pc_batch_norm1d(8, .cumulative = true),
                                            pc_rms_norm(PC_SHAPE(8)), pc_linear(8, 3)))};
    j.adam = pc_adam(j.net, .lr = 1e-2);
    j.x = pictures(1, 0);
    j.labels = pc_from_data((int64_t[]){1, 2}, PC_SHAPE(2), PC_I64, test_device());
    assert_not_null_ok(j.adam);
    return j;
}

static pc_status learn(void *user)
{
    const job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_cross_entropy(pc_forward(j->net, j->x), j->labels));
        if (status == PC_OK)
            status = pc_optimizer_step(j->adam);
    }
    return status;
}

/* Running statistics are changed by each launch of a recorded step, as by plain calls. */
static void recorded_steps_have_the_bits_of_calls(void **state)
{
    (void)state;
    PC_SCOPE {
        job plain = start(), recorded = start();
        pc_step *step = pc_step_new(learn, &recorded, recorded.adam);
        for (int i = 0; i < 4; i++)
            PC_SCOPE {
                pc_tensor *x = pictures(i + 1, i);
                assert_ok(pc_copy(plain.x, x));
                assert_ok(pc_copy(recorded.x, x));
                assert_ok(learn(&plain));
                assert_ok(pc_step_run(step));
            }
        assert_null(pc_step_why(step));
        pc_parameter a[32], b[32];
        const int n = pc_module_state_list(plain.net, a, 32);
        assert_int_equal(pc_module_state_list(recorded.net, b, 32), n);
        for (int i = 0; i < n; i++)
            if (pc_item(pc_sum(pc_cast(pc_ne(a[i].tensor, b[i].tensor), PC_F32))) != 0)
                fail_msg("%s differs", a[i].name);
        assert_close(pc_item(pc_module_buffer(recorded.net, "1.num_batches_tracked")), 4, 0);
        pc_step_free(step);
        for (int i = 0; i < 2; i++) {
            pc_optimizer_free(i ? plain.adam : recorded.adam);
            pc_module_free(i ? plain.net : recorded.net);
        }
    }
    assert_no_leak();
}

/* Products in 16 bits, statistics and parameters in float32. */
static void mixed_precision(void **state)
{
    (void)state;
    job j = {0};
    PC_SCOPE {
        j = start();
        PC_AUTOCAST(PC_BF16) {
            pc_tensor *y = pc_forward(pc_module_child(j.net, 0), j.x);
            assert_int_equal(pc_tensor_dtype(y), PC_BF16);
            y = pc_forward(pc_module_child(j.net, 1), y);
            assert_int_equal(pc_tensor_dtype(y), PC_BF16);
            assert_int_equal(pc_tensor_dtype(pc_forward(pc_module_child(j.net, 3), y)), PC_F32);
            assert_ok(learn(&j));
        }
        assert_int_equal(pc_tensor_dtype(pc_module_buffer(j.net, "1.running_mean")), PC_F32);
    }
    pc_optimizer_free(j.adam);
    pc_module_free(j.net);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_told_as_pytorch_tells_them),
        cmocka_unit_test(buffers_are_in_the_state_dict),
        cmocka_unit_test(running_statistics_run),
        cmocka_unit_test(bad_layers),
        cmocka_unit_test(recorded_steps_have_the_bits_of_calls),
        cmocka_unit_test(mixed_precision),
    };
    return cmocka_run_group_tests_name("nn.norm", tests, NULL, NULL);
}

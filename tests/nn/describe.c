/* The table of a forward pass: layers, shapes, parameters, operations, memory. */
#include "nn/networks.h"

#include <paracord/module.h>
#include <paracord/ops.h>

static void assert_told(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in\n%s", words, text);
}

static void a_table_of_layers(void **state)
{
    (void)state;
    pc_module *net = on_device(
        pc_sequential(pc_conv2d(3, 32, 3, .padding = 1), pc_batch_norm2d(32), pc_activation(PC_ACTIVATION_RELU),
                      pc_residual(pc_sequential(pc_conv2d(32, 32, 3, .padding = 1), pc_batch_norm2d(32)),
                                  .activation = PC_ACTIVATION_RELU),
                      pc_max_pool2d(2), pc_flatten(), pc_linear(32 * 256, 10)));
    assert_ok(pc_module_freeze(net, "0.*"));
    const int64_t before = test_memory().peak;
    char *text = pc_module_describe(net, PC_SHAPE(8, 3, 32, 32));
    assert_not_null_ok(text);
    assert_told(text, "layer                output                  parameters      FLOP    memory\n"
                      "Sequential           [8, 10]\n"
                      "  0 Conv2d           [8, 32, 32, 32]         896 frozen    14.2 M  ");
    assert_told(text, "\n  1 BatchNorm2d      [8, 32, 32, 32]                 64            1.00 MiB\n"
                      "  2 ReLU             [8, 32, 32, 32]                               1.00 MiB\n");
    assert_told(text, "\n    body Sequential  [8, 32, 32, 32]\n"
                      "      0 Conv2d       [8, 32, 32, 32]              9,248     151 M  1.00 MiB\n");
    assert_told(text, "\n  6 Linear           [8, 10]                     81,930    1.31 M     320 B\n"
                      "\nparameters: 92,202 (360 KiB), of which 896 are frozen; buffers: 528 B\n"
                      "a forward pass: 166 M FLOP, makes ");
    assert_told(text, "\na training step: about 499 M FLOP, keeps at most ");
    assert_told(text, ", and 357 KiB of gradients\n");
    pc_text_free(text);
    assert_int_equal(test_memory().peak, before); /* nothing was computed */
    assert_true(pc_module_is_training(net));
    pc_module_free(net);
    assert_nothing_left();
}

static pc_status twice(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    (void)in_count, (void)out_count;
    pc_module *tower = pc_module_child(module, 0);
    pc_tensor *first = pc_forward(tower, in[0]);
    out[0] = pc_matmul(first, pc_transpose(pc_forward(tower, in[1]), 0, 1));
    return out[0] ? PC_OK : pc_error_last()->status;
}

static const pc_module_class twice_class = {.name = "Twice", .forward_many = twice};

static void of_several_inputs(void **state)
{
    (void)state;
    pc_module *net = pc_module_new(&twice_class, 0);
    assert_ok(pc_module_add_child(net, "tower", pc_sequential(pc_embedding(100, 8), pc_linear(8, 4))));
    net = on_device(net);
    PC_SCOPE {
        pc_tensor *in[2] = {pc_zeros(PC_SHAPE(5), PC_I64, test_device()), pc_zeros(PC_SHAPE(7), PC_I32, test_device())};
        char *text = pc_module_describe_inputs(net, in, 2);
        assert_not_null_ok(text);
        assert_told(text, "Twice                       [5, 7]                          280     140 B\n");
        assert_told(text, "    0 Embedding             [5, 8]                800               160 B\n");
        assert_told(text, "  tower Sequential (again)  [7, 4]\n");
        assert_told(text, "a forward pass: 1.05 k FLOP");
        pc_text_free(text);
        in[1] = NULL;
        assert_fails(pc_module_describe_inputs(net, in, 2), PC_ERR_ARGUMENT, "in[i] is NULL");
        assert_fails(pc_module_describe_inputs(net, in, 0), PC_ERR_ARGUMENT, "0 inputs");
    }
    pc_module_free(net);
    assert_nothing_left();
}

static void attention_counts(void **state)
{
    (void)state;
    pc_module *net = on_device(pc_multihead_attention(64, 4));
    char *text = pc_module_describe(net, PC_SHAPE(2, 10, 64));
    assert_not_null_ok(text);
    /* projections 2 * 20 * 64 * 192, scores and values 2 * 2 * 20 * 10 * 64, the last one 2 * 20 * 64 * 64 */
    assert_told(text, "  543 k  ");
    assert_told(text, "  164 k  ");
    pc_text_free(text);
    pc_module_free(net);
    assert_nothing_left();
}

static pc_tensor *read_it(void *context, pc_tensor *x)
{
    (void)context;
    return pc_item(pc_sum(x)) >= 0 ? pc_neg(x) : x;
}

static void what_cannot_be_told(void **state)
{
    (void)state;
    pc_module *net = on_device(pc_sequential(pc_linear(3, 2))), *reads = pc_function_module(read_it, NULL);
    assert_fails(pc_module_describe(net, PC_SHAPE(2, 4)), PC_ERR_SHAPE, "layer 0 (Linear");
    assert_fails(pc_module_describe(net, PC_SHAPE(-2, 3)), PC_ERR_SHAPE, "pc_module_describe");
    assert_fails(pc_module_describe(NULL, PC_SHAPE(2, 3)), PC_ERR_ARGUMENT, "module is NULL");
    assert_fails(pc_module_describe(reads, PC_SHAPE(2)), PC_ERR_STATE, "");
    PC_SCOPE {
        assert_not_null_ok(pc_forward(net, pc_ones(PC_SHAPE(2, 3), PC_F32, test_device()))); /* works as before */
    }
    pc_module_free(net);
    pc_module_free(reads);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_layers),
        cmocka_unit_test(of_several_inputs),
        cmocka_unit_test(attention_counts),
        cmocka_unit_test(what_cannot_be_told),
    };
    return cmocka_run_group_tests_name("nn.describe", tests, NULL, NULL);
}

/* Chains that run as one kernel give what their layers give one by one: results and gradients. */
#include "failing.h"
#include "nn/networks.h"

/* The layers one after another, none of them fused. */
static pc_tensor *one_by_one(pc_module *net, pc_tensor *x)
{
    for (int i = 0; i < pc_module_child_count(net); i++)
        x = pc_forward(pc_module_child(net, i), x);
    return x;
}

/* Results and all gradients of both ways; takes the network. `tolerance` 0: the same bits. */
static void compare(const char *what, pc_module *net, pc_shape shape, pc_dtype dtype, double tolerance)
{
    pc_parameter list[16];
    pc_tensor *kept[16] = {NULL};
    assert_not_null_ok(net);
    assert_ok(pc_module_to(net, test_device(), dtype));
    int count = pc_module_parameter_list(net, list, 16);
    PC_SCOPE {
        pc_tensor *x = pc_randn(shape, dtype, test_device());
        assert_ok(pc_require_grad(x, true));
        pc_tensor *alone = one_by_one(net, x);
        assert_not_null_ok(alone);
        pc_tensor *g = pc_randn(pc_tensor_shape(alone), dtype, test_device());
        assert_ok(pc_backward_with(alone, g));
        pc_tensor *dx = pc_clone(pc_grad(x));
        pc_zero_grad(x);
        for (int i = 0; i < count; i++)
            kept[i] = pc_clone(pc_grad(list[i].tensor));
        pc_module_zero_grad(net);
        pc_tensor *fused = pc_forward(net, x);
        assert_ok(pc_backward_with(fused, g));
        double far = fmax(distance(fused, alone), distance(pc_grad(x), dx));
        for (int i = 0; i < count; i++)
            far = fmax(far, distance(pc_grad(list[i].tensor), kept[i]));
        if (!(far <= tolerance))
            fail_msg("%s: fused and unfused are %g apart, more than %g", what, far, tolerance);
    }
    pc_module_free(net);
}

static void linear_and_activation(void **state)
{
    (void)state;
    static const pc_activation_kind kinds[] = {PC_ACTIVATION_NONE, PC_ACTIVATION_RELU, PC_ACTIVATION_SIGMOID,
                                               PC_ACTIVATION_TANH};
    pc_seed(1);
    for (int i = 0; i < 4; i++) {
        compare("linear", pc_sequential(pc_linear(7, 5), pc_activation(kinds[i])), PC_SHAPE(3, 7), PC_F32, 2e-6);
        compare("linear", pc_sequential(pc_linear(7, 5), pc_activation(kinds[i])), PC_SHAPE(2, 3, 7), PC_F64, 1e-13);
        /* an activation of its own, then another one */
        compare(
            "two",
            pc_sequential(pc_linear(7, 5, .activation = PC_ACTIVATION_TANH), pc_activation(kinds[i]), pc_linear(5, 2)),
            PC_SHAPE(3, 7), PC_F64, 1e-13);
    }
}

static void conv_activation_and_pool(void **state)
{
    (void)state;
    static const pc_activation_kind kinds[] = {PC_ACTIVATION_NONE, PC_ACTIVATION_RELU, PC_ACTIVATION_SIGMOID,
                                               PC_ACTIVATION_TANH};
    pc_seed(2);
    for (int i = 0; i < 4; i++)
        for (int pool = 1; pool <= 3; pool++)
            for (int stride = 1; stride <= 3; stride++) {
                pc_module *net = pc_sequential(pc_conv2d(3, 5, 3, .stride = stride, .padding = pool % 2),
                                               pc_activation(kinds[i]), pc_max_pool2d(pool), pc_flatten());
                compare("conv", net, PC_SHAPE(2, 3, 14, 13), PC_F32, 1e-5);
                net = pc_sequential(pc_conv2d(2, 4, 3, .stride = stride, .no_bias = true, .activation = kinds[i]),
                                    pc_max_pool2d(pool));
                compare("conv", net, PC_SHAPE(2, 2, 13, 14), PC_F64, 1e-12);
            }
}

static pc_tensor *gradient_of_input(pc_module *net, pc_tensor *values, pc_tensor *g)
{
    assert_ok(pc_module_to(net, test_device(), PC_BF16));
    pc_tensor *x = pc_clone(values);
    assert_ok(pc_require_grad(x, true));
    pc_tensor *y = pc_forward(net, x);
    y = pc_reshape(y, PC_SHAPE(pc_tensor_count(y)));
    assert_ok(pc_backward(pc_sum(pc_mul(y, pc_slice(g, 0, 0, pc_tensor_count(y), 1)))));
    pc_module_free(net);
    return pc_grad(x);
}

/* What a convolution of 16-bit numbers writes plane by plane, for what flattens it, has the gradient of other orders.
 */
static void half_planes(void **state)
{
    (void)state;
    static const struct {
        int c, o, kernel, stride, pool;
    } list[] = {{32, 64, 3, 1, 2}, {8, 24, 5, 1, 1}, {16, 40, 3, 2, 2}, {64, 32, 3, 1, 1}};
    for (int i = 0; i < 4; i++)
        PC_SCOPE {
            const int c = list[i].c, o = list[i].o, kernel = list[i].kernel, stride = list[i].stride;
            pc_seed(6);
            pc_tensor *x = pc_cast(pc_randn(PC_SHAPE(3, c, 13, 12), PC_F32, test_device()), PC_BF16);
            pc_tensor *g = pc_cast(pc_randn(PC_SHAPE(3 * 64 * 13 * 12), PC_F32, test_device()), PC_BF16), *dx[2];
            for (int flat = 0; flat < 2; flat++) {
                pc_seed(7);
                pc_module *conv = pc_conv2d(c, o, kernel, .stride = stride, .activation = PC_ACTIVATION_RELU);
                pc_module *pool = pc_max_pool2d(list[i].pool);
                dx[flat] =
                    gradient_of_input(flat ? pc_sequential(conv, pool, pc_flatten()) : pc_sequential(conv, pool), x, g);
            }
            assert_close(distance(dx[1], dx[0]), 0, 1e-2);
            assert_true(pc_item(pc_sum(pc_mul(dx[0], dx[0]))) > 1);
        }
}

/* Pools that no convolution can do itself, and other neighbours. */
static void what_does_not_fuse(void **state)
{
    (void)state;
    pc_seed(3);
    compare("overlap", pc_sequential(pc_conv2d(1, 2, 3), pc_max_pool2d(3, .stride = 2)), PC_SHAPE(1, 1, 12, 12), PC_F64,
            1e-13);
    compare("padded", pc_sequential(pc_conv2d(1, 2, 3), pc_max_pool2d(2, .padding = 1)), PC_SHAPE(1, 1, 12, 12), PC_F64,
            1e-13);
    compare("vast", pc_sequential(pc_conv2d(1, 2, 3), pc_max_pool2d(17)), PC_SHAPE(1, 1, 20, 20), PC_F64, 1e-13);
    compare("average", pc_sequential(pc_conv2d(1, 2, 3), pc_avg_pool2d(2)), PC_SHAPE(1, 1, 12, 12), PC_F64, 1e-13);
    compare("pool first", pc_sequential(pc_conv2d(1, 2, 3), pc_max_pool2d(2), pc_activation(PC_ACTIVATION_RELU)),
            PC_SHAPE(1, 1, 12, 12), PC_F64, 1e-13);
    compare("activation first", pc_sequential(pc_activation(PC_ACTIVATION_RELU), pc_linear(4, 2)), PC_SHAPE(3, 4),
            PC_F64, 1e-13);
}

static void whole_networks(void **state)
{
    (void)state;
    pc_seed(4);
    pc_module *net = pc_sequential(pc_conv2d(3, 8, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                   pc_flatten(), pc_linear(8 * 5 * 5, 16), pc_activation(PC_ACTIVATION_RELU),
                                   pc_dropout(0), pc_linear(16, 1), pc_activation(PC_ACTIVATION_SIGMOID));
    compare("article", net, PC_SHAPE(4, 3, 32, 32), PC_F32, 1e-5);
    net = pc_sequential(pc_sequential(pc_conv2d(1, 4, 3), pc_activation(PC_ACTIVATION_TANH)), pc_max_pool2d(2),
                        pc_conv2d(4, 6, 3, .padding = 1), pc_activation(PC_ACTIVATION_SIGMOID), pc_max_pool2d(2),
                        pc_flatten(), pc_linear(6 * 3 * 3, 3));
    compare("nested", net, PC_SHAPE(2, 1, 14, 14), PC_F64, 1e-12);
    assert_nothing_left();
}

/* Every single allocation fails once, while a network is made, run, differentiated and stepped. Only where nothing else
 * is alive is the allocator exchanged. */
static bool train_a_little(void)
{
    pc_module *net = pc_sequential(pc_conv2d(1, 2, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                                   pc_dropout(0.5), pc_linear(8, 1));
    pc_optimizer *adam = pc_adam(net);
    bool fine = adam;
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(2, 1, 6, 6), PC_F32, test_device());
        pc_tensor *y = pc_ones(PC_SHAPE(2, 1), PC_F32, test_device());
        fine =
            fine && pc_backward(pc_bce_with_logits(pc_forward(net, x), y)) == PC_OK && pc_optimizer_step(adam) == PC_OK;
        pc_parameter list[4];
        fine = fine && pc_module_load(net, list, pc_module_parameter_list(net, list, 4)) == PC_OK &&
               pc_module_to(net, test_device(), PC_F64) == PC_OK;
    }
    char *text = pc_module_text(net);
    fine = fine && text;
    pc_text_free(text);
    pc_optimizer_free(adam);
    pc_module_free(net);
    return fine;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    only_on_the_cpu();
    assert_nothing_left();
    assert_ok(pc_allocator_set(&failing));
    for (int i = 0;; i++) {
        pc_error_clear();
        countdown = i;
        bool fine = train_a_little();
        bool reached = countdown < 0;
        countdown = -1;
        if (!reached) {
            assert_true(fine);
            assert_true(i > 30);
            break;
        }
        if (fine == pc_failed())
            fail_msg("allocation %d failed: %s, and the error says: %s", i, fine ? "all is fine" : "an error",
                     pc_error_last()->message);
        pc_error_clear();
        assert_nothing_left();
    }
    assert_nothing_left();
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_and_activation), cmocka_unit_test(conv_activation_and_pool),
        cmocka_unit_test(half_planes),           cmocka_unit_test(what_does_not_fuse),
        cmocka_unit_test(whole_networks),        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests_name("nn.sequential", tests, NULL, NULL);
}

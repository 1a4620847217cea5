/* pool(activation(conv(x, weight) + bias)). */
#include "ops/golden.h"

#include <paracord/random.h>

static pc_conv2d_spec spec_of(const golden *g)
{
    return (pc_conv2d_spec){.stride = {(int)g->args[0], (int)g->args[1]},
                            .padding = {(int)g->args[2], (int)g->args[3]},
                            .activation = (pc_activation_kind)g->args[4],
                            .pool = (int)g->args[5]};
}

static bool is_channels_last(const pc_tensor *t)
{
    return pc_tensor_stride(t, 1) == 1 && pc_tensor_size(t, 1) > 1;
}

/* The result has the input's memory order, and is the same when no gradient is wanted. */
static void run_conv2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *bias = g->n_in > 2 ? in[2] : NULL;
    out[0] = pc_fn_conv2d(in[0], in[1], bias, spec_of(g));
    assert_not_null_ok(out[0]);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_true(is_channels_last(out[0]));
    else
        assert_true(pc_tensor_is_contiguous(out[0]));
    PC_NO_GRAD {
        pc_tensor *again = pc_fn_conv2d(in[0], in[1], bias, spec_of(g));
        assert_close(pc_item(pc_sum(pc_ne(again, out[0]))), 0, 0);
    }
}

static const golden_op ops[] = {{"conv2d", run_conv2d}};

static pc_tensor *zeros(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return pc_zeros(PC_SHAPE(a, b, c, d), PC_F32, test_device());
}

static void bad_input(void **state)
{
    (void)state;
    const pc_conv2d_spec plain = {0};
    PC_SCOPE {
        pc_tensor *x = zeros(1, 2, 5, 5), *w = zeros(3, 2, 3, 3);
        pc_tensor *b = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_fn_conv2d(zeros(1, 4, 5, 5), w, b, plain), PC_ERR_SHAPE, "[1, 4, 5, 5]");
        assert_fails(pc_fn_conv2d(pc_reshape(x, PC_SHAPE(2, 5, 5)), w, b, plain), PC_ERR_SHAPE, "[n, c, h, w]");
        assert_fails(pc_fn_conv2d(x, pc_reshape(w, PC_SHAPE(3, 18)), b, plain), PC_ERR_SHAPE, "[3, 18]");
        assert_fails(pc_fn_conv2d(x, w, pc_zeros(PC_SHAPE(2), PC_F32, test_device()), plain), PC_ERR_SHAPE,
                     "bias of shape [2]");
        assert_fails(pc_fn_conv2d(zeros(1, 2, 2, 5), w, b, plain), PC_ERR_SHAPE, "too small for a kernel of 3 x 3");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.pool = 4}), PC_ERR_SHAPE, "and pooling");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.stride = {-1, 1}}), PC_ERR_ARGUMENT, "stride -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.padding = {0, -1}}), PC_ERR_ARGUMENT, "padding -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.pool = -1}), PC_ERR_ARGUMENT, "pool -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.activation = (pc_activation_kind)7}), PC_ERR_ARGUMENT,
                     "activation 7");
        assert_fails(pc_fn_conv2d(x, pc_cast(w, PC_F64), b, plain), PC_ERR_DTYPE, "weight float64");
        assert_fails(pc_fn_conv2d(x, w, pc_cast(b, PC_F64), plain), PC_ERR_DTYPE, "bias float64");
        assert_fails(pc_fn_conv2d(pc_cast(x, PC_U8), pc_cast(w, PC_U8), NULL, plain), PC_ERR_DTYPE, "uint8");
        assert_fails(pc_fn_conv2d(NULL, w, b, plain), PC_ERR_ARGUMENT, "conv2d");
        assert_fails(pc_fn_conv2d(x, NULL, b, plain), PC_ERR_ARGUMENT, "conv2d");
        assert_fails(pc_fn_conv2d(pc_add(x, w), w, b, plain), PC_ERR_SHAPE, "add");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_conv2d_spec){.padding = {INT32_MAX, INT32_MAX}}), PC_ERR_MEMORY,
                     "conv2d");
    }
    assert_no_leak();
}

/* Only the gradients that are wanted are made, in each combination. */
static void gradients_on_request(void **state)
{
    (void)state;
    for (int wanted = 1; wanted < 8; wanted++)
        PC_SCOPE {
            pc_seed(3);
            pc_tensor *in[3] = {pc_randn(PC_SHAPE(2, 2, 6, 6), PC_F32, test_device()),
                                pc_randn(PC_SHAPE(3, 2, 3, 3), PC_F32, test_device()),
                                pc_randn(PC_SHAPE(3), PC_F32, test_device())};
            static double sums[3];
            for (int i = 0; i < 3; i++)
                assert_ok(pc_require_grad(in[i], wanted >> i & 1));
            pc_conv2d_spec spec = {.activation = PC_TANH, .pool = 2};
            assert_ok(pc_backward(pc_sum(pc_fn_conv2d(in[0], in[1], in[2], spec))));
            for (int i = 0; i < 3; i++)
                if (!(wanted >> i & 1))
                    assert_null(pc_grad(in[i]));
                else if (wanted == 1 << i)
                    sums[i] = pc_item(pc_sum(pc_grad(in[i])));
                else if (wanted == 7)
                    assert_close(pc_item(pc_sum(pc_grad(in[i]))), sums[i], 1e-4);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input), cmocka_unit_test(gradients_on_request)};

int main(void)
{
    return golden_main("ops.conv2d", ops, tests);
}

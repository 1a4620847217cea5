/* activation(x w^T + bias). */
#include "ops/golden.h"

static void run_linear(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_linear(in[0], in[1], g->n_in > 2 ? in[2] : NULL, (pc_activation_kind)g->args[0]);
}

static const golden_op ops[] = {{"linear", run_linear}};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *w = pc_zeros(PC_SHAPE(4, 3), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        pc_tensor *three = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_fn_linear(pc_transpose(x, 0, 1), w, b, PC_NONE), PC_ERR_SHAPE,
                     "[3, 2] does not fit a weight of shape [4, 3]");
        assert_fails(pc_fn_linear(x, three, b, PC_NONE), PC_ERR_SHAPE, "[out, in]");
        assert_fails(pc_fn_linear(x, w, three, PC_NONE), PC_ERR_SHAPE, "bias of shape [3]");
        assert_fails(pc_fn_linear(x, w, pc_reshape(b, PC_SHAPE(1, 4)), PC_NONE), PC_ERR_SHAPE, "bias");
        assert_fails(pc_fn_linear(pc_reshape(pc_slice(three, 0, 0, 1, 1), PC_SHAPE_SCALAR), w, b, PC_NONE),
                     PC_ERR_SHAPE, "[]");
        assert_fails(pc_fn_linear(pc_cast(x, PC_F64), w, b, PC_NONE), PC_ERR_DTYPE, "input float64, weight float32");
        assert_fails(pc_fn_linear(x, w, pc_cast(b, PC_F64), PC_NONE), PC_ERR_DTYPE, "bias float64");
        assert_fails(pc_fn_linear(pc_cast(x, PC_I64), pc_cast(w, PC_I64), NULL, PC_NONE), PC_ERR_DTYPE, "int64");
        assert_fails(pc_fn_linear(x, w, b, (pc_activation_kind)9), PC_ERR_ARGUMENT, "activation 9");
        assert_fails(pc_fn_linear(NULL, w, b, PC_NONE), PC_ERR_ARGUMENT, "linear");
        assert_fails(pc_fn_linear(x, NULL, b, PC_NONE), PC_ERR_ARGUMENT, "linear");
        assert_fails(pc_fn_linear(pc_add(x, w), w, b, PC_NONE), PC_ERR_SHAPE, "add");
    }
    assert_no_leak();
}

/* As relu alone does: what is no number is not made one. */
static void relu_keeps_nan(void **state)
{
    (void)state;
    PC_SCOPE {
        for (int rows = 1; rows <= 64; rows *= 64)
            for (int biased = 0; biased < 2; biased++) {
                pc_tensor *x = pc_full(PC_SHAPE(rows, 64), NAN, PC_F32, test_device()),
                          *w = pc_ones(PC_SHAPE(32, 64), PC_F32, test_device()),
                          *b = biased ? pc_ones(PC_SHAPE(32), PC_F32, test_device()) : NULL;
                assert_true(isnan(pc_item(pc_max(pc_fn_linear(x, w, b, PC_RELU)))));
            }
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input), cmocka_unit_test(relu_keeps_nan)};

int main(void)
{
    return golden_main("ops.linear", ops, tests);
}

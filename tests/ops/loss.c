/* Losses. */
#include "ops/golden.h"

static void run_bce_with_logits(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_bce_with_logits(in[0], in[1]);
}

static void run_mse(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_mse(in[0], in[1]);
}

static void run_cross_entropy(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_cross_entropy(in[0], in[1]);
}

static const golden_op ops[] = {
    {"bce_with_logits", run_bce_with_logits},
    {"mse", run_mse},
    {"cross_entropy", run_cross_entropy},
};

static void bad_pairs(void **state)
{
    (void)state;
    pc_tensor *(*const losses[])(pc_tensor *, pc_tensor *) = {pc_bce_with_logits, pc_mse};
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            pc_tensor *x = pc_zeros(PC_SHAPE(4, 1), PC_F32, test_device());
            pc_tensor *y = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
            assert_fails(losses[i](x, y), PC_ERR_SHAPE, "the input has shape [4, 1] and the target [4]");
            assert_fails(losses[i](pc_cast(y, PC_I64), y), PC_ERR_DTYPE, "int64");
            assert_fails(losses[i](NULL, y), PC_ERR_ARGUMENT, ops[i].name);
            assert_fails(losses[i](x, NULL), PC_ERR_ARGUMENT, ops[i].name);
            assert_fails(losses[i](x, pc_reshape(y, PC_SHAPE(3))), PC_ERR_SHAPE, "reshape");
        }
    assert_no_leak();
}

static void bad_labels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device());
        pc_tensor *labels = pc_zeros(PC_SHAPE(3), PC_I64, test_device());
        assert_fails_on_device(pc_cross_entropy(x, pc_arange(0, 3, 1, PC_I64, test_device())), PC_ERR_RANGE,
                               "the label of row 2 is 2; it must be 0 to 1");
        assert_fails_on_device(pc_cross_entropy(x, pc_arange(-1, 2, 1, PC_I64, test_device())), PC_ERR_RANGE,
                               "row 0 is -1");
        assert_fails(pc_cross_entropy(x, pc_slice(labels, 0, 0, 2, 1)), PC_ERR_SHAPE, "[3, 2] and the labels [2]");
        assert_fails(pc_cross_entropy(labels, labels), PC_ERR_SHAPE, "[n, classes]");
        assert_fails(pc_cross_entropy(x, pc_cast(labels, PC_F32)), PC_ERR_DTYPE, "labels are float32");
        assert_fails(pc_cross_entropy(pc_cast(x, PC_I32), labels), PC_ERR_DTYPE, "int32");
        assert_fails(pc_cross_entropy(NULL, labels), PC_ERR_ARGUMENT, "cross_entropy");
        assert_fails(pc_cross_entropy(x, NULL), PC_ERR_ARGUMENT, "cross_entropy");
    }
    assert_no_leak();
}

/* No rows have no mean. */
static void empty_batches_give_nan(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(0, 2), PC_F32, test_device());
        assert_true(isnan(pc_item(pc_bce_with_logits(x, x))));
        assert_true(isnan(pc_item(pc_mse(x, x))));
        assert_true(isnan(pc_item(pc_cross_entropy(x, pc_zeros(PC_SHAPE(0), PC_I64, test_device())))));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_pairs),
    cmocka_unit_test(bad_labels),
    cmocka_unit_test(empty_batches_give_nan),
};

int main(void)
{
    return golden_main("ops.loss", ops, tests);
}

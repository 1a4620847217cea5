/* Softmax and its logarithm. */
#include "ops/golden.h"

static void run_softmax(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_softmax(in[0], (int)g->args[0]);
}

static void run_log_softmax(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_log_softmax(in[0], (int)g->args[0]);
}

static const golden_op ops[] = {{"softmax", run_softmax}, {"log_softmax", run_log_softmax}};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        assert_fails(pc_softmax(a, 2), PC_ERR_RANGE, "softmax: dimension 2");
        assert_fails(pc_log_softmax(a, -3), PC_ERR_RANGE, "log_softmax: dimension -3");
        assert_fails(pc_softmax(NULL, 0), PC_ERR_ARGUMENT, "softmax");
        assert_fails(pc_log_softmax(pc_reshape(a, PC_SHAPE(5)), 0), PC_ERR_SHAPE, "reshape");
    }
    assert_no_leak();
}

/* The header of ops.h says nothing against integers: they become float32, as in exp. */
static void integers_become_floats(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 4, 1, PC_I32, test_device());
        assert_int_equal(pc_tensor_dtype(pc_softmax(a, 0)), PC_F32);
        assert_close(pc_item(pc_sum(pc_softmax(a, 0))), 1, 1e-6);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input), cmocka_unit_test(integers_become_floats)};

int main(void)
{
    return golden_main("ops.softmax", ops, tests);
}

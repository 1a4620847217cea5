/* Joining tensors, and picking entries. */
#include "ops/golden.h"

static void run_cat(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_cat(in, g->n_in, (int)g->args[0]);
}

static void run_index_select(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_index_select(in[0], (int)g->args[0], in[1]);
}

static const golden_op ops[] = {{"cat", run_cat}, {"index_select", run_index_select}};

static void bad_cat(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(2, 4), PC_F32, test_device());
        pc_tensor *flat = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *zero = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        assert_fails(pc_cat((pc_tensor *[]){a, b}, 2, 0), PC_ERR_SHAPE, "[2, 3] and [2, 4]");
        assert_fails(pc_cat((pc_tensor *[]){a, flat}, 2, 0), PC_ERR_SHAPE, "[2, 3] and [3]");
        assert_fails(pc_cat((pc_tensor *[]){a, a}, 2, 2), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_cat((pc_tensor *[]){zero, zero}, 2, 0), PC_ERR_SHAPE, "zero-dim");
        assert_fails(pc_cat((pc_tensor *[]){a, zero}, 2, 0), PC_ERR_SHAPE, "cat");
        pc_tensor *vast = pc_expand(pc_zeros(PC_SHAPE(1), PC_U8, test_device()), PC_SHAPE(1ll << 62));
        assert_fails(pc_cat((pc_tensor *[]){vast, vast}, 2, 0), PC_ERR_MEMORY, "any memory");
        assert_fails(pc_cat(NULL, 0, 0), PC_ERR_ARGUMENT, "at least one");
        assert_fails(pc_cat(NULL, 2, 0), PC_ERR_ARGUMENT, "cat");
        assert_fails(pc_cat((pc_tensor *[]){a, NULL}, 2, 0), PC_ERR_ARGUMENT, "input 1 is NULL");
        assert_fails(pc_cat((pc_tensor *[]){pc_add(a, b), a}, 2, 0), PC_ERR_SHAPE, "add");
    }
    assert_no_leak();
}

static void bad_index(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *zero = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        pc_tensor *fine = pc_zeros(PC_SHAPE(2), PC_I64, test_device());
        pc_tensor *far = pc_arange(1, 4, 1, PC_I64, test_device());
        pc_tensor *below = pc_full(PC_SHAPE(1), -1, PC_I32, test_device());
        assert_fails_on_device(pc_index_select(a, 1, far), PC_ERR_RANGE, "entry 2 of the index is 3");
        assert_fails_on_device(pc_index_select(a, 0, below), PC_ERR_RANGE, "-1");
        assert_fails(pc_index_select(a, 2, fine), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_index_select(a, 0, pc_cast(fine, PC_F32)), PC_ERR_ARGUMENT, "float32");
        assert_fails(pc_index_select(a, 0, pc_cast(fine, PC_BOOL)), PC_ERR_ARGUMENT, "bool");
        assert_fails(pc_index_select(a, 0, pc_reshape(fine, PC_SHAPE(1, 2))), PC_ERR_ARGUMENT, "one dimension");
        assert_fails(pc_index_select(zero, 0, fine), PC_ERR_SHAPE, "zero-dim");
        assert_fails(pc_index_select(NULL, 0, fine), PC_ERR_ARGUMENT, "index_select");
        assert_fails(pc_index_select(a, 0, NULL), PC_ERR_ARGUMENT, "index_select");
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_cat),
    cmocka_unit_test(bad_index),
};

int main(void)
{
    return golden_main("ops.join", ops, tests);
}

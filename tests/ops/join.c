/* Joining tensors, and picking entries. */
#include "ops/golden.h"
#include "tensor/tensor.h"

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

/* Channels last stay last, also beside pictures of one channel, which lie both ways. */
static void channels_stay_last(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_permute(pc_randn(PC_SHAPE(2, 4, 5, 3), PC_F32, test_device()), PC_SHAPE(0, 3, 1, 2));
        pc_tensor *one = pc_randn(PC_SHAPE(2, 1, 4, 5), PC_F32, test_device());
        for (int dim = 0; dim < 4; dim++) {
            pc_tensor *second = dim == 1 ? one : x, *first = pc_detach(x), *plain = pc_detach(pc_contiguous(x));
            assert_ok(pc_require_grad(first, true));
            assert_ok(pc_require_grad(plain, true));
            pc_tensor *y = pc_cat((pc_tensor *[]){first, second}, 2, dim);
            pc_tensor *want = pc_cat((pc_tensor *[]){plain, pc_contiguous(second)}, 2, dim);
            assert_not_null_ok(y);
            assert_true(pc__is_contiguous(want) && !pc__is_contiguous(y));
            assert_true(pc__is_contiguous(pc_permute(y, PC_SHAPE(0, 2, 3, 1))));
            assert_close(pc_item(pc_sum(pc_ne(y, want))), 0, 0);
            pc_tensor *g = pc_randn(pc_tensor_shape(want), PC_F32, test_device());
            assert_ok(pc_backward_with(y, g));
            assert_ok(pc_backward_with(want, g));
            assert_close(pc_item(pc_sum(pc_ne(pc_grad(first), pc_grad(plain)))), 0, 0);
        }
        assert_fails(pc_cat((pc_tensor *[]){x, pc_slice(x, 2, 0, 3, 1)}, 2, 1), PC_ERR_SHAPE,
                     "cat: the shapes [2, 3, 4, 5] and [2, 3, 3, 5] differ outside dimension 1");
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
    cmocka_unit_test(channels_stay_last),
    cmocka_unit_test(bad_cat),
    cmocka_unit_test(bad_index),
};

int main(void)
{
    return golden_main("ops.join", ops, tests);
}

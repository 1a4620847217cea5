/* Views: the same memory seen otherwise, and when a copy is due. */
#include "ops/golden.h"

static pc_shape list_of(const golden *g)
{
    pc_shape list = {.ndim = g->n_args};
    for (int i = 0; i < g->n_args; i++)
        list.dim[i] = (int64_t)g->args[i];
    return list;
}

static void run_reshape(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_reshape(in[0], list_of(g));
}

static void run_permute(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_permute(in[0], list_of(g));
}

static void run_transpose(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_transpose(in[0], (int)g->args[0], (int)g->args[1]);
}

static void run_slice(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_slice(in[0], (int)g->args[0], (int64_t)g->args[1], (int64_t)g->args[2], (int64_t)g->args[3]);
}

static void run_squeeze(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_squeeze(in[0], (int)g->args[0]);
}

static void run_unsqueeze(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_unsqueeze(in[0], (int)g->args[0]);
}

static void run_expand(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_expand(in[0], list_of(g));
}

static void run_flatten_from(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_flatten_from(in[0], (int)g->args[0]);
}

static const golden_op ops[] = {
    {"reshape", run_reshape}, {"permute", run_permute},           {"transpose", run_transpose},
    {"slice", run_slice},     {"squeeze", run_squeeze},           {"unsqueeze", run_unsqueeze},
    {"expand", run_expand},   {"flatten_from", run_flatten_from},
};

/* A write through the view is seen in the tensor exactly when they share memory. */
static bool shares(pc_tensor *t, pc_tensor *view)
{
    assert_ok(pc_fill(t, 1));
    assert_ok(pc_fill(view, 7));
    return pc_item(pc_max(t)) == 7;
}

static void views_share_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(4, 6), PC_F32, test_device());
        assert_true(shares(t, pc_reshape(t, PC_SHAPE(2, 2, -1))));
        assert_true(shares(t, pc_permute(t, PC_SHAPE(1, 0))));
        assert_true(shares(t, pc_transpose(t, 0, 1)));
        assert_true(shares(t, pc_slice(t, 1, 1, PC_END_OF_DIM, 2)));
        assert_true(shares(t, pc_unsqueeze(t, 1)));
        assert_true(shares(t, pc_squeeze(pc_unsqueeze(t, 1), 1)));
        assert_true(shares(t, pc_flatten_from(t, 0)));
        assert_true(shares(t, pc_detach(t)));
        assert_true(shares(t, pc_contiguous(t)));
        assert_true(shares(t, pc_cast(t, PC_F32)));
        pc_tensor *turned = pc_transpose(t, 0, 1);
        assert_true(shares(t, pc_reshape(turned, PC_SHAPE(3, 2, 2, 2))));
        assert_false(shares(t, pc_reshape(turned, PC_SHAPE(24))));
        assert_false(shares(t, pc_contiguous(turned)));
        assert_false(shares(t, pc_clone(t)));
        assert_false(shares(t, pc_cast(t, PC_F64)));
    }
    assert_no_leak();
}

static void strides_and_contiguity(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(2, 3, 4), PC_F32, test_device());
        assert_int_equal(pc_tensor_stride(t, 0), 12);
        assert_int_equal(pc_tensor_stride(t, -1), 1);
        assert_true(pc_tensor_is_contiguous(t));
        pc_tensor *p = pc_permute(t, PC_SHAPE(2, 0, 1));
        assert_int_equal(pc_tensor_stride(p, 0), 1);
        assert_int_equal(pc_tensor_stride(p, 1), 12);
        assert_int_equal(pc_tensor_stride(p, 2), 4);
        assert_false(pc_tensor_is_contiguous(p));
        assert_false(pc_tensor_is_contiguous(pc_slice(t, 2, 0, 3, 1)));
        assert_true(pc_tensor_is_contiguous(pc_slice(t, 0, 1, 2, 1)));
        assert_true(pc_tensor_is_contiguous(pc_slice(pc_slice(t, 0, 0, 1, 1), 1, 1, 3, 1)));
        pc_tensor *e = pc_expand(pc_slice(t, 0, 0, 1, 1), PC_SHAPE(5, -1, -1));
        assert_int_equal(pc_tensor_stride(e, 0), 0);
        assert_false(pc_tensor_is_contiguous(e));
        assert_true(
            pc_tensor_is_contiguous(pc_permute(pc_zeros(PC_SHAPE(2, 0, 3), PC_F32, test_device()), PC_SHAPE(2, 1, 0))));
    }
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(2, 6), PC_F32, test_device());
        pc_tensor *none = pc_zeros(PC_SHAPE(0, 2), PC_F32, test_device());
        pc_tensor *zero = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        pc_tensor *eight = pc_zeros(PC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), PC_F32, test_device());
        assert_fails(pc_reshape(t, PC_SHAPE(5)), PC_ERR_SHAPE, "[2, 6] (12 elements) cannot become [5]");
        assert_fails(pc_reshape(t, PC_SHAPE(5, -1)), PC_ERR_SHAPE, "[5, -1]");
        assert_fails(pc_reshape(t, PC_SHAPE(-1, -1)), PC_ERR_SHAPE, "[-1, -1]");
        assert_fails(pc_reshape(t, PC_SHAPE(-2, -6)), PC_ERR_SHAPE, "[-2, -6]");
        assert_fails(pc_reshape(none, PC_SHAPE(0, -1)), PC_ERR_SHAPE, "[0, -1]");
        assert_fails(pc_reshape(t, PC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 12)), PC_ERR_SHAPE, "reshape");
        assert_fails(pc_reshape(t, PC_SHAPE((int64_t)1 << 62, 4, 3)), PC_ERR_SHAPE, "reshape");
        assert_fails(pc_permute(t, PC_SHAPE(0, 0)), PC_ERR_SHAPE, "[0, 0]");
        assert_fails(pc_permute(t, PC_SHAPE(0)), PC_ERR_SHAPE, "[0] is no order");
        assert_fails(pc_permute(t, PC_SHAPE(0, 2)), PC_ERR_SHAPE, "permute");
        assert_fails(pc_permute(t, PC_SHAPE(0, -3)), PC_ERR_SHAPE, "permute");
        assert_fails(pc_transpose(t, 0, 2), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_transpose(t, -3, 0), PC_ERR_RANGE, "dimension -3");
        assert_fails(pc_slice(t, 2, 0, 1, 1), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_slice(t, 0, 0, 1, 0), PC_ERR_ARGUMENT, "step");
        assert_fails(pc_slice(t, 0, 0, 1, -1), PC_ERR_ARGUMENT, "at least 1");
        assert_fails(pc_slice(zero, 0, 0, 1, 1), PC_ERR_ARGUMENT, "zero-dim");
        assert_fails(pc_squeeze(t, 2), PC_ERR_RANGE, "dimension 2");
        assert_fails(pc_unsqueeze(t, 3), PC_ERR_RANGE, "dimension 3");
        assert_fails(pc_unsqueeze(t, -4), PC_ERR_RANGE, "dimension -4");
        assert_fails(pc_unsqueeze(eight, 0), PC_ERR_SHAPE, "8 dimensions");
        assert_fails(pc_expand(t, PC_SHAPE(2, 7)), PC_ERR_SHAPE, "[2, 6] cannot be repeated to [2, 7]");
        assert_fails(pc_expand(t, PC_SHAPE(6)), PC_ERR_SHAPE, "expand");
        assert_fails(pc_expand(t, PC_SHAPE(-1, 2, 6)), PC_ERR_SHAPE, "expand");
        assert_fails(pc_expand(t, PC_SHAPE(2, -2)), PC_ERR_SHAPE, "expand");
        assert_fails(pc_expand(zero, PC_SHAPE(0, 0, 0, 0, 0, 0, 0, 0, 0)), PC_ERR_SHAPE, "expand");
        assert_fails(pc_expand(zero, PC_SHAPE((int64_t)1 << 40, (int64_t)1 << 40)), PC_ERR_MEMORY, "expand");
        assert_fails(pc_flatten_from(t, 2), PC_ERR_RANGE, "dimension 2");
    }
    assert_no_leak();
}

static void null_flows(void **state)
{
    (void)state;
    assert_fails(pc_reshape(NULL, PC_SHAPE(1)), PC_ERR_ARGUMENT, "reshape");
    assert_fails(pc_permute(NULL, PC_SHAPE(0)), PC_ERR_ARGUMENT, "permute");
    assert_fails(pc_transpose(NULL, 0, 1), PC_ERR_ARGUMENT, "transpose");
    assert_fails(pc_slice(NULL, 0, 0, 1, 1), PC_ERR_ARGUMENT, "slice");
    assert_fails(pc_squeeze(NULL, 0), PC_ERR_ARGUMENT, "squeeze");
    assert_fails(pc_unsqueeze(NULL, 0), PC_ERR_ARGUMENT, "unsqueeze");
    assert_fails(pc_expand(NULL, PC_SHAPE(1)), PC_ERR_ARGUMENT, "expand");
    assert_fails(pc_flatten_from(NULL, 0), PC_ERR_ARGUMENT, "flatten");
    assert_fails(pc_detach(NULL), PC_ERR_ARGUMENT, "detach");
}

/* Bounds at the ends of int64 are clamped like any others. */
static void slices_clamp_extreme_bounds(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_reshape(pc_arange(0, 12, 1, PC_I64, test_device()), PC_SHAPE(3, 4));
        assert_int_equal(pc_tensor_size(pc_slice(t, 0, INT64_MIN, PC_END_OF_DIM, 1), 0), 3);
        assert_int_equal(pc_tensor_size(pc_slice(t, 0, PC_END_OF_DIM, INT64_MIN, 1), 0), 0);
        pc_tensor *one = pc_slice(t, 0, 2, PC_END_OF_DIM, INT64_MAX);
        assert_int_equal(pc_tensor_size(one, 0), 1);
        assert_close(pc_item(pc_sum(one)), 8 + 9 + 10 + 11, 0);
        assert_int_equal(pc_tensor_size(pc_slice(t, 1, 0, PC_END_OF_DIM, INT64_MAX / 2), 1), 1);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(views_share_memory), cmocka_unit_test(strides_and_contiguity),      cmocka_unit_test(bad_input),
    cmocka_unit_test(null_flows),         cmocka_unit_test(slices_clamp_extreme_bounds),
};

int main(void)
{
    return golden_main("ops.view", ops, tests);
}

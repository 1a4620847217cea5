/* Writing in place: saxpy, copy, fill; and what the tape forbids. */
#include "ops/golden.h"

static void check(const pc_tensor *t, const double *want)
{
    double got[GOLDEN_VALUES];
    golden_read(t, got);
    for (int64_t i = 0; i < pc_tensor_count(t); i++)
        assert_close(got[i], want[i], 1e-6);
}

static void saxpy(void **state)
{
    (void)state;
    const pc_dtype dtypes[] = {PC_U8, PC_I32, PC_I64, PC_F32, PC_F64};
    for (int i = 0; i < 5; i++)
        PC_SCOPE {
            pc_tensor *y = pc_arange(0, 6, 1, dtypes[i], test_device()),
                      *x = pc_ones(PC_SHAPE(6), dtypes[i], test_device());
            assert_ok(pc_saxpy(y, 2, x));
            check(y, (double[]){2, 3, 4, 5, 6, 7});
        }
    PC_SCOPE {
        pc_tensor *y = pc_reshape(pc_arange(0, 6, 1, PC_F32, test_device()), PC_SHAPE(2, 3));
        pc_tensor *x = pc_transpose(pc_reshape(pc_arange(0, 6, 1, PC_F32, test_device()), PC_SHAPE(3, 2)), 0, 1);
        assert_ok(pc_saxpy(y, -0.5, x));
        check(y, (double[]){0, 0, 0, 2.5, 2.5, 2.5});
        assert_ok(pc_saxpy(pc_slice(y, 1, 0, 3, 2), 1, pc_slice(y, 1, 1, 3, 1)));
        assert_ok(pc_saxpy(y, 1, pc_expand(pc_scalar(1, PC_F32, test_device()), PC_SHAPE(2, 3))));
        check(y, (double[]){1, 1, 1, 6, 3.5, 6});
    }
    assert_no_leak();
}

static void copy(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *to = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        assert_ok(pc_copy(to, pc_arange(1, 4, 1, PC_I32, test_device())));
        check(to, (double[]){1, 2, 3, 1, 2, 3});
        assert_ok(pc_copy(pc_transpose(to, 0, 1), pc_scalar(7.5, PC_F64, test_device())));
        check(to, (double[]){7.5, 7.5, 7.5, 7.5, 7.5, 7.5});
        assert_ok(
            pc_copy(pc_slice(to, 1, 0, 3, 2), pc_reshape(pc_arange(0, 4, 1, PC_F32, test_device()), PC_SHAPE(2, 2))));
        check(to, (double[]){0, 7.5, 1, 2, 7.5, 3});
        assert_ok(pc_copy(to, to));
        check(to, (double[]){0, 7.5, 1, 2, 7.5, 3});
        pc_tensor *yes = pc_zeros(PC_SHAPE(6), PC_BOOL, test_device());
        assert_ok(pc_copy(yes, pc_flatten_from(to, 0)));
        check(yes, (double[]){0, 1, 1, 1, 1, 1});
        pc_tensor *line = pc_arange(0, 6, 1, PC_F32, test_device());
        assert_ok(pc_copy(pc_slice(line, 0, 1, 6, 1), pc_slice(line, 0, 0, 5, 1)));
        check(line, (double[]){0, 0, 1, 2, 3, 4});
    }
    assert_no_leak();
}

static void fill(void **state)
{
    (void)state;
    PC_SCOPE {
        for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++) {
            pc_tensor *t = pc_zeros(PC_SHAPE(2, 3), (pc_dtype)dtype, test_device());
            assert_ok(pc_fill(pc_slice(t, 1, 1, 2, 1), 1));
            check(t, (double[]){0, 1, 0, 0, 1, 0});
        }
        pc_tensor *yes = pc_zeros(PC_SHAPE(1), PC_BOOL, test_device());
        assert_ok(pc_fill(yes, 0.5));
        check(yes, (double[]){1});
        assert_ok(pc_fill(pc_zeros(PC_SHAPE(0), PC_F32, test_device()), 1));
    }
    assert_no_leak();
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *yes = pc_zeros(PC_SHAPE(3), PC_BOOL, test_device());
        assert_fails(pc_saxpy(a, 1, b), PC_ERR_SHAPE, "y is float32 [2, 3] and x is float32 [3]");
        assert_fails(pc_saxpy(b, 1, pc_cast(b, PC_F64)), PC_ERR_DTYPE, "float64 [3]");
        assert_fails(pc_saxpy(yes, 1, yes), PC_ERR_DTYPE, "bool");
        assert_fails(pc_saxpy(NULL, 1, b), PC_ERR_ARGUMENT, "saxpy");
        assert_fails(pc_saxpy(b, 1, NULL), PC_ERR_ARGUMENT, "saxpy");
        assert_fails(pc_copy(b, a), PC_ERR_SHAPE, "[2, 3]");
        assert_fails(pc_copy(NULL, a), PC_ERR_ARGUMENT, "copy");
        assert_fails(pc_copy(a, NULL), PC_ERR_ARGUMENT, "copy");
        assert_fails(pc_fill(NULL, 1), PC_ERR_ARGUMENT, "fill");
        assert_fails(pc_fill(pc_add(a, pc_zeros(PC_SHAPE(2), PC_F32, test_device())), 1), PC_ERR_SHAPE, "add");
        pc_error_clear();
        assert_int_equal(pc_fill(NULL, 1), PC_ERR_ARGUMENT);
        pc_error_clear();
    }
    assert_no_leak();
}

/* Memory seen several times by one tensor cannot be written through it: which value would stay? */
static void repeated_memory_is_not_written(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(3, 1), PC_F32, test_device()), *wide = pc_expand(a, PC_SHAPE(3, 2));
        assert_fails(pc_saxpy(wide, 1, pc_ones(PC_SHAPE(3, 2), PC_F32, test_device())), PC_ERR_ARGUMENT,
                     "pc_contiguous");
        assert_fails(pc_copy(wide, pc_ones(PC_SHAPE(3, 2), PC_F32, test_device())), PC_ERR_ARGUMENT, "pc_contiguous");
        assert_close(pc_item(pc_sum(a)), 0, 0);
        assert_ok(pc_saxpy(pc_expand(a, PC_SHAPE(3, 1)), 1, pc_ones(PC_SHAPE(3, 1), PC_F32, test_device())));
        assert_close(pc_item(pc_sum(a)), 3, 0);
    }
    assert_no_leak();
}

static void tensors_that_require_gradients(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        assert_ok(pc_require_grad(w, true));
        pc_tensor *y = pc_mul_scalar(w, 2);
        assert_fails(pc_fill(w, 1), PC_ERR_STATE, "PC_NO_GRAD");
        assert_fails(pc_saxpy(w, 1, y), PC_ERR_STATE, "saxpy: in place on a tensor that requires a gradient");
        assert_fails(pc_copy(y, w), PC_ERR_STATE, "copy");
        assert_fails(pc_fill(pc_slice(w, 0, 0, 1, 1), 5), PC_ERR_STATE, "fill");
        PC_NO_GRAD {
            assert_ok(pc_fill(w, 3));
        }
        assert_close(pc_item(pc_sum(w)), 9, 0);
        assert_ok(pc_backward(pc_sum(y)));
    }
    assert_no_leak();
}

static void values_saved_for_the_gradient(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_ones(PC_SHAPE(3), PC_F32, test_device()), *x = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        assert_ok(pc_require_grad(w, true));
        pc_tensor *loss = pc_sum(pc_mul(w, x));
        assert_ok(pc_fill(pc_slice(x, 0, 1, 2, 1), 9)); /* through a view of it */
        assert_fails(pc_backward(loss), PC_ERR_STATE, "mul needs its input of shape [3], which was changed in place");
        pc_tensor *e = pc_exp(w);
        loss = pc_sum(e);
        assert_ok(pc_fill(pc_detach(e), 9));
        assert_fails(pc_backward(loss), PC_ERR_STATE, "exp needs its output");
        loss = pc_sum(pc_add(w, x)); /* saves nothing */
        assert_ok(pc_fill(x, 9));
        pc_zero_grad(w);
        assert_ok(pc_backward(loss));
        assert_close(pc_item(pc_sum(pc_grad(w))), 3, 0);
    }
    assert_no_leak();
}

/* What the host writes between map and unmap is no other write. */
static void values_that_are_mapped(void **state)
{
    (void)state;
    only_on_the_cpu();
    PC_SCOPE {
        pc_tensor *w = pc_ones(PC_SHAPE(3), PC_F32, PC_DEVICE_CPU), *x = pc_ones(PC_SHAPE(3), PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_require_grad(w, true));
        for (pc_map_access access = PC_MAP_READ; access <= PC_MAP_WRITE; access++) {
            pc_tensor *loss = pc_sum(pc_mul(w, x));
            assert_non_null(pc_map(x, access));
            assert_ok(pc_unmap(x));
            if (access == PC_MAP_READ)
                assert_ok(pc_backward(loss));
            else
                assert_fails(pc_backward(loss), PC_ERR_STATE, "mul needs its input of shape [3], which was changed");
        }
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy),
        cmocka_unit_test(copy),
        cmocka_unit_test(fill),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(repeated_memory_is_not_written),
        cmocka_unit_test(tensors_that_require_gradients),
        cmocka_unit_test(values_saved_for_the_gradient),
        cmocka_unit_test(values_that_are_mapped),
    };
    return run_with_golden("ops.inplace", NULL, 0, tests, GOLDEN_COUNT(tests));
}

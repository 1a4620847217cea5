/* Corners where PyTorch's answer is the right one: each as PyTorch 2 gives it. bench/peers/answers asks for all ops;
 * docs/pytorch.md has the corners where Paracord answers otherwise. */
#include "device.h"

#include <math.h>

#include <paracord/autograd.h>
#include <paracord/ops.h>

static void check(pc_tensor *t, pc_dtype dtype, pc_shape shape, const double *want)
{
    double got[64];
    assert_not_null_ok(t);
    assert_int_equal(pc_tensor_dtype(t), dtype);
    assert_int_equal(pc_tensor_ndim(t), shape.ndim);
    for (int i = 0; i < shape.ndim; i++)
        assert_int_equal(pc_tensor_size(t, i), shape.dim[i]);
    assert_ok(pc_read(pc_cast(t, PC_F64), got, (size_t)pc_tensor_count(t) * sizeof got[0]));
    for (int64_t i = 0; i < pc_tensor_count(t); i++)
        assert_close(got[i], want[i], 1e-5 * fabs(want[i]));
}

static pc_tensor *line(double n, pc_dtype dtype)
{
    return pc_arange(0, n, 1, dtype, test_device());
}

static pc_tensor *of(const double *values, int64_t n)
{
    return pc_from_data(values, PC_SHAPE(n), PC_F64, test_device());
}

static void a_sum_over_no_dimensions_is_over_all(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_reshape(line(6, PC_F32), PC_SHAPE(2, 3));
        check(pc_sum_dims(a, PC_SHAPE_SCALAR, false), PC_F32, PC_SHAPE_SCALAR, (double[]){15});
        check(pc_sum_dims(a, PC_SHAPE_SCALAR, true), PC_F32, PC_SHAPE(1, 1), (double[]){15});
        check(pc_mean_dims(a, PC_SHAPE_SCALAR, true), PC_F32, PC_SHAPE(1, 1), (double[]){2.5});
        pc_tensor *zero_dim = pc_scalar(3, PC_F32, test_device());
        check(pc_sum_dims(zero_dim, PC_SHAPE(-1), true), PC_F32, PC_SHAPE_SCALAR, (double[]){3});
        assert_fails(pc_sum_dims(zero_dim, PC_SHAPE(0, -1), false), PC_ERR_ARGUMENT, "named twice");
    }
    assert_no_leak();
}

/* Of what int32 does not hold, and of NaN, it is INT32_MIN; of int64 INT64_MIN; uint8 takes the low byte of that. */
static void fractions_become_integers(void **state)
{
    (void)state;
    static const double values[] = {3e9,           -3e9, NAN,   INFINITY, -INFINITY, 2147483647.9,
                                    -2147483648.9, -0.9, 255.5, -1.5,     300,       1e30};
    static const double i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MAX,
                                 INT32_MIN, 0,         255,       -1,        300,       INT32_MIN};
    static const double i64[] = {3e9,       -3e9, INT64_MIN, INT64_MIN, INT64_MIN, INT32_MAX,
                                 INT32_MIN, 0,    255,       -1,        300,       INT64_MIN};
    static const double u8[] = {(uint8_t)3000000000, (uint8_t)-3000000000, 0, 0, 0, 255, 0, 0, 255, 255, 44, 0};
    static const double half[] = {NAN, INFINITY, -INFINITY, 2.5, -2.5},
                        half_i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, 2, -2};
    enum { N = sizeof values / sizeof values[0], HALF = 5 };
    PC_SCOPE {
        pc_tensor *a = of(values, N), *many = pc_contiguous(pc_expand(a, PC_SHAPE(40, N)));
        check(pc_cast(a, PC_I32), PC_I32, PC_SHAPE(N), i32);
        check(pc_cast(a, PC_I64), PC_I64, PC_SHAPE(N), i64);
        check(pc_cast(a, PC_U8), PC_U8, PC_SHAPE(N), u8);
        check(pc_slice(pc_cast(many, PC_I32), 0, 39, 40, 1), PC_I32, PC_SHAPE(1, N), i32);
        static const double single_i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN,
                                            INT32_MIN, 0,         255,       -1,        300,       INT32_MIN};
        check(pc_slice(pc_cast(pc_cast(many, PC_F32), PC_I32), 0, 7, 8, 1), PC_I32, PC_SHAPE(1, N), single_i32);
        pc_tensor *to = pc_zeros(PC_SHAPE(N), PC_I32, test_device());
        assert_ok(pc_copy(to, a));
        check(to, PC_I32, PC_SHAPE(N), i32);
        check(pc_cast(pc_cast(of(half, HALF), PC_F16), PC_I32), PC_I32, PC_SHAPE(HALF), half_i32);
        check(pc_cast(pc_cast(of(half, HALF), PC_BF16), PC_I32), PC_I32, PC_SHAPE(HALF), half_i32);
    }
    assert_no_leak();
}

/* A number for integers is one that they hold; uint8 takes negative ones from below, as in PyTorch. */
static void numbers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    PC_SCOPE {
        static const struct {
            pc_dtype dtype;
            double value;
        } refused[] = {{PC_U8, 256},   {PC_U8, -256}, {PC_U8, -0.5},      {PC_I32, 0x1p31}, {PC_I32, -0x1p31 - 1},
                       {PC_I64, 1e30}, {PC_I64, NAN}, {PC_I32, INFINITY}, {PC_U8, NAN},     {PC_I64, 0x1p63}};
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
            const pc_dtype dtype = refused[i].dtype;
            assert_fails(pc_full(PC_SHAPE(2), refused[i].value, dtype, test_device()), PC_ERR_ARGUMENT,
                         pc_dtype_name(dtype));
            assert_fails(pc_scalar(refused[i].value, dtype, test_device()), PC_ERR_ARGUMENT, "does not fit");
            pc_tensor *t = pc_zeros(PC_SHAPE(2), dtype, test_device());
            assert_fails(pc_fill(t, refused[i].value), PC_ERR_ARGUMENT, "does not fit");
            check(t, dtype, PC_SHAPE(2), (double[]){0, 0});
        }
        check(pc_scalar(-1, PC_U8, test_device()), PC_U8, PC_SHAPE_SCALAR, (double[]){255});
        check(pc_scalar(255.5, PC_U8, test_device()), PC_U8, PC_SHAPE_SCALAR, (double[]){255});
        check(pc_scalar(-0x1p31, PC_I32, test_device()), PC_I32, PC_SHAPE_SCALAR, (double[]){INT32_MIN});
        check(pc_scalar(-0x1p63, PC_I64, test_device()), PC_I64, PC_SHAPE_SCALAR, (double[]){INT64_MIN});
        check(pc_scalar(NAN, PC_BOOL, test_device()), PC_BOOL, PC_SHAPE_SCALAR, (double[]){1});
        check(pc_add_scalar(pc_ones(PC_SHAPE(1), PC_U8, test_device()), 300), PC_U8, PC_SHAPE(1), (double[]){45});
    }
    assert_no_leak();
}

static void factors_of_integers(void **state)
{
    (void)state;
    PC_SCOPE {
        static const pc_dtype dtypes[] = {PC_U8, PC_I32, PC_I64};
        for (int i = 0; i < 3; i++) {
            pc_tensor *y = pc_full(PC_SHAPE(3), 100, dtypes[i], test_device());
            assert_ok(pc_saxpy(y, -3, line(3, dtypes[i])));
            check(y, dtypes[i], PC_SHAPE(3), (double[]){100, 97, 94});
            assert_fails(pc_saxpy(y, 0.5, y), PC_ERR_ARGUMENT, "0.5");
            assert_fails(pc_saxpy(y, NAN, y), PC_ERR_ARGUMENT, "nan");
        }
    }
    assert_no_leak();
}

static void arange_of_integers_goes_in_whole_steps(void **state)
{
    (void)state;
    PC_SCOPE {
        assert_fails(pc_arange(0, 2, 0.5, PC_I32, test_device()), PC_ERR_ARGUMENT, "whole");
        assert_fails(pc_arange(-0.7, 2, 1, PC_U8, test_device()), PC_ERR_ARGUMENT, "whole");
        check(pc_arange(1, 2.5, 1, PC_I64, test_device()), PC_I64, PC_SHAPE(2), (double[]){1, 2});
        check(pc_arange(0, 1.5, 0.5, PC_F16, test_device()), PC_F16, PC_SHAPE(3), (double[]){0, 0.5, 1});
        check(pc_arange(254, 258, 1, PC_U8, test_device()), PC_U8, PC_SHAPE(4), (double[]){254, 255, 0, 1});
        check(pc_arange(0x1p31 - 1, 0x1p31 + 1, 1, PC_I32, test_device()), PC_I32, PC_SHAPE(2),
              (double[]){INT32_MAX, INT32_MIN});
    }
    assert_no_leak();
}

static void index_select_of_zero_dim_tensors(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *five = pc_scalar(5, PC_F32, test_device()), *zero = pc_scalar(0, PC_I64, test_device());
        assert_ok(pc_require_grad(five, true));
        pc_tensor *picked = pc_index_select(five, 0, pc_reshape(zero, PC_SHAPE(1)));
        check(picked, PC_F32, PC_SHAPE_SCALAR, (double[]){5});
        assert_ok(pc_backward(picked));
        check(pc_grad(five), PC_F32, PC_SHAPE_SCALAR, (double[]){1});
        check(pc_index_select(five, -1, zero), PC_F32, PC_SHAPE_SCALAR, (double[]){5});
        check(pc_index_select(line(5, PC_F32), 0, pc_scalar(3, PC_I32, test_device())), PC_F32, PC_SHAPE(1),
              (double[]){3});
        assert_fails(pc_index_select(five, 0, pc_zeros(PC_SHAPE(2), PC_I64, test_device())), PC_ERR_SHAPE, "one");
        assert_fails_on_device(pc_index_select(five, 0, pc_scalar(1, PC_I64, test_device())) != NULL, PC_ERR_RANGE,
                               "index");
    }
    assert_no_leak();
}

static void a_bias_broadcasts(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_reshape(line(6, PC_F32), PC_SHAPE(2, 3)), *w = pc_ones(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *one = pc_full(PC_SHAPE(1), 0.5, PC_F32, test_device());
        assert_ok(pc_require_grad(one, true));
        pc_tensor *y = pc_fn_linear(x, w, one, PC_ACTIVATION_RELU);
        check(y, PC_F32, PC_SHAPE(2, 2), (double[]){3.5, 3.5, 12.5, 12.5});
        assert_ok(pc_backward(pc_sum(y)));
        check(pc_grad(one), PC_F32, PC_SHAPE(1), (double[]){4});
        check(pc_fn_linear(x, w, pc_scalar(1, PC_F32, test_device()), PC_ACTIVATION_NONE), PC_F32, PC_SHAPE(2, 2),
              (double[]){4, 4, 13, 13});
        pc_tensor *rows = pc_reshape(line(4, PC_F32), PC_SHAPE(2, 2));
        check(pc_fn_linear(x, w, rows, PC_ACTIVATION_NONE), PC_F32, PC_SHAPE(2, 2), (double[]){3, 4, 14, 15});
        check(pc_fn_linear(x, w, pc_neg(pc_mul_scalar(rows, 5)), PC_ACTIVATION_RELU), PC_F32, PC_SHAPE(2, 2),
              (double[]){3, 0, 2, 0});
        assert_fails(pc_fn_linear(x, w, pc_ones(PC_SHAPE(3, 2), PC_F32, test_device()), PC_ACTIVATION_NONE),
                     PC_ERR_SHAPE, "bias");
        assert_fails(pc_fn_linear(x, w, pc_ones(PC_SHAPE(1, 2, 2), PC_F32, test_device()), PC_ACTIVATION_NONE),
                     PC_ERR_SHAPE, "bias");
    }
    assert_no_leak();
}

static void dropout_of_integers(void **state)
{
    (void)state;
    PC_SCOPE {
        check(pc_fn_dropout(line(3, PC_I64), 0), PC_I64, PC_SHAPE(3), (double[]){0, 1, 2});
        check(pc_fn_dropout(line(3, PC_U8), 1), PC_U8, PC_SHAPE(3), (double[]){0, 0, 0});
        check(pc_fn_dropout(pc_ones(PC_SHAPE(2), PC_BOOL, test_device()), 0), PC_BOOL, PC_SHAPE(2), (double[]){1, 1});
        assert_fails(pc_fn_dropout(line(3, PC_I32), 0.5), PC_ERR_DTYPE, "int32");
    }
    assert_no_leak();
}

static void mse_in_the_common_dtype(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(3), 2, PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        pc_tensor *loss = pc_mse(x, pc_zeros(PC_SHAPE(3), PC_F64, test_device()));
        check(loss, PC_F64, PC_SHAPE_SCALAR, (double[]){4});
        assert_ok(pc_backward(loss));
        check(pc_grad(x), PC_F32, PC_SHAPE(3), (double[]){4. / 3, 4. / 3, 4. / 3});
        check(pc_mse(line(3, PC_I32), x), PC_F32, PC_SHAPE_SCALAR, (double[]){5. / 3});
        check(pc_mse(pc_cast(x, PC_F16), pc_cast(x, PC_BF16)), PC_F32, PC_SHAPE_SCALAR, (double[]){0});
        assert_fails(pc_mse(line(3, PC_I32), line(3, PC_I64)), PC_ERR_DTYPE, "int32 and int64");
        assert_fails(pc_mse(x, pc_zeros(PC_SHAPE(3, 1), PC_F32, test_device())), PC_ERR_SHAPE, "pc_expand");
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_over_no_dimensions_is_over_all),
        cmocka_unit_test(fractions_become_integers),
        cmocka_unit_test(numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(factors_of_integers),
        cmocka_unit_test(arange_of_integers_goes_in_whole_steps),
        cmocka_unit_test(index_select_of_zero_dim_tensors),
        cmocka_unit_test(a_bias_broadcasts),
        cmocka_unit_test(dropout_of_integers),
        cmocka_unit_test(mse_in_the_common_dtype),
    };
    return cmocka_run_group_tests_name("ops.pytorch", tests, NULL, NULL);
}

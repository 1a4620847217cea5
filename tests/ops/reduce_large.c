/* Sums of columns of which there is so much to read that a GPU goes over them in another way. */
#include "device.h"

#include <paracord/ops.h>

enum { ROWS = 8205, MOST = 75600 };

/* Small whole numbers, which are exact in 16 bits, as are sums of their products in 32. */
static pc_tensor *ramp(int n, int period, pc_shape shape)
{
    int64_t numbers[MOST];
    for (int i = 0; i < n; i++)
        numbers[i] = i % period - 1;
    return pc_from_data(numbers, shape, PC_I64, test_device());
}

static void check(int height, int width, pc_dtype dtype)
{
    PC_SCOPE {
        pc_tensor *rows = ramp(height, 5, PC_SHAPE(height, 1)), *columns = ramp(width, 7, PC_SHAPE(width));
        pc_tensor *x = pc_mul(pc_cast(rows, dtype), pc_cast(columns, dtype));
        pc_tensor *want = pc_mul(columns, pc_sum(rows));
        pc_tensor *got = pc_cast(pc_sum_dims(pc_cast(x, dtype), PC_SHAPE(0), false), PC_F64);
        pc_tensor *wide = pc_cast(want, dtype);
        assert_close(pc_item(pc_sum(pc_ne(got, pc_cast(wide, PC_F64)))), 0, 0);
        got = pc_max_dim(x, 0, false, NULL);
        assert_close(pc_item(pc_cast(pc_max(got), PC_F64)), 15, 0);
    }
}

static void whole_and_ragged_widths(void **state)
{
    (void)state;
    check(ROWS, 1024, PC_BF16); /* a warp's whole accesses */
    check(ROWS, 1096, PC_F16);  /* and not */
    check(ROWS, 2056, PC_F32);
    check(ROWS, 1023, PC_F32); /* no accesses of 16 bytes */
    assert_no_leak();
}

/* Sums along the middle of many matrices of few columns. */
static void check_middle(int outer, int rows, int width, pc_dtype dtype)
{
    PC_SCOPE {
        pc_tensor *of_matrix = ramp(outer, 3, PC_SHAPE(outer, 1, 1)), *of_row = ramp(rows, 5, PC_SHAPE(rows, 1));
        pc_tensor *matrix = pc_mul(of_row, ramp(width, 7, PC_SHAPE(width)));
        pc_tensor *x = pc_mul(pc_cast(of_matrix, dtype), pc_cast(matrix, dtype));
        pc_tensor *want = pc_mul(of_matrix, pc_sum_dims(matrix, PC_SHAPE(0), true));
        pc_tensor *got = pc_sum_dims(x, PC_SHAPE(1), true);
        assert_close(pc_item(pc_sum(pc_ne(pc_cast(got, PC_F64), pc_cast(pc_cast(want, dtype), PC_F64)))), 0, 0);
    }
}

/* Narrow rows, of which two, four or eight are whole accesses, or one is, or their number is odd, or so many would be too wide. */
static void rows_beside_each_other(void **state)
{
    (void)state;
    check(38000, 28, PC_F16);
    check(7200, 150, PC_BF16);
    check(75600, 15, PC_F32);
    check(38004, 28, PC_F64);
    check(37999, 28, PC_F16);
    check(72000, 15, PC_F16);
    check(1400, 767, PC_BF16);
    check_middle(3, 12000, 31, PC_F32);
    assert_no_leak();
}

/* Maxima along the middle and where they are, the first of equals; with `gap` more columns in memory. */
static void check_places(int outer, int rows, int width, int gap, pc_dtype dtype)
{
    const int line = width + gap, results = outer * width;
    int64_t *values = malloc(sizeof *values * (size_t)(outer * rows * line));
    int64_t *most = malloc(sizeof *most * (size_t)results), *place = calloc((size_t)results, sizeof *place);
    assert_true(values && most && place);
    for (int i = 0; i < outer * rows * line; i++)
        values[i] = (int64_t)i * 7919 % 241;
    for (int i = 0; i < results; i++) {
        const int64_t *x = values + (int64_t)(i / width) * rows * line + gap + i % width;
        for (int r = 1; r < rows; r++)
            place[i] = x[r * line] > x[place[i] * line] ? r : place[i];
        most[i] = x[place[i] * line];
    }
    PC_SCOPE {
        pc_tensor *x = pc_cast(pc_from_data(values, PC_SHAPE(outer, rows, line), PC_I64, test_device()), dtype), *at;
        pc_tensor *got = pc_max_dim(pc_slice(x, 2, gap, line, 1), 1, false, &at);
        pc_tensor *want = pc_from_data(most, PC_SHAPE(outer, width), PC_I64, test_device());
        assert_close(pc_item(pc_sum(pc_ne(pc_cast(got, PC_I64), want))), 0, 0);
        want = pc_from_data(place, PC_SHAPE(outer, width), PC_I64, test_device());
        assert_close(pc_item(pc_sum(pc_ne(at, want))), 0, 0);
    }
    free(values);
    free(most);
    free(place);
}

static void maxima_of_columns(void **state)
{
    (void)state;
    check_places(168, 37, 100, 0, PC_F32); /* some threads for each */
    check_places(3, 34, 6001, 0, PC_BF16);
    check_places(33, 70, 130, 5, PC_F32); /* beside each other, with gaps */
    check_places(1, 300, 4100, 3, PC_F16);
    assert_no_leak();
}

static void many_narrow_matrices(void **state)
{
    (void)state;
    check_middle(2307, 28, 16, PC_BF16); /* a thread for a sum */
    check_middle(500, 60, 8, PC_F16);    /* four */
    check_middle(120, 200, 24, PC_F32);  /* a warp */
    check_middle(40, 300, 32, PC_F32);   /* blocks of columns */
    check_middle(769, 33, 17, PC_F32);   /* no accesses of 16 bytes */
    check_middle(900, 2, 64, PC_F16);
    assert_no_leak();
}

/* All of a tensor are the same. */
static void assert_all(pc_tensor *t, double value)
{
    assert_not_null_ok(t);
    assert_int_equal(pc_tensor_dtype(t), PC_I64);
    assert_close(pc_item(pc_min(t)), value, 0);
    assert_close(pc_item(pc_max(t)), value, 0);
}

/* Narrow integers of which there are so many that they go part by part, whatever the dimension and the order. */
static void many_integers(void **state)
{
    enum { A = 5, B = 2, C = 3400001 };
    static const pc_dtype dtypes[] = {PC_U8, PC_BOOL, PC_I32};
    (void)state;
    for (int i = 0; i < (emulated()    ? 0
                         : for_races() ? 1
                                       : 3);
         i++) /* the ops that it consists of are the device's, the parts are not */
        PC_SCOPE {
            pc_tensor *values = pc_cast(pc_arange(1, A + 1, 1, PC_I32, test_device()), dtypes[i]);
            pc_tensor *x = pc_contiguous(pc_expand(pc_reshape(values, PC_SHAPE(A, 1, 1)), PC_SHAPE(A, B, C)));
            pc_tensor *along = pc_sum_dims(x, PC_SHAPE(1, 2), true), *turned = pc_transpose(x, 0, 2);
            const double all = dtypes[i] == PC_BOOL ? A : A * (A + 1) / 2;
            assert_close(pc_item(pc_sum(x)), all * B * C, 0);
            assert_all(pc_sum_dims(x, PC_SHAPE(0), false), all);
            assert_all(pc_sum_dims(turned, PC_SHAPE(2), true), all);
            assert_all(pc_sum_dims(x, PC_SHAPE(0, 2), false), all * C);
            assert_all(pc_sub(along, pc_mul_scalar(pc_reshape(pc_cast(values, PC_I64), PC_SHAPE(A, 1, 1)), B * C)), 0);
            assert_int_equal(pc_tensor_ndim(along), 3);
            assert_close(pc_item(pc_count_nonzero(x)), (double)A * B * C, 0);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_and_ragged_widths),
                                       cmocka_unit_test(rows_beside_each_other), cmocka_unit_test(many_narrow_matrices),
                                       cmocka_unit_test(maxima_of_columns), cmocka_unit_test(many_integers)};
    return cmocka_run_group_tests_name("ops.reduce_large", tests, NULL, NULL);
}

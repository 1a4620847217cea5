/* Element by element along rows that are long, of odd lengths, and begin anywhere in memory: the device's results are the
 * cpu's to the last bit, and nothing beside a row is written. */
#include "device.h"

#include "base/base.h"
#include "tensor/tensor.h"

#include <math.h>

#include <paracord/ops.h>

enum { AROUND = 3 }; /* elements in front of and behind a row, which are NaN */

/* Quarters, which all floats have. */
static pc_tensor *numbers(pc_shape shape, pc_dtype dtype, int step)
{
    const int64_t n = pc__count(shape.ndim, shape.dim);
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(i * step % 61 - 30) / 4;
    pc_tensor *t = pc_cast(pc_from_data(values, shape, PC_F32, PC_DEVICE_CPU), dtype);
    free(values);
    return t;
}

/* The same on the test's device, each row between others' numbers. */
static pc_tensor *with_gaps(pc_tensor *t)
{
    pc_shape shape = pc_tensor_shape(t);
    const int last = shape.ndim - 1;
    const int64_t n = shape.dim[last];
    shape.dim[last] += 2 * AROUND;
    pc_tensor *all = pc_full(shape, NAN, pc_tensor_dtype(t), test_device());
    pc_tensor *place = pc_slice(all, last, AROUND, AROUND + n, 1);
    assert_ok(pc_copy(place, pc_to(t, test_device(), pc_tensor_dtype(t), false)));
    return place;
}

static void assert_bits(pc_tensor *want, pc_tensor *got)
{
    assert_not_null_ok(want);
    assert_not_null_ok(got);
    const size_t bytes = (size_t)pc_tensor_count(want) * pc_dtype_size(pc_tensor_dtype(want));
    void *a = malloc(bytes), *b = malloc(bytes);
    assert_true(a && b);
    assert_ok(pc_read(want, a, bytes));
    assert_ok(pc_read(got, b, bytes));
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
}

static void check(pc_shape shape, pc_dtype dtype)
{
    const int last = shape.ndim - 1;
    pc_shape row = {.ndim = 1, .dim = {shape.dim[last]}};
    pc_tensor *x = numbers(shape, dtype, 7), *y = numbers(row, dtype, 5), *one = numbers(PC_SHAPE(1), dtype, 1);
    pc_tensor *own_x = with_gaps(x), *own_y = pc_to(y, test_device(), dtype, false);
    pc_tensor *own_one = pc_to(one, test_device(), dtype, false);
    assert_bits(pc_sub(x, y), pc_sub(own_x, own_y));
    assert_bits(pc_sub(one, x), pc_sub(own_one, own_x));
    assert_bits(pc_lt(x, one), pc_lt(own_x, own_one));
    assert_bits(pc_cast(x, PC_F64), pc_cast(own_x, PC_F64));
    assert_bits(pc_where(pc_lt(x, y), x, y), pc_where(pc_lt(own_x, own_y), own_x, own_y));
    if (last == 2) {
        pc_tensor *turned = pc_transpose(x, 0, 1), *own = pc_transpose(own_x, 0, 1);
        assert_bits(pc_contiguous(turned), pc_contiguous(own));
    }
}

/* Into a slice: its neighbours stay. */
static void check_writes(pc_shape shape, pc_dtype dtype)
{
    const int last = shape.ndim - 1;
    pc_tensor *x = numbers(shape, dtype, 7);
    shape.dim[last] += 2 * AROUND;
    pc_tensor *want = numbers(shape, dtype, 11), *got = pc_to(numbers(shape, dtype, 11), test_device(), dtype, false);
    pc_tensor *own_x = pc_to(x, test_device(), dtype, false);
    const int64_t end = shape.dim[last] - AROUND;
    assert_ok(pc_copy(pc_slice(want, last, AROUND, end, 1), x));
    assert_ok(pc_copy(pc_slice(got, last, AROUND, end, 1), own_x));
    assert_bits(want, got);
}

static void rows_that_begin_anywhere(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_BF16, PC_F32, PC_F64};
    for (int i = 0; i < PC__COUNT(dtypes); i++)
        PC_SCOPE {
            check(PC_SHAPE(17, 2131), dtypes[i]); /* blocks of 128 threads */
            check(PC_SHAPE(12, 3, 1001), dtypes[i]);
            check(PC_SHAPE(3, 33, 991), dtypes[i]); /* 256 threads */
            check(PC_SHAPE(90, 479), dtypes[i]);
            check(PC_SHAPE(200, 225), dtypes[i]); /* 64, of which most have something */
            check(PC_SHAPE(200, 180), dtypes[i]); /* these are not long */
            check_writes(PC_SHAPE(40, 993), dtypes[i]);
            check_writes(PC_SHAPE(13, 3, 1009), dtypes[i]);
        }
    assert_no_leak();
}

/* More than a grid has. */
static void many_rows(void **state)
{
    (void)state;
    PC_SCOPE {
        check_writes(PC_SHAPE(65600, 222), PC_U8);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_begin_anywhere), cmocka_unit_test(many_rows)};
    return cmocka_run_group_tests_name("ops.long_rows", tests, NULL, NULL);
}

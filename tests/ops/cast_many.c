/* Conversion of a list of tensors: the bits of single casts, whatever their sizes and places. */
#include "device.h"

#include "ops/cast_many.h"

#include <math.h>
#include <paracord/ops.h>
#include <paracord/random.h>

enum { COUNT = 300, MOST = 2600 };

static const float odd_ones[] = {NAN, INFINITY, -INFINITY, -0.f, 1e-8f, 65519.f, 65520.f, 1e38f, 257.f, 0.1f};

/* Of none to MOST elements; every third one does not lie on 16 bytes. */
static pc_tensor *one_of_many(pc_tensor *all, int i, pc_dtype dtype)
{
    const int64_t n = i == 7 ? MOST : i % 40 * 31, from = i % 3 ? 0 : 1 + i % 5;
    pc_tensor *t = pc_contiguous(pc_cast(pc_slice(all, 0, i, i + from + n, 1), dtype));
    return pc_slice(t, 0, from, from + n, 1);
}

static void assert_same_bits(pc_tensor *a, pc_tensor *b)
{
    static char x[MOST * 4], y[MOST * 4];
    assert_int_equal(pc_tensor_dtype(a), pc_tensor_dtype(b));
    assert_int_equal(pc_tensor_count(a), pc_tensor_count(b));
    const size_t bytes = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    assert_ok(pc_read(a, x, bytes));
    assert_ok(pc_read(b, y, bytes));
    assert_memory_equal(x, y, bytes);
}

static void as_single_casts(pc_dtype from, pc_dtype to)
{
    pc_tensor *tensors[2 * COUNT];
    PC_SCOPE {
        const int64_t odd = sizeof odd_ones / sizeof *odd_ones;
        pc_tensor *all = pc_cat((pc_tensor *[]){pc_from_data(odd_ones, PC_SHAPE(odd), PC_F32, test_device()),
                                                pc_randn(PC_SHAPE(2 * MOST), PC_F32, test_device())},
                                2, 0);
        for (int i = 0; i < COUNT; i++) {
            assert_not_null_ok(tensors[COUNT + i] = one_of_many(all, i, from));
            assert_not_null_ok(tensors[i] = pc_empty(pc_tensor_shape(tensors[COUNT + i]), to, test_device()));
        }
        assert_ok(pc__cast_into(tensors, COUNT));
        for (int i = 0; i < COUNT; i++)
            assert_same_bits(tensors[i], pc_cast(tensors[COUNT + i], to));
    }
    assert_no_leak();
}

static void lists(void **state)
{
    (void)state;
    as_single_casts(PC_F32, PC_F16);
    as_single_casts(PC_F32, PC_BF16);
    as_single_casts(PC_F16, PC_F32);
    as_single_casts(PC_BF16, PC_F32);
}

static void nothing_to_convert(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *tensors[4] = {
            pc_zeros(PC_SHAPE(0), PC_BF16, test_device()), pc_zeros(PC_SHAPE(2, 0), PC_BF16, test_device()),
            pc_zeros(PC_SHAPE(0), PC_F32, test_device()), pc_zeros(PC_SHAPE(2, 0), PC_F32, test_device())};
        assert_ok(pc__cast_into(tensors, 2));
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(nothing_to_convert),
    };
    return cmocka_run_group_tests_name("ops.cast_many", tests, NULL, NULL);
}

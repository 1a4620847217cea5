/* Sums of columns of which there is so much to read that a GPU goes over them in another way. */
#include "device.h"

#include <paracord/ops.h>

enum { ROWS = 8205 };

/* Small whole numbers, which are exact in 16 bits, as are sums of their products in 32. */
static pc_tensor *ramp(int n, int period, pc_shape shape)
{
    int64_t numbers[ROWS];
    for (int i = 0; i < n; i++)
        numbers[i] = i % period - 1;
    return pc_from_data(numbers, shape, PC_I64, test_device());
}

static void check(int width, pc_dtype dtype)
{
    PC_SCOPE {
        pc_tensor *rows = ramp(ROWS, 5, PC_SHAPE(ROWS, 1)), *columns = ramp(width, 7, PC_SHAPE(width));
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
    check(1024, PC_BF16); /* a warp's whole accesses */
    check(1096, PC_F16);  /* and not */
    check(2056, PC_F32);
    check(1023, PC_F32); /* no accesses of 16 bytes */
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_and_ragged_widths)};
    return cmocka_run_group_tests_name("ops.reduce_large", tests, NULL, NULL);
}

/* Calls that may give back what they were given: the result has an owner of its own all the same. And single numbers.
 */
#include "device.h"

#include <paracord/ops.h>

static pc_tensor *made(void)
{
    return pc_ones(PC_SHAPE(2, 3), PC_F32, test_device());
}

static pc_tensor *cast_to_itself(pc_tensor *t)
{
    return pc_cast(t, PC_F32);
}

static pc_tensor *moved_to_where_it_is(pc_tensor *t)
{
    return pc_to(t, test_device(), PC_F32, false);
}

static pc_tensor *cast_on_its_device(pc_tensor *t)
{
    return pc_to(t, test_device(), PC_F64, true);
}

static pc_tensor *moved_to_the_host(pc_tensor *t)
{
    return pc_to(t, PC_DEVICE_CPU, PC_F32, false);
}

static pc_tensor *pinned_twice(pc_tensor *t)
{
    return pc_pin(t, PC_DEVICE_CPU);
}

static pc_tensor *(*const calls[])(pc_tensor *) = {cast_to_itself,    moved_to_where_it_is, cast_on_its_device,
                                                   moved_to_the_host, pc_contiguous,        pinned_twice};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* Without a scope each is freed once, in either order. */
static void without_a_scope(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++)
        for (int first = 0; first < 2; first++) {
            pc_tensor *t = made(), *result = calls[i](t);
            assert_not_null_ok(result);
            pc_tensor_free(first ? result : t);
            assert_int_equal(pc_tensor_count(first ? t : result), 6);
            pc_tensor_free(first ? t : result);
            assert_no_leak();
        }
}

/* A scope owns the result; what was given stays its owner's. */
static void inside_a_scope(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        pc_tensor *t = made(), *kept;
        PC_SCOPE {
            for (int k = 0; k < 3; k++)
                assert_not_null_ok(calls[i](t));
            kept = pc_keep(calls[i](t));
        }
        assert_not_null_ok(kept);
        pc_tensor_free(t);
        assert_int_equal(pc_tensor_count(kept), 6);
        pc_tensor_free(kept);
        assert_no_leak();
    }
}

static void whole_numbers_are_exact(void **state)
{
    (void)state;
    const int64_t large[] = {INT64_C(9007199254740993), INT64_MAX, INT64_MIN, -7};
    const double fraction = 2.5;
    PC_SCOPE {
        for (int i = 0; i < 4; i++)
            assert_true(pc_item_i64(pc_from_data(&large[i], PC_SHAPE(1, 1), PC_I64, test_device())) == large[i]);
        assert_int_equal(pc_item_i64(pc_scalar(-5, PC_I32, test_device())), -5);
        assert_int_equal(pc_item_i64(pc_scalar(255, PC_U8, test_device())), 255);
        assert_int_equal(pc_item_i64(pc_scalar(3, PC_BOOL, test_device())), 1);
        assert_int_equal(pc_item_i64(pc_sum(pc_ones(PC_SHAPE(3), PC_U8, test_device()))), 3);
        assert_fails(pc_item_i64(pc_scalar(fraction, PC_F32, test_device())) != INT64_MIN, PC_ERR_DTYPE, "float32");
        assert_fails(pc_item_i64(pc_ones(PC_SHAPE(2), PC_I64, test_device())) != INT64_MIN, PC_ERR_SHAPE, "[2]");
        assert_fails(pc_item_i64(NULL) != INT64_MIN, PC_ERR_ARGUMENT, "pc_item_i64");
        assert_int_equal(pc_item_i64(NULL), INT64_MIN);
        pc_error_clear();
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_scope),
        cmocka_unit_test(inside_a_scope),
        cmocka_unit_test(whole_numbers_are_exact),
    };
    return cmocka_run_group_tests_name("ops.owners", tests, NULL, NULL);
}

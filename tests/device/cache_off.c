/* PARACORD_CACHE=off: blocks of the bytes that were asked for, which are gone when nothing uses them any more. */
#include "sim_support.h"

#include <paracord/memory.h>
#include <stdlib.h>

enum { BYTES = 4004 };

static pc_memory_stats stats(pc_device device)
{
    pc_memory_stats s;
    assert_ok(pc_memory_query(device, &s));
    return s;
}

static void freed_blocks_go_at_once(void **state)
{
    (void)state;
    pc_tensor *a = pc_empty(PC_SHAPE(BYTES), PC_U8, PC_DEVICE_CPU);
    assert_non_null(a);
    assert_int_equal(stats(PC_DEVICE_CPU).in_use, BYTES);
    pc_tensor_free(a);
    assert_int_equal(stats(PC_DEVICE_CPU).in_use, 0);
    assert_int_equal(stats(PC_DEVICE_CPU).cached, 0);
    assert_int_equal(pc_allocator_live(), 0);
    a = pc_empty(PC_SHAPE(0), PC_F32, PC_DEVICE_CPU);
    assert_non_null(a);
    pc_tensor_free(a);
    assert_int_equal(stats(PC_DEVICE_CPU).misses, stats(PC_DEVICE_CPU).requests);
}

/* What queued work still uses is kept until the next request after its end. */
static void used_blocks_go_later(void **state)
{
    (void)state;
    pc_tensor *x = pc_zeros(PC_SHAPE(BYTES), PC_U8, sim(0));
    assert_ok(pc_device_synchronize(sim(0)));
    stop_stream(usual(0));
    assert_ok(pc_fill(x, 7));
    pc_tensor_free(x);
    assert_int_equal(stats(sim(0)).in_use, 0);
    assert_int_equal(stats(sim(0)).cached, BYTES);
    pc_tensor *other = pc_empty(PC_SHAPE(BYTES), PC_U8, sim(0)); /* not that one */
    assert_int_equal(stats(sim(0)).cached, BYTES);
    let_go();
    assert_ok(pc_device_synchronize(sim(0)));
    pc_tensor_free(other);
    other = pc_empty(PC_SHAPE(1), PC_U8, sim(0));
    assert_int_equal(stats(sim(0)).cached, 0);
    assert_int_equal(stats(sim(0)).in_use, 1);
    pc_tensor_free(other);
}

static void a_full_device_waits(void **state)
{
    (void)state;
    enum { MOST = 48 << 20 };
    pc_tensor *x = pc_zeros(PC_SHAPE(MOST), PC_U8, sim(0));
    hold_up(usual(0), 50);
    assert_ok(pc_fill(x, 7));
    pc_tensor_free(x);
    x = pc_full(PC_SHAPE(MOST), 3, PC_U8, sim(0)); /* there is room for one */
    assert_not_null_ok(x);
    PC_SCOPE {
        assert_close(pc_item(pc_max(x)), 3, 0);
    }
    pc_tensor_free(x);
}

int main(void)
{
    setenv("PARACORD_CACHE", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_blocks_go_at_once),
        cmocka_unit_test_setup_teardown(used_blocks_go_later, two_sim_devices, two_are_empty),
        cmocka_unit_test_setup_teardown(a_full_device_waits, two_sim_devices, two_are_empty),
    };
    return cmocka_run_group_tests_name("device.cache_off", tests, NULL, NULL);
}

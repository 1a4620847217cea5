/* Pinned memory, the host's turn with it, and each thread's policy about waits. */
#include "sim_support.h"

#include <pthread.h>

static void pinned_tensors(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *p = pc_empty_pinned(PC_SHAPE(2, 3), PC_F32, sim(0)),
                  *plain = pc_empty_pinned(PC_SHAPE(4), PC_I64, PC_DEVICE_CPU);
        assert_true(pc_is_pinned(p));
        assert_false(pc_is_pinned(plain));
        assert_false(pc_is_pinned(NULL));
        assert_int_equal(pc_tensor_device(p).type, PC_CPU);
        assert_int_equal(pc_tensor_count(p), 6);
        assert_true(pc_is_pinned(pc_slice(p, 0, 0, 1, 1)));
        assert_ok(pc_fill(p, 2)); /* it is a cpu tensor */
        assert_close(pc_item(pc_sum(p)), 12, 0);
        assert_fails(pc_empty_pinned(PC_SHAPE(-1), PC_F32, sim(0)), PC_ERR_SHAPE, "pc_empty_pinned");
        assert_fails(pc_empty_pinned(PC_SHAPE(1), PC_F32, sim(9)), PC_ERR_DEVICE, "sim:9");
        assert_not_null_ok(pc_empty_pinned(PC_SHAPE(0), PC_F32, sim(0)));
        assert_ptr_equal(pc_pin(p, sim(0)), p);
        pc_tensor *host = pc_arange(0, 6, 1, PC_F32, PC_DEVICE_CPU), *pinned = pc_pin(host, sim(0));
        assert_true(pc_is_pinned(pinned) && pinned != host);
        assert_close(pc_item(pc_sum(pinned)), 15, 0);
        assert_ptr_equal(pc_pin(host, PC_DEVICE_CPU), host);
        pc_tensor *fetched = pc_pin(pc_to(host, sim(1), PC_F32, true), sim(1)); /* from a device, too */
        assert_true(pc_is_pinned(fetched));
        assert_close(pc_item(pc_sum(fetched)), 15, 0);
        assert_null(pc_pin(NULL, sim(0)));
        pc_error_clear();
    }
}

static void maps_and_their_rules(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *p = pc_empty_pinned(PC_SHAPE(4), PC_F32, sim(0)), *x = pc_ones(PC_SHAPE(4), PC_F32, sim(0));
        assert_fails(pc_map(x, PC_MAP_READ), PC_ERR_DEVICE, "sim:0, whose memory the host cannot use");
        assert_fails(pc_unmap(x), PC_ERR_DEVICE, "pc_unmap");
        assert_fails(pc_map(NULL, PC_MAP_READ), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_unmap(p), PC_ERR_STATE, "is not mapped");
        float *a = pc_map(p, PC_MAP_WRITE), *b = pc_map(pc_slice(p, 0, 1, 4, 1), PC_MAP_WRITE);
        assert_ptr_equal(a + 1, b);
        for (int i = 0; i < 4; i++)
            a[i] = (float)i;
        assert_ok(pc_unmap(p));
        assert_fails(pc_copy(x, p), PC_ERR_STATE, "pc_unmap"); /* the view's map is still there */
        assert_fails(pc_copy(p, x), PC_ERR_STATE, "is mapped");
        assert_ok(pc_unmap(p));
        assert_fails(pc_unmap(p), PC_ERR_STATE, "is not mapped");
        assert_ok(pc_copy(x, p));
        assert_close(pc_item(pc_sum(x)), 6, 0);
        assert_fails(pc_device_pointer(NULL), PC_ERR_ARGUMENT, "NULL");
        assert_non_null(pc_device_pointer(x));
    }
}

/* --- sync policy --- */

static void *other_thread(void *x)
{
    double value = pc_item(x);
    return pc_sync_policy_set(PC_SYNC_ALLOW) == PC_SYNC_ALLOW && value == 7 ? x : NULL;
}

static void policies_are_the_threads_own(void **state)
{
    (void)state;
    pthread_t thread;
    void *fine;
    pc_tensor *x = pc_full(PC_SHAPE(1), 7, PC_F32, sim(0));
    assert_int_equal(pc_sync_policy_set(PC_SYNC_REFUSE), PC_SYNC_ALLOW);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, x), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_ptr_equal(fine, x);
    assert_fails(pc_item(x), PC_ERR_STATE, "this thread's policy refuses");
    assert_int_equal(pc_sync_policy_set(PC_SYNC_ALLOW), PC_SYNC_REFUSE);
    pc_tensor_free(x);
}

/* A copy larger than the ring must wait for pieces: refused as a whole, or not at all. */
static void large_copies_are_refused_before_they_begin(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *large = pc_ones(PC_SHAPE(40, 1 << 18), PC_F32, PC_DEVICE_CPU), *small = pc_slice(large, 0, 0, 4, 1);
        assert_int_equal(pc_sync_policy_set(PC_SYNC_REFUSE), PC_SYNC_ALLOW);
        int64_t before = pc_sim_operations(sim(0));
        assert_fails(pc_to(large, sim(0), PC_F32, true), PC_ERR_STATE, "pc_to makes the host wait");
        assert_int_equal(pc_sim_operations(sim(0)), before);
        pc_tensor *there = pc_to(small, sim(0), PC_F32, true);
        assert_int_equal(pc_sync_policy_set(PC_SYNC_ALLOW), PC_SYNC_REFUSE);
        assert_close(pc_item(pc_max(there)), 1, 0);
        assert_close(pc_item(pc_max(pc_to(large, sim(0), PC_F32, true))), 1, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_sim_devices, two_are_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pinned_tensors),
        TEST(maps_and_their_rules),
        TEST(large_copies_are_refused_before_they_begin),
        TEST(policies_are_the_threads_own),
    };
    return cmocka_run_group_tests_name("device.pinned", tests, NULL, NULL);
}

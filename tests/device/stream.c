/* Streams and events. PARACORD_TEST_DEVICE picks the device; cpu unless set. */
#include "device.h"

#include <paracord/memory.h>
#include <paracord/ops.h>
#include <paracord/stream.h>
#include <stdlib.h>

static void current_streams(void **state)
{
    (void)state;
    pc_stream *usual = pc_stream_current(test_device()), *other = pc_stream(test_device());
    assert_not_null_ok(usual);
    assert_not_null_ok(other);
    assert_true(pc_device_equal(pc_stream_device(other), test_device()));
    assert_int_equal(pc_stream_device(NULL).type, -1);
    assert_ok(pc_stream_set_current(test_device(), other));
    assert_ptr_equal(pc_stream_current(test_device()), other);
    assert_ok(pc_stream_set_current(test_device(), NULL));
    assert_ptr_equal(pc_stream_current(test_device()), usual);
    assert_ok(pc_stream_set_current(test_device(), other));
    pc_stream_free(other); /* the current one: the default takes its place */
    assert_ptr_equal(pc_stream_current(test_device()), usual);
    pc_stream_free(usual); /* not for the default one */
    assert_ptr_equal(pc_stream_current(test_device()), usual);
    pc_stream_free(NULL);
}

static void waiting(void **state)
{
    (void)state;
    pc_stream *stream = pc_stream(test_device());
    bool done = false;
    assert_ok(pc_stream_set_current(test_device(), stream));
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(100, 100), PC_F32, test_device());
        for (int i = 0; i < 20; i++)
            x = pc_mul_scalar(pc_matmul(x, x), 1e-2);
        assert_ok(pc_stream_synchronize(stream));
        assert_ok(pc_stream_query(stream, &done));
        assert_true(done);
        assert_close(pc_item(pc_mean(x)), 1, 1e-3);
    }
    assert_ok(pc_stream_set_current(test_device(), NULL));
    assert_ok(pc_stream_synchronize(NULL));
    assert_ok(pc_stream_query(NULL, &done));
    assert_ok(pc_device_synchronize(test_device()));
    pc_stream_free(stream);
}

/* Work on two streams that shares data comes out as if there were one. */
static void streams_are_ordered_by_their_data(void **state)
{
    (void)state;
    pc_stream *streams[2] = {pc_stream(test_device()), pc_stream(test_device())};
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(20000), PC_F32, test_device()),
                  *sum = pc_zeros(PC_SHAPE(20000), PC_F32, test_device());
        for (int i = 0; i < 200; i++)
            PC_SCOPE {
                assert_ok(pc_stream_set_current(test_device(), streams[i % 2]));
                assert_ok(pc_saxpy(sum, 1, pc_add_scalar(x, 1)));
                assert_ok(pc_copy(x, sum));
                assert_ok(pc_fill(sum, i % 7));
            }
        double want = 0, at_sum = 0;
        for (int i = 0; i < 200; i++) {
            want += 1 + at_sum;
            at_sum = i % 7;
        }
        assert_ok(pc_stream_set_current(test_device(), NULL));
        assert_close(pc_item(pc_max(x)), want, 0);
        assert_close(pc_item(pc_mean(x)), want, 1e-2);
    }
    pc_stream_free(streams[0]);
    pc_stream_free(streams[1]);
}

static void events(void **state)
{
    (void)state;
    pc_event *start = pc_event_new(test_device()), *end = pc_event_new(test_device());
    double ms = -1;
    bool done = false;
    assert_not_null_ok(start);
    assert_fails(pc_event_elapsed(start, end, &ms), PC_ERR_STATE, "recorded");
    assert_ok(pc_event_query(end, &done));
    assert_true(done); /* never recorded: done */
    assert_ok(pc_event_synchronize(end));
    assert_ok(pc_event_wait(end, NULL));
    assert_ok(pc_event_record(start, NULL));
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(200, 200), PC_F32, test_device());
        for (int i = 0; i < 10; i++)
            x = pc_tanh(pc_matmul(x, x));
    }
    assert_ok(pc_event_record(end, NULL));
    assert_ok(pc_event_wait(end, pc_stream_current(test_device())));
    assert_ok(pc_event_elapsed(start, end, &ms));
    assert_true(ms > 0.01 && ms < 60000);
    assert_ok(pc_event_query(end, &done));
    assert_true(done);
    assert_ok(pc_event_record(start, NULL)); /* again: now it is later than end */
    assert_ok(pc_event_elapsed(end, start, &ms));
    assert_true(ms >= 0);
    pc_event_free(start);
    pc_event_free(end);
    pc_event_free(NULL);
}

static void bad_input(void **state)
{
    (void)state;
    const pc_device none = {-1, 0}, far = {PC_CUDA, 63};
    bool done;
    double ms;
    pc_memory_stats stats;
    assert_fails(pc_stream(none), PC_ERR_DEVICE, "pc_stream_new");
    assert_fails(pc_stream_current(far), PC_ERR_DEVICE, "the devices are: cpu");
    assert_fails(pc_stream_set_current(far, NULL), PC_ERR_DEVICE, "cuda:63");
    assert_fails(pc_device_synchronize(none), PC_ERR_DEVICE, "none");
    assert_fails(pc_event_new(none), PC_ERR_DEVICE, "pc_event_new");
    assert_fails(pc_event_record(NULL, NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_event_wait(NULL, NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_event_synchronize(NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_event_query(NULL, &done), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_event_elapsed(NULL, NULL, &ms), PC_ERR_ARGUMENT, "start is NULL");
    assert_fails(pc_memory_query(none, &stats), PC_ERR_DEVICE, "none");
    assert_fails(pc_memory_trim(far), PC_ERR_DEVICE, "cuda:63");
    assert_fails(pc_graph_end(pc_stream_current(test_device())), PC_ERR_STATE, "not being recorded");
    assert_fails(pc_graph_launch(NULL, NULL), PC_ERR_ARGUMENT, "NULL");
    pc_graph_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_streams),
        cmocka_unit_test(waiting),
        cmocka_unit_test(streams_are_ordered_by_their_data),
        cmocka_unit_test(events),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests_name("device.stream", tests, NULL, NULL);
}

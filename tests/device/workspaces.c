/* Workspaces are blocks of the cache: nobody gets one before the work that used it is done, and nobody waits for one. */
#include "sim_support.h"

#include "device/order.h"
#include "device/workspace.h"
#include "tensor/tensor.h"

#include <paracord/memory.h>

enum { BYTES = 1 << 16, HELD_MS = 60 };

static pc_stream *a, *b;

static void start(int64_t memory)
{
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = memory)));
    a = pc_stream(sim(0));
    b = pc_stream(sim(0));
    assert_true(a && b);
}

static void end(void)
{
    pc_stream_free(a);
    pc_stream_free(b);
    assert_ok(pc_memory_trim(sim(0)));
    pc_memory_stats stats;
    assert_ok(pc_memory_query(sim(0), &stats));
    assert_int_equal(stats.in_use, 0);
    assert_int_equal(stats.cached, 0);
}

/* A call that asks for `count` workspaces, one behind the other. */
static void call(pc_stream *stream, int count, const size_t *bytes, void **data)
{
    pc__work work = {.name = "a call"};
    assert_ok(pc__queue_open(stream, &work));
    for (int i = 0; i < count; i++)
        data[i] = pc__workspace(stream, 0, bytes[i]);
    const pc_status status = stream->backend->host_call(stream, NULL, NULL, &work);
    pc__queue_close(stream, &work, status);
    assert_ok(status);
}

static void *place_on(pc_stream *stream)
{
    void *place = NULL;
    PC_WITH_STREAM(stream) {
        pc_tensor *t = pc_empty(PC_SHAPE(BYTES), PC_U8, sim(0));
        assert_not_null_ok(t);
        place = pc__data(t);
        pc_tensor_free(t);
    }
    return place;
}

static void nobody_else_gets_it_before_its_work_is_done(void **state)
{
    (void)state;
    start(1 << 24);
    void *place;
    hold_up(a, HELD_MS);
    call(a, 1, (size_t[]){BYTES}, &place);
    assert_non_null(place);
    assert_ptr_equal(place_on(a), place); /* its own queue orders what it does */
    assert_ptr_not_equal(place_on(b), place);
    assert_ok(pc_device_synchronize(sim(0)));
    end();
}

static void a_larger_one_in_the_same_call(void **state)
{
    (void)state;
    start(1 << 24);
    void *data[3];
    call(a, 3, (size_t[]){BYTES, BYTES / 2, 2 * BYTES}, data);
    assert_true(data[0] && data[2]);
    assert_ptr_equal(data[1], data[0]);
    assert_ptr_not_equal(data[2], data[0]);
    assert_ok(pc_device_synchronize(sim(0)));
    end();
}

/* The only block is in use on `a`: `b` is refused at once, where a tensor would wait for it. */
static void no_call_waits_for_one(void **state)
{
    (void)state;
    start(BYTES + BYTES / 2);
    void *place;
    hold_up(a, HELD_MS);
    call(a, 1, (size_t[]){BYTES}, &place);
    assert_non_null(place);
    call(b, 1, (size_t[]){BYTES}, &place);
    assert_null(place);
    assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
    assert_non_null(strstr(pc_error_last()->message, "a workspace"));
    pc_error_clear();
    assert_non_null(place_on(b));
    assert_ok(pc_device_synchronize(sim(0)));
    call(b, 1, (size_t[]){BYTES}, &place);
    assert_non_null(place);
    assert_ok(pc_device_synchronize(sim(0)));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_else_gets_it_before_its_work_is_done),
        cmocka_unit_test(a_larger_one_in_the_same_call),
        cmocka_unit_test(no_call_waits_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

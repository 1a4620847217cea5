/* What a device finds wrong while it computes (an index out of range) spoils what is built on it, on other streams too,
 * until that is written again: on every device that works later. */
#include "device.h"

#include <paracord.h>

enum { N = 32, STREAMS = 3 };

static pc_tensor *x, *index_of_it, *bad_index;
static pc_stream *s[STREAMS];

static void is_told_twice(const pc_tensor *t)
{
    float got[N];
    for (int i = 0; i < 2; i++)
        assert_fails(pc_read(t, got, (size_t)pc_tensor_count(t) * sizeof *got), PC_ERR_RANGE,
                     "index_select, queued at");
}

static void is(const pc_tensor *t, float value)
{
    float got[N];
    assert_ok(pc_read(t, got, sizeof got));
    for (int i = 0; i < N; i++)
        assert_float_equal(got[i], value, 1e-6);
}

static int begin(void **state)
{
    (void)state;
    int64_t places[N];
    for (int i = 0; i < N; i++)
        places[i] = N - 1 - i;
    const pc_device device = test_device();
    x = pc_full(PC_SHAPE(N), 1, PC_F32, device);
    index_of_it = pc_from_data(places, PC_SHAPE(N), PC_I64, device);
    places[7] = N;
    bad_index = pc_from_data(places, PC_SHAPE(N), PC_I64, device);
    for (int i = 0; i < STREAMS; i++)
        s[i] = pc_stream(device);
    return pc_failed() || pc_device_synchronize(device) != PC_OK;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        pc_stream_free(s[i]);
    pc_tensor_free(bad_index);
    pc_tensor_free(index_of_it);
    pc_tensor_free(x);
    pc_error_clear(); /* streams that nobody asked say it at their end */
    assert_no_leak();
    return 0;
}

static void later_only(void)
{
    if (test_device().type == PC_CPU)
        skip();
}

static pc_tensor *select_bad(pc_stream *stream)
{
    pc_tensor *bad = NULL;
    PC_WITH_STREAM(stream) {
        bad = pc_index_select(x, 0, bad_index);
    }
    assert_non_null(bad);
    return bad;
}

static void one_stream(void **state)
{
    (void)state;
    later_only();
    pc_tensor *bad = select_bad(pc_stream_current(test_device()));
    is_told_twice(bad);
    assert_fails(pc_tanh(bad) ? PC_OK : pc_error_last()->status, PC_ERR_RANGE, "index_select, queued at");
    is(x, 1);
    assert_ok(pc_fill(bad, 4));
    is(bad, 4);
    pc_tensor_free(bad);
}

/* Nobody waits for the stream on which it went wrong, but for one that waited for one that waited for it. */
static void along_the_streams(void **state)
{
    (void)state;
    later_only();
    pc_tensor *bad = select_bad(s[0]), *second = NULL, *third = NULL, *sound = NULL;
    PC_WITH_STREAM(s[1]) {
        second = pc_tanh(bad);
    }
    PC_WITH_STREAM(s[2]) {
        third = pc_exp(second);
        is_told_twice(third);
        is_told_twice(second);
        is_told_twice(bad);
    }
    for (int i = 0; i < STREAMS; i++) {
        (void)!pc_stream_synchronize(s[i]);
        pc_error_clear();
    }
    PC_WITH_STREAM(s[2]) {
        sound = pc_add(x, x);
        is(sound, 2);
    }
    is_told_twice(third);
    pc_tensor *all[] = {bad, second, third, sound};
    for (int i = 0; i < 4; i++)
        pc_tensor_free(all[i]);
}

/* The stream is gone, and what it has left is still no result. */
static void of_a_stream_that_is_gone(void **state)
{
    (void)state;
    later_only();
    pc_stream *gone = pc_stream(test_device());
    pc_tensor *bad = select_bad(gone);
    pc_stream_free(gone);
    pc_error_clear();
    is_told_twice(bad);
    pc_tensor_free(bad);
}

/* The second of three launches goes wrong. */
static void launches(void **state)
{
    (void)state;
    later_only();
    const pc_device device = test_device();
    pc_stream *usual = pc_stream_current(device);
    pc_tensor *places = pc_full(PC_SHAPE(N), 0, PC_I64, device), *out = pc_full(PC_SHAPE(N), 0, PC_F32, device),
              *seen = pc_full(PC_SHAPE(N), 0, PC_F32, device);
    assert_ok(pc_stream_synchronize(usual));
    assert_ok(pc_graph_begin(usual));
    PC_SCOPE {
        assert_ok(pc_copy(out, pc_index_select(x, 0, places)));
    }
    pc_graph *graph = pc_graph_end(usual);
    assert_not_null_ok(graph);
    int queued = 0;
    for (int i = 0; i < 3; i++) {
        pc_tensor *const now = i == 1 ? bad_index : index_of_it;
        pc_status status = pc_copy(places, now);
        status = status == PC_OK ? pc_graph_launch(graph, usual) : status;
        if (i == 1 && status == PC_OK)
            status = pc_copy(seen, out);
        if (status != PC_OK) { /* it was as fast as that, and the call was refused */
            assert_int_equal(status, PC_ERR_RANGE);
            pc_error_clear();
            is_told_twice(out);
            break;
        }
        queued = i;
    }
    (void)!pc_stream_synchronize(usual);
    pc_error_clear();
    if (queued)
        is_told_twice(seen);
    assert_ok(pc_copy(places, index_of_it));
    assert_ok(pc_graph_launch(graph, usual));
    is(out, 1);
    pc_graph_free(graph);
    pc_tensor *all[] = {places, out, seen};
    for (int i = 0; i < 3; i++)
        pc_tensor_free(all[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_stream),
        TEST(along_the_streams),
        TEST(of_a_stream_that_is_gone),
        TEST(launches),
    };
    return cmocka_run_group_tests_name("device.failed_entries", tests, NULL, NULL);
}

/* Streams, events and order by hand on devices that work beside the host. */
#include "sim_support.h"

#include <pthread.h>

enum { N = 1 << 16 };

/* --- streams --- */

static int order_seen[8], seen;

static void see(void *number)
{
    order_seen[seen++] = *(int *)number;
}

/* Two streams are ready for the one engine: the higher one goes first, whoever asked first. */
static void higher_priorities_go_first(void **state)
{
    (void)state;
    pc_stream *low = pc_stream(sim(0), .priority = -1), *high = pc_stream(sim(0), .priority = 5),
              *plain = pc_stream(sim(0));
    static int numbers[] = {-1, 5, 0};
    assert_int_equal(pc_stream_priority(low), -1);
    assert_int_equal(pc_stream_priority(high), 5);
    assert_int_equal(pc_stream_priority(plain), 0);
    assert_fails(pc_stream_priority(NULL) == 0, PC_ERR_ARGUMENT, "stream is NULL");
    seen = 0;
    stop_stream(plain);
    while (!atomic_load(&gate_reached)) /* the engine that calls the host's functions is taken */
        sleep_ms(1);
    assert_ok(pc_stream_call(low, see, &numbers[0]));
    assert_ok(pc_stream_call(plain, see, &numbers[2]));
    assert_ok(pc_stream_call(high, see, &numbers[1]));
    let_go();
    assert_ok(pc_device_synchronize(sim(0)));
    assert_int_equal(seen, 3);
    assert_int_equal(order_seen[0], 5);
    assert_int_equal(order_seen[2], -1);
    pc_stream_free(low);
    pc_stream_free(high);
    pc_stream_free(plain);
}

static pc_stream *leave_early(pc_stream *s, pc_stream **inside)
{
    PC_WITH_STREAM(s) {
        *inside = pc_stream_current(sim(0));
        if (*inside == s)
            return s;
    }
    return NULL;
}

static void with_stream_nests_and_ends(void **state)
{
    (void)state;
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(0)), *far = pc_stream(sim(1)), *inside = NULL;
    PC_WITH_STREAM(a) {
        assert_ptr_equal(pc_stream_current(sim(0)), a);
        PC_WITH_STREAM(b) {
            assert_ptr_equal(pc_stream_current(sim(0)), b);
            PC_WITH_STREAM(far) {
                assert_ptr_equal(pc_stream_current(sim(0)), b);
                assert_ptr_equal(pc_stream_current(sim(1)), far);
            }
            PC_WITH_STREAM(usual(1))
                assert_ptr_equal(pc_stream_current(sim(1)), usual(1));
        }
        assert_ptr_equal(pc_stream_current(sim(0)), a);
        for (int i = 0; i < 3; i++)
            PC_WITH_STREAM(b) {
                if (i == 1)
                    break; /* out of the block, not of the loop */
                assert_ptr_equal(pc_stream_current(sim(0)), b);
            }
        assert_ptr_equal(pc_stream_current(sim(0)), a);
        assert_ptr_equal(leave_early(b, &inside), b);
        assert_ptr_equal(pc_stream_current(sim(0)), a);
        PC_WITH_STREAM(b) {
            goto out;
        }
    out:
        assert_ptr_equal(pc_stream_current(sim(0)), a);
    }
    assert_true(pc_stream_current(sim(0)) != a && pc_stream_current(sim(0)) != b);
    assert_ptr_equal(pc_stream_current(sim(1)), usual(1));
    PC_WITH_STREAM(a) {
        pc_stream_free(a); /* the usual one takes its place */
        assert_true(pc_stream_current(sim(0)) != a);
    }
    PC_WITH_STREAM(NULL) {
        assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
    }
    pc_error_clear();
    assert_fails(pc_stream_set_current(sim(1), b), PC_ERR_DEVICE, "another device");
    pc_stream_free(b);
    pc_stream_free(far);
}

static void query_never_waits(void **state)
{
    (void)state;
    pc_stream *s = pc_stream(sim(0));
    bool done = false;
    assert_true(is_done(s));
    stop_stream(s);
    assert_ok(pc_stream_query(s, &done));
    assert_false(done);
    let_go();
    while (!is_done(s))
        sleep_ms(1);
    PC_SCOPE {
        pc_tensor *index = pc_full(PC_SHAPE(1), 5, PC_I64, sim(0)), *x = pc_zeros(PC_SHAPE(2), PC_F32, sim(0));
        PC_WITH_STREAM(s) {
            assert_not_null_ok(pc_index_select(x, 0, index));
        }
        pc_status status;
        while ((status = pc_stream_query(s, &done)) == PC_OK && !done)
            sleep_ms(1);
        assert_true(done);
        assert_int_equal(status == PC_OK ? pc_stream_synchronize(s) : status, PC_ERR_RANGE); /* it tells, once */
        pc_error_clear();
        assert_ok(pc_stream_query(s, &done));
    }
    pc_stream_free(s);
}

/* A function in a stream runs after what is before it, in another thread, and later work waits for it. */
static pthread_t called_in;
static float seen_value;

static void look(void *at)
{
    called_in = pthread_self();
    sleep_ms(10);
    seen_value = *(const float *)at;
    *(float *)at = 9;
}

static void calls_have_their_place(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(1), 3, PC_F32, sim(0)), *out = pc_empty_pinned(PC_SHAPE(1), PC_F32, sim(0));
        float *p = pc_map(out, PC_MAP_WRITE);
        *p = 0;
        assert_ok(pc_unmap(out));
        assert_ok(pc_copy(out, x));
        assert_ok(pc_stream_call(usual(0), look, p));
        assert_ok(pc_copy(x, out));
        assert_close(pc_item(x), 9, 0);
        assert_close(seen_value, 3, 0);
        assert_false(pthread_equal(called_in, pthread_self()));
        assert_fails(pc_stream_call(usual(0), NULL, NULL), PC_ERR_ARGUMENT, "NULL");
    }
}

/* A stream that is freed finishes; what it wrote is there. */
static void free_waits(void **state)
{
    (void)state;
    pc_stream *s = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0));
        hold_up(s, 20);
        PC_WITH_STREAM(s) {
            assert_ok(pc_fill(x, 4));
        }
        pc_stream_free(s);
        assert_close(pc_item(pc_sum(x)), 4 * N, 0);
    }
}

/* Independent work of two streams is not ordered: one that is held up holds nobody up. */
static void streams_do_not_wait_for_nothing(void **state)
{
    (void)state;
    pc_stream *s = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *y = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_stream_synchronize(usual(0)));
        stop_stream(s);
        PC_WITH_STREAM(s) {
            assert_ok(pc_saxpy(x, 1, x));
            assert_ok(pc_saxpy(x, 1, y)); /* both may read y */
        }
        assert_close(pc_item(pc_sum(y)), N, 0);
        assert_false(is_done(s));
        let_go();
        assert_close(pc_item(pc_sum(x)), 3 * N, 0);
        assert_true(is_done(s));
    }
    pc_stream_free(s);
}

/* --- events --- */

static void events_of_two_devices(void **state)
{
    (void)state;
    pc_event *a = pc_event_new(sim(0)), *b = pc_event_new(sim(1)), *c = pc_event_new(sim(0));
    double ms = -1;
    bool done;
    assert_fails(pc_event_elapsed(a, c, &ms), PC_ERR_STATE, "recorded");
    assert_fails(pc_event_record(a, usual(1)), PC_ERR_DEVICE, "different devices");
    stop_stream(usual(0));
    assert_ok(pc_event_record(a, NULL));
    assert_ok(pc_event_query(a, &done));
    assert_false(done);
    assert_ok(pc_event_wait(a, usual(1))); /* across devices, without the host */
    assert_ok(pc_event_record(b, usual(1)));
    assert_ok(pc_event_query(b, &done));
    assert_false(done);
    let_go();
    assert_ok(pc_event_synchronize(b));
    assert_ok(pc_event_query(a, &done));
    assert_true(done);
    hold_up(usual(0), 20);
    assert_ok(pc_event_record(c, usual(0)));
    assert_ok(pc_event_elapsed(a, c, &ms));
    assert_true(ms >= 19);
    assert_ok(pc_event_elapsed(c, a, &ms));
    assert_true(ms <= -19); /* in the order of time */
    assert_fails(pc_event_elapsed(a, b, &ms), PC_ERR_DEVICE, "different devices");
    assert_ok(pc_event_record(a, usual(0))); /* again: the mark is the later one */
    assert_ok(pc_event_elapsed(c, a, &ms));
    assert_true(ms >= 0);
    pc_event_free(a);
    pc_event_free(b);
    hold_up(usual(0), 10);
    assert_ok(pc_event_record(c, usual(0)));
    pc_event_free(c); /* in flight */
    assert_ok(pc_device_synchronize(sim(0)));
}

static void an_event_outlives_its_stream(void **state)
{
    (void)state;
    pc_stream *s = pc_stream(sim(0));
    pc_event *a = pc_event_new(sim(0)), *b = pc_event_new(sim(0));
    double ms;
    bool done;
    assert_ok(pc_event_record(a, s));
    hold_up(s, 10);
    assert_ok(pc_event_record(b, s));
    pc_stream_free(s);
    assert_ok(pc_event_query(b, &done));
    assert_true(done);
    assert_ok(pc_event_wait(b, usual(0)));
    assert_ok(pc_event_elapsed(a, b, &ms));
    assert_true(ms >= 9);
    pc_event_free(a);
    pc_event_free(b);
}

/* The time is that of the last record, whichever stream passes its mark first. */
static void an_event_recorded_elsewhere(void **state)
{
    (void)state;
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(0));
    pc_event *start = pc_event_new(sim(0)), *end = pc_event_new(sim(0));
    double before, behind;
    assert_ok(pc_event_record(start, b));
    hold_up(a, 60);
    assert_ok(pc_event_record(end, a));
    assert_ok(pc_event_record(end, b)); /* before the mark in a is passed */
    assert_ok(pc_event_elapsed(start, end, &before));
    assert_ok(pc_device_synchronize(sim(0)));
    assert_ok(pc_event_elapsed(start, end, &behind));
    assert_true(before == behind);
    pc_event_free(start);
    pc_event_free(end);
    pc_stream_free(a);
    pc_stream_free(b);
}

/* An event behind work that failed has no time, least of all an older one. */
static void events_behind_a_failure(void **state)
{
    (void)state;
    pc_event *a = pc_event_new(sim(0)), *b = pc_event_new(sim(0));
    double ms;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2), PC_F32, sim(0)), *index = pc_full(PC_SHAPE(1), 5, PC_I64, sim(0));
        assert_ok(pc_event_record(a, NULL));
        assert_ok(pc_event_record(b, NULL));
        assert_ok(pc_event_elapsed(a, b, &ms));
        hold_up(usual(0), 10);
        assert_not_null_ok(pc_index_select(x, 0, index));
        assert_ok(pc_event_record(b, NULL));
        assert_fails(pc_event_elapsed(a, b, &ms), PC_ERR_RANGE, "index_select");
        assert_fails(pc_event_elapsed(a, b, &ms), PC_ERR_STATE, "has no time");
        assert_ok(pc_event_record(b, NULL));
        assert_ok(pc_event_elapsed(a, b, &ms));
        assert_true(ms >= 9);
    }
    pc_event_free(a);
    pc_event_free(b);
}

/* Work that is refused after its wait was queued: the stream may be freed while the other one is still at it. */
static void a_wait_without_work(void **state)
{
    (void)state;
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *z = pc_zeros(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_stream_synchronize(usual(0)));
        hold_up(a, 80);
        PC_WITH_STREAM(a) {
            assert_ok(pc_fill(x, 1));
        }
        assert_ok(pc_sim_inject(sim(0), PC_SIM_LOSE, 1));
        assert_ok(pc_fill(z, 1));
        assert_int_equal(pc_stream_synchronize(usual(0)), PC_ERR_LOST);
        pc_error_clear();
        PC_WITH_STREAM(b) {
            assert_fails(pc_neg(x), PC_ERR_LOST, "lost");
        }
        pc_stream_free(b);
        pc_error_clear();
        pc_stream_free(a);
        pc_error_clear();
    }
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2)));
}

/* --- order by hand --- */

static void manual_order(void **state)
{
    (void)state;
    pc_stream *s = pc_stream(sim(0));
    pc_event *written = pc_event_new(sim(0));
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *early = NULL, *late = NULL;
        assert_ok(pc_stream_synchronize(usual(0)));
        PC_MANUAL_ORDER {
            stop_stream(s);
            PC_WITH_STREAM(s) {
                assert_ok(pc_fill(x, 1));
                assert_ok(pc_event_record(written, s));
            }
            early = pc_neg(x); /* waits for nobody: that is the program's job here */
            PC_MANUAL_ORDER {
                assert_ok(pc_stream_synchronize(usual(0)));
            }
            assert_false(is_done(s));
            let_go();
            assert_ok(pc_event_wait(written, usual(0)));
            late = pc_neg(x);
        }
        assert_close(pc_item(pc_sum(early)), 0, 0);
        assert_close(pc_item(pc_sum(late)), -N, 0);
        hold_up(s, 20);
        PC_WITH_STREAM(s) {
            assert_ok(pc_fill(x, 2));
        }
        assert_close(pc_item(pc_sum(x)), 2 * N, 0); /* outside it is as ever */
    }
    pc_event_free(written);
    pc_stream_free(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_sim_devices, two_are_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(higher_priorities_go_first),
        TEST(with_stream_nests_and_ends),
        TEST(query_never_waits),
        TEST(calls_have_their_place),
        TEST(free_waits),
        TEST(streams_do_not_wait_for_nothing),
        TEST(events_of_two_devices),
        TEST(an_event_outlives_its_stream),
        TEST(an_event_recorded_elsewhere),
        TEST(events_behind_a_failure),
        TEST(a_wait_without_work),
        TEST(manual_order),
    };
    return cmocka_run_group_tests_name("device.sim_streams", tests, NULL, NULL);
}

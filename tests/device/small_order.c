/* When small calls go that a GPU does several of in a launch: whoever asks, waits or queues something else finds them
 * done or in front. PARACORD_TEST_DEVICE picks the device; cpu unless set. */
#include "small.h"

#include <pthread.h>
#include <stdatomic.h>

static void events_and_queries(void **state)
{
    (void)state;
    pc_stream *stream = pc_stream(test_device());
    pc_event *start = pc_event_new(test_device()), *end = pc_event_new(test_device());
    PC_SCOPE {
        PC_WITH_STREAM(stream) {
            pc_tensor *x = full(16, 1);
            for (int i = 0; i < 3; i++) {
                bool done = false;
                double ms = -1;
                x = pc_add(x, x);
                assert_ok(pc_event_record(start, NULL));
                x = pc_mul(x, x);
                assert_ok(pc_event_record(end, NULL));
                x = pc_sqrt(x);
                assert_ok(pc_event_elapsed(start, end, &ms));
                assert_true(ms >= 0);
                while (!done) /* nobody waits, and it gets done */
                    assert_ok(pc_stream_query(stream, &done));
                assert_ok(pc_event_query(end, &done));
                assert_true(done);
            }
            assert_all(x, 8);
        }
    }
    pc_event_free(start);
    pc_event_free(end);
    pc_stream_free(stream);
}

static void two_streams(void **state)
{
    (void)state;
    pc_stream *stream[2] = {pc_stream(test_device()), pc_stream(test_device())};
    pc_event *event = pc_event_new(test_device());
    PC_SCOPE {
        pc_tensor *x = full(24, 1), *one = full(24, 1);
        for (int i = 0; i < 100; i++)
            PC_WITH_STREAM(stream[i % 2]) {
                for (int k = 0; k < i % 5; k++)
                    x = pc_add(x, one);
                if (i % 10 == 0) {
                    assert_ok(pc_event_record(event, stream[i % 2]));
                    assert_ok(pc_event_wait(event, stream[1 - i % 2]));
                }
            }
        assert_all(x, 201);
    }
    pc_stream_free(stream[0]);
    PC_SCOPE {
        PC_WITH_STREAM(stream[1]) {
            pc_tensor *y = pc_add(full(3, 1), full(3, 2));
            pc_stream_free(stream[1]); /* what is held goes first */
            assert_all(y, 3);
        }
    }
    pc_event_free(event);
}

/* A launch doubles what was added before it. */
static void recordings(void **state)
{
    (void)state;
    pc_stream *stream = pc_stream(test_device());
    PC_SCOPE {
        PC_WITH_STREAM(stream) {
            pc_tensor *x = full(16, 1), *one = full(16, 1);
            double want = 2;
            assert_ok(pc_saxpy(x, 1, one)); /* held when the recording begins */
            assert_ok(pc_graph_begin(stream));
            for (int i = 0; i < 2; i++)
                assert_ok(pc_saxpy(x, 1, x));
            pc_graph *graph = pc_graph_end(stream);
            assert_not_null_ok(graph);
            for (int i = 0; i < 5; i++) {
                assert_ok(pc_graph_launch(graph, stream));
                assert_ok(pc_saxpy(x, 2, one));
                assert_ok(pc_saxpy(x, -1, one));
                want = 4 * want + 1;
            }
            assert_all(x, want);
            pc_graph_free(graph);
        }
    }
    pc_stream_free(stream);
}

/* A failure of other work comes out as it always does, and what comes after it works. */
static void failures_between(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = full(8, 1);
        const int64_t places[2] = {3, 8};
        pc_tensor *index = pc_from_data(places, PC_SHAPE(2), PC_I64, test_device());
        x = pc_add(x, x);
        assert_fails_on_device(pc_index_select(x, 0, index), PC_ERR_RANGE, "is 8; it must be 0 to 7");
        assert_all(pc_add(x, x), 4);
    }
}

/* --- threads --- */

enum { ROUNDS = 4000 };

static pc_stream *everybodys;
static pc_tensor *counter;
static atomic_bool over;

static void *count_up(void *one)
{
    bool fine = true;
    PC_WITH_STREAM(everybodys) {
        for (int i = 0; i < ROUNDS; i++)
            fine = pc_saxpy(counter, 1, one) == PC_OK && fine;
    }
    atomic_store(&over, true);
    return fine ? NULL : &over;
}

/* Work of a stream of its own that waits for an event among the others' calls. */
static bool goes_behind(pc_event *event, pc_stream *own, pc_tensor *one)
{
    float got[20] = {0};
    if (pc_event_record(event, everybodys) != PC_OK || pc_event_wait(event, own) != PC_OK)
        return false;
    PC_WITH_STREAM(own) {
        pc_tensor *two = pc_add(one, one);
        if (pc_read(two, got, sizeof got) != PC_OK)
            got[0] = 0;
        pc_tensor_free(two);
    }
    return got[0] == 2 && got[19] == 2;
}

static void *ask(void *one)
{
    pc_stream *own = pc_stream(test_device());
    pc_event *event = pc_event_new(test_device());
    bool fine = own && event;
    for (int i = 0; fine && !atomic_load(&over); i++) {
        bool done;
        if (i % 4 == 0)
            fine = pc_stream_query(everybodys, &done) == PC_OK;
        else if (i % 4 == 1)
            fine = pc_stream_synchronize(everybodys) == PC_OK;
        else if (i % 4 == 2)
            fine = pc_device_synchronize(test_device()) == PC_OK;
        else
            fine = goes_behind(event, own, one);
    }
    pc_event_free(event);
    pc_stream_free(own);
    return fine ? NULL : &over;
}

static void threads(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU)
        skip(); /* there the memory itself would be raced for */
    pthread_t thread[4];
    pc_tensor *one = full(20, 1);
    everybodys = pc_stream(test_device());
    counter = full(20, 0);
    atomic_store(&over, false);
    for (int i = 1; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, one), 0);
    assert_int_equal(pthread_create(&thread[0], NULL, count_up, one), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_all(counter, ROUNDS);
    pc_tensor_free(counter);
    pc_tensor_free(one);
    pc_stream_free(everybodys);
}

int main(void)
{
    unsetenv("PARACORD_CACHE"); /* with the cache off each free asks the stream, which lets go of what is held */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_and_queries), cmocka_unit_test(two_streams), cmocka_unit_test(recordings),
        cmocka_unit_test(failures_between),   cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests_name("device.small_order", tests, NULL, NULL);
}

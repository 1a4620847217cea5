/* Small calls, which a GPU does several of in a launch: chains of them, and everything that may come between. What they
 * compute is what large calls compute, to the bit. PARACORD_TEST_DEVICE picks the device; cpu unless set. */
#include "device.h"
#include "tensor/tensor.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 2048, AT_ONCE = 32 }; /* elements of a small call, and such calls in a launch (src/cuda/held.h) */

static const int lengths[] = {1, 2, 3, 4, 5, 16, 31, 255, 1023, 1024, 1025, MOST - 1, MOST, MOST + 1, 3 * MOST};

static pc_tensor *full(int n, double value)
{
    pc_tensor *t = pc_full(PC_SHAPE(n), value, PC_F32, test_device());
    assert_not_null_ok(t);
    return t;
}

static void assert_all(const pc_tensor *t, double want)
{
    static float got[3 * MOST];
    const int64_t n = pc_tensor_count(t);
    assert_ok(pc_read(t, got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++)
        if (got[i] != (float)want)
            fail_msg("element %d of %d is %g, not %g", (int)i, (int)n, (double)got[i], want);
}

static void chains(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int calls = 1; calls < 3 * AT_ONCE + 3; calls += calls < 4 ? 1 : AT_ONCE - 1)
            PC_SCOPE {
                pc_tensor *a = full(lengths[k], 1), *one = full(lengths[k], 1), *twice = NULL;
                for (int i = 0; i < calls; i++) {
                    a = pc_add(a, one);
                    twice = pc_add(a, a);
                }
                assert_all(twice, 2 * (calls + 1));
                assert_all(a, calls + 1);
            }
}

/* --- the same bits as in calls that are not small --- */

typedef pc_tensor *(*unary)(pc_tensor *a);
typedef pc_tensor *(*binary)(pc_tensor *a, pc_tensor *b);

static void assert_same_bits(const char *what, const pc_tensor *little, const pc_tensor *large)
{
    float some[MOST], all[3 * MOST];
    const size_t bytes = (size_t)pc_tensor_count(little) * sizeof *some;
    assert_ok(pc_read(little, some, bytes));
    assert_ok(pc_read(large, all, sizeof all));
    if (memcmp(some, all, bytes) != 0)
        fail_msg("%s: other bits", what);
}

static pc_tensor *scaled(pc_tensor *a)
{
    return pc_mul_scalar(a, 0.7);
}

static pc_tensor *taken_from_one(pc_tensor *a)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_sub(pc_ones(PC_SHAPE(1, 1), PC_F32, test_device()), a));
    }
    return result;
}

static pc_tensor *plus_a_row(pc_tensor *a)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_add(pc_unsqueeze(a, 0), a));
    }
    return result;
}

static void same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unary one;
        binary two;
    } ops[] = {
        {"add", .two = pc_add},
        {"sub", .two = pc_sub},
        {"mul", .two = pc_mul},
        {"div", .two = pc_div},
        {"neg", .one = pc_neg},
        {"exp", .one = pc_exp},
        {"log", .one = pc_log},
        {"sqrt", .one = pc_sqrt},
        {"relu", .one = pc_relu},
        {"tanh", .one = pc_tanh},
        {"sigmoid", .one = pc_sigmoid},
        {"clone", .one = pc_clone},
        {"scaled", .one = scaled},
        {"taken_from_one", .one = taken_from_one},
        {"plus_a_row", .one = plus_a_row},
    };
    static float values[2][3 * MOST];
    for (int i = 0; i < 3 * MOST; i++) {
        values[0][i] = i % 97 == 5 ? -0.0f : i % 89 == 7 ? NAN : (float)((i * 7919) % 1000 - 500) / 77;
        values[1][i] = i % 83 == 3 ? INFINITY : (float)((i * 104729) % 1000 - 300) / 1234;
    }
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const int n = lengths[k] < MOST ? lengths[k] : MOST;
        PC_SCOPE {
            pc_tensor *a = pc_from_data(values[0], PC_SHAPE(3 * MOST), PC_F32, test_device()),
                      *b = pc_from_data(values[1], PC_SHAPE(3 * MOST), PC_F32, test_device()),
                      *x = pc_from_data(values[0], PC_SHAPE(n), PC_F32, test_device()),
                      *y = pc_from_data(values[1], PC_SHAPE(n), PC_F32, test_device());
            pc_tensor *little[sizeof ops / sizeof *ops]; /* one behind the other, nothing read between */
            for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
                little[i] = ops[i].one ? ops[i].one(x) : ops[i].two(x, y);
            for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
                assert_same_bits(ops[i].name, little[i], ops[i].one ? ops[i].one(a) : ops[i].two(a, b));
            assert_ok(pc_saxpy(x, 0.3, y));
            assert_ok(pc_saxpy(a, 0.3, b));
            assert_same_bits("saxpy", x, a);
            assert_ok(pc_fill(x, 0.1));
            assert_ok(pc_copy(y, x));
            assert_ok(pc_fill(b, 0.1));
            assert_same_bits("copy of a fill", y, b);
        }
    }
}

/* Gradients of the activations, which are ops of their own. */
static void gradients(void **state)
{
    (void)state;
    const unary ops[] = {pc_relu, pc_sigmoid, pc_tanh};
    for (int k = 0; k < 3; k++)
        PC_SCOPE {
            pc_tensor *t[2];
            for (int large = 0; large < 2; large++) {
                float values[3 * MOST];
                for (int i = 0; i < 3 * MOST; i++)
                    values[i] = (float)(i % 201 - 100) / 17;
                t[large] = pc_from_data(values, PC_SHAPE(large ? 3 * MOST : 77), PC_F32, test_device());
                assert_ok(pc_require_grad(t[large], true));
                assert_ok(pc_backward(pc_sum(ops[k](t[large]))));
            }
            assert_same_bits("a gradient", pc_grad(t[0]), pc_grad(t[1]));
        }
}

/* Shapes, strides and dtypes that are not held, between such that are. */
static void between_others(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(4, 4), 1, PC_F32, test_device()), *y = x;
        double want = 1;
        for (int i = 0; i < 3 * AT_ONCE; i++) {
            y = pc_add(y, x);
            want += 1;
            if (i % 5 == 0)
                y = pc_transpose(pc_add(pc_transpose(y, 0, 1), x), 0, 1), want += 1;
            if (i % 7 == 0)
                y = pc_sub_scalar(y, 2), want -= 2;
            if (i % 11 == 0)
                y = pc_cast(pc_add(pc_cast(y, PC_I32), pc_cast(x, PC_I32)), PC_F32), want += 1;
            if (i % 13 == 0)
                y = pc_mul_scalar(pc_matmul(y, x), 0.25);
            if (i % 17 == 0)
                y = pc_add(pc_slice(pc_cat((pc_tensor *[]){x, y}, 2, 0), 0, 4, 8, 1), x), want += 1;
            if (i % 19 == 0)
                y = pc_to(pc_to(y, PC_DEVICE_CPU, PC_F32, false), test_device(), PC_F32, false);
            if (i % 23 == 0)
                assert_close(pc_item(pc_mean(y)), want, 0);
        }
        assert_all(pc_contiguous(y), want);
        pc_tensor *nothing = pc_empty(PC_SHAPE(0), PC_F32, test_device());
        assert_int_equal(pc_tensor_count(pc_add(nothing, nothing)), 0);
    }
}

static void in_place(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = full(40, 0), *front = pc_slice(x, 0, 0, 20, 1), *back = pc_slice(x, 0, 20, 40, 1),
                  *odd = pc_slice(x, 0, 1, 8, 1), *was = NULL;
        assert_ok(pc_fill(front, 1)); /* 1 0 */
        for (int i = 0; i < 2 * AT_ONCE; i++) {
            assert_ok(pc_saxpy(back, 1, front));
            if (i == AT_ONCE)
                was = pc_clone(back);
        }
        assert_all(back, 2 * AT_ONCE);
        assert_all(was, AT_ONCE + 1);
        assert_ok(pc_copy(front, back));
        assert_ok(pc_fill(odd, 3)); /* its address is no multiple of 16 */
        assert_ok(pc_saxpy(odd, -1, odd));
        assert_all(odd, 0);
        assert_all(pc_slice(front, 0, 8, 20, 1), 2 * AT_ONCE);
        assert_all(pc_slice(front, 0, 0, 1, 1), 2 * AT_ONCE);
    }
}

/* Blocks go back to the cache, and to the device, while calls that use them are held. */
static void freed_between(void **state)
{
    (void)state;
    pc_tensor *sum = full(64, 0);
    for (int i = 0; i < 20 * AT_ONCE; i++) {
        pc_tensor *a = full(64, i), *b = full(64, 1), *c = pc_mul(a, b), *d = pc_add(sum, c);
        pc_tensor_free(a);
        pc_tensor_free(b);
        pc_tensor_free(c);
        pc_tensor_free(sum);
        sum = d;
        if (i % 50 == 49)
            assert_ok(pc_memory_trim(test_device()));
    }
    assert_all(sum, 20 * AT_ONCE * (20 * AT_ONCE - 1) / 2);
    pc_tensor_free(sum);
}

/* --- whoever asks or waits sees them done --- */

static void events_and_queries(void **state)
{
    (void)state;
    pc_stream *stream = pc_stream_new(test_device());
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
    pc_stream *stream[2] = {pc_stream_new(test_device()), pc_stream_new(test_device())};
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
    pc_stream *stream = pc_stream_new(test_device());
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
    pc_stream *own = pc_stream_new(test_device());
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
    everybodys = pc_stream_new(test_device());
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

/* --- on the emulated GPU, whose memory the host can look at and which does at once what is launched --- */

static bool emulated(void)
{
    const char *folder = getenv("PARACORD_PLUGIN_PATH");
    return test_device().type == PC_CUDA && folder && strstr(folder, "emulator");
}

static float now_in(pc_tensor *t)
{
    return *(volatile float *)pc__data(t);
}

static void they_travel_together(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1);
        assert_ok(pc_device_synchronize(test_device()));
        for (int i = 1; i <= 3 * AT_ONCE; i++) {
            assert_ok(pc_saxpy(x, 1, one));
            assert_close(now_in(x), i / AT_ONCE * AT_ONCE, 0);
        }
        assert_ok(pc_saxpy(x, 1, one));
        assert_close(now_in(x), 3 * AT_ONCE, 0);
        pc_tensor *large = full(MOST + 1, 0); /* it is not held, and goes behind */
        assert_close(now_in(x), 3 * AT_ONCE + 1, 0);
        assert_ok(pc_saxpy(x, 1, one));
        assert_ok(pc_device_synchronize(test_device()));
        assert_close(now_in(x), 3 * AT_ONCE + 2, 0);
        assert_close(now_in(large), 0, 0);
    }
}

static pc_tensor *asked;

static void call_of_the_host(void *context)
{
    *(float *)context = now_in(asked);
}

/* All that takes a place in the queue is behind them. */
static void they_go_first(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    pc_stream *stream = pc_stream_new(test_device()), *other = pc_stream_new(test_device());
    pc_event *event = pc_event_new(test_device());
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1), *host = pc_empty_pinned(PC_SHAPE(16), PC_F32, test_device());
        float seen = -1;
        bool done;
        asked = x;
        assert_ok(pc_device_synchronize(test_device()));
        PC_WITH_STREAM(stream) {
            assert_ok(pc_saxpy(x, 1, one));
            assert_close(now_in(x), 0, 0);
            assert_ok(pc_event_record(event, stream));
            assert_close(now_in(x), 1, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_stream_call(stream, call_of_the_host, &seen));
            assert_close(seen, 2, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_stream_query(stream, &done));
            assert_close(now_in(x), 3, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_copy(host, x));
            assert_close(now_in(host), 4, 0);
            assert_ok(pc_saxpy(x, 1, one));
            PC_WITH_STREAM(other) {
                assert_ok(pc_saxpy(one, 1, x)); /* it waits for x */
                assert_close(now_in(x), 5, 0);
                assert_close(now_in(one), 1, 0);
            }
        }
        assert_all(one, 6);
    }
    pc_event_free(event);
    pc_stream_free(stream);
    pc_stream_free(other);
}

/* A launch that the driver refuses is told to whoever waits, with the first call's place. */
static void a_refused_launch(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1);
        assert_ok(pc_device_synchronize(test_device()));
        assert_ok(pc_saxpy(x, 1, one));
        pc_tensor_free(pc_add(x, one));
        setenv("PARACORD_EMULATOR_REFUSES", "1", 1);
        assert_fails(pc_device_synchronize(test_device()), PC_ERR_BACKEND, "saxpy, queued at ");
        unsetenv("PARACORD_EMULATOR_REFUSES");
        assert_ok(pc_saxpy(x, 5, one));
        assert_all(x, 5);
        assert_ok(pc_saxpy(x, 1, one));
        setenv("PARACORD_EMULATOR_REFUSES", "1", 1);
        for (int i = 1; i < AT_ONCE; i++)
            assert_ok(pc_saxpy(x, 1, one));
        unsetenv("PARACORD_EMULATOR_REFUSES");
        assert_fails(pc_saxpy(x, 1, one), PC_ERR_BACKEND, "with 31 small calls after it");
        assert_all(x, 5);
    }
}

int main(void)
{
    unsetenv("PARACORD_CACHE"); /* with the cache off each free asks the stream, which lets go of what is held */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(gradients),
        cmocka_unit_test(between_others),
        cmocka_unit_test(in_place),
        cmocka_unit_test(freed_between),
        cmocka_unit_test(events_and_queries),
        cmocka_unit_test(two_streams),
        cmocka_unit_test(recordings),
        cmocka_unit_test(failures_between),
        cmocka_unit_test(threads),
        cmocka_unit_test(they_travel_together),
        cmocka_unit_test(they_go_first),
        cmocka_unit_test(a_refused_launch),
    };
    return cmocka_run_group_tests_name("device.held", tests, NULL, NULL);
}

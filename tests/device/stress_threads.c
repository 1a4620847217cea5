/* Host threads on the same streams and the same tensors, streams that go while others still have them, and failures
 * that meet all of that. */
#include "support.h"

#include <paracord.h>
#include <stdio.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 400, N = 64 };

static pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static int start(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 1 << 20)) == PC_OK ? 0 : -1;
}

static int rounds(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return ROUNDS / 8;
#else
    return ROUNDS;
#endif
}

/* All elements are `want`. */
static bool is_all(const pc_tensor *t, float want)
{
    float got[N];
    if (pc_read(t, got, sizeof got) != PC_OK)
        return false;
    for (int i = 0; i < N; i++)
        if (got[i] != want)
            return false;
    return true;
}

static void in_threads(void *(*function)(void *), void *context[THREADS])
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, function, context[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
}

static char wrong; /* what a thread returns where something was */

/* --- readers on streams of their own, then one writer --- */

static pc_tensor *shared;
static pc_stream *readers[THREADS];
static float shared_is;

static void *read_shared(void *context)
{
    pc_stream *stream = *(pc_stream **)context;
    bool fine = true;
    PC_WITH_STREAM(stream) {
        pc_tensor *sum = pc_mul_scalar(shared, 2);
        for (int i = 0; i < 3; i++) {
            pc_tensor *next = pc_add(sum, shared);
            pc_tensor_free(sum);
            sum = next;
        }
        fine = is_all(shared, shared_is) &&
               is_all(sum, shared_is * 5); /* the host waits for the writer, and reads go on */
        pc_tensor_free(sum);
        sum = pc_add(shared, shared);
        pc_tensor_free(sum); /* still under way when the thread ends */
    }
    return fine ? NULL : &wrong;
}

static void readers_then_a_writer(void **state)
{
    (void)state;
    void *context[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = i ? pc_stream(sim(0), .priority = i % 2) : pc_stream_current(sim(0));
        context[i] = &readers[i];
    }
    shared = pc_zeros(PC_SHAPE(N), PC_F32, sim(0));
    for (int i = 0; i < rounds(); i++) {
        shared_is = (float)i;
        PC_WITH_STREAM(readers[i % THREADS]) {
            assert_ok(pc_fill(shared, i));
        }
        in_threads(read_shared, context);
    }
    for (int i = 1; i < THREADS; i++)
        pc_stream_free(readers[i]);
    pc_tensor_free(shared);
}

/* --- several threads on one stream, which is freed while it is their current one --- */

static pc_stream *everybodys;
static pthread_barrier_t all_have_it;

static void *work_on_it(void *context)
{
    int number = *(int *)context;
    float want = (float)number;
    pc_tensor *x = pc_full(PC_SHAPE(N), number, PC_F32, sim(0));
    bool fine = pc_stream_set_current(sim(0), everybodys) == PC_OK;
    pthread_barrier_wait(&all_have_it);
    for (int i = 0; i < 40 && fine; i++) {
        pc_tensor *y = pc_add_scalar(x, 1);
        pc_tensor_free(x);
        x = y;
        want++;
        if (i % 8 != 7)
            continue;
        PC_WITH_STREAM(pc_stream_current(sim(0))) {
            fine &= pc_saxpy(x, 1, x) == PC_OK;
        }
        want *= 2;
    }
    fine &= pc_stream_set_current(sim(0), NULL) == PC_OK && is_all(x, want);
    pc_tensor_free(x);
    return fine ? NULL : &wrong;
}

static void *free_it(void *context)
{
    pthread_barrier_wait(&all_have_it);
    usleep((useconds_t)(*(int *)context % 16) * 20);
    pc_stream_free(everybodys);
    return NULL;
}

static void *work_or_free(void *context)
{
    return *(int *)context % THREADS ? work_on_it(context) : free_it(context);
}

static void a_stream_goes_under_its_threads(void **state)
{
    (void)state;
    int number[THREADS];
    void *context[THREADS];
    assert_int_equal(pthread_barrier_init(&all_have_it, NULL, THREADS), 0);
    for (int i = 0; i < rounds(); i++) {
        everybodys = pc_stream(sim(0));
        assert_non_null(everybodys);
        for (int k = 0; k < THREADS; k++)
            context[k] = &number[k], number[k] = THREADS * i % 1000 + k;
        in_threads(work_or_free, context);
    }
    (void)pthread_barrier_destroy(&all_have_it);
}

/* --- threads on one stream, whose work fails --- */

static atomic_int told;

static void *fail_now_and_then(void *context)
{
    (void)context;
    bool fine = true;
    PC_WITH_STREAM(everybodys) {
        for (int i = 0; i < 50; i++) {
            pc_error_clear();
            int64_t place = i % 10 ? 3 : N;
            pc_tensor *a = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0));
            pc_tensor *index = pc_from_data(&place, PC_SHAPE(1), PC_I64, sim(0));
            pc_tensor *b = pc_index_select(a, 0, index);
            pc_tensor_free(b);
            pc_tensor_free(index);
            pc_tensor_free(a);
            bool done;
            (void)!pc_stream_query(everybodys, &done); /* this may be told too */
            if (pc_failed()) {
                atomic_fetch_add(&told, 1);
                fine &= pc_error_last()->status == PC_ERR_RANGE;
            }
        }
    }
    return fine ? NULL : &wrong;
}

static void a_failure_is_told_to_one_thread(void **state)
{
    (void)state;
    void *context[THREADS] = {NULL};
    everybodys = pc_stream(sim(0));
    for (int i = 0; i < rounds() / 10; i++) {
        in_threads(fail_now_and_then, context);
        if (pc_stream_synchronize(everybodys) != PC_OK)
            assert_int_equal(pc_error_last()->status, PC_ERR_RANGE);
        pc_error_clear();
        PC_WITH_STREAM(everybodys) {
            pc_tensor *x = pc_full(PC_SHAPE(N), i, PC_F32, sim(0));
            assert_true(is_all(x, (float)i)); /* it goes on */
            pc_tensor_free(x);
        }
    }
    assert_true(told > 0);
    pc_stream_free(everybodys);
    assert_false(pc_failed());
}

/* --- an event that is recorded again while others wait for it --- */

static void go_slowly(void *unused)
{
    (void)unused;
    usleep(300);
}

static void events_are_recorded_again(void **state)
{
    (void)state;
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(1));
    pc_event *event = pc_event_new(sim(0));
    pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *y = pc_zeros(PC_SHAPE(N), PC_F32, sim(1));
    assert_ok(pc_device_synchronize(sim(0)));
    assert_ok(pc_device_synchronize(sim(1)));
    for (int i = 1; i <= rounds() / 4; i++) {
        PC_MANUAL_ORDER {
            assert_ok(pc_stream_call(a, go_slowly, NULL));
            PC_WITH_STREAM(a) {
                assert_ok(pc_fill(x, i));
            }
            assert_ok(pc_event_record(event, a));
            assert_ok(pc_event_wait(event, b));
            assert_ok(pc_event_record(event, a)); /* b waits for what it was */
            PC_WITH_STREAM(b) {
                assert_ok(pc_copy(y, x));
            }
            assert_ok(pc_event_synchronize(event));
        }
        assert_ok(pc_stream_synchronize(b));
        assert_true(is_all(y, (float)i));
    }
    pc_tensor_free(x);
    pc_tensor_free(y);
    pc_event_free(event);
    pc_stream_free(a);
    pc_stream_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(readers_then_a_writer, start),
        cmocka_unit_test_setup(a_stream_goes_under_its_threads, start),
        cmocka_unit_test_setup(a_failure_is_told_to_one_thread, start),
        cmocka_unit_test_setup(events_are_recorded_again, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

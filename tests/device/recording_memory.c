/* Recordings where memory is short: the blocks that they hold are nobody else's, whatever was refused on the way. */
#include "sim_support.h"

#include "failing.h"

#include <pthread.h>

enum { N = 4096, BYTES = 4 * N };

static pc_status softmax_into(pc_tensor *r, pc_tensor *w)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *s = pc_softmax(w, 0); /* has memory of its own: two calls read it */
        status = pc_copy(r, s);
        if (status == PC_OK)
            status = pc_saxpy(r, 0, s);
    }
    return status;
}

/* The device holds four blocks, and the fourth is still in use on `b` when the recording asks for one. */
static void a_recording_keeps_a_block_that_was_still_in_use(void **state)
{
    (void)state;
    assert_ok(
        pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 4 * BYTES + 1024, .kernel_time = .05)));
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(0));
    pc_tensor *w = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0)), *r = pc_full(PC_SHAPE(N), 0, PC_F32, sim(0)),
              *v = pc_full(PC_SHAPE(N), 0, PC_F32, sim(0));
    assert_ok(pc_device_synchronize(sim(0)));
    PC_WITH_STREAM(b) {
        pc_tensor_free(pc_exp(v));
    }
    pc_graph *graph = NULL;
    PC_WITH_STREAM(a) {
        assert_ok(pc_graph_begin(a));
        assert_ok(softmax_into(r, w));
        graph = pc_graph_end(a);
    }
    assert_not_null_ok(graph);
    pc_tensor *f =
        pc_full(PC_SHAPE(N), 7, PC_F32, sim(0)); /* none is left but the recording's: refused, or waited for */
    const bool refused = !f;
    pc_error_clear();
    assert_ok(pc_graph_launch(graph, a));
    float got[N];
    if (f) {
        assert_ok(pc_read(f, got, sizeof got));
        for (int i = 0; i < N; i++)
            assert_float_equal(got[i], 7, 0);
    }
    assert_true(refused);
    assert_ok(pc_read(r, got, sizeof got));
    assert_float_equal(got[0], 1. / N, 1e-9);
    pc_graph_free(graph);
    pc_tensor_free(f);
    pc_tensor_free(v);
    pc_tensor_free(r);
    pc_tensor_free(w);
    pc_stream_free(b);
    pc_stream_free(a);
}

/* --- several threads, too little memory of the device, and host memory that is refused now and then --- */

enum { THREADS = 3, ROUNDS = 60, SMALL = 256, GUARDS = 3, HELD = 8 };

typedef struct worker {
    int number;
    bool pressed;
    int through, refused; /* rounds with a result, and without */
    pc_stream *own, *side;
    pc_tensor *w, *r, *guard[GUARDS];
    pc_tensor *held[HELD]; /* results of the recording under way, each with memory of its own */
    int held_count;
    char wrong[PC_MESSAGE_MAX];
} worker;

static float want[THREADS][ROUNDS][SMALL];

static void says(worker *w, const char *what)
{
    if (!w->wrong[0])
        snprintf(w->wrong, sizeof w->wrong, "thread %d: %s: %.200s", w->number, what, pc_error_last()->message);
}

/* What was refused was refused, and nothing else went wrong. */
static bool was_refused(worker *w)
{
    if (pc_failed() && pc_error_last()->status != PC_ERR_MEMORY)
        says(w, "something else than memory");
    const bool refused = pc_failed();
    pc_error_clear();
    return refused;
}

static pc_tensor *keep_of(worker *w, pc_tensor *t)
{
    if (t)
        w->held[w->held_count++] = pc_tensor_retain(t);
    return t;
}

/* A step or two with results that are held in between, by number. */
static pc_status work(worker *w, int round)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = keep_of(w, pc_tanh(keep_of(w, pc_mul(w->w, w->w))));
        for (int i = 0; i < round % 3; i++)
            y = keep_of(w, pc_add(keep_of(w, pc_sigmoid(y)), w->w));
        status = pc_copy(w->r, y);
    }
    return status;
}

static void drop_kept(worker *w)
{
    while (w->held_count)
        pc_tensor_free(w->held[--w->held_count]);
}

/* Blocks that are still in use when they are free again. */
static void keep_blocks_busy(const worker *w)
{
    PC_WITH_STREAM(w->side) {
        PC_SCOPE {
            (void)!pc_exp(pc_exp(w->guard[0]));
        }
    }
}

static void check_guards(worker *w)
{
    float got[SMALL];
    for (int i = 0; i < GUARDS; i++) {
        pc_error_clear();
        while (pc_read(w->guard[i], got, sizeof got) != PC_OK) /* until the host has the memory for it */
            if (!was_refused(w))
                return;
        for (int k = 0; k < SMALL; k++)
            if (got[k] != (float)(10 * w->number + i))
                says(w, "a tensor that nobody wrote has changed");
    }
}

/* The first guard is a new tensor each time, in whatever memory there is. */
static void renew_guard(worker *w)
{
    pc_tensor *f = pc_full(PC_SHAPE(SMALL), 10 * w->number, PC_F32, sim(0));
    if (f) {
        pc_tensor_free(w->guard[0]);
        w->guard[0] = f;
    }
    (void)was_refused(w);
}

static bool record_and_launch(worker *w, int round, float *got)
{
    if (pc_fill(w->w, .01 * round + w->number) != PC_OK || pc_graph_begin(w->own) != PC_OK)
        return false;
    const bool whole = work(w, round) == PC_OK;
    pc_graph *graph = pc_graph_end(w->own);
    drop_kept(w);
    renew_guard(w);
    keep_blocks_busy(w);
    bool fine = whole && graph && !pc_failed() && pc_graph_launch(graph, w->own) == PC_OK;
    renew_guard(w);
    fine = fine && pc_read(w->r, got, SMALL * sizeof *got) == PC_OK;
    pc_graph_free(graph);
    return fine;
}

static void *go(void *context)
{
    worker *w = context;
    float got[SMALL];
    (void)!pc_stream_set_current(sim(0), w->own);
    for (int round = 0; round < ROUNDS; round++) {
        keep_blocks_busy(w);
        (void)was_refused(w);
        const bool fine = record_and_launch(w, round, got);
        (void)was_refused(w);
        w->through += fine;
        w->refused += !fine;
        if (fine && !w->pressed)
            memcpy(want[w->number][round], got, sizeof got);
        else if (fine && memcmp(want[w->number][round], got, sizeof got) != 0)
            says(w, "the result is another than without pressure");
        check_guards(w);
    }
    (void)!pc_stream_set_current(sim(0), NULL);
    return NULL;
}

static void begin(worker *w, int number, bool pressed)
{
    *w = (worker){.number = number, .pressed = pressed, .own = pc_stream(sim(0)), .side = pc_stream(sim(0))};
    w->w = pc_full(PC_SHAPE(SMALL), 0, PC_F32, sim(0));
    w->r = pc_full(PC_SHAPE(SMALL), 0, PC_F32, sim(0));
    for (int i = 0; i < GUARDS; i++)
        w->guard[i] = pc_full(PC_SHAPE(SMALL), 10 * number + i, PC_F32, sim(0));
    assert_not_null_ok(w->guard[GUARDS - 1]);
}

static void end(worker *w)
{
    for (int i = 0; i < GUARDS; i++)
        pc_tensor_free(w->guard[i]);
    pc_tensor_free(w->r);
    pc_tensor_free(w->w);
    pc_stream_free(w->side);
    pc_stream_free(w->own);
}

/* The results of all rounds; with what is too little memory, and then with an `n`-th allocation refused, too. */
static int run(int64_t memory, unsigned n)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    int through = 0;
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = memory)));
    for (int i = 0; i < THREADS; i++)
        begin(&workers[i], i, memory || n);
    atomic_store(&one_in, n);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, go, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&one_in, 0);
    for (int i = 0; i < THREADS; i++) {
        assert_string_equal(workers[i].wrong, "");
        through += workers[i].through;
        end(&workers[i]);
    }
    return through;
}

static void recordings_under_pressure(void **state)
{
    (void)state;
    const int all = THREADS * ROUNDS, block = SMALL * 4;
    assert_int_equal(run(0, 0), all);
    /* The longest of them need more than is left even for one thread alone. */
    const int few = run(THREADS * (2 + GUARDS) * block + 6 * block, 0);
    assert_in_range(few, 1, all - 1);
    for (unsigned n = 7; n < 60; n += 13)
        (void)run(THREADS * (2 + GUARDS) * block + 16 * block, n);
    const int rarely = run(0, 211);
    assert_in_range(rarely, 1, all - 1);
    print_message("%d rounds: %d got through with little memory of the device, %d with refused allocations\n", all, few,
                  rarely);
}

int main(void)
{
    (void)!pc_allocator_set(&failing);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_recording_keeps_a_block_that_was_still_in_use, one_is_empty),
        cmocka_unit_test_teardown(recordings_under_pressure, one_is_empty),
    };
    return cmocka_run_group_tests_name("device.recording_memory", tests, NULL, NULL);
}

/* Results of work that failed, or was skipped: whoever asks gets the failure, each time, until all is written again. */
#include "sim_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { N = 64 };

static pc_tensor *x, *failed, *skipped, *pinned, *whole;
static int line;

#define HERE "failed_results.c"

/* exp fails, what is queued behind it and what waits for it is not done; and all of that was told. */
static int break_something(void **state)
{
    (void)state;
    if (two_sim_devices(NULL) != 0)
        return -1;
    x = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0));
    whole = pc_full(PC_SHAPE(N), 3, PC_F32, sim(0));
    pinned = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
    assert_ok(pc_device_synchronize(sim(0)));
    stop_stream(usual(0));
    assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_KERNEL, 1));
    failed = pc_exp(x), line = __LINE__;
    PC_SCOPE {
        skipped = pc_tensor_retain(pc_add(failed, x));
    }
    assert_ok(pc_copy(pinned, skipped));
    let_go();
    assert_fails(pc_device_synchronize(sim(0)), PC_ERR_BACKEND, "exp, queued at");
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    pc_tensor *all[] = {x, failed, skipped, pinned, whole};
    for (int i = 0; i < 5; i++)
        pc_tensor_free(all[i]);
    assert_int_equal(assert_all_empty(2), 0);
    return 0;
}

/* The call failed as the work did, and names both. */
static void is_told(const char *who)
{
    const pc_error *e = pc_error_last();
    if (e->status != PC_ERR_BACKEND || !strstr(e->message, who) || !strstr(e->message, "exp, queued at"))
        fail_msg("%s: %s: \"%s\"", who, pc_status_name(e->status), e->message);
    assert_names(e->message, HERE, line);
    pc_error_clear();
}

static void item(pc_tensor *t)
{
    PC_SCOPE {
        (void)pc_item(pc_slice(t, 0, 0, 1, 1));
    }
    is_told("pc_item");
}

static void read_all(pc_tensor *t)
{
    float values[N];
    assert_int_equal(pc_read(t, values, sizeof values), PC_ERR_BACKEND);
    is_told("pc_read");
}

static void text(pc_tensor *t)
{
    assert_null(pc_tensor_text(t));
    is_told("pc_tensor_text");
}

static void to_host(pc_tensor *t)
{
    assert_null(pc_to(t, PC_DEVICE_CPU, PC_F32, false));
    is_told("pc_to");
}

static void to_other_device(pc_tensor *t)
{
    assert_null(pc_to(t, sim(1), PC_F32, true));
    is_told("pc_to");
}

static void copy_to_host(pc_tensor *t)
{
    pc_tensor *host = pc_empty(PC_SHAPE(N), PC_F32, PC_DEVICE_CPU);
    assert_int_equal(pc_copy(host, t), PC_ERR_BACKEND);
    is_told("pc_copy");
    pc_tensor_free(host);
}

static void as_input(pc_tensor *t)
{
    assert_null(pc_tanh(t));
    is_told("tanh");
}

static void as_input_elsewhere(pc_tensor *t)
{
    pc_stream *side = pc_stream(sim(0));
    PC_WITH_STREAM(side) {
        assert_null(pc_tanh(t));
    }
    is_told("tanh");
    assert_ok(pc_stream_synchronize(side));
    pc_stream_free(side);
}

static void in_place(pc_tensor *t)
{
    assert_int_equal(pc_saxpy(t, 2, x), PC_ERR_BACKEND);
    is_told("saxpy");
}

static void view(pc_tensor *t)
{
    PC_SCOPE {
        assert_null(pc_relu(pc_slice(t, 0, 3, 9, 1)));
    }
    is_told("relu");
}

static void launched(pc_tensor *t)
{
    assert_ok(pc_graph_begin(usual(0)));
    PC_SCOPE {
        assert_ok(pc_copy(whole, pc_add(t, t)));
    }
    pc_graph *graph = pc_graph_end(usual(0));
    assert_not_null_ok(graph);
    assert_int_equal(pc_graph_launch(graph, NULL), PC_ERR_BACKEND);
    is_told("pc_graph_launch");
    pc_graph_free(graph);
}

/* A part of it is not all of it. */
static void written_in_part(pc_tensor *t)
{
    PC_SCOPE {
        assert_ok(pc_fill(pc_slice(t, 0, 0, N / 2, 1), 2));
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_null(pc_tanh(t));
        is_told("tanh");
        assert_ok(pc_fill(pc_slice(t, 0, N / 2, N, 1), 2));
    }
    assert_null(pc_tanh(t));
    is_told("tanh");
}

static void (*const asked[])(pc_tensor *) = {
    item,     read_all,           text,     to_host, to_other_device, copy_to_host,
    as_input, as_input_elsewhere, in_place, view,    launched,        written_in_part};

static void asked_again_and_again(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
            asked[i](failed);
            asked[i](skipped);
        }
}

static void host_memory(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        assert_null(pc_data(pinned));
        is_told("pc_data");
        assert_null(pc_map(pinned, PC_MAP_READ));
        is_told("pc_map");
        read_all(pinned);
        assert_null(pc_neg(pinned)); /* by the CPU */
        is_told("neg");
    }
}

static void is(pc_tensor *t, double value)
{
    float values[N];
    assert_ok(pc_read(t, values, sizeof values));
    for (int i = 0; i < N; i++)
        assert_float_equal(values[i], value, 0);
}

/* Every way of writing all of a tensor. */
static void heals(void **state)
{
    (void)state;
    assert_ok(pc_fill(failed, 5));
    is(failed, 5);
    read_all(skipped);
    assert_ok(pc_copy(skipped, failed));
    is(skipped, 5);
    assert_ok(pc_copy(pinned, skipped));
    is(pinned, 5);
    assert_ok(pc_stream_synchronize(usual(0)));
}

static void heals_from_the_host(void **state)
{
    (void)state;
    pc_tensor *host = pc_full(PC_SHAPE(N), 6, PC_F32, PC_DEVICE_CPU);
    assert_ok(pc_copy(failed, host));
    is(failed, 6);
    assert_ok(pc_copy(pinned, host));
    is(pinned, 6);
    pc_tensor_free(host);
}

static void heals_by_a_launch(void **state)
{
    (void)state;
    assert_ok(pc_graph_begin(usual(0)));
    PC_SCOPE {
        assert_ok(pc_copy(failed, pc_add(whole, whole)));
        assert_ok(pc_saxpy(failed, 1, whole));
    }
    pc_graph *graph = pc_graph_end(usual(0));
    assert_not_null_ok(graph);
    read_all(failed); /* recorded is not written */
    assert_ok(pc_graph_launch(graph, NULL));
    is(failed, 9);
    pc_graph_free(graph);
}

/* What was healed can fail anew, and names the new one. */
static void fails_anew(void **state)
{
    (void)state;
    assert_ok(pc_fill(failed, 5));
    assert_ok(pc_stream_synchronize(usual(0)));
    assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_KERNEL, 1));
    assert_ok(pc_fill(failed, 6));
    assert_fails(pc_stream_synchronize(usual(0)), PC_ERR_BACKEND, "fill, queued at");
    float values[N];
    assert_fails(pc_read(failed, values, sizeof values), PC_ERR_BACKEND, "fill, queued at");
    assert_fails(pc_read(failed, values, sizeof values), PC_ERR_BACKEND, "fill, queued at");
    read_all(skipped);
}

/* The memory of what failed serves others as any other does. */
static void memory_is_used_again(void **state)
{
    (void)state;
    pc_tensor_free(failed);
    failed = pc_full(PC_SHAPE(N), 4, PC_F32, sim(0));
    is(failed, 4);
    pc_tensor_free(failed);
    failed = pc_empty(PC_SHAPE(N), PC_F32, sim(0));
    PC_SCOPE {
        assert_ok(pc_fill(pc_slice(failed, 0, 0, 4, 1), 2)); /* what was never written never failed */
    }
    float values[N];
    assert_ok(pc_read(failed, values, sizeof values));
    is(x, 1);
    is(whole, 3);
}

/* More failures than are kept, and what failed first still has no result. */
static void many_failures(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++) {
        assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_KERNEL, 1));
        assert_ok(pc_fill(whole, i));
        (void)!pc_stream_synchronize(usual(0));
        pc_error_clear();
    }
    float values[N];
    assert_true(pc_read(failed, values, sizeof values) != PC_OK);
    pc_error_clear();
    assert_true(pc_read(skipped, values, sizeof values) != PC_OK);
    pc_error_clear();
    is(x, 1);
}

/* Reads what is whole, on the stream that others work on too, and is told of failures of theirs. */
static atomic_bool enough;
static void *read_beside(void *context)
{
    (void)context;
    while (!atomic_load(&enough)) {
        float values[N];
        if (pc_read(x, values, sizeof values) != PC_OK)
            pc_error_clear();
    }
    return NULL;
}

/* Whoever is told first: a read whose copy was not done, since another thread shares the stream, fails too. */
static void another_thread_is_told(void **state)
{
    (void)state;
    enum { ROUNDS = 500 };
    int64_t nine[] = {N + 9};
    pc_tensor *index = pc_from_data(nine, PC_SHAPE(1), PC_I64, sim(0));
    int read = 0;
    assert_ok(pc_device_synchronize(sim(0)));
    atomic_store(&enough, false);
    pthread_t beside;
    assert_int_equal(pthread_create(&beside, NULL, read_beside, NULL), 0);
    for (int i = 0; i < ROUNDS; i++)
        PC_SCOPE {
            float value = -1;
            pc_tensor *entry = pc_index_select(x, 0, index);
            read += entry && pc_read(entry, &value, sizeof value) == PC_OK;
            pc_error_clear();
        }
    atomic_store(&enough, true);
    assert_int_equal(pthread_join(beside, NULL), 0);
    (void)!pc_device_synchronize(sim(0));
    pc_error_clear();
    pc_tensor_free(index);
    assert_int_equal(read, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, break_something, tidy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(asked_again_and_again), TEST(host_memory),       TEST(heals),
        TEST(heals_from_the_host),   TEST(heals_by_a_launch), TEST(fails_anew),
        TEST(memory_is_used_again),  TEST(many_failures),     TEST(another_thread_is_told),
    };
    return cmocka_run_group_tests_name("device.failed_results", tests, NULL, NULL);
}

/* A recording is its thread's: what another thread asks of a stream that is recorded is refused with both named, and
 * falls into nobody's recording. */
#include "device.h"

#include <paracord.h>
#include <pthread.h>

enum { N = 64, ASKED = 16 };

/* What is there before the recording, and takes part in it. */
static struct {
    pc_stream *stream;
    pc_event *event;
    pc_graph *other;
    pc_tensor *x, *y, *far;
} all;

static pc_status add_there(void)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_add(all.far, all.far) ? PC_OK : pc_error_last()->status;
    }
    return status;
}

static pc_status write_there(void)
{
    return pc_fill(all.far, 3);
}

static pc_status read_there(void)
{
    float values[N];
    return pc_read(all.far, values, sizeof values);
}

static pc_status from_data_there(void)
{
    float values[N] = {0};
    PC_SCOPE {
        if (!pc_from_data(values, PC_SHAPE(N), PC_F32, test_device()))
            return pc_error_last()->status;
    }
    return PC_OK;
}

static pc_status synchronize(void)
{
    return pc_stream_synchronize(all.stream);
}

static pc_status query(void)
{
    bool done;
    return pc_stream_query(all.stream, &done);
}

static void nothing(void *unused)
{
    (void)unused;
}

static pc_status call(void)
{
    return pc_stream_call(all.stream, nothing, NULL);
}

static pc_status record_event(void)
{
    pc_event *event = pc_event_new(test_device());
    pc_status status = pc_event_record(event, all.stream);
    pc_event_free(event);
    return status;
}

static pc_status wait_in_it(void)
{
    return pc_event_wait(all.event, all.stream);
}

static pc_status begin(void)
{
    return pc_graph_begin(all.stream);
}

static pc_status end(void)
{
    return pc_graph_end(all.stream) ? PC_OK : pc_error_last()->status;
}

static pc_status launch(void)
{
    return pc_graph_launch(all.other, all.stream);
}

static pc_status free_it(void)
{
    pc_stream_free(all.stream);
    return pc_error_last()->status;
}

/* On a stream of its own, but with what the recording writes. */
static pc_status read_its_result(void)
{
    pc_stream *own = pc_stream(test_device());
    pc_status status = PC_OK;
    PC_WITH_STREAM(own) {
        PC_SCOPE {
            status = pc_add(all.y, all.y) ? PC_OK : pc_error_last()->status;
        }
    }
    pc_stream_free(own);
    return status;
}

static const struct {
    pc_status (*ask)(void);
    const char *name;
    bool later; /* only where work is done later: the CPU is always done, and its memory is at hand */
} asked[] = {
    {add_there, "add", false},
    {write_there, "fill", false},
    {read_there, "pc_read", false},
    {from_data_there, "pc_from_data", false},
    {synchronize, "pc_stream_synchronize", false},
    {query, "pc_stream_query", false},
    {call, "host function", false},
    {record_event, "event", false},
    {wait_in_it, "event wait", true},
    {begin, "pc_graph_begin", false},
    {end, "pc_graph_end", false},
    {launch, "pc_graph_launch", false},
    {free_it, "pc_stream_free", false},
    {read_its_result, "add", true},
};

static char answers[ASKED][PC_MESSAGE_MAX];
static pc_status statuses[ASKED];

static void *ask_all(void *unused)
{
    (void)unused;
    (void)!pc_stream_set_current(test_device(), all.stream);
    for (int i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
        statuses[i] = asked[i].ask();
        snprintf(answers[i], sizeof answers[i], "%s", pc_error_last()->message);
        pc_error_clear();
    }
    return NULL;
}

static void in_a_thread(void *(*function)(void *))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    pthread_join(thread, NULL);
}

static pc_graph *add_one(pc_stream *stream, pc_tensor *y, pc_tensor *x)
{
    assert_ok(pc_graph_begin(stream));
    PC_SCOPE {
        assert_ok(pc_copy(y, pc_add(x, x)));
    }
    pc_graph *graph = pc_graph_end(stream);
    assert_not_null_ok(graph);
    return graph;
}

static void assert_sum(pc_tensor *t, double sum)
{
    PC_SCOPE {
        assert_float_equal(pc_item(pc_sum(t)), sum, 0);
    }
}

static void check_answers(void)
{
    const bool at_once = test_device().type == PC_CPU;
    for (int i = 0; i < (int)(sizeof asked / sizeof *asked); i++) {
        if (asked[i].later && at_once)
            continue;
        if (statuses[i] != PC_ERR_STATE || strncmp(answers[i], asked[i].name, strlen(asked[i].name)) != 0 ||
            !strstr(answers[i], "is being recorded by another thread, which began at") ||
            !strstr(answers[i], pc_device_name(test_device(), (char[PC_DEVICE_NAME_MAX]){0})))
            fail_msg("%s: %s: \"%s\"", asked[i].name, pc_status_name(statuses[i]), answers[i]);
    }
}

static void others_are_refused(void **state)
{
    (void)state;
    const pc_device device = test_device();
    all.stream = pc_stream(device);
    all.event = pc_event_new(device);
    PC_WITH_STREAM(all.stream) {
        all.x = pc_full(PC_SHAPE(N), 2, PC_F32, device);
        all.y = pc_full(PC_SHAPE(N), 0, PC_F32, device);
        all.far = pc_full(PC_SHAPE(N), 5, PC_F32, device);
        all.other = add_one(all.stream, all.y, all.x);
        assert_ok(pc_event_record(all.event, all.stream));
        assert_ok(pc_stream_synchronize(all.stream));
        assert_ok(pc_graph_begin(all.stream));
        PC_SCOPE {
            assert_ok(pc_copy(all.y, pc_add(all.x, all.x)));
            in_a_thread(ask_all);
        }
        pc_graph *graph = pc_graph_end(all.stream); /* whole: what others asked is not its failure */
        assert_not_null_ok(graph);
        check_answers();
        assert_sum(all.far, 5 * N);
        assert_sum(all.y, 0);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_sum(all.y, 4 * N);
        assert_sum(all.far, 5 * N);
        pc_graph_free(graph);
    }
    pc_graph_free(all.other);
    pc_tensor_free(all.far);
    pc_tensor_free(all.y);
    pc_tensor_free(all.x);
    pc_event_free(all.event);
    pc_stream_free(all.stream);
}

/* --- a thread that ends leaves no stream recorded --- */

static void *begin_and_end(void *unused)
{
    (void)unused;
    (void)!pc_graph_begin(pc_stream_current(test_device()));
    (void)!pc_fill(all.x, 9);
    return NULL;
}

static void a_thread_takes_its_recording_with_it(void **state)
{
    (void)state;
    all.x = pc_full(PC_SHAPE(N), 2, PC_F32, test_device());
    in_a_thread(begin_and_end);
    assert_sum(all.x, 2 * N);
    assert_ok(pc_fill(all.x, 4));
    pc_tensor *y = pc_full(PC_SHAPE(N), 0, PC_F32, test_device());
    pc_graph *graph = add_one(pc_stream_current(test_device()), y, all.x);
    assert_ok(pc_graph_launch(graph, NULL));
    assert_sum(y, 8 * N);
    pc_graph_free(graph);
    pc_tensor_free(y);
    pc_tensor_free(all.x);
}

/* --- what a step's function gives to streams by name is part of the step --- */

typedef struct two {
    pc_module *net;
    pc_optimizer *sgd;
    pc_stream *side;
    pc_tensor *x, *seen;
} two;

static pc_status learn_beside(void *user)
{
    const two *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            PC_WITH_STREAM(t->side) {
                status = pc_saxpy(t->seen, 1, t->x); /* waits for nothing of the step */
            }
        }
        pc_tensor *loss = pc_sum(pc_forward(t->net, t->x));
        if (status == PC_OK)
            status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(t->sgd);
    }
    return status;
}

static void a_step_takes_all_that_it_queues(void **state)
{
    (void)state;
    const pc_device device = test_device();
    pc_seed(1);
    two t = {.net = on_device(pc_linear(4, 1)), .side = pc_stream(device)};
    t.sgd = pc_sgd(t.net, .lr = .1);
    t.x = pc_full(PC_SHAPE(2, 4), 1, PC_F32, device);
    t.seen = pc_full(PC_SHAPE(2, 4), 0, PC_F32, device);
    pc_step *step = pc_step_new(learn_beside, &t, t.sgd);
    for (int i = 0; i < 5; i++)
        assert_ok(pc_step_run(step));
    assert_null(pc_step_why(step));
    assert_sum(t.seen, 5 * 8);
    pc_step_free(step);
    pc_tensor_free(t.seen);
    pc_tensor_free(t.x);
    pc_optimizer_free(t.sgd);
    pc_module_free(t.net);
    pc_stream_free(t.side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(others_are_refused, nothing_left),
        cmocka_unit_test_teardown(a_thread_takes_its_recording_with_it, nothing_left),
        cmocka_unit_test_teardown(a_step_takes_all_that_it_queues, nothing_left),
    };
    return cmocka_run_group_tests_name("device.recorder", tests, NULL, NULL);
}

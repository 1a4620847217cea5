/* What kernels on cuda may read before the kernel in front of them is done (pc__cuda_ready): asked from within calls of
 * mul and saxpy, whose kernels are the backend's own with the question in front. */
#ifdef PC_TEST_CUDA

#include "device.h"

#include "cuda/runtime/state.h"
#include "ops/table.h"

#include <paracord/ops.h>

enum { N = 4096, SMALL = 64 }; /* calls of few are held back, to be one launch with others */

static pc_stream *own, *other;
static const pc__backend *real;
static pc__backend asking;
static pc__kernel kernels[PC__OP_COUNT];
static bool answer, answers[16];
static int asked;

static void note(bool is_ready)
{
    answer = is_ready;
    answers[asked++ % 16] = is_ready;
}

/* The plug-in's copy goes through its table of the library's functions; this one is linked with the library. */
static pc_status mul(pc_stream *stream, const pc_call *call)
{
    note(pc__cuda_ready(stream, call->in[0]));
    return real->kernels()[PC__OP_mul](stream, call);
}

static pc_status saxpy(pc_stream *stream, const pc_call *call)
{
    note(pc__cuda_ready(stream, call->out[0]));
    return real->kernels()[PC__OP_saxpy](stream, call);
}

static const pc__kernel *kernels_that_ask(void)
{
    return kernels;
}

static int open_streams(void **state)
{
    (void)state;
    if (test_device().type != PC_CUDA)
        return 0;
    own = pc_stream(test_device());
    other = pc_stream(test_device());
    if (!own || !other)
        return -1;
    real = own->backend;
    memcpy(kernels, real->kernels(), sizeof kernels);
    kernels[PC__OP_mul] = mul;
    kernels[PC__OP_saxpy] = saxpy;
    kernels[PC__OP_region] = NULL; /* chains stay single calls */
    asking = *real;
    asking.kernels = kernels_that_ask;
    own->backend = other->backend = &asking;
    return 0;
}

static int close_streams(void **state)
{
    (void)state;
    if (test_device().type != PC_CUDA)
        return 0;
    own->backend = other->backend = real;
    pc_stream_free(own);
    pc_stream_free(other);
    assert_no_leak();
    return 0;
}

static bool is_ready(pc_tensor *x)
{
    assert_not_null_ok(pc_mul(x, x));
    return answer;
}

static bool is_ready_in_place(pc_tensor *y, pc_tensor *x)
{
    assert_ok(pc_saxpy(y, 2, x));
    return answer;
}

static void assert_answers(const bool *want, int n)
{
    assert_int_equal(asked, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(answers[i], want[i]);
}

/* A kernel of ours that writes a new tensor. */
static pc_tensor *made(pc_tensor *x)
{
    pc_tensor *y = pc_add(x, x);
    assert_not_null_ok(y);
    return y;
}

/* Nothing but what the host waited for is in front of the body, which has x. */
#define ON_CUDA(...)                                                                                                   \
    do {                                                                                                               \
        (void)state;                                                                                                   \
        if (test_device().type != PC_CUDA)                                                                             \
            skip();                                                                                                    \
        PC_SCOPE {                                                                                                     \
            pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, test_device());                                                \
            assert_ok(pc_device_synchronize(test_device()));                                                           \
            PC_WITH_STREAM(own) {                                                                                      \
                (void)made(x);                                                                                         \
                __VA_ARGS__                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static void a_kernel_later(void **state)
{
    ON_CUDA({
        pc_tensor *y = made(x);
        assert_false(is_ready(y)); /* the kernel in front writes it */
        assert_true(is_ready(y));  /* now that one reads it */
        assert_true(is_ready(y));
    });
}

static void calls_without_kernels_do_not_count(void **state)
{
    ON_CUDA({
        pc_tensor *nothing = pc_zeros(PC_SHAPE(0), PC_F32, test_device());
        pc_tensor *y = made(x);
        (void)made(nothing);
        assert_not_null_ok(pc_reshape(y, PC_SHAPE(N / 2, 2)));
        assert_false(is_ready(y));
        pc_tensor *z = made(x);
        assert_not_null_ok(pc_to(x, PC_DEVICE_CPU, PC_F32, false)); /* a copy */
        assert_false(is_ready(z));
        assert_true(is_ready(z));
    });
}

/* Their kernel comes with a later call, and is the one in front of the next. */
static void held_calls_do_not_count(void **state)
{
    ON_CUDA({
        pc_tensor *few = pc_ones(PC_SHAPE(SMALL), PC_F32, test_device());
        pc_tensor *a = made(few);
        pc_tensor *y = made(x);
        pc_tensor *b = made(few);
        assert_false(is_ready(a));
        assert_false(is_ready(y));
        pc_tensor *c = made(few);
        assert_not_null_ok(pc_to(x, PC_DEVICE_CPU, PC_F32, false)); /* launches c's kernel */
        assert_false(is_ready(c));
        assert_true(is_ready(b));
        assert_false(is_ready(c));
        (void)made(x);
        assert_true(is_ready(c));
    });
}

static void copies_are_ready_two_kernels_later(void **state)
{
    ON_CUDA({
        const float numbers[N] = {0};
        pc_tensor *y = pc_from_data(numbers, PC_SHAPE(N), PC_F32, test_device());
        assert_false(is_ready(y));
        assert_false(is_ready(y)); /* nothing says that the first of these was behind it as a whole */
        assert_true(is_ready(y));
    });
}

static void of_other_streams_never(void **state)
{
    ON_CUDA({
        pc_tensor *y = NULL;
        PC_WITH_STREAM(other) {
            y = made(x);
        }
        for (int i = 0; i < 3; i++)
            assert_false(is_ready(y));
        pc_tensor *z = made(x);
        PC_WITH_STREAM(other) {
            assert_not_null_ok(made(z));
        }
        assert_false(is_ready(z));
        assert_false(is_ready(z)); /* whether the other one wrote it takes a lock to know */
    });
}

static void what_is_overwritten(void **state)
{
    ON_CUDA({
        pc_tensor *y = made(x);
        assert_false(is_ready_in_place(y, x));
        assert_false(is_ready_in_place(y, x));
        (void)made(x);
        assert_true(is_ready_in_place(y, x));
        assert_false(is_ready(y));
        assert_true(is_ready(y));
    });
}

static void in_a_recording(void **state)
{
    ON_CUDA({
        pc_tensor *before = made(x);
        pc_tensor *raised = made(x);
        asked = 0;
        assert_ok(pc_graph_begin(own));
        (void)is_ready(before);
        (void)is_ready_in_place(raised, x);
        (void)is_ready_in_place(raised, x);
        pc_tensor *y = made(x);
        (void)is_ready(y);
        (void)is_ready(y);
        (void)is_ready_in_place(raised, x);
        assert_int_equal(asked, 0); /* kernels are asked for when the recording ends */
        pc_graph *graph = pc_graph_end(own);
        assert_not_null_ok(graph);
        assert_answers((const bool[]){true, true, false, false, true, true}, 6); /* a launch comes behind `before` */
        assert_ok(pc_graph_launch(graph, own));
        assert_false(is_ready(raised)); /* the launch writes it */
        pc_graph_free(graph);
    });
}

static void recorded_kernels_do_not_count_behind_it(void **state)
{
    ON_CUDA({
        pc_tensor *y = made(x);
        assert_ok(pc_graph_begin(own));
        for (int i = 0; i < 3; i++)
            (void)made(x);
        pc_graph *graph = pc_graph_end(own);
        assert_not_null_ok(graph);
        assert_false(is_ready(y)); /* its kernel is right in front */
        assert_false(is_ready(y));
        assert_true(is_ready(y));
        pc_graph_free(graph);
    });
}

static void written_by_another_branch(void **state)
{
    ON_CUDA({
        pc_tensor *y = made(x);
        asked = 0;
        assert_ok(pc_graph_begin(own));
        (void)is_ready(y);
        pc_event *fork = pc_event_new(test_device());
        assert_ok(pc_event_record(fork, own));
        assert_ok(pc_event_wait(fork, other));
        PC_WITH_STREAM(other) {
            assert_ok(pc_saxpy(y, 1, x));
        }
        (void)is_ready(y);
        (void)is_ready(y);
        pc_graph *graph = pc_graph_end(own);
        assert_not_null_ok(graph);
        assert_answers((const bool[]){true, true, false, false}, 4); /* the second is the saxpy's own question */
        pc_event_free(fork);
        pc_graph_free(graph);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_later),
        cmocka_unit_test(calls_without_kernels_do_not_count),
        cmocka_unit_test(held_calls_do_not_count),
        cmocka_unit_test(copies_are_ready_two_kernels_later),
        cmocka_unit_test(of_other_streams_never),
        cmocka_unit_test(what_is_overwritten),
        cmocka_unit_test(in_a_recording),
        cmocka_unit_test(recorded_kernels_do_not_count_behind_it),
        cmocka_unit_test(written_by_another_branch),
    };
    return cmocka_run_group_tests_name("device.ready", tests, open_streams, close_streams);
}

#else
#include "no_plug_in.h"
#endif

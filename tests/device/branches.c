/* Branches of a recording: what streams are given that wait for nothing of each other, side by side, and joined where
 * one waits for another. */
#include "device.h"

#include <paracord/ops.h>
#include <paracord/stream.h>
#include <stdatomic.h>

enum { N = 1000, LAUNCHES = 4 };

static pc_stream *sides[2];

static int open_sides(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        sides[i] = pc_stream(test_device());
    return sides[0] && sides[1] ? 0 : -1;
}

static int close_sides(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        pc_stream_free(sides[i]);
    assert_no_leak();
    return 0;
}

/* The CPU works at once. */
static void needs_streams(void)
{
    if (test_device().type == PC_CPU)
        skip();
}

static pc_tensor *numbers(double value)
{
    return pc_full(PC_SHAPE(N), value, PC_F32, test_device());
}

static void assert_all(const pc_tensor *t, double value)
{
    float have[N];
    assert_ok(pc_read(t, have, sizeof have));
    for (int i = 0; i < N; i++)
        assert_true(have[i] == (float)value);
}

static void fork_to(pc_stream *side)
{
    pc_event *fork = pc_event_new(test_device());
    assert_ok(pc_event_record(fork, NULL));
    assert_ok(pc_event_wait(fork, side));
    pc_event_free(fork);
}

/* x and y are raised each on a stream of its own, from one launch to the next. */
static void branches_are_all_done(void **state)
{
    (void)state;
    needs_streams();
    PC_SCOPE {
        pc_tensor *t[3] = {numbers(0), numbers(0), numbers(0)}, *one = numbers(1);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        for (int i = 0; i < 2; i++) {
            fork_to(sides[i]);
            PC_WITH_STREAM(sides[i]) {
                assert_ok(pc_saxpy(t[i], i + 1, one));
            }
        }
        assert_ok(pc_saxpy(t[2], 3, one));
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        for (int i = 1; i <= LAUNCHES; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            for (int k = 0; k < 3; k++)
                assert_all(t[k], i * (k + 1));
        }
        pc_graph_free(graph);
    }
}

/* From the stream to one side, from there to the other, and back; and work of the stream beside that. */
static void data_orders_branches(void **state)
{
    (void)state;
    needs_streams();
    PC_SCOPE {
        pc_tensor *x = numbers(1), *beside = numbers(0), *one = numbers(1);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        PC_SCOPE {
            pc_tensor *a = pc_mul_scalar(x, 2), *b = NULL, *c = NULL;
            PC_WITH_STREAM(sides[0]) {
                b = pc_add_scalar(pc_mul_scalar(a, 3), 1);
            }
            assert_ok(pc_saxpy(beside, 1, one));
            PC_WITH_STREAM(sides[1]) {
                c = pc_add(b, a);
            }
            assert_ok(pc_copy(x, pc_sub(c, b)));
            assert_ok(pc_saxpy(x, 1, beside));
        }
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        double want = 1;
        for (int i = 1; i <= LAUNCHES; i++) {
            assert_ok(pc_graph_launch(graph, i % 2 ? NULL : sides[0]));
            want = 2 * want + i;
            assert_all(x, want);
        }
        pc_graph_free(graph);
    }
}

/* Sums of many blocks, which count who is done; every branch counts for itself. */
static void branches_share_no_memory_of_kernels(void **state)
{
    (void)state;
    needs_streams();
    enum { ROWS = 8, INNER = 256, COLUMNS = 24 };
    PC_SCOPE {
        pc_tensor *x[3], *w[3], *y[3], *want[3];
        pc_stream *stream = pc_stream_current(test_device());
        for (int i = 0; i < 3; i++) {
            x[i] = pc_add_scalar(pc_randn(PC_SHAPE(ROWS, INNER), PC_F32, test_device()), i);
            w[i] = pc_randn(PC_SHAPE(COLUMNS, INNER), PC_F32, test_device());
            y[i] = pc_zeros(PC_SHAPE(ROWS, COLUMNS), PC_F32, test_device());
            want[i] = pc_fn_linear(x[i], w[i], NULL, PC_ACTIVATION_NONE);
        }
        assert_ok(pc_graph_begin(stream));
        for (int i = 0; i < 2; i++) {
            fork_to(sides[i]);
            PC_WITH_STREAM(sides[i]) {
                assert_ok(pc_copy(y[i], pc_fn_linear(x[i], w[i], NULL, PC_ACTIVATION_NONE)));
            }
        }
        assert_ok(pc_copy(y[2], pc_fn_linear(x[2], w[2], NULL, PC_ACTIVATION_NONE)));
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        for (int i = 0; i < 20 * LAUNCHES; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            for (int k = 0; k < 3; k++)
                assert_true(pc_item(pc_sum(pc_cast(pc_ne(y[k], want[k]), PC_F32))) == 0);
        }
        pc_graph_free(graph);
    }
}

/* --- beside each other --- */

static struct {
    atomic_int calls, order[2];
} noted;

static void note(void *place)
{
    atomic_store((atomic_int *)place, atomic_fetch_add(&noted.calls, 1));
}

/* The emulated device does what a recording holds in two orders by turns, as different as what waits for what allows.
 */
static void branches_wait_for_nothing(void **state)
{
    (void)state;
    const char *plugin = getenv("PARACORD_PLUGIN_PATH");
    if (!plugin || !strstr(plugin, "emulator"))
        skip();
    pc_stream *stream = pc_stream_current(test_device());
    assert_ok(pc_graph_begin(stream));
    fork_to(sides[0]);
    assert_ok(pc_stream_call(sides[0], note, &noted.order[0]));
    assert_ok(pc_stream_call(stream, note, &noted.order[1]));
    pc_graph *graph = pc_graph_end(stream);
    assert_not_null_ok(graph);
    int first[2] = {0, 0};
    for (int i = 0; i < LAUNCHES; i++) {
        assert_ok(pc_graph_launch(graph, NULL));
        assert_ok(pc_stream_synchronize(stream));
        first[atomic_load(&noted.order[0]) > atomic_load(&noted.order[1])]++;
    }
    assert_int_equal(atomic_load(&noted.calls), 2 * LAUNCHES);
    assert_true(first[0] > 0 && first[1] > 0);
    pc_graph_free(graph);
}

/* A stream goes in the middle of its recording, which has branches. */
static void an_unfinished_recording_goes(void **state)
{
    (void)state;
    needs_streams();
    PC_SCOPE {
        pc_tensor *x = numbers(1), *y = numbers(1);
        pc_stream *stream = pc_stream(test_device());
        assert_ok(pc_stream_set_current(test_device(), stream));
        assert_ok(pc_graph_begin(stream));
        fork_to(sides[0]);
        PC_WITH_STREAM(sides[0]) {
            assert_ok(pc_fill(x, 2));
        }
        pc_stream_free(stream);
        assert_false(pc_failed());
        PC_WITH_STREAM(sides[0]) {
            assert_ok(pc_fill(y, 3));
            assert_all(x, 1);
            assert_all(y, 3);
        }
    }
}

/* Work on another device of the kind, which the recording has nothing to do with, before a stream joins. */
static void another_device_between(void **state)
{
    (void)state;
    needs_streams();
    pc_device other = test_device();
    other.index = other.index ? 0 : 1;
    if (pc_device_count(other.type, NULL, 0) < 2)
        skip();
    PC_SCOPE {
        pc_tensor *t = numbers(0), *one = numbers(1), *there = pc_full(PC_SHAPE(N), 1, PC_F32, other);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        assert_ok(pc_saxpy(t, 1, one));
        assert_ok(pc_saxpy(there, 1, there));
        fork_to(sides[0]);
        PC_WITH_STREAM(sides[0]) {
            assert_ok(pc_saxpy(t, 2, one));
        }
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        for (int i = 1; i <= LAUNCHES; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            assert_all(t, i * 3);
        }
        assert_all(there, 2);
        pc_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_all_done),
        cmocka_unit_test(data_orders_branches),
        cmocka_unit_test(branches_share_no_memory_of_kernels),
        cmocka_unit_test(branches_wait_for_nothing),
        cmocka_unit_test(an_unfinished_recording_goes),
        cmocka_unit_test(another_device_between),
    };
    return cmocka_run_group_tests_name("device.branches", tests, open_sides, close_sides);
}

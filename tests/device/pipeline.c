/* Copies beside kernels, kernels beside kernels, device beside device: on sim devices whose copies and kernels take a
 * known time, most of it asleep. Their timeline tells what was side by side: nothing, where one waits for the other. */
#include "sim_support.h"
#include "timeline.h"

enum { N = 1 << 17, BATCHES = 20, BUFFERS = 3 }; /* floats: 512 KiB */
static const double piece_ms = 40;

static int slow(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 64 << 20, .kernels = 2,
                                       .bandwidth = N * 4 / (piece_ms * 1e-3), .kernel_time = piece_ms * 1e-3)) !=
           PC_OK;
}

/* How much of the shorter work is hidden behind the longer one; a loaded machine hides less than all of it. */
static void assert_side_by_side(const char *what, double one_ms, double other_ms, double busy_ms)
{
    const double shorter = one_ms < other_ms ? one_ms : other_ms, both = one_ms + other_ms - busy_ms;
    print_message("%s: %.0f ms and %.0f ms, %.0f ms of it side by side\n", what, one_ms, other_ms, both);
    assert_true(both > 0.5 * shorter);
}

/* --- the two-stream pipeline, as the articles draw it, without an event in it --- */

static void copies_hide_behind_compute(void **state)
{
    (void)state;
    pc_stream *copies = pc_stream(sim(0)), *compute = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *buffers[BUFFERS], *total = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *x = NULL;
        for (int i = 0; i < BUFFERS; i++) {
            buffers[i] = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
            assert_ok(pc_fill(buffers[i], 0));
        }
        assert_ok(pc_device_synchronize(sim(0)));
        start_timeline();
        for (int i = 0; i < BATCHES; i++)
            PC_SCOPE {
                float *p = pc_map(buffers[i % BUFFERS], PC_MAP_WRITE); /* waits for the copy that reads it */
                assert_non_null(p);
                p[0] = p[N - 1] = (float)i;
                assert_ok(pc_unmap(buffers[i % BUFFERS]));
                PC_WITH_STREAM(copies) {
                    x = pc_to(buffers[i % BUFFERS], sim(0), PC_F32, true);
                }
                assert_not_null_ok(x);
                PC_WITH_STREAM(compute) {
                    assert_ok(pc_saxpy(total, 1, x));
                }
            }
        assert_ok(pc_device_synchronize(sim(0)));
        const timeline *t = stop_timeline();
        const double copying = ms_of(t, true), computing = ms_of(t, false);
        assert_true(copying >= 0.99 * BATCHES * piece_ms); /* or the device is not slow, and this shows nothing */
        assert_true(computing >= 0.99 * BATCHES * piece_ms);
        assert_side_by_side("copies and kernels", copying, computing, ms_busy(t));
        const double want = BATCHES * (BATCHES - 1) / 2;
        assert_close(pc_item(pc_max(total)), want, 0);
        assert_close(pc_item(pc_sum(total)), 2 * want, 0);
    }
    pc_stream_free(copies);
    pc_stream_free(compute);
}

/* --- two of a kind --- */

enum { PIECES = 5 }; /* of each */

/* Half of all work is each one's. */
static void stop_and_assert(const char *what)
{
    const timeline *t = stop_timeline();
    const double all = ms_of(t, true) + ms_of(t, false);
    assert_true(all >= 0.99 * 2 * PIECES * piece_ms);
    assert_side_by_side(what, all / 2, all / 2, ms_busy(t));
}

static void kernels_on(const char *what, pc_device a_device, pc_device b_device)
{
    pc_stream *a = pc_stream(a_device), *b = pc_stream(b_device);
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(100), PC_F32, a_device), *y = pc_zeros(PC_SHAPE(100), PC_F32, b_device);
        assert_ok(pc_device_synchronize(a_device));
        assert_ok(pc_device_synchronize(b_device));
        start_timeline();
        for (int i = 0; i < PIECES; i++) {
            PC_WITH_STREAM(a) {
                assert_ok(pc_fill(x, i));
            }
            PC_WITH_STREAM(b) {
                assert_ok(pc_fill(y, i));
            }
        }
        assert_ok(pc_stream_synchronize(a));
        assert_ok(pc_stream_synchronize(b));
        stop_and_assert(what);
    }
    pc_stream_free(a);
    pc_stream_free(b);
}

static void kernels_go_side_by_side(void **state)
{
    (void)state;
    kernels_on("kernels on two streams", sim(0), sim(0));
    kernels_on("kernels on two devices", sim(0), sim(1));
}

static void copies_go_both_ways(void **state)
{
    (void)state;
    pc_stream *in = pc_stream(sim(0)), *out = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *b = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        pc_tensor *from = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0)),
                  *to = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_fill(from, 3));
        assert_ok(pc_device_synchronize(sim(0)));
        start_timeline();
        for (int i = 0; i < PIECES; i++) {
            PC_WITH_STREAM(in) {
                assert_ok(pc_copy(a, from));
            }
            PC_WITH_STREAM(out) {
                assert_ok(pc_copy(to, b));
            }
        }
        assert_ok(pc_device_synchronize(sim(0)));
        stop_and_assert("copies in both directions");
        assert_close(pc_item(pc_max(a)), 3, 0);
        assert_close(pc_item(pc_max(to)), 1, 0);
    }
    pc_stream_free(in);
    pc_stream_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(copies_hide_behind_compute, slow),
        cmocka_unit_test_setup(kernels_go_side_by_side, slow),
        cmocka_unit_test_setup(copies_go_both_ways, slow),
    };
    return cmocka_run_group_tests_name("device.pipeline", tests, NULL, NULL);
}

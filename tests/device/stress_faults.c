/* Things go wrong in the middle of work on several streams: what depends on it is skipped, everything else is right,
 * and the devices go on. And every allocation of a small program on several streams fails once. */
#include "support.h"
#include "train/faults.h"

#include <paracord.h>
#include <stdio.h>

#include <unistd.h>

enum { N = 64, STREAMS = 4, NEVER = 1 << 30 };

static pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static void fail_from(long n, bool later)
{
    failing_one = n;
    failing_later = later;
    atomic_store(&allocations, 0);
}

/* Before anything is allocated. */
static int start_all(void **state)
{
    (void)state;
    static const pc_allocator faulty = {faulty_alloc, faulty_resize, faulty_free, NULL};
    fail_from(NEVER, false);
    return pc_allocator_set(&faulty) == PC_OK &&
                   pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 1 << 20)) == PC_OK
               ? 0
               : -1;
}

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

static void has_no_result(const pc_tensor *t)
{
    float got[N];
    const size_t bytes = (size_t)pc_tensor_count(t) * sizeof *got;
    for (int i = 0; i < 2; i++)
        assert_fails(pc_read(t, got, bytes), PC_ERR_RANGE, "index_select");
}

static void go_slowly(void *microseconds)
{
    usleep(*(useconds_t *)microseconds);
}

static void dependents_are_skipped(void **state)
{
    (void)state;
    useconds_t time = 3000;
    int64_t places[N];
    for (int i = 0; i < N; i++)
        places[i] = i == 40 ? N : i;
    pc_stream *s[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        s[i] = pc_stream(sim(i % 2));
    pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0)), *index = pc_from_data(places, PC_SHAPE(N), PC_I64, sim(0));
    pc_tensor *kept = pc_full(PC_SHAPE(N), 5, PC_F32, sim(1)), *other = pc_full(PC_SHAPE(N), 7, PC_F32, sim(1));
    pc_tensor *bad = NULL, *far = NULL, *free_of_it = NULL, *home = NULL;
    assert_ok(pc_stream_call(s[0], go_slowly, &time));
    PC_WITH_STREAM(s[0]) {
        bad = pc_index_select(x, 0, index);
    }
    PC_WITH_STREAM(s[1]) {
        far = pc_to(bad, sim(1), PC_F32, true);
        assert_ok(pc_saxpy(kept, 1, far));
    }
    PC_WITH_STREAM(s[2]) {
        home = pc_to(bad, PC_DEVICE_CPU, PC_F32, true);
    }
    PC_WITH_STREAM(s[3]) {
        free_of_it = pc_mul_scalar(other, 2);
    }
    assert_false(pc_failed());
    assert_ok(pc_stream_synchronize(s[3]));
    for (int i = 0; i < 3; i++)
        assert_fails(pc_stream_synchronize(s[i]), PC_ERR_RANGE, "index_select");
    assert_true(is_all(free_of_it, 14));
    has_no_result(kept); /* skipped, not computed from what never came */
    has_no_result(bad);
    has_no_result(far);
    has_no_result(home);
    for (int i = 0; i < STREAMS; i++)
        PC_WITH_STREAM(s[i]) {
            assert_ok(pc_fill(i % 2 ? kept : x, i));
            assert_true(is_all(i % 2 ? kept : x, (float)i));
        }
    pc_tensor *all[] = {x, index, kept, other, bad, far, free_of_it, home};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        pc_tensor_free(all[i]);
    for (int i = 0; i < STREAMS; i++)
        pc_stream_free(s[i]);
    assert_false(pc_failed());
}

/* A stream that comes late to what it waits for hears of that failure, though it was told and another one followed. */
static void an_older_failure_is_not_forgotten(void **state)
{
    (void)state;
    useconds_t time = 20000;
    pc_stream *late = pc_stream(sim(1));
    pc_tensor *a = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *kept = pc_full(PC_SHAPE(N), 5, PC_F32, sim(1));
    int64_t place = N;
    pc_tensor *index = pc_from_data(&place, PC_SHAPE(1), PC_I64, sim(0));
    assert_ok(pc_device_synchronize(sim(0)));
    assert_ok(pc_stream_call(late, go_slowly, &time));
    pc_tensor *bad = pc_index_select(a, 0, index), *far = NULL;
    PC_WITH_STREAM(late) {
        pc_tensor *moved = pc_to(bad, sim(1), PC_F32, true);
        far = pc_expand(moved, PC_SHAPE(N));
        pc_tensor_free(moved);
        assert_ok(pc_saxpy(kept, 1, far));
    }
    assert_fails(pc_stream_synchronize(pc_stream_current(sim(0))), PC_ERR_RANGE, "index_select");
    pc_tensor *again = pc_index_select(a, 0, index);
    assert_fails(pc_stream_synchronize(pc_stream_current(sim(0))), PC_ERR_RANGE, "index_select");
    assert_fails(pc_stream_synchronize(late), PC_ERR_RANGE, "index_select");
    has_no_result(kept);
    pc_tensor *all[] = {a, kept, index, bad, far, again};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        pc_tensor_free(all[i]);
    pc_stream_free(late);
}

/* The op that could not be queued has taken the writer's place in the storage's record; a reader waits for the writer
 * all the same. */
static void a_call_that_fails_loses_no_order(void **state)
{
    (void)state;
    useconds_t time = 2000;
    pc_stream *s[3];
    for (int i = 0; i < 3; i++)
        s[i] = pc_stream(sim(0));
    pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *one = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
    bool failed = true;
    for (int n = 0; failed; n++)
        for (int later = 0; later < 2; later++) {
            PC_WITH_STREAM(s[0]) {
                assert_ok(pc_fill(x, 0));
                assert_ok(pc_stream_call(s[0], go_slowly, &time));
                assert_ok(pc_fill(x, 3));
            }
            PC_WITH_STREAM(s[1]) {
                fail_from(n, later);
                failed = pc_saxpy(x, 1, one) != PC_OK;
                fail_from(NEVER, false);
            }
            assert_int_equal(pc_error_last()->status, failed ? PC_ERR_MEMORY : PC_OK);
            pc_error_clear();
            PC_WITH_STREAM(s[2]) {
                assert_true(is_all(x, failed ? 3 : 4));
            }
        }
    pc_tensor_free(x);
    pc_tensor_free(one);
    for (int i = 0; i < 3; i++)
        pc_stream_free(s[i]);
}

/* Work from before a recording is waited for by its launch and by everything else, though what is recorded has taken
 * its place in the storages' records. */
static void a_recording_loses_no_order(void **state)
{
    (void)state;
    useconds_t time = 2000;
    pc_stream *s[4];
    for (int i = 0; i < 4; i++)
        s[i] = pc_stream(sim(0));
    pc_tensor *x = pc_zeros(PC_SHAPE(N), PC_F32, sim(0)), *one = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
    for (int launches = 0; launches < 2; launches++) {
        PC_WITH_STREAM(s[0]) {
            assert_ok(pc_fill(x, 0));
            assert_ok(pc_stream_call(s[0], go_slowly, &time));
            assert_ok(pc_fill(x, 3));
        }
        assert_ok(pc_graph_begin(s[1]));
        PC_WITH_STREAM(s[1]) {
            assert_ok(pc_saxpy(x, 1, one));
        }
        PC_WITH_STREAM(s[2]) { /* joins */
            assert_ok(pc_saxpy(x, 1, one));
        }
        pc_graph *graph = pc_graph_end(s[1]);
        assert_not_null_ok(graph);
        if (launches)
            assert_ok(pc_graph_launch(graph, s[3]));
        PC_WITH_STREAM(s[3]) {
            assert_true(is_all(x, launches ? 5 : 3));
        }
        pc_graph_free(graph);
    }
    pc_tensor_free(x);
    pc_tensor_free(one);
    for (int i = 0; i < 4; i++)
        pc_stream_free(s[i]);
}

/* Returns whether all went well; then `*right` says whether the results did. */
static bool small_program(bool *right)
{
    pc_error_clear();
    pc_stream *s[STREAMS] = {NULL};
    pc_tensor *b = NULL, *pinned = NULL;
    pc_graph *graph = NULL;
    for (int i = 0; i < STREAMS && !pc_failed(); i++)
        s[i] = pc_stream(sim(i % 2));
    PC_SCOPE {
        pc_tensor *a = pc_failed() ? NULL : pc_full(PC_SHAPE(N), 2, PC_F32, sim(0));
        for (int i = 0; i < 8 && !pc_failed(); i++)
            PC_WITH_STREAM(s[i % STREAMS]) {
                if (i % 2) {
                    b = pc_to(pc_add_scalar(pc_to(a, sim(1), PC_F32, true), 1), sim(0), PC_F32, true);
                    (void)!pc_copy(a, b);
                } else {
                    (void)!pc_saxpy(a, 1, a);
                }
            }
        if (!pc_failed() && pc_graph_begin(s[0]) == PC_OK) {
            PC_WITH_STREAM(s[0]) {
                (void)!pc_saxpy(a, 1, pc_mul_scalar(a, 0.5));
            }
            graph = pc_graph_end(s[0]);
        }
        if (graph)
            (void)!pc_graph_launch(graph, s[2]);
        pinned = pc_failed() ? NULL : pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
        if (pinned && !pc_failed() && pc_copy(pinned, a) == PC_OK) {
            const float *host = pc_map(pinned, PC_MAP_READ);
            *right = host && host[0] == 70.5f && host[N - 1] == 70.5f && is_all(a, 70.5f); /* 1.5 (((2*2+1)*2+1)... */
            (void)!(host && pc_unmap(pinned));
        }
    }
    pc_graph_free(graph);
    for (int i = 0; i < STREAMS; i++)
        pc_stream_free(s[i]);
    for (int d = 0; d < 2; d++)
        (void)!pc_device_synchronize(sim(d));
    return !pc_failed();
}

static int64_t left(void)
{
    for (int d = 0; d < 2; d++) {
        pc_memory_stats stats;
        assert_ok(pc_memory_trim(sim(d)));
        assert_ok(pc_memory_query(sim(d), &stats));
        assert_int_equal(stats.in_use, 0);
        assert_int_equal(stats.cached, 0);
    }
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    return pc_allocator_live();
}

static void every_allocation_fails(void **state)
{
    bool later = *(bool *)*state, right = false;
    for (int i = 0; i < 2; i++)
        assert_true(small_program(&right) && right);
    int64_t before = left();
    long errors = 0, n = 0;
    for (bool done = false; !done; n++) {
        right = false;
        fail_from(n, later);
        bool fine = small_program(&right);
        done = atomic_load(&allocations) <= n;
        fail_from(NEVER, false);
        if (fine ? !right : pc_error_last()->status != PC_ERR_MEMORY)
            fail_msg("allocation %ld: %s %d: %s", n, fine ? "results" : "status", (int)right, pc_error_last()->message);
        pc_error_clear();
        if (left() != before)
            fail_msg("allocation %ld leaks: %d and before %d", n, (int)left(), (int)before);
        errors += !fine;
    }
    assert_true(small_program(&right) && right);
    print_message("%ld allocations, %ld errors\n", n, errors);
}

int main(void)
{
    static bool once = false, from_then_on = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dependents_are_skipped),
        cmocka_unit_test(an_older_failure_is_not_forgotten),
        cmocka_unit_test(a_call_that_fails_loses_no_order),
        cmocka_unit_test(a_recording_loses_no_order),
        {"every allocation fails once", every_allocation_fails, NULL, NULL, &once},
        {"and all those after it", every_allocation_fails, NULL, NULL, &from_then_on},
    };
    return cmocka_run_group_tests(tests, start_all, NULL);
}

/* What goes wrong with memory in flight elsewhere, written as a user would write it: here the result is right. The
 * device is slow, so that each of these would go wrong for sure: the tests that end in "would" show it, by what the
 * library warns of. */
#include "sim_support.h"

#include <stdlib.h>

enum { N = 1 << 17 };           /* floats: 512 KiB, which take 105 ms */
static const double rate = 5e6; /* bytes a second */

#if defined(__SANITIZE_THREAD__)
enum { RACES_ALLOWED = 0 };
#else
enum { RACES_ALLOWED = 1 };
#endif

static int slow_copies(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 64 << 20, .bandwidth = rate)) != PC_OK;
}

static void put(float *to, float value)
{
    for (int i = 0; i < N; i++)
        to[i] = value;
}

static void map_and_put(pc_tensor *t, float value)
{
    float *p = pc_map(t, PC_MAP_WRITE);
    assert_not_null_ok(p);
    put(p, value);
    assert_ok(pc_unmap(t));
}

static pc_tensor *pinned(float value)
{
    pc_tensor *t = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
    assert_not_null_ok(t);
    map_and_put(t, value);
    return t;
}

static void assert_all(pc_tensor *t, double value)
{
    assert_close(pc_item(pc_mean(t)), value, 0);
    assert_close(pc_item(pc_max(t)), value, 0);
    assert_close(pc_item(pc_max(pc_neg(t))), -value, 0);
}

/* --- to the device --- */

static void pinned_freed_in_flight(void **state)
{
    (void)state;
    pc_tensor *batch = pinned(1), *x = pc_to(batch, sim(0), PC_F32, true);
    pc_tensor_free(batch);
    assert_false(is_done(usual(0)));
    PC_SCOPE {
        pc_tensor *next = pinned(2); /* would take that block */
        assert_false(is_done(usual(0)));
        assert_all(x, 1);
        assert_all(pc_to(next, sim(0), PC_F32, true), 2);
    }
    pc_tensor_free(x);
}

static void pinned_freed_and_trimmed_in_flight(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = NULL;
        PC_SCOPE {
            x = pc_keep(pc_to(pinned(3), sim(0), PC_F32, true));
        }
        assert_ok(pc_memory_trim(sim(0))); /* would unmap it */
        assert_false(is_done(usual(0)));
        assert_all(x, 3);
    }
}

static void pinned_rewritten_through_an_old_pointer(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *batch = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
        float *p = pc_data(batch);
        pc_tensor *x[3];
        for (int i = 0; i < 3; i++) {
            put(p, (float)i);
            x[i] = pc_to(batch, sim(0), PC_F32, true);
        }
        put(p, 99);
        assert_false(is_done(usual(0)));
        for (int i = 0; i < 3; i++)
            assert_all(x[i], i);
    }
}

static void pinned_rewritten_through_a_map(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *batch = pinned(1), *x = pc_to(batch, sim(0), PC_F32, true);
        assert_non_null(pc_map(batch, PC_MAP_READ)); /* reading what is being read need not wait */
        assert_false(is_done(usual(0)));
        assert_ok(pc_unmap(batch));
        map_and_put(batch, 2); /* waits */
        assert_true(is_done(usual(0)));
        assert_all(x, 1);
        assert_all(pc_to(batch, sim(0), PC_F32, true), 2);
    }
}

static void pinned_rewritten_by_an_op(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *batch = pinned(1), *x = pc_to(batch, sim(0), PC_F32, true);
        assert_ok(pc_fill(batch, 2));
        assert_all(x, 1);
        x = pc_to(batch, sim(0), PC_F32, true);
        assert_ok(pc_copy(batch, pc_full(PC_SHAPE(N), 3, PC_F32, sim(0)))); /* the other way, on the other engine */
        assert_all(x, 2);
        assert_all(batch, 3);
    }
}

/* A pointer that is kept over pc_unmap is the program's mistake: the copy is under way. */
static void a_rewrite_would_show(void **state)
{
    (void)state;
    if (!RACES_ALLOWED)
        skip();
    PC_SCOPE {
        pc_tensor *batch = pinned(1);
        float *stale = pc_map(batch, PC_MAP_WRITE);
        assert_ok(pc_unmap(batch));
        pc_tensor *x = pc_to(batch, sim(0), PC_F32, true);
        put(stale, 2);
        assert_close(pc_item(pc_max(x)), 2, 0);
    }
}

static void pageable_rewritten_in_flight(void **state)
{
    (void)state;
    float *mine = malloc(N * sizeof *mine);
    PC_SCOPE {
        pc_tensor *batch = pc_from_memory(mine, PC_SHAPE(N), PC_F32, NULL, NULL), *x[3];
        for (int i = 0; i < 3; i++) {
            put(mine, (float)i);
            x[i] = pc_to(batch, sim(0), PC_F32, true);
        }
        put(mine, 99);
        assert_false(is_done(usual(0)));
        for (int i = 0; i < 3; i++)
            assert_all(x[i], i);
    }
    free(mine);
}

static void pageable_freed_in_flight(void **state)
{
    (void)state;
    float *mine = malloc(N * sizeof *mine), *also_mine = malloc(N * sizeof *also_mine);
    put(mine, 1);
    put(also_mine, 2);
    pc_tensor *batch = pc_from_memory(mine, PC_SHAPE(N), PC_F32, free, mine);
    PC_SCOPE {
        pc_tensor *x = pc_to(batch, sim(0), PC_F32, true);
        pc_tensor_free(batch); /* and `mine` with it */
        pc_tensor *y = pc_from_data(also_mine, PC_SHAPE(N), PC_F32, sim(0));
        put(also_mine, 3);
        free(also_mine);
        assert_false(is_done(usual(0)));
        assert_all(x, 1);
        assert_all(y, 2);
    }
}

/* --- from the device --- */

static void read_too_early(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 5, PC_F32, sim(0));
        static float got[N];
        pc_tensor *y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_false(is_done(usual(0)));
        const float *p = pc_data(y);
        assert_close(p[0] + p[N - 1], 10, 0);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_ok(pc_read(y, got, sizeof got));
        assert_close(got[0] + got[N - 1], 10, 0);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_close(pc_item(pc_slice(y, 0, N - 1, N, 1)), 5, 0);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_close(pc_item(pc_sum(y)), 5.0 * N, 0);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        char *text = pc_tensor_text(pc_slice(y, 0, N - 2, N, 1));
        assert_string_equal(text, "tensor([5., 5.])");
        pc_text_free(text);
    }
}

/* Into memory that the program has a pointer to, pinned or its own, the host waits for the copy. */
static void read_through_a_pointer_from_before(void **state)
{
    (void)state;
    static float mine[N];
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 6, PC_F32, sim(0));
        pc_tensor *out = pinned(0), *own = pc_from_memory(mine, PC_SHAPE(N), PC_F32, NULL, NULL);
        const float *p = pc_data(out);
        assert_ok(pc_copy(out, x));
        assert_close(p[0] + p[N - 1], 12, 0);
        assert_ok(pc_copy(own, x));
        assert_close(mine[0] + mine[N - 1], 12, 0);
    }
}

static void read_through_a_map(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 7, PC_F32, sim(0)), *out = pinned(0);
        assert_ok(pc_copy(out, x));
        assert_false(is_done(usual(0)));
        const float *p = pc_map(out, PC_MAP_READ);
        assert_close(p[0] + p[N - 1], 14, 0);
        assert_fails(pc_copy(out, x), PC_ERR_STATE, "call pc_unmap");
        assert_fails(pc_to(out, sim(0), PC_F32, true), PC_ERR_STATE, "mapped");
        assert_ok(pc_unmap(out));
        assert_ok(pc_copy(out, x));
    }
}

static void an_early_read_would_show(void **state)
{
    (void)state;
    if (!RACES_ALLOWED)
        skip();
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 8, PC_F32, sim(0)), *out = pinned(0);
        const volatile float *stale = pc_map(out, PC_MAP_READ);
        assert_ok(pc_unmap(out));
        assert_ok(pc_copy(out, x));
        assert_close(stale[N - 1], 0, 0);
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_close(stale[N - 1], 8, 0);
    }
}

/* --- freed memory of the device --- */

/* What `side` reads is freed, and the usual stream asks for memory of that size. */
static void freed_while_another_stream_reads(void **state)
{
    bool by_hand = *state != NULL;
    pc_stream *side = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *sum = NULL, *other;
        void *was;
        PC_SCOPE {
            pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0));
            was = pc_device_pointer(x);
            assert_ok(pc_stream_synchronize(usual(0)));
            stop_stream(side);
            PC_WITH_STREAM(side) {
                sum = pc_keep(pc_sum(x));
            }
        }
        if (by_hand)
            PC_MANUAL_ORDER {
                other = pc_full(PC_SHAPE(N), 2, PC_F32, sim(0));
            }
        else
            other = pc_full(PC_SHAPE(N), 2, PC_F32, sim(0));
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_ptr_not_equal(pc_device_pointer(other), was);
        assert_false(is_done(side)); /* nobody waited either */
        let_go();
        assert_ok(pc_stream_synchronize(side));
        assert_close(pc_item(sum), N, 0);
        assert_close(pc_item(pc_sum(other)), 2 * N, 0);
    }
    pc_stream_free(side);
}

static int room_for_one(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = N * 5)) != PC_OK;
}

/* Where there is no other memory, the block is handed on, and its next user waits: not the host. */
static void freed_and_needed_at_once(void **state)
{
    bool by_hand = *state != NULL;
    pc_stream *side = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *sum = NULL, *other;
        void *was;
        PC_SCOPE {
            pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0));
            was = pc_device_pointer(x);
            assert_ok(pc_stream_synchronize(usual(0)));
            stop_stream(side);
            PC_WITH_STREAM(side) {
                sum = pc_keep(pc_sum(x));
            }
        }
        if (by_hand)
            PC_MANUAL_ORDER {
                other = pc_full(PC_SHAPE(N), 2, PC_F32, sim(0));
            }
        else
            other = pc_full(PC_SHAPE(N), 2, PC_F32, sim(0));
        assert_not_null_ok(other);
        assert_ptr_equal(pc_device_pointer(other), was);
        assert_false(is_done(side));
        let_go();
        assert_ok(pc_stream_synchronize(side));
        assert_close(pc_item(sum), N, 0);
        assert_close(pc_item(pc_sum(other)), 2 * N, 0);
    }
    pc_stream_free(side);
}

#define SLOWLY(test) cmocka_unit_test_setup_teardown(test, slow_copies, one_is_empty)

int main(void)
{
    static int by_hand;
    const struct CMUnitTest tests[] = {
        SLOWLY(pinned_freed_in_flight),
        SLOWLY(pinned_freed_and_trimmed_in_flight),
        SLOWLY(pinned_rewritten_through_an_old_pointer),
        SLOWLY(pinned_rewritten_through_a_map),
        SLOWLY(pinned_rewritten_by_an_op),
        SLOWLY(a_rewrite_would_show),
        SLOWLY(pageable_rewritten_in_flight),
        SLOWLY(pageable_freed_in_flight),
        SLOWLY(read_too_early),
        SLOWLY(read_through_a_pointer_from_before),
        SLOWLY(read_through_a_map),
        SLOWLY(an_early_read_would_show),
        SLOWLY(freed_while_another_stream_reads),
        cmocka_unit_test_prestate_setup_teardown(freed_while_another_stream_reads, slow_copies, one_is_empty, &by_hand),
        cmocka_unit_test_setup_teardown(freed_and_needed_at_once, room_for_one, one_is_empty),
        cmocka_unit_test_prestate_setup_teardown(freed_and_needed_at_once, room_for_one, one_is_empty, &by_hand),
    };
    return cmocka_run_group_tests_name("device.accidents", tests, NULL, NULL);
}

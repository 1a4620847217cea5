/* Recordings on sim devices: what cannot be recorded is refused by name and line, streams join and come back, launches
 * are ordered by their data, and memory stays until it is no longer used. */
#include "sim_support.h"

#include <stdlib.h>

#define HERE "sim_graph.c"
enum { N = 1000 };

static pc_stream *side;

static int open_side(void **state)
{
    (void)state;
    if (pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 16 << 20)) != PC_OK)
        return -1;
    side = pc_stream(sim(0));
    return side ? 0 : -1;
}

static int close_side(void **state)
{
    (void)state;
    pc_stream_free(side);
    assert_ok(pc_device_synchronize(sim(0)));
    assert_empty(0);
    assert_false(pc_failed());
    return 0;
}

/* --- what cannot be recorded --- */

typedef struct refused {
    pc_tensor *x, *pageable, *pinned, *held;
} refused;

static float host[N];

static void ask_item(const refused *r)
{
    (void)pc_item(pc_sum(r->x));
}

static void ask_read(const refused *r)
{
    (void)!pc_read(r->x, host, sizeof host);
}

static void ask_text(const refused *r)
{
    pc_text_free(pc_tensor_text(r->x));
}

static void ask_from_data(const refused *r)
{
    (void)r;
    (void)!pc_from_data(host, PC_SHAPE(N), PC_F32, sim(0));
}

static void ask_data(const refused *r)
{
    (void)!pc_copy(r->pinned, r->x); /* this can be recorded */
    (void)!pc_data(r->pinned);
}

static void ask_map(const refused *r)
{
    (void)!pc_copy(r->pinned, r->x);
    (void)!pc_map(r->pinned, PC_MAP_READ);
}

static void ask_pageable_in(const refused *r)
{
    (void)!pc_to(r->pageable, sim(0), PC_F32, true);
}

static void ask_pageable_out(const refused *r)
{
    (void)!pc_to(r->x, PC_DEVICE_CPU, PC_F32, true);
}

static void ask_blocking(const refused *r)
{
    (void)!pc_to(r->pinned, sim(0), PC_F32, false);
}

static void ask_pointed_at(const refused *r)
{
    (void)!pc_copy(r->x, r->held);
}

static void ask_synchronize(const refused *r)
{
    (void)r;
    (void)!pc_stream_synchronize(usual(0));
}

static const struct {
    void (*ask)(const refused *);
    const char *call, *why;
} asked[] = {
    {ask_item, "pc_item (", "data on the host cannot be part of a recording"},
    {ask_read, "pc_read (", "data on the host"},
    {ask_text, "pc_tensor_text (", "data on the host"},
    {ask_from_data, "pc_from_data (", "memory of the program"},
    {ask_data, "pc_data (", "data that only a launch will compute"},
    {ask_map, "pc_map (", "data that only a launch will compute"},
    {ask_pageable_in, "pc_to (", "pageable memory"},
    {ask_pageable_out, "pc_to (", "pageable memory"},
    {ask_blocking, "pc_to (", "waiting"},
    {ask_pointed_at, "pc_copy (", "a pointer from pc_data"},
    {ask_synchronize, "pc_stream_synchronize (", "waiting"},
};

static void asks_what_cannot_be(int i, const refused *r)
{
    pc_error_clear();
    assert_ok(pc_graph_begin(usual(0)));
    assert_ok(pc_fill(r->x, 7));
    asked[i].ask(r);
    const pc_error *e = pc_error_last();
    if (e->status != PC_ERR_STATE || strncmp(e->message, asked[i].call, strlen(asked[i].call)) != 0 ||
        !strstr(e->message, asked[i].why))
        fail_msg("%d: %s: %s: should name %s and %s", i, pc_status_name(e->status), e->message, asked[i].call,
                 asked[i].why);
    assert_non_null(strstr(e->message, "before pc_graph_begin or after pc_graph_end"));
    assert_names(e->message, HERE,
                 atoi(strstr(e->message, HERE ":") ? strstr(e->message, HERE ":") + strlen(HERE) + 1 : "0"));
    assert_ok(pc_add(r->x, r->x) ? PC_OK : PC_ERR_STATE); /* the rest of the program goes on */
    assert_fails(pc_graph_end(usual(0)), PC_ERR_STATE, "pc_graph_end: the recording is not complete");
    assert_ok(pc_graph_begin(usual(0)));
    asked[i].ask(r);
    pc_error_clear();
    (void)!pc_graph_end(usual(0));
    assert_non_null(strstr(pc_error_last()->message, asked[i].call));
    pc_error_clear();
    assert_close(pc_item(pc_sum(r->x)), N, 0); /* nothing of it has run, and everything works */
    assert_close(pc_item(pc_sum(pc_to(r->pageable, sim(0), PC_F32, true))), 2 * N, 0);
    assert_close(pc_item(pc_sum(r->pinned)), 3 * N, 0);
    assert_false(pc_failed());
}

static void what_cannot_be_recorded_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        PC_SCOPE {
            refused r = {.x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)),
                         .pageable = pc_full(PC_SHAPE(N), 2, PC_F32, PC_DEVICE_CPU),
                         .pinned = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0)),
                         .held = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0))};
            assert_ok(pc_fill(r.pinned, 3));
            assert_non_null(pc_data(r.held));
            asks_what_cannot_be((int)i, &r);
        }
}

/* Two recordings that meet, and a recording that would have to go on on another kind of device. */
static void recordings_that_meet(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *y = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_graph_begin(usual(0)));
        assert_ok(pc_graph_begin(side));
        assert_ok(pc_fill(x, 2));
        PC_WITH_STREAM(side) {
            assert_ok(pc_fill(y, 3));
            assert_fails(pc_saxpy(y, 1, x), PC_ERR_STATE, "another one");
        }
        assert_fails(pc_graph_end(NULL), PC_ERR_STATE, "not being recorded"); /* of the current device: the cpu */
        pc_graph_free(pc_graph_end(side));
        pc_graph_free(pc_graph_end(usual(0)));
        pc_error_clear();
        assert_close(pc_item(pc_sum(x)) + pc_item(pc_sum(y)), 2 * N, 0);
    }
}

/* --- streams join --- */

/* x -> (a = 2 x, b = 3 x on the other stream) -> x = a + b: by data alone. */
static pc_graph *record_fork_and_join(pc_tensor *x, pc_event *forked, pc_event *joined)
{
    assert_ok(pc_graph_begin(usual(0)));
    PC_SCOPE {
        pc_tensor *a = pc_mul_scalar(x, 2), *b = NULL;
        if (forked) {
            assert_ok(pc_event_record(forked, usual(0)));
            assert_ok(pc_event_wait(forked, side));
        }
        PC_WITH_STREAM(side) {
            b = pc_mul_scalar(a, 1.5);
        }
        if (joined) {
            assert_ok(pc_event_record(joined, side));
            assert_ok(pc_event_wait(joined, usual(0)));
        }
        assert_ok(pc_copy(x, pc_add(a, b)));
    }
    pc_graph *graph = pc_graph_end(usual(0));
    assert_not_null_ok(graph);
    return graph;
}

static void streams_join_by_data(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        pc_graph *graph = record_fork_and_join(x, NULL, NULL);
        assert_close(pc_item(pc_max(x)), 1, 0);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(x)), 5, 0);
        PC_WITH_STREAM(side) {
            assert_ok(pc_fill(x, 2)); /* that stream is its own again */
        }
        assert_ok(pc_graph_launch(graph, side));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(x)), 50, 0);
        pc_graph_free(graph);
    }
}

static void streams_join_by_events(void **state)
{
    (void)state;
    pc_event *forked = pc_event_new(sim(0)), *joined = pc_event_new(sim(0));
    double ms;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        pc_graph *graph = NULL;
        PC_MANUAL_ORDER {
            graph = record_fork_and_join(x, forked, joined);
        }
        assert_fails(pc_event_elapsed(forked, joined, &ms), PC_ERR_STATE, "in a recording has no time");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(x)), 5, 0);
        pc_graph_free(graph);
    }
    pc_event_free(forked);
    pc_event_free(joined);
}

static void a_joined_stream_is_not_the_end(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_graph_begin(usual(0)));
        assert_ok(pc_fill(x, 4));
        PC_WITH_STREAM(side) {
            assert_ok(pc_saxpy(x, 1, x));
            assert_fails(pc_item(pc_max(x)), PC_ERR_STATE, "being recorded"); /* there, too */
        }
        assert_fails(pc_graph_end(side), PC_ERR_STATE, "began on another stream");
        assert_fails(pc_graph_end(usual(0)), PC_ERR_STATE, "pc_item");
        assert_close(pc_item(pc_max(x)), 1, 0);
    }
}

/* --- update --- */

static pc_graph *record_update(pc_tensor *x, pc_tensor *pinned, bool exp_too)
{
    assert_ok(pc_graph_begin(usual(0)));
    PC_SCOPE {
        assert_ok(pc_saxpy(x, 2, x));
        pc_tensor *y = exp_too ? pc_exp(x) : pc_neg(x);
        assert_ok(pc_copy(pinned, y));
    }
    pc_graph *graph = pc_graph_end(usual(0));
    assert_not_null_ok(graph);
    return graph;
}

static void update_takes_other_addresses(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, sim(0)), *y = pc_full(PC_SHAPE(N), 10, PC_F32, sim(0));
        pc_tensor *short_one = pc_full(PC_SHAPE(N / 2), 1, PC_F32, sim(0));
        pc_tensor *out = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0)),
                  *other = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0)),
                  *short_out = pc_empty_pinned(PC_SHAPE(N / 2), PC_F32, sim(0));
        assert_ok(pc_fill(other, 0));
        pc_graph *graph = record_update(x, out, false), *newer = record_update(y, other, false),
                 *longer = record_update(x, out, true), *shorter = record_update(short_one, short_out, false);
        assert_ok(pc_graph_launch(graph, NULL)); /* may well be under way still when it changes */
        assert_ok(pc_graph_update(graph, newer));
        pc_graph_free(newer);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), -3, 0);
        assert_close(pc_item(pc_max(other)), -30, 0);
        assert_fails(pc_graph_update(graph, longer), PC_ERR_SHAPE, "neg");
        assert_fails(pc_graph_update(graph, shorter), PC_ERR_SHAPE, "saxpy");
        assert_fails(pc_graph_update(graph, NULL), PC_ERR_ARGUMENT, "NULL");
        assert_ok(pc_graph_launch(graph, side)); /* nothing changed */
        assert_close(pc_item(pc_max(other)), -90, 0);
        assert_close(pc_item(pc_max(out)), -3, 0);
        assert_close(pc_item(pc_max(x)), 3, 0);
        pc_graph_free(graph);
        pc_graph_free(longer);
        pc_graph_free(shorter);
    }
}

static void update_minds_the_length_and_the_device(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *there = pc_ones(PC_SHAPE(N), PC_F32, sim(1));
        pc_graph *graph[3];
        for (int i = 0; i < 3; i++) {
            pc_stream *stream = i < 2 ? usual(0) : usual(1);
            assert_ok(pc_graph_begin(stream));
            for (int k = 0; k <= i % 2; k++)
                assert_ok(pc_saxpy(i < 2 ? x : there, 1, i < 2 ? x : there));
            graph[i] = pc_graph_end(stream);
            assert_not_null_ok(graph[i]);
        }
        assert_fails(pc_graph_update(graph[0], graph[1]), PC_ERR_SHAPE, "goes on with saxpy");
        assert_fails(pc_graph_update(graph[0], graph[2]), PC_ERR_DEVICE, "different devices");
        assert_fails(pc_graph_launch(graph[2], usual(0)), PC_ERR_DEVICE, "another device");
        for (int i = 0; i < 3; i++)
            pc_graph_free(graph[i]);
    }
}

/* --- launches among other work --- */

static void launches_are_ordered_by_their_data(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        pc_graph *graph = record_fork_and_join(x, NULL, NULL);
        stop_stream(side);
        PC_WITH_STREAM(side) {
            assert_ok(pc_fill(x, 3));
        }
        assert_ok(pc_graph_launch(graph, NULL)); /* after that, on another stream */
        PC_WITH_STREAM(side) {
            assert_ok(pc_saxpy(x, 1, x)); /* after the launch */
        }
        assert_false(is_done(usual(0)));
        let_go();
        assert_close(pc_item(pc_max(x)), 30, 0);
        pc_graph_free(graph);
    }
}

static void a_graph_goes_while_it_runs(void **state)
{
    (void)state;
    pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *kept = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
    pc_graph *graph;
    assert_ok(pc_graph_begin(usual(0)));
    PC_SCOPE {
        assert_ok(pc_saxpy(kept, 3, pc_add_scalar(x, 1)));
    }
    graph = pc_graph_end(usual(0));
    assert_not_null_ok(graph);
    stop_stream(usual(0));
    assert_ok(pc_graph_launch(graph, NULL));
    pc_tensor_free(x);
    pc_graph_free(graph);
    PC_SCOPE {
        PC_WITH_STREAM(side) {
            for (int i = 0; i < 4; i++) /* would take its memory */
                assert_not_null_ok(pc_full(PC_SHAPE(N), 99, PC_F32, sim(0)));
            assert_ok(pc_stream_synchronize(side));
        }
        assert_false(is_done(usual(0)));
        let_go();
        assert_close(pc_item(pc_max(kept)), 7, 0);
        assert_close(pc_item(pc_sum(kept)), 7 * N, 0);
    }
    pc_tensor_free(kept);
}

/* A fault in a launch is blamed on the recorded op's line, and the graph can be launched again. */
static void a_launch_fails(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *y = pc_zeros(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_graph_begin(usual(0)));
        assert_ok(pc_saxpy(y, 1, x));
        assert_ok(pc_copy(y, pc_exp(y)));
        int line = __LINE__ - 1;
        pc_graph *graph = pc_graph_end(usual(0));
        assert_not_null_ok(graph);
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_KERNEL, 2));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_int_equal(pc_stream_synchronize(usual(0)), PC_ERR_BACKEND);
        assert_non_null(strstr(pc_error_last()->message, "exp, queued at"));
        assert_names(pc_error_last()->message, HERE, line);
        pc_error_clear();
        assert_fails(pc_graph_launch(graph, NULL), PC_ERR_BACKEND, "exp, queued at"); /* it goes on from what y has */
        assert_ok(pc_fill(y, 0));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(y)), 2.718281828, 1e-6);
        pc_graph_free(graph);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_side, close_side)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_recorded_is_named),
        TEST(recordings_that_meet),
        TEST(streams_join_by_data),
        TEST(streams_join_by_events),
        TEST(a_joined_stream_is_not_the_end),
        TEST(update_takes_other_addresses),
        TEST(update_minds_the_length_and_the_device),
        TEST(launches_are_ordered_by_their_data),
        TEST(a_graph_goes_while_it_runs),
        TEST(a_launch_fails),
    };
    return cmocka_run_group_tests_name("device.sim_graph", tests, NULL, NULL);
}

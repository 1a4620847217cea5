/* Random programs, run call by call and as a graph: what both leave behind is the same, bit by bit, launch after launch.
 * A program reads and writes tensors that were there before, makes others, drops some and keeps some, on three streams, which wait for each other by what they use and by events; it
 * trains weights under mixed precision, which others write between launches.
 * PARACORD_CASES=20000 draws so many, PARACORD_SEED=N begins there; PARACORD_PLAN=-NAME shows which pass a fault is of. */
#include "number.h"
#include "random_calls.h"

#include "ops/step.h"

#include <paracord/autograd.h>
#include <stdio.h>

/* No element of a state, nor any of what becomes of it, becomes large. */
static pc_tensor *product(pc_tensor *a, pc_tensor *b)
{
    return draw(4) ? pc_softmax(pc_matmul(a, b), 1)
                   : pc_fn_attention(a, b, b, (pc_fn_attention_options){.causal = draw(2)});
}

static pc_stream *any_stream(const machine *m)
{
    return draw(4) ? m->main : draw(3) ? m->side : m->third;
}

/* As a training step under autocast: states in 16 bits, products of them, and what comes out is added to states in
 * float32; with writes and other streams on the way. */
static pc_tensor *mixed(machine *m)
{
    enum { MOST = 4 };
    const pc_dtype dtype = draw(2) ? PC_BF16 : PC_F16;
    const int n = 2 + draw(MOST - 1);
    pc_tensor *narrow[MOST] = {NULL}, *wide[MOST] = {NULL}, *out = NULL;
    for (int i = 0; i < n; i++)
        PC_WITH_STREAM(any_stream(m)) {
            pc_tensor *state = m->state[draw(STATES)];
            narrow[i] = pc_cast(draw(8) ? state : pc_transpose(state, 0, 1), dtype);
            out = draw(3) && out ? product(out, narrow[i]) : narrow[i];
            if (draw(3) == 0)
                assert_ok(pc_fill(pc_slice(m->state[draw(STATES)], 0, 2, 5, 1), .25));
        }
    for (int i = 0; i < n; i++)
        PC_WITH_STREAM(any_stream(m)) {
            pc_tensor *gradient = product(out, narrow[draw(n)]);
            wide[i] = pc_cast(gradient, PC_F32);
            if (draw(6) == 0)
                assert_ok(pc_saxpy(gradient, .5, narrow[0]));
            if (draw(6) == 0)
                assert_ok(pc_saxpy(m->state[draw(STATES)], .125, wide[i]));
        }
    for (int i = 0; i < n; i++)
        if (draw(3))
            assert_ok(pc_saxpy(m->state[draw(STATES)], .125, wide[i]));
    return wide[draw(n)];
}

/* Casts to and from memory of 16 bits, and into states, close together. */
static pc_tensor *casts(machine *m)
{
    pc_tensor *wide = pc_cast(m->half[draw(HALVES)], PC_F32), *narrow = NULL;
    for (int i = 3 + draw(6); i > 0; i--)
        PC_WITH_STREAM(draw(8) ? pc_stream_current(test_device()) : any_stream(m)) {
            pc_tensor *half = m->half[draw(HALVES)], *state = m->state[draw(STATES)];
            const pc_dtype dtype = pc_tensor_dtype(half);
            switch (draw(5)) {
            case 0:
            case 1:
                assert_ok(pc_copy(half, pc_cast(state, dtype)));
                break;
            case 2:
                assert_ok(pc_copy(state, pc_cast(half, PC_F32)));
                break;
            case 3:
                wide = pc_cast(half, PC_F32);
                break;
            default:
                narrow = pc_cast(state, dtype);
            }
        }
    return narrow && draw(2) ? pc_softmax(narrow, 1) : wide;
}

/* A gradient step of the first state. */
static pc_tensor *learn(machine *m)
{
    pc_tensor *w = m->state[0], *x = pc_detach(any(m));
    assert_ok(pc_require_grad(w, true));
    pc_tensor *y = pc_tanh(pc_mul(w, pc_tanh(x)));
    assert_ok(pc_backward(pc_mean(pc_mul(y, y))));
    pc_tensor *g = pc_clone(pc_grad(w));
    PC_NO_GRAD {
        assert_ok(pc_saxpy(w, -.5, pc_grad(w)));
    }
    pc_zero_grad(w);
    assert_ok(pc_require_grad(w, false));
    return g;
}

/* An optimiser's step of some weights. */
static void step_weights(machine *m, pc_tensor *const gradient[WEIGHTS])
{
    pc_tensor *all[2 * WEIGHTS];
    int n = 0;
    for (int i = 0; i < WEIGHTS; i++)
        n += gradient[i] != NULL;
    for (int i = 0, k = 0; i < WEIGHTS; i++)
        if (gradient[i]) {
            all[k] = m->weight[i];
            all[n + k++] = pc_contiguous(gradient[i]);
        }
    if (n)
        assert_ok(pc__sgd_step(
            all, 2 * n, &(pc__step_attributes){.count = n, .lr = .25, .groups = 1, .group = {{n, 1, 0}}, .step = 1}));
}

/* Weights in 16 bits and what is made of them, then their step; now and then on several streams, with results that
 * outlive the step, or with weights that are written otherwise. */
static pc_tensor *train(machine *m)
{
    const pc_dtype dtype = draw(4) ? PC_BF16 : PC_F16;
    pc_tensor *narrow[WEIGHTS], *gradient[WEIGHTS] = {NULL}, *out = NULL;
    for (int i = 0; i < WEIGHTS; i++)
        PC_WITH_STREAM(draw(8) ? m->main : m->side) {
            pc_tensor *w = draw(6) ? m->weight[i] : pc_transpose(m->weight[i], 0, 1);
            narrow[i] = pc_cast(draw(8) ? w : pc_slice(w, 0, 0, PC_END_OF_DIM, 1), dtype);
            out = out && draw(6) ? product(out, narrow[i]) : narrow[i];
            if (draw(12) == 0)
                assert_ok(pc_fill(pc_slice(m->weight[draw(WEIGHTS)], 0, 2, 5, 1), .25));
        }
    PC_WITH_STREAM(draw(8) ? m->main : m->side) {
        for (int i = 0; i < WEIGHTS; i++)
            if (draw(6))
                gradient[i] = pc_cast(product(pc_transpose(out, 0, 1), narrow[draw(WEIGHTS)]), PC_F32);
        step_weights(m, gradient);
        if (draw(6) == 0)
            assert_ok(pc_copy(m->state[draw(STATES)], pc_cast(m->weight[draw(WEIGHTS)], dtype)));
        if (draw(12) == 0)
            assert_ok(pc_fill(pc_slice(m->weight[draw(WEIGHTS)], 1, 2, 5, 1), .125));
        if (draw(6) == 0)
            out = pc_tanh(narrow[draw(WEIGHTS)]);
    }
    return pc_cast(out, PC_F32);
}

/* Somebody else writes weights. */
static void between(machine *m, int launch)
{
    now.drawn = 200000 + 100 * (uint64_t)launch;
    PC_WITH_STREAM(draw(3) ? m->main : m->side)
        PC_SCOPE {
            pc_tensor *w = m->weight[draw(WEIGHTS)], *narrow = pc_cast(m->state[draw(STATES)], PC_BF16);
            switch (draw(5)) {
            case 0:
                assert_ok(pc_fill(pc_slice(w, 0, 1, 4, 1), .5));
                break;
            case 1:
                assert_ok(pc_copy(w, pc_softmax(narrow, 1)));
                break;
            case 2:
                step_weights(m, (pc_tensor *[WEIGHTS]){m->state[0], NULL, m->state[1]});
                break;
            default:
                break;
            }
        }
}

/* A normalisation whose running statistics are rows or columns of a state. */
static pc_tensor *running(machine *m)
{
    pc_tensor *state = m->state[draw(STATES)], *parts[2];
    const int dim = draw(2);
    for (int i = 0; i < 2; i++)
        parts[i] = pc_reshape(pc_slice(state, dim, 1 + i, 2 + i, 1), PC_SHAPE(now.side));
    return pc_fn_batch_norm(pc_cast(pc_tanh(any(m)), PC_F32), parts[0], parts[1], NULL, NULL, true, .5, .25);
}

static pc_tensor *in_place(machine *m)
{
    pc_tensor *to = draw(3) ? m->state[draw(STATES)] : any(m), *from = pc_cast(pc_tanh(any(m)), pc_tensor_dtype(to));
    switch (draw(6)) {
    case 5:
        return running(m);
    case 0:
        assert_ok(pc_fill(pc_slice(to, 0, 2, 5, 1), .25));
        break;
    case 1:
        assert_ok(pc_copy(pc_slice(to, 1, 0, 4, 1), pc_slice(from, 1, 0, 4, 1)));
        break;
    case 2:
        assert_ok(pc_copy(to, from));
        break;
    default:
        assert_ok(pc_saxpy(to, .5, from));
    }
    return pc_tanh(to);
}

static pc_tensor *made(machine *m)
{
    switch (draw(14)) {
    case 0:
        return draw(2) ? train(m) : unary(any(m));
    case 1:
        return unary(any(m));
    case 2:
    case 3:
        return binary(any(m), any(m));
    case 4:
        return other_order(any(m));
    case 5:
        return along(any(m));
    case 6:
        return cast(any(m));
    case 7:
        return draw(3) ? in_place(m) : learn(m);
    case 8:
        return mixed(m);
    case 9:
        return indexed(any(m));
    case 10:
        return lost_or_resized(any(m), any(m));
    case 11:
    case 12:
        return casts(m);
    default:
        return draw(2) ? pc_zeros(PC_SHAPE(now.side, now.side), PC_F32, test_device()) : binary(any(m), any(m));
    }
}

static void put(pc_tensor **place, pc_tensor *t)
{
    pc_tensor_free(*place);
    *place = t ? pc_tensor_retain(t) : NULL;
}

static void one_step(machine *m)
{
    if (draw(8) == 0 && m->event)
        assert_true(pc_event_record(m->event, any_stream(m)) == PC_OK &&
                    pc_event_wait(m->event, any_stream(m)) == PC_OK);
    PC_WITH_STREAM(any_stream(m)) {
        PC_SCOPE {
            pc_tensor *t = made(m);
            assert_not_null_ok(t);
            put(&m->value[draw(VALUES)], t);
            if (draw(8) == 0)
                put(&m->kept[draw(KEPT)], t);
        }
    }
}

static void drop(machine *m)
{
    for (int i = 0; i < KEPT; i++)
        put(&m->kept[i], NULL);
}

/* A stream that waits for nothing of a recording is no part of it. */
static void join(const machine *m)
{
    PC_SCOPE {
        for (int i = 0; i < STATES; i++)
            assert_ok(pc_saxpy(m->state[i], .125, pc_tanh(m->state[i])));
        PC_WITH_STREAM(m->side)
            assert_not_null_ok(pc_neg(m->state[0]));
        PC_WITH_STREAM(m->third)
            assert_not_null_ok(pc_neg(m->state[0]));
    }
}

/* The program of the seed. */
static void run(machine *m)
{
    now.drawn = 100000;
    drop(m);
    PC_WITH_STREAM(m->main) {
        join(m);
        for (int i = 3 + draw(STEPS); i > 0; i--)
            one_step(m);
    }
    for (int i = 0; i < VALUES; i++)
        put(&m->value[i], NULL);
}

static void fill(machine *m)
{
    now.drawn = 10;
    for (int i = 0; i < STATES + WEIGHTS + HALVES; i++) {
        float numbers[SIDE_MOST * SIDE_MOST];
        for (int k = 0; k < now.side * now.side; k++)
            numbers[k] = (float)(2 * pc_uniform(now.seed, 8, now.drawn++) - 1);
        const int half = i - STATES - WEIGHTS;
        pc_tensor **place = i < STATES ? &m->state[i] : half >= 0 ? &m->half[half] : &m->weight[i - STATES];
        *place =
            pc_cast(pc_from_data(numbers, PC_SHAPE(now.side, now.side), PC_F32, test_device()), half < 0    ? PC_F32
                                                                                                : half == 0 ? PC_F16
                                                                                                            : PC_BF16);
        assert_not_null_ok(*place);
    }
}

static void same(const pc_tensor *want, const pc_tensor *got, const char *what, int i, int launch)
{
    _Alignas(8) char a[SIDE_MOST * SIDE_MOST * 8], b[SIDE_MOST * SIDE_MOST * 8];
    assert_int_equal(!want, !got);
    if (!want)
        return;
    const size_t bytes = (size_t)(now.side * now.side) * pc_dtype_size(pc_tensor_dtype(want));
    assert_int_equal(pc_tensor_dtype(want), pc_tensor_dtype(got));
    assert_ok(pc_read(want, a, bytes));
    assert_ok(pc_read(got, b, bytes));
    if (memcmp(a, b, bytes) != 0)
        fail_msg("PARACORD_SEED=%llu: %s %d is another one after launch %d", (unsigned long long)now.seed, what, i,
                 launch);
}

static pc_graph *record(machine *m)
{
    assert_ok(pc_graph_begin(m->main));
    run(m);
    pc_graph *graph = pc_graph_end(m->main);
    assert_not_null_ok(graph);
    return graph;
}

static void compare(machine *plain, machine *graphed)
{
    pc_graph *graph = record(graphed);
    for (int launch = 1; launch <= LAUNCHES; launch++) {
        between(plain, launch);
        between(graphed, launch);
        run(plain);
        assert_ok(pc_graph_launch(graph, launch == 2 ? graphed->side : graphed->main));
        for (int i = 0; i < STATES; i++)
            same(plain->state[i], graphed->state[i], "state", i, launch);
        for (int i = 0; i < WEIGHTS; i++)
            same(plain->weight[i], graphed->weight[i], "weight", i, launch);
        for (int i = 0; i < HALVES; i++)
            same(plain->half[i], graphed->half[i], "half", i, launch);
        for (int i = 0; i < KEPT; i++)
            same(plain->kept[i], graphed->kept[i], "result", i, launch);
    }
    pc_graph_free(graph);
}

static void one_case(uint64_t seed, machine plain)
{
    static const int sides[] = {8, 12, 12, 17, 20, SIDE_MOST};
    now.seed = seed;
    now.drawn = 0;
    now.side = sides[draw(PC__COUNT(sides))];
    PC_SCOPE {
        machine graphed = plain;
        fill(&plain);
        fill(&graphed);
        compare(&plain, &graphed);
        drop(&plain);
        drop(&graphed);
    }
}

static void graphs_do_what_calls_do(void **state)
{
    (void)state;
    const bool one = test_device().type == PC_CPU;
    pc_stream *stream[3] = {pc_stream(test_device()), pc_stream(test_device()), pc_stream(test_device())};
    machine m = {.event = one ? NULL : pc_event_new(test_device())};
    m.main = stream[0], m.side = stream[one ? 0 : 1], m.third = stream[one ? 0 : 2];
    const int64_t cases = number("PARACORD_CASES", emulated() ? 100 : 300);
    for (int64_t i = 0; i < cases; i++)
        one_case((uint64_t)(number("PARACORD_SEED", 1) + i), m);
    for (int i = 0; i < 3; i++)
        pc_stream_free(stream[i]);
    pc_event_free(m.event);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(graphs_do_what_calls_do)};
    return cmocka_run_group_tests_name("plan.random_plans", tests, NULL, NULL);
}

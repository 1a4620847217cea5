/* Which casts of parameters a plan leaves to the optimiser's step, in plain recordings without modules; that results have
 * the bits of calls whoever writes a parameter between launches; and how long shadows live. */
#include "device.h"
#include "failing.h"
#include "nn/counted.h"
#include "plans.h"

#include "ops/step.h"

#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/sim.h>

enum { SIDE = 12, BATCH = 5, LAUNCHES = 4 };

typedef enum program {
    ONE_STEP,
    BY_ADAM,
    TRANSPOSED,   /* the same memory in another shape */
    A_PART,       /* of the weight is cast */
    BOTH_DTYPES,  /* the first one has the shadow */
    ONCE_MORE,    /* cast behind the step */
    READ_BEHIND,  /* what was cast before is read when the step has written the weight */
    HELD,         /* by the program */
    WRITTEN,      /* what was cast */
    FILLED_FIRST, /* the weight */
    FILLED_BEHIND,
    TWO_STEPS,
    ON_THE_SIDE,    /* another stream reads what was cast */
    CAST_ASIDE,     /* another stream casts */
    FUNCTION_FIRST, /* on the host */
    FUNCTION_BEHIND,
    POINTER_OUT,
    PART_OF_LARGER, /* the weight is a view */
    IN_FULL,        /* the step has the weight as float64 */
    PROGRAMS
} program;

/* How many casts go. */
static const int into_shadows[PROGRAMS] = {[ONE_STEP] = 1,  [BY_ADAM] = 1,    [TRANSPOSED] = 1,     [BOTH_DTYPES] = 1,
                                           [ONCE_MORE] = 2, [CAST_ASIDE] = 1, [FUNCTION_BEHIND] = 1};

typedef struct machine {
    program what;
    pc_tensor *base, *w, *slot[2], *x, *out; /* of the scope */
    pc_tensor *held;
    pc_stream *main, *side;
} machine;

static machine make(program what)
{
    machine m = {.what = what, .main = pc_stream_current(test_device())};
    const pc_dtype dtype = what == IN_FULL ? PC_F64 : PC_F32;
    pc_seed(7);
    m.base = pc_cast(pc_randn(PC_SHAPE(2 * SIDE, SIDE), PC_F32, test_device()), dtype);
    m.w = what == PART_OF_LARGER ? pc_slice(m.base, 0, 0, SIDE, 1) : pc_clone(pc_slice(m.base, 0, 0, SIDE, 1));
    for (int i = 0; i < 2; i++)
        m.slot[i] = pc_zeros(PC_SHAPE(SIDE, SIDE), dtype, test_device());
    m.x = pc_randn(PC_SHAPE(BATCH, SIDE), PC_BF16, test_device());
    m.out = pc_zeros(PC_SHAPE(BATCH, SIDE), PC_F32, test_device());
    if (what == POINTER_OUT)
        assert_non_null(pc_device_pointer(m.w));
    return m;
}

static pc__step_attributes sgd_of(int count, double lr)
{
    return (pc__step_attributes){.count = count, .lr = lr, .groups = 1, .group = {{count, 1, 0}}, .step = 1};
}

static pc_status update(const machine *m, pc_tensor *gradient, double lr)
{
    const int slots = 1 + (m->what == BY_ADAM);
    pc_tensor *all[] = {m->w, gradient, m->slot[0], m->slot[1]};
    pc__step_attributes a = sgd_of(1, lr);
    a.momentum = a.beta1 = .5, a.beta2 = .99, a.epsilon = 1e-6, a.step = 2;
    return slots == 1 ? pc__sgd_step(all, 3, &a) : pc__adam_step(all, 4, &a);
}

static pc_tensor *narrow(const machine *m)
{
    if (m->what == TRANSPOSED)
        return pc_transpose(pc_cast(pc_transpose(m->w, 0, 1), PC_BF16), 0, 1);
    if (m->what == A_PART)
        return pc_cat((pc_tensor *[]){pc_cast(pc_slice(m->w, 0, 0, 4, 1), PC_BF16),
                                      pc_cast(pc_slice(m->w, 0, 4, SIDE, 1), PC_BF16)},
                      2, 0);
    return pc_cast(m->w, PC_BF16);
}

static void do_nothing(void *context)
{
    (void)context;
}

static void branch(pc_stream *side, pc_stream *main)
{
    pc_event *event = pc_event_new(test_device());
    assert_ok(pc_event_record(event, main));
    assert_ok(pc_event_wait(event, side));
    pc_event_free(event);
}

/* A forward pass, with what stands in front of it; false: there is no memory for it. */
static bool forward(machine *m, pc_tensor **w, pc_tensor **y)
{
    bool fine = m->what != FILLED_FIRST || pc_fill(m->w, .125) == PC_OK;
    if (m->what == FUNCTION_FIRST)
        fine = pc_stream_call(m->main, do_nothing, NULL) == PC_OK;
    if (m->what == CAST_ASIDE && m->side != m->main)
        branch(m->side, m->main);
    PC_WITH_STREAM(m->what == CAST_ASIDE ? m->side : m->main)
        *w = narrow(m);
    if (m->what == WRITTEN)
        fine = pc_fill(pc_slice(*w, 0, 2, 4, 1), .5) == PC_OK;
    *y = pc_matmul(m->x, *w);
    if (m->what == BOTH_DTYPES)
        *y = pc_add(*y, pc_cast(pc_matmul(pc_cast(m->x, PC_F16), pc_cast(m->w, PC_F16)), PC_BF16));
    if (m->what == ON_THE_SIDE)
        PC_WITH_STREAM(m->side)
            *y = pc_add(*y, pc_matmul(m->x, *w));
    return fine && *y;
}

/* What stands behind the step. */
static bool follow(machine *m, pc_tensor *w, pc_tensor *gradient)
{
    switch (m->what) {
    case ONCE_MORE:
        return pc_copy(m->out, pc_matmul(m->x, pc_cast(m->w, PC_BF16))) == PC_OK;
    case READ_BEHIND:
        return pc_copy(m->out, pc_matmul(m->x, pc_neg(w))) == PC_OK;
    case FILLED_BEHIND:
        return pc_fill(pc_slice(m->w, 0, 2, 3, 1), .25) == PC_OK;
    case TWO_STEPS:
        return update(m, gradient, .125) == PC_OK;
    case FUNCTION_BEHIND:
        return pc_stream_call(m->main, do_nothing, NULL) == PC_OK;
    default:
        return true;
    }
}

static bool run_with(machine *m, double lr)
{
    bool fine = true;
    PC_SCOPE {
        pc_tensor *w, *y = NULL;
        fine = forward(m, &w, &y) && pc_copy(m->out, y) == PC_OK;
        pc_tensor *gradient = fine ? pc_matmul(pc_transpose(m->x, 0, 1), pc_tanh(y)) : NULL;
        gradient = gradient ? pc_cast(gradient, (pc_dtype)pc_tensor_dtype(m->w)) : NULL;
        fine = gradient && update(m, gradient, lr) == PC_OK && follow(m, w, gradient);
        if (fine && m->what == HELD) {
            pc_tensor_free(m->held);
            m->held = pc_tensor_retain(w);
        }
    }
    return fine;
}

static bool run(machine *m)
{
    return run_with(m, .25);
}

static pc_graph *record(machine *m, double lr)
{
    if (pc_graph_begin(m->main) != PC_OK)
        return NULL;
    const bool fine = run_with(m, lr);
    pc_graph *graph = pc_graph_end(m->main);
    if (fine)
        return graph;
    pc_graph_free(graph);
    return NULL;
}

static void same(pc_tensor *a, pc_tensor *b, const machine *m, int launch)
{
    char x[SIDE * SIDE * 8], y[sizeof x];
    const size_t bytes = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    assert_ok(pc_read(a, x, bytes));
    assert_ok(pc_read(b, y, bytes));
    if (memcmp(x, y, bytes) != 0)
        fail_msg("program %d: another result behind launch %d", (int)m->what, launch);
}

static void same_all(const machine *a, const machine *b, int launch)
{
    same(a->w, b->w, a, launch);
    same(a->out, b->out, a, launch);
    for (int i = 0; i < 2; i++)
        same(a->slot[i], b->slot[i], a, launch);
}

static void taken(const pc_graph *graph, int count, const machine *m)
{
    char words[64];
    snprintf(words, sizeof words, " %d into shadows", plain() ? 0 : count);
    char *text = text_of(graph);
    if (!strstr(text, words))
        fail_msg("program %d: no \"%s\" in:\n%s", (int)m->what, words, text);
    pc_text_free(text);
}

/* Between launches the program writes the weight in some way. */
static void write_between(machine *m, int i)
{
    PC_SCOPE {
        if (i == 1)
            assert_ok(pc_fill(m->w, .5));
        if (i == 2)
            assert_true(run(m)); /* and a step of calls */
        if (i == 3)
            assert_ok(pc_copy(m->w, pc_ones(PC_SHAPE(SIDE, SIDE), PC_F32, PC_DEVICE_CPU)));
    }
}

static void one_program(program what)
{
    PC_SCOPE {
        machine called = make(what), recorded = make(what);
        pc_stream *main = pc_stream(test_device()), *side = pc_stream(test_device());
        called.main = recorded.main = main;
        called.side = recorded.side = test_device().type == PC_CPU ? main : side;
        PC_WITH_STREAM(main) {
            pc_graph *graph = record(&recorded, .25);
            assert_not_null_ok(graph);
            const bool goes = what == ON_THE_SIDE && test_device().type == PC_CPU;
            taken(graph, goes ? 1 : into_shadows[what], &recorded);
            for (int i = 0; i < 2 * LAUNCHES; i++) {
                write_between(&called, i);
                write_between(&recorded, i);
                assert_true(run(&called));
                assert_ok(pc_graph_launch(graph, NULL));
                same_all(&called, &recorded, i);
            }
            pc_graph_free(graph);
        }
        pc_tensor_free(called.held);
        pc_tensor_free(recorded.held);
        pc_stream_free(main);
        pc_stream_free(side);
    }
    assert_no_leak();
}

static void of_each_program(void **state)
{
    (void)state;
    for (int what = 0; what < PROGRAMS; what++)
        one_program((program)what);
}

/* How many lists of casts the launch queues in front of the graph. */
static int lists_of(pc_graph *graph)
{
    start_timeline();
    assert_ok(pc_graph_launch(graph, NULL));
    return stop_counting().lists;
}

/* Two graphs have one shadow, which is right for the other one, too. */
static void of_two_graphs(void **state)
{
    (void)state;
    PC_SCOPE {
        machine called = make(ONE_STEP), recorded = make(ONE_STEP);
        pc_graph *graphs[] = {record(&recorded, .25), record(&recorded, .5)};
        for (int i = 0; i < 2 * LAUNCHES; i++) {
            assert_not_null_ok(graphs[i % 2]);
            assert_true(run_with(&called, i % 2 ? .5 : .25));
            assert_int_equal(lists_of(graphs[i % 2]), !plain() && (i == 0 || i == LAUNCHES + 1));
            same_all(&called, &recorded, i);
            if (i == LAUNCHES) { /* recording counts as a write */
                pc_graph_free(graphs[1]);
                assert_not_null_ok(graphs[1] = record(&recorded, .5));
            }
        }
        for (int i = 0; i < 2; i++)
            pc_graph_free(graphs[i]);
    }
    assert_no_leak();
}

/* The other graph makes the weight anew, and has no shadow. */
static void of_another_graph(void **state)
{
    (void)state;
    PC_SCOPE {
        machine called = make(ONE_STEP), recorded = make(ONE_STEP);
        pc_graph *graph = record(&recorded, .25);
        assert_ok(pc_graph_begin(recorded.main));
        assert_ok(pc_fill(recorded.w, .5));
        pc_graph *fill = ended();
        for (int i = 0; i < LAUNCHES; i++) {
            assert_ok(pc_fill(called.w, .5));
            assert_true(run(&called));
            assert_ok(pc_graph_launch(fill, NULL));
            assert_int_equal(lists_of(graph), !plain());
            same_all(&called, &recorded, i);
        }
        pc_graph_free(fill);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* The dtype of who was first, as long as he is there. */
static void of_one_dtype(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_ones(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()),
                  *g = pc_ones(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()),
                  *out = pc_zeros(PC_SHAPE(SIDE, SIDE), PC_F32, test_device());
        static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_BF16};
        pc_graph *graphs[3];
        const machine m = {0};
        const pc__step_attributes one = sgd_of(1, .125);
        for (int i = 0; i < 3; i++) {
            if (i == 2)
                pc_graph_free(graphs[0]);
            begin();
            PC_SCOPE {
                assert_ok(pc_copy(out, pc_softmax(pc_cast(w, dtypes[i]), 1)));
                assert_ok(pc__sgd_step((pc_tensor *[]){w, g}, 2, &one));
            }
            taken(graphs[i] = ended(), i != 1, &m);
        }
        for (int i = 1; i < 3; i++) {
            assert_ok(pc_graph_launch(graphs[i], NULL));
            assert_close(pc_item(pc_max(w)), 1 - .125 * i, 0);
            pc_graph_free(graphs[i]);
        }
    }
    assert_no_leak();
}

/* Weights in dtypes of their own, by steps of their own or by one, which writes those of the first. */
static bool train_pair(pc_tensor *const w[2], pc_tensor *out, bool together)
{
    bool fine = true;
    PC_SCOPE {
        pc_tensor *a = pc_softmax(pc_cast(w[0], PC_BF16), 1), *b = pc_softmax(pc_cast(w[1], PC_F16), 1);
        fine = pc_copy(out, pc_add(pc_cast(a, PC_F32), pc_cast(b, PC_F32))) == PC_OK;
        pc_tensor *both[] = {w[0], w[1], pc_clone(out), pc_clone(out)};
        const pc__step_attributes all = sgd_of(2, .25), one = sgd_of(1, .25);
        if (together)
            fine = fine && pc__sgd_step(both, 4, &all) == PC_OK;
        else
            for (int i = 0; i < 2; i++)
                fine = fine && pc__sgd_step((pc_tensor *[]){w[i], both[2 + i]}, 2, &one) == PC_OK;
    }
    return fine;
}

static void of_two_dtypes(void **state)
{
    (void)state;
    const machine m = {0};
    for (int together = 0; together < 2; together++)
        PC_SCOPE {
            pc_tensor *w[4], *out[2];
            for (int i = 0; i < 4; i++) {
                pc_seed(3 + (uint64_t)i % 2);
                w[i] = pc_randn(PC_SHAPE(SIDE, SIDE), PC_F32, test_device());
                out[i / 2] = pc_zeros(PC_SHAPE(SIDE, SIDE), PC_F32, test_device());
            }
            begin();
            assert_true(train_pair(w + 2, out[1], together));
            pc_graph *graph = ended();
            taken(graph, 2 - together, &m);
            for (int i = 0; i < LAUNCHES; i++) {
                assert_true(train_pair(w, out[0], together));
                assert_ok(pc_graph_launch(graph, NULL));
                for (int k = 0; k < 2; k++)
                    same(w[k], w[2 + k], &m, i);
                same(out[0], out[1], &m, i);
            }
            pc_graph_free(graph);
        }
    assert_no_leak();
}

/* Of what a launch needs nothing goes with the program's tensors, and the shadow goes with the graph. */
static void outlives_the_parameter(void **state)
{
    (void)state;
    machine m, called;
    pc_graph *graph = NULL;
    PC_SCOPE {
        m = make(ONE_STEP);
        assert_not_null_ok(graph = record(&m, .25));
        pc_tensor_retain(m.out);
    }
    PC_SCOPE {
        called = make(ONE_STEP);
        for (int i = 0; i < LAUNCHES; i++) {
            assert_true(run(&called));
            assert_ok(pc_graph_launch(graph, NULL));
            same(called.out, m.out, &m, i);
        }
        assert_true(pc_graph_memory(graph) >= (plain() ? 0 : SIDE * SIDE * 2));
    }
    pc_tensor_free(m.out);
    pc_graph_free(graph);
    PC_SCOPE {
        m = make(ONE_STEP);
        assert_ok(pc_device_synchronize(test_device()));
        const int64_t before = test_memory().in_use;
        assert_not_null_ok(graph = record(&m, .25));
        assert_ok(pc_graph_launch(graph, NULL));
        pc_graph_free(graph);
        assert_ok(pc_device_synchronize(test_device()));
        assert_int_equal(test_memory().in_use, before);
        assert_true(run(&m));
    }
    assert_no_leak();
}

typedef struct outcome {
    double sum;
    bool shadowed;
} outcome;

/* A training with a write between launches; false: it failed, with an error. */
static bool train(outcome *got)
{
    bool fine = false;
    PC_SCOPE {
        machine m = make(BY_ADAM);
        pc_graph *graph = pc_failed() ? NULL : record(&m, .25);
        fine = graph;
        for (int i = 0; i < LAUNCHES && fine; i++)
            fine = (i != 2 || pc_fill(m.w, .5) == PC_OK) && pc_graph_launch(graph, NULL) == PC_OK;
        const int left = countdown;
        countdown = -1;
        if (fine) {
            char *text = text_of(graph);
            *got = (outcome){pc_item(pc_sum(m.w)), strstr(text, " 1 into shadows") != NULL};
            pc_text_free(text);
        }
        pc_graph_free(graph);
        countdown = left;
    }
    return fine;
}

/* Every allocation fails once, or so do all behind it: without memory for a shadow the cast stays. */
static void without_memory(void **state)
{
    (void)state;
    only_on_the_cpu();
    assert_no_leak();
    assert_ok(pc_allocator_set(&failing));
    outcome expected, got = {0};
    assert_true(train(&expected));
    assert_int_equal(expected.shadowed, !plain());
    int casts_stay = 0;
    for (int turn = 0; turn < 2; turn++) {
        and_later = turn;
        for (int n = 0, left = 0; !left; n++) {
            assert_in_range(n, 0, 1000);
            countdown = n;
            const bool fine = train(&got);
            left = countdown > 0;
            countdown = -1;
            casts_stay += fine && !got.shadowed;
            if (fine ? pc_failed() || got.sum != expected.sum : pc_error_last()->status != PC_ERR_MEMORY)
                fail_msg("allocation %d failing: %g, not %g; %s", n, got.sum, expected.sum, pc_error_last()->message);
            pc_error_clear();
            assert_no_leak();
        }
    }
    assert_true(casts_stay > 5);
    and_later = false;
    assert_ok(pc_allocator_set(NULL));
}

/* A launch that lacks memory for casting has done nothing, and the next one casts. */
static void launches_without_memory(void **state)
{
    (void)state;
    only_on_the_cpu();
    assert_no_leak();
    assert_ok(pc_allocator_set(&failing));
    PC_SCOPE {
        machine called = make(ONE_STEP), recorded = make(ONE_STEP);
        pc_graph *graph = record(&recorded, .25);
        for (int i = 0; i < LAUNCHES && !plain(); i++) {
            assert_ok(pc_fill(called.w, .5));
            assert_ok(pc_fill(recorded.w, .5));
            countdown = 0;
            assert_fails(pc_graph_launch(graph, NULL), PC_ERR_MEMORY, "out of memory");
            assert_true(run(&called));
            assert_ok(pc_graph_launch(graph, NULL));
            same_all(&called, &recorded, i);
        }
        pc_graph_free(graph);
    }
    assert_no_leak();
    assert_ok(pc_allocator_set(NULL));
}

/* Of a weight that the recording makes nothing is there in front of a launch. */
static void not_of_what_is_made(void **state)
{
    (void)state;
    PC_SCOPE {
        const machine m = {0};
        pc_tensor *g = pc_ones(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()), *held = NULL;
        const pc__step_attributes one = sgd_of(1, .125);
        for (int kept = 0; kept < 2; kept++) {
            begin();
            PC_SCOPE {
                pc_tensor *w = pc_empty(PC_SHAPE(SIDE, SIDE), PC_F32, test_device());
                assert_ok(pc_copy(g, pc_softmax(pc_cast(w, PC_BF16), 1)));
                assert_ok(pc__sgd_step((pc_tensor *[]){w, g}, 2, &one));
                held = kept ? pc_tensor_retain(w) : NULL;
            }
            pc_graph *graph = ended();
            taken(graph, 0, &m);
            pc_graph_free(graph);
        }
        pc_tensor_free(held);
    }
    assert_no_leak();
}

static atomic_bool let_go;

static void wait_for_it(void *context)
{
    (void)context;
    while (!atomic_load(&let_go))
        usleep(100);
}

/* Its cast fails, or what stands in front of that does. Told at once the launch does nothing; else it fails, too. */
static void fail_a_launch(machine *m, pc_graph *graph, bool in_front, bool at_once)
{
    assert_ok(pc_device_synchronize(test_device()));
    atomic_store(&let_go, at_once);
    assert_ok(pc_stream_call(m->main, wait_for_it, NULL));
    assert_ok(pc_sim_inject(test_device(), PC_SIM_FAIL_KERNEL, 1));
    if (in_front)
        assert_ok(pc_fill(m->w, .5));
    const pc_status launched = pc_graph_launch(graph, NULL);
    assert_true(at_once || launched == PC_OK);
    atomic_store(&let_go, true);
    if (launched == PC_OK)
        assert_int_equal(pc_device_synchronize(test_device()), PC_ERR_BACKEND);
    pc_error_clear();
    assert_true(launched != PC_OK || pc_graph_launch(graph, NULL) == PC_ERR_BACKEND);
    pc_error_clear();
}

/* A cast in front of a launch that failed, or was skipped, has left nothing: it is done again when the weight has numbers
 * again. */
static void casts_that_failed(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM)
        skip();
    for (int how = 0; how < 4; how++)
        PC_SCOPE {
            machine called = make(ONE_STEP), recorded = make(ONE_STEP);
            pc_graph *graph = record(&recorded, .25);
            assert_not_null_ok(graph);
            fail_a_launch(&recorded, graph, how % 2, how / 2);
            machine *both[] = {&called, &recorded};
            for (int i = 0; i < 2; i++) {
                assert_ok(pc_fill(both[i]->w, .5));
                assert_ok(pc_fill(both[i]->slot[0], 0));
                assert_ok(pc_fill(both[i]->out, 0));
            }
            for (int i = 0; i < LAUNCHES; i++) {
                assert_true(run(&called));
                assert_ok(pc_graph_launch(graph, NULL));
                same_all(&called, &recorded, i);
            }
            pc_graph_free(graph);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_each_program),        cmocka_unit_test(of_two_graphs),
        cmocka_unit_test(of_another_graph),       cmocka_unit_test(of_one_dtype),
        cmocka_unit_test(of_two_dtypes),          cmocka_unit_test(without_memory),
        cmocka_unit_test(casts_that_failed),      cmocka_unit_test(not_of_what_is_made),
        cmocka_unit_test(outlives_the_parameter), cmocka_unit_test(launches_without_memory),
    };
    return cmocka_run_group_tests_name("plan.shadows", tests, NULL, NULL);
}

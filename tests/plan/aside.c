/* Products and sums that only the optimiser's step needs run beside the way back, unless something on the way needs or may
 * see them; and results are those of calls one by one, also where memory is handed on while they run. */
#include "device.h"
#include "plans.h"

#include "ops/step.h"

#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/stream.h>

enum { LAYERS = 6, ROWS = 24, SIDE = 16, AT = 3 /* the layer where something else happens */, LAUNCHES = 3 };

typedef enum between {
    APART,
    LARGE,       /* what is read lies in much memory */
    NEEDED,      /* a gradient is read on the way */
    OVERWRITTEN, /* what a product reads is written behind it */
    FUNCTION,    /* the program looks at something on the way */
    OTHER_STREAM,
    CASES
} between;

typedef struct program {
    between what;
    pc_stream *main, *other;
    pc_event *event;
    pc_tensor *x, *all[4 * LAYERS], *seen, *out; /* weights, biases, their gradients */
    int calls;
} program;

static program make(between what, pc_stream *main, pc_stream *other)
{
    program p = {.what = what, .main = main, .other = other, .event = pc_event_new(test_device())};
    pc_seed(3);
    p.x = pc_tensor_retain(pc_randn(PC_SHAPE(ROWS, SIDE), PC_F32, test_device()));
    p.seen = pc_tensor_retain(pc_zeros(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()));
    p.out = pc_tensor_retain(pc_zeros(PC_SHAPE(ROWS, SIDE), PC_F32, test_device()));
    for (int i = 0; i < LAYERS; i++) {
        p.all[i] = pc_tensor_retain(pc_mul_scalar(pc_randn(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()), .25));
        p.all[LAYERS + i] = pc_tensor_retain(pc_zeros(PC_SHAPE(SIDE), PC_F32, test_device()));
    }
    return p;
}

static void drop(program *p)
{
    for (int i = 0; i < 2 * LAYERS; i++)
        pc_tensor_free(p->all[i]);
    pc_tensor_free(p->x);
    pc_tensor_free(p->seen);
    pc_tensor_free(p->out);
    pc_event_free(p->event);
}

static void look(void *context)
{
    ++*(int *)context;
}

static void on_the_way(program *p, pc_tensor *dy)
{
    if (p->what == NEEDED)
        assert_ok(pc_copy(p->seen, pc_neg(p->all[2 * LAYERS + AT])));
    if (p->what == OVERWRITTEN) {
        assert_ok(pc_fill(dy, .5));
        assert_ok(pc_copy(p->seen, pc_slice(dy, 0, 0, SIDE, 1)));
    }
    if (p->what == FUNCTION)
        assert_ok(pc_stream_call(p->main, look, &p->calls));
    if (p->what != OTHER_STREAM)
        return;
    assert_ok(pc_event_record(p->event, p->main));
    assert_ok(pc_event_wait(p->event, p->other));
    PC_WITH_STREAM(p->other)
        assert_ok(pc_copy(p->seen, pc_neg(p->all[2 * LAYERS + AT])));
}

static void update(program *p)
{
    pc__step_attributes a = {.count = 2 * LAYERS, .lr = .125, .groups = 1, .group = {{2 * LAYERS, 1, 0}}, .step = 1};
    assert_ok(pc__sgd_step(p->all, 4 * LAYERS, &a));
}

static void step(program *p)
{
    pc_tensor *in[LAYERS],
        *h = p->x,
        *const large = p->what == LARGE ? pc_zeros(PC_SHAPE(LAYERS * ROWS, 1 << 16), PC_F32, test_device()) : NULL;
    for (int i = 0; i < LAYERS; i++) {
        in[i] = h;
        if (large) {
            in[i] = pc_slice(pc_slice(large, 0, i * ROWS, (i + 1) * ROWS, 1), 1, 0, SIDE, 1);
            assert_ok(pc_copy(in[i], h));
        }
        h = pc_tanh(pc_add(pc_matmul(h, p->all[i]), p->all[LAYERS + i]));
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        pc_tensor *dy = pc_sin(h);
        h = pc_matmul(dy, pc_transpose(p->all[i], 0, 1));
        p->all[2 * LAYERS + i] = pc_matmul(pc_transpose(in[i], 0, 1), dy);
        p->all[3 * LAYERS + i] = pc_sum_dims(dy, PC_SHAPE(0), false);
        if (i == AT)
            on_the_way(p, dy);
    }
    assert_ok(pc_copy(p->out, h));
    update(p);
}

static void queue(program *p)
{
    PC_WITH_STREAM(p->main)
        PC_SCOPE
            step(p);
}

static int count(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

/* Runs are waited for in front of the step, or of what may see them, up to which they go; where they keep much memory, each
 * two runs later, too. */
static void holds(const pc_graph *graph, between what)
{
    static const int asides[CASES] = {13, 19, 12, 12, 7, 7}, waits[CASES] = {1, 10, 1, 1, 1, 1};
    char *text = text_of(graph);
    if (count(text, "; aside, run ") != asides[what] || count(text, "; behind run ") != waits[what])
        fail_msg("case %d:\n%s", (int)what, text);
    pc_text_free(text);
}

static void same(const pc_tensor *want, const pc_tensor *got, between what)
{
    float a[ROWS * SIDE], b[ROWS * SIDE];
    const size_t bytes = (size_t)pc_tensor_count(want) * sizeof *a;
    assert_ok(pc_read(want, a, bytes));
    assert_ok(pc_read(got, b, bytes));
    if (memcmp(a, b, bytes) != 0)
        fail_msg("case %d: other results", (int)what);
}

static void one_case(between what, pc_stream *main, pc_stream *other)
{
    program called, recorded;
    PC_SCOPE {
        called = make(what, main, other);
        recorded = make(what, main, other);
    }
    assert_ok(pc_graph_begin(main));
    queue(&recorded);
    pc_graph *graph = pc_graph_end(main);
    assert_not_null_ok(graph);
    if (!plain() && test_device().type == PC_CUDA)
        holds(graph, what);
    for (int i = 0; i < LAUNCHES; i++) {
        queue(&called);
        assert_ok(pc_graph_launch(graph, main));
    }
    for (int i = 0; i < 2 * LAYERS; i++)
        same(called.all[i], recorded.all[i], what);
    same(called.seen, recorded.seen, what);
    same(called.out, recorded.out, what);
    assert_int_equal(recorded.calls, called.calls);
    pc_graph_free(graph);
    drop(&called);
    drop(&recorded);
}

static void what_the_end_needs(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU) /* whose streams are one */
        skip();
    pc_stream *main = pc_stream(test_device()), *other = pc_stream(test_device());
    assert_not_null_ok(main);
    assert_not_null_ok(other);
    for (between what = APART; what < CASES; what++)
        one_case(what, main, other);
    pc_stream_free(other);
    pc_stream_free(main);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_end_needs)};
    return cmocka_run_group_tests_name("plan.aside", tests, NULL, NULL);
}

/* Normalisations of channels with an addition and a ReLU behind them: a graph has the bits of the single calls, forward and
 * backward, with fewer calls; what somebody else reads stays. */
#include "channels_last.h"
#include "device.h"
#include "plans.h"

#include "base/base.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef enum kind { BATCH, STORED, GROUP, KINDS } kind;

/* What follows the normalisation: relu(y), relu6(y), y + rest, relu(y + rest), rest from before or a result of the recording. */
typedef enum steps { RELU, RELU6, ADD, ADD_RELU, ADD_MADE_RELU, STEPS } steps;

typedef struct layer {
    pc_tensor *x, *w, *b, *rest, *dy, *mean, *var, *y, *seen;
} layer;

typedef struct setup {
    kind kind;
    steps steps;
    pc_shape shape;
    pc_dtype dtype;
    bool last, bare, seen; /* channels last; without weight and bias; somebody else reads y */
} setup;

static pc_tensor *leaf(pc_shape shape, pc_dtype dtype, bool last, double scale)
{
    pc_tensor *t = pc_cast(pc_mul_scalar(pc_randn(shape, PC_F32, test_device()), scale), dtype);
    t = pc_detach(last ? as_channels_last(t) : t);
    assert_ok(pc_require_grad(t, true));
    return t;
}

static layer make(const setup *s)
{
    const pc_shape channels = PC_SHAPE(s->shape.dim[1]);
    const pc_dtype beside = s->dtype == PC_F64 ? PC_F64 : PC_F32;
    pc_seed(9);
    layer l = {.x = leaf(s->shape, s->dtype, s->last, 1),
               .rest = leaf(s->shape, s->dtype, s->last, 1),
               .dy = pc_detach(leaf(s->shape, s->dtype, s->last, 1))};
    l.mean = pc_randn(channels, beside, test_device());
    l.var = pc_exp(pc_randn(channels, beside, test_device()));
    l.w = s->bare ? NULL : leaf(channels, beside, false, s->steps == RELU6 ? 4 : 1);
    l.b = s->bare ? NULL : leaf(channels, beside, false, 1);
    return l;
}

static pc_tensor *normalise(const setup *s, const layer *l, pc_tensor *x)
{
    if (s->kind == GROUP)
        return pc_fn_group_norm(x, 2, l->w, l->b, 1e-5);
    return pc_fn_batch_norm(x, l->mean, l->var, l->w, l->b, s->kind == BATCH, 0.1, 1e-5);
}

static void pass_through(const setup *s, layer *l)
{
    PC_SCOPE {
        pc_tensor *rest = s->steps == ADD_MADE_RELU ? pc_mul_scalar(l->rest, 0.5) : l->rest;
        pc_tensor *norm = normalise(s, l, pc_mul_scalar(l->x, 1.5));
        pc_tensor *y = s->steps == RELU    ? pc_relu(norm)
                       : s->steps == RELU6 ? pc_relu6(norm)
                       : s->steps == ADD   ? pc_add(rest, norm)
                                           : pc_relu(pc_add(norm, rest));
        assert_ok(pc_backward_with(y, l->dy));
        l->y = pc_tensor_retain(y);
        l->seen = s->seen ? pc_tensor_retain(norm) : NULL;
    }
}

static bool same(pc_tensor *a, pc_tensor *b)
{
    return (!a && !b) || (a && b && pc_item(pc_sum(pc_ne(a, b))) == 0);
}

static void check(setup s)
{
    PC_SCOPE {
        layer called = make(&s), recorded = make(&s);
        char words[32];
        pass_through(&s, &called);
        begin();
        pass_through(&s, &recorded);
        pc_graph *graph = ended();
        snprintf(words, sizeof words, "%d into norms", s.seen ? 0 : s.steps == ADD ? 1 : 2);
        if (!plain())
            says(graph, words);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_true(same(called.y, recorded.y));
        assert_true(same(called.seen, recorded.seen));
        assert_true(same(called.mean, recorded.mean));
        assert_true(same(pc_grad(called.x), pc_grad(recorded.x)));
        assert_true(same(pc_grad(called.rest), pc_grad(recorded.rest)));
        assert_true(s.bare || same(pc_grad(called.w), pc_grad(recorded.w)));
        assert_true(s.bare || same(pc_grad(called.b), pc_grad(recorded.b)));
        pc_graph_free(graph);
        for (int i = 0; i < 2; i++) {
            pc_tensor_free((i ? &recorded : &called)->y);
            pc_tensor_free((i ? &recorded : &called)->seen);
        }
    }
}

/* Shapes that few threads have at once, that columns have, small planes, more than a block's, and rows off 16 bytes. */
static void steps_go_with_the_norm(void **state)
{
    static const pc_shape shapes[] = {{4, {2, 4, 3, 5}},    {4, {3, 8, 9, 11}}, {4, {9, 6, 2, 3}},
                                      {4, {5, 16, 40, 24}}, {2, {40, 2048}},    {4, {3, 6, 33, 23}}};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F16, PC_F64};
    (void)state;
    for (int i = 0; i < KINDS * STEPS * PC__COUNT(shapes); i++) {
        const int shape = i % PC__COUNT(shapes), other = i / PC__COUNT(shapes);
        check((setup){.kind = (kind)(other % KINDS),
                      .steps = (steps)(other / KINDS),
                      .shape = shapes[shape],
                      .dtype = dtypes[(i + other) % 4],
                      .last = shapes[shape].ndim == 4 && i / 2 % 2,
                      .bare = i % 7 == 3});
    }
    assert_no_leak();
}

static void what_others_read_stays(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++)
        check((setup){.steps = (steps)i, .shape = PC_SHAPE(3, 8, 5, 5), .dtype = PC_F32, .seen = true});
    assert_no_leak();
}

/* An addition of one operand. */
static void numbers_are_added_by_themselves(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(3, 8, 5, 5), PC_F32, test_device()), *y[2];
        pc_graph *graph = NULL;
        for (int i = 0; i < 2; i++) {
            if (i)
                begin();
            PC_SCOPE {
                y[i] =
                    pc_keep(pc_relu(pc_add_scalar(pc_fn_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5), 0.5)));
            }
            graph = i ? ended() : NULL;
        }
        assert_ok(pc_graph_launch(graph, NULL));
        assert_true(same(y[0], y[1]));
        pc_graph_free(graph);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_go_with_the_norm),
                                       cmocka_unit_test(what_others_read_stays),
                                       cmocka_unit_test(numbers_are_added_by_themselves)};
    return cmocka_run_group_tests_name("plan.norm_steps", tests, NULL, NULL);
}

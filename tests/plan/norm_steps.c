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

enum { PLACES = 2 * 4 * 2 * 2, CHANNELS = 4 };

static float memory[PLACES], bias[CHANNELS];

static void raise_memory(void *unused)
{
    (void)unused;
    for (int i = 0; i < PLACES; i++)
        memory[i] += 100;
}

static void lower_bias(void *unused)
{
    (void)unused;
    for (int i = 0; i < CHANNELS; i++)
        bias[i] -= 1;
}

typedef enum writer { FUNCTION, OTHER_NAME, BIAS, INPUT } writer;

typedef struct held {
    pc_tensor *x, *rest, *name, *dy, *out;
} held;

static held hold(bool backward, bool input)
{
    const pc_shape whole = PC_SHAPE(2, CHANNELS, 2, 2), channels = PC_SHAPE(CHANNELS);
    pc_seed(3);
    for (int i = 0; i < PLACES; i++)
        memory[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = 0.5F;
    return (held){.x = input ? pc_from_memory(memory, whole, PC_F32, NULL, NULL)
                             : pc_randn(whole, PC_F32, PC_DEVICE_CPU),
                  .rest = backward ? pc_from_memory(bias, channels, PC_F32, NULL, NULL)
                                   : pc_from_memory(memory, whole, PC_F32, NULL, NULL),
                  .name = pc_from_memory(memory, whole, PC_F32, NULL, NULL),
                  .dy = pc_randn(whole, PC_F32, PC_DEVICE_CPU),
                  .out = pc_zeros(backward ? channels : whole, PC_F32, PC_DEVICE_CPU)};
}

static pc_status add_written(writer w, const held *h)
{
    pc_tensor *y = pc_fn_batch_norm(h->x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
    if (w == OTHER_NAME)
        assert_ok(pc_copy(h->name, pc_add_scalar(h->name, 100)));
    else
        assert_ok(pc_stream_call(pc_stream_current(PC_DEVICE_CPU), raise_memory, NULL));
    return pc_copy(h->out, pc_add(y, h->rest));
}

/* The ReLU's gradient goes by what its result was. */
static pc_status undo_relu(writer w, const held *h)
{
    pc_tensor *y = pc_relu(pc_fn_batch_norm(h->x, NULL, NULL, NULL, h->rest, true, 0.1, 1e-5));
    assert_ok(pc_stream_call(pc_stream_current(PC_DEVICE_CPU), w == BIAS ? lower_bias : raise_memory, NULL));
    assert_ok(pc_backward_with(y, h->dy));
    const pc_status status = pc_copy(h->out, pc_grad(h->rest));
    pc_zero_grad(h->rest);
    return status;
}

static pc_status work(writer w, const held *h)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = w >= BIAS ? undo_relu(w, h) : add_written(w, h);
    }
    return status;
}

/* What a call with the steps in it would read too early or too late is written in between. */
static void compare_written(writer w)
{
    only_on_the_cpu();
    float found[2][PLACES] = {{0}};
    for (int recorded = 0; recorded < 2; recorded++)
        PC_SCOPE {
            const held h = hold(w >= BIAS, w == INPUT);
            pc_graph *graph = NULL;
            assert_ok(pc_require_grad(h.rest, w >= BIAS));
            if (recorded) {
                begin();
                assert_ok(work(w, &h));
                graph = ended();
            }
            for (int i = 0; i < 2; i++)
                assert_ok(recorded ? pc_graph_launch(graph, NULL) : work(w, &h));
            assert_ok(pc_read(h.out, found[recorded], (size_t)pc_tensor_count(h.out) * sizeof(float)));
            pc_graph_free(graph);
        }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    assert_no_leak();
}

static void a_function_writes_what_is_added(void **state)
{
    (void)state;
    compare_written(FUNCTION);
}

static void another_name_of_what_is_added(void **state)
{
    (void)state;
    compare_written(OTHER_NAME);
}

static void a_function_writes_the_bias(void **state)
{
    (void)state;
    compare_written(BIAS);
}

static void a_function_writes_the_input(void **state)
{
    (void)state;
    compare_written(INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_go_with_the_norm),          cmocka_unit_test(what_others_read_stays),
        cmocka_unit_test(numbers_are_added_by_themselves), cmocka_unit_test(a_function_writes_what_is_added),
        cmocka_unit_test(another_name_of_what_is_added),   cmocka_unit_test(a_function_writes_the_bias),
        cmocka_unit_test(a_function_writes_the_input)};
    return cmocka_run_group_tests_name("plan.norm_steps", tests, NULL, NULL);
}

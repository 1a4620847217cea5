/* The end of a network with one output: its last layer, the loss, a batch's score and the gradients have the same bits
 * in a recording, where devices may make them together, as one by one; whatever comes between, or does not come. */
#include "device.h"

#include "ops/score.h"

#include <math.h>
#include <paracord/amp.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>

enum kind {
    WHOLE,
    NO_SCORE,
    NO_LOSS,
    NO_BACKWARD,
    BETWEEN_LAYER,
    BETWEEN_LOSS,
    SCALED,
    OTHER_LABELS,
    OWN_LABELS, /* the logits themselves */
    BRANCHED,
    KINDS
};

enum place { NOWHERE, IN_X, IN_WEIGHT, IN_BIAS, IN_LABELS };

typedef struct end {
    int64_t m, k;
    pc_dtype dtype; /* of the products */
    bool bias, dx;
    enum kind kind;
    int64_t front; /* inputs of a layer in front of it, or none */
    pc_activation_kind activation;
    enum place odd_in; /* of a number that is odd */
    float odd;
} end;

enum { FRONT = 1060 }; /* of which many GPUs make gradients by columns */

enum { RESULTS = 12 };

/* What goes in, of the scope; and what comes out, kept by `out`. */
typedef struct tensors {
    pc_tensor *x, *weight, *bias, *y, *others, *sums, *front, *front_weight, *front_bias, *out[RESULTS];
    int count;
} tensors;

static void make_odd(const end *e, const tensors *t)
{
    pc_tensor *const places[] = {NULL, e->front ? t->front : t->x, t->weight, t->bias, t->y};
    if (!e->odd_in)
        return;
    assert_ok(pc_fill(t->y, 0));
    assert_ok(pc_fill(pc_slice(pc_flatten_from(places[e->odd_in], 0), 0, 0, 1, 1), (double)e->odd));
}

static void want_gradients(const end *e, const tensors *t)
{
    pc_tensor *const of[] = {
        t->weight, t->bias, t->front_weight, t->front_bias, e->dx ? t->x : NULL, e->dx ? t->front : NULL};
    for (int i = 0; i < 6; i++)
        assert_ok(of[i] ? pc_require_grad(of[i], true) : PC_OK);
}

static tensors make(const end *e)
{
    const pc_device device = test_device();
    pc_seed(11);
    tensors t = {
        .x = pc_randn(PC_SHAPE(e->m, e->k), PC_F32, device),
        .weight = pc_randn(PC_SHAPE(1, e->k), PC_F32, device),
        .bias = e->bias ? pc_randn(PC_SHAPE(1), PC_F32, device) : NULL,
        .y = pc_cast(pc_gt(pc_randn(PC_SHAPE(e->m, 1), PC_F32, device), pc_zeros(PC_SHAPE(), PC_F32, device)), PC_F32),
        .others = pc_ones(PC_SHAPE(e->m, 1), PC_F32, device),
        .sums = pc_zeros(PC_SHAPE(3), PC_F64, device)};
    if (e->front) {
        t.front = pc_randn(PC_SHAPE(e->m, e->front), PC_F32, device);
        t.front_weight = pc_mul_scalar(pc_randn(PC_SHAPE(e->k, e->front), PC_F32, device), 0.05);
        t.front_bias = pc_randn(PC_SHAPE(e->k), PC_F32, device);
    }
    make_odd(e, &t);
    want_gradients(e, &t);
    return t;
}

static void give(tensors *t, pc_tensor *result)
{
    assert_not_null_ok(result);
    t->out[t->count++] = result;
}

static void run(const end *e, tensors *t)
{
    pc_tensor *x = NULL, *logits = NULL, *loss = NULL;
    PC_AUTOCAST(e->dtype) {
        x = e->front ? pc_fn_linear(t->front, t->front_weight, t->front_bias, e->activation) : t->x;
        logits = pc_fn_linear(x, t->weight, t->bias, PC_ACTIVATION_NONE);
        give(t, logits);
        if (e->kind == BRANCHED)
            logits = pc_add(logits, pc_mul_scalar(pc_sum(x), 0.01));
        if (e->kind == BETWEEN_LAYER)
            give(t, pc_add(logits, logits));
        if (e->kind == NO_LOSS)
            return;
        loss = pc_bce_with_logits(logits, e->kind == OWN_LABELS ? pc_detach(logits) : t->y);
    }
    give(t, loss);
    if (e->kind != NO_SCORE && e->kind != OWN_LABELS)
        assert_ok(pc__score_step(t->sums, logits, e->kind == OTHER_LABELS ? t->others : t->y, loss));
    if (e->kind == BETWEEN_LOSS)
        give(t, pc_mul(loss, loss));
    if (e->kind == NO_BACKWARD)
        return;
    assert_ok(pc_backward(e->kind == SCALED ? pc_mul_scalar(loss, 2) : loss));
    give(t, pc_grad(t->weight));
    if (t->bias)
        give(t, pc_grad(t->bias));
    if (e->front) {
        give(t, pc_grad(t->front_weight));
        give(t, pc_grad(t->front_bias));
    }
    if (e->dx)
        give(t, pc_grad(e->front ? t->front : t->x));
}

/* Of numbers that are none any bits will do. */
static bool equal_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static bool equal_bits(const pc_tensor *a, const pc_tensor *b)
{
    static float x[256 * 1024], y[256 * 1024];
    const size_t n = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    assert_true(n <= sizeof x);
    assert_ok(pc_read(a, x, n));
    assert_ok(pc_read(b, y, n));
    return pc_tensor_dtype(a) == PC_F32 ? equal_floats(x, y, n / sizeof *x) : memcmp(x, y, n) == 0;
}

static void compare(const end *e)
{
    PC_SCOPE {
        tensors plain = make(e), recorded = make(e);
        run(e, &plain);
        assert_ok(pc_graph_begin(pc_stream_current(test_device())));
        run(e, &recorded);
        pc_graph *graph = pc_graph_end(pc_stream_current(test_device()));
        assert_not_null_ok(graph);
        for (int launch = 0; launch < 2; launch++) {
            assert_ok(pc_fill(recorded.sums, 0));
            assert_ok(pc_graph_launch(graph, NULL));
            assert_int_equal(plain.count, recorded.count);
            for (int i = 0; i < plain.count; i++)
                if (!equal_bits(plain.out[i], recorded.out[i]))
                    fail_msg("%lld rows of %lld and %lld, %s, activation %d, kind %d: result %d", (long long)e->m,
                             (long long)e->front, (long long)e->k, pc_dtype_name(e->dtype), (int)e->activation,
                             (int)e->kind, i);
            assert_true(equal_bits(plain.sums, recorded.sums));
        }
        pc_graph_free(graph);
    }
}

static void all_sizes(pc_dtype dtype)
{
    const int64_t rows[] = {1, 5, 32, 33, 64, 65}, inputs[] = {4, 96, 128, 130, 200, 512, 516};
    for (int m = 0; m < 6; m++)
        for (int k = 0; k < 7; k++)
            compare(&(end){.m = rows[m], .k = inputs[k], .dtype = dtype, .bias = m != 1, .dx = k != 1});
}

static void a_recording_has_the_bits_of_single_calls(void **state)
{
    (void)state;
    all_sizes(PC_F32);
    assert_no_leak();
}

static void of_16_bits_too(void **state)
{
    (void)state;
    all_sizes(PC_BF16);
    all_sizes(PC_F16);
    assert_no_leak();
}

static void whatever_comes_between(void **state)
{
    (void)state;
    const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    for (int d = 0; d < 3; d++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int front = 0; front < (d == 0 ? 2 : 1); front++)
                compare(&(end){.m = 32,
                               .k = 128,
                               .dtype = dtypes[d],
                               .bias = true,
                               .dx = true,
                               .kind = (enum kind)kind,
                               .front = front ? FRONT : 0,
                               .activation = PC_ACTIVATION_RELU});
    assert_no_leak();
}

/* With the gradients of the layer in front. */
static void together_with_the_layer_in_front(void **state)
{
    (void)state;
    const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    const int64_t rows[] = {32, 7, 33}, widths[] = {128, 100, 4, 132};
    for (int d = 0; d < 3; d++)
        for (int m = 0; m < (d == 0 ? 3 : 1); m++)
            for (int k = 0; k < (d == 0 ? 4 : 2); k++)
                compare(&(end){.m = rows[m],
                               .k = widths[k],
                               .dtype = dtypes[d],
                               .bias = k != 1,
                               .dx = m < 2,
                               .front = FRONT,
                               .activation = (pc_activation_kind)((m + k) % 4)});
    assert_no_leak();
}

/* One number that is none, infinite or next to nothing, where all labels are 0. */
static void of_any_numbers(void **state)
{
    (void)state;
    const float odd[] = {NAN, INFINITY, -INFINITY, 0x1p-140f, -0x1p-140f, -0.0f, 0x1p120f};
    for (int i = 0; i < 7; i++)
        for (enum place place = IN_X; place <= IN_LABELS; place++)
            for (int front = sampled() ? (i + (int)place) % 2 : 0; front < 2; front += sampled() ? 2 : 1)
                compare(&(end){.m = 7,
                               .k = 128,
                               .dtype = PC_F32,
                               .bias = true,
                               .dx = true,
                               .front = front ? FRONT : 0,
                               .activation = PC_ACTIVATION_SIGMOID,
                               .odd_in = place,
                               .odd = odd[i]});
    assert_no_leak();
}

/* A layer that is a part of a larger matrix, and the same layer twice. */
static void of_strided_rows_and_twice(void **state)
{
    (void)state;
    PC_SCOPE {
        const pc_device device = test_device();
        const end e = {.m = 8, .k = 16, .dtype = PC_F32, .bias = true, .dx = true};
        tensors t[2] = {make(&e), make(&e)};
        pc_tensor *wide = pc_randn(PC_SHAPE(8, 40), PC_F32, device), *kept[2];
        pc_stream *stream = pc_stream_current(device);
        pc_graph *graph = NULL;
        for (int i = 0; i < 2; i++) {
            assert_ok(i ? pc_graph_begin(stream) : PC_OK);
            pc_tensor *x = pc_slice(wide, 1, 8, 24, 1);
            pc_tensor *once = pc_fn_linear(x, t[i].weight, t[i].bias, PC_ACTIVATION_NONE);
            pc_tensor *again = pc_fn_linear(x, t[i].weight, t[i].bias, PC_ACTIVATION_NONE);
            assert_ok(pc_backward(pc_add(pc_bce_with_logits(once, t[i].y), pc_bce_with_logits(again, t[i].others))));
            kept[i] = pc_grad(t[i].weight);
            assert_not_null_ok(kept[i]);
            graph = i ? pc_graph_end(stream) : NULL;
        }
        assert_not_null_ok(graph);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_true(equal_bits(kept[0], kept[1]));
        pc_graph_free(graph);
    }
    assert_no_leak();
}

static void note(void *context)
{
    ++*(int *)context;
}

/* A launch that is refused when nobody looks at launches any more. */
static void refused_launches_are_told(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    int notes = 0;
    PC_SCOPE {
        const end e = {.m = 8, .k = 16, .dtype = PC_F32};
        tensors t = make(&e);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_device_synchronize(test_device()));
        assert_ok(pc_graph_begin(stream));
        give(&t, pc_fn_linear(t.x, t.weight, NULL, PC_ACTIVATION_NONE));
        assert_ok(pc_stream_call(stream, note, &notes));
        setenv("PARACORD_EMULATOR_REFUSES", "1", 1);
        assert_fails(pc_graph_end(stream), PC_ERR_BACKEND, "pc_graph_end");
        unsetenv("PARACORD_EMULATOR_REFUSES");
        assert_true(pc_item(pc_sum(t.others)) == 8);
    }
    assert_int_equal(notes, 0);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_has_the_bits_of_single_calls),
        cmocka_unit_test(of_16_bits_too),
        cmocka_unit_test(whatever_comes_between),
        cmocka_unit_test(together_with_the_layer_in_front),
        cmocka_unit_test(of_any_numbers),
        cmocka_unit_test(of_strided_rows_and_twice),
        cmocka_unit_test(refused_launches_are_told),
    };
    return cmocka_run_group_tests_name("ops.network_end", tests, NULL, NULL);
}

/* Normalisations with casts around them, as autocast has it: a graph has the bits of the single calls, with fewer calls
 * where the backend's normalisations write and read 16 bits. */
#include "device.h"
#include "plans.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    pc_tensor *x, *w, *b, *matrix, *y, *loss;
} layer;

static pc_tensor *leaf(pc_shape shape, pc_dtype dtype)
{
    pc_tensor *t = pc_detach(pc_cast(pc_randn(shape, PC_F32, test_device()), dtype));
    assert_ok(pc_require_grad(t, true));
    return t;
}

static layer make(int n, pc_dtype half)
{
    pc_seed(9);
    return (layer){.x = leaf(PC_SHAPE(37, n), PC_F32),
                   .w = leaf(PC_SHAPE(n), PC_F32),
                   .b = leaf(PC_SHAPE(n), PC_F32),
                   .matrix = leaf(PC_SHAPE(n, 24), half)};
}

/* `seen`: somebody else reads what the normalisation wrote. */
static void pass_through(layer *l, bool centered, bool seen)
{
    const pc_dtype half = (pc_dtype)pc_tensor_dtype(l->matrix);
    const pc_shape rows = PC_SHAPE(pc_tensor_shape(l->w).dim[0]);
    PC_SCOPE {
        pc_tensor *y =
            centered ? pc_fn_layer_norm(l->x, rows, l->w, l->b, 1e-5) : pc_fn_rms_norm(l->x, rows, l->w, 1e-5);
        pc_tensor *z = pc_matmul(pc_cast(y, half), l->matrix);
        pc_tensor *loss = pc_sum(pc_cast(pc_mul(z, z), PC_F32));
        loss = seen ? pc_add(loss, pc_max(y)) : loss;
        assert_ok(pc_backward(loss));
        l->y = pc_tensor_retain(z);
        l->loss = pc_tensor_retain(loss);
    }
}

static bool same(pc_tensor *a, pc_tensor *b)
{
    return a && b && pc_item(pc_sum(pc_ne(a, b))) == 0;
}

static void check(int n, pc_dtype half, bool centered, bool seen)
{
    PC_SCOPE {
        layer called = make(n, half), recorded = make(n, half);
        pass_through(&called, centered, seen);
        begin();
        pass_through(&recorded, centered, seen);
        pc_graph *graph = ended();
        if (!plain() && test_device().type == PC_CUDA)
            says(graph, seen ? "0 into norms" : "2 into norms");
        for (int i = 0; i < 2; i++)
            assert_ok(pc_graph_launch(graph, NULL));
        assert_true(same(called.y, recorded.y));
        assert_true(same(called.loss, recorded.loss));
        assert_true(same(pc_grad(called.x), pc_grad(recorded.x)));
        assert_true(same(pc_grad(called.w), pc_grad(recorded.w)));
        assert_true(!centered || same(pc_grad(called.b), pc_grad(recorded.b)));
        assert_true(same(pc_grad(called.matrix), pc_grad(recorded.matrix)));
        pc_graph_free(graph);
        for (int i = 0; i < 2; i++) {
            const layer *l = i ? &recorded : &called;
            pc_tensor_free(l->y);
            pc_tensor_free(l->loss);
        }
    }
}

/* Lengths that registers hold, packed and not, and one that is gone through again and again. */
static void in_16_bits(void **state)
{
    static const int lengths[] = {8, 64, 100, 520, 770, 1028, 7, 250, 4300};
    (void)state;
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        check(lengths[i], i % 2 ? PC_F16 : PC_BF16, i % 3, false);
    assert_no_leak();
}

static void that_others_read(void **state)
{
    (void)state;
    check(64, PC_BF16, true, true);
    assert_no_leak();
}

/* Two layers of a residual network: z = y + f(norm(y)), y = x + f(norm(x)), each f two products, by way of few numbers. */
typedef struct residual {
    int rows, n;
    pc_dtype half; /* PC_F32: none */
    bool centered;
    enum { PLAIN, SEEN_BEFORE, SEEN_BEHIND, WRITTEN } what; /* what somebody else does to the sum between them */
    pc_tensor *x, *w, *b, *down, *up, *out;
} residual;

static pc_tensor *branch_of(residual *r, pc_tensor *x)
{
    const pc_shape row = PC_SHAPE(r->n);
    pc_tensor *y = r->centered ? pc_fn_layer_norm(x, row, r->w, r->b, 1e-5) : pc_fn_rms_norm(x, row, r->w, 1e-5);
    pc_tensor *few = pc_matmul(pc_cast(y, r->half), pc_cast(r->down, r->half));
    return pc_cast(pc_matmul(few, pc_cast(r->up, r->half)), PC_F32);
}

static void step(residual *r)
{
    PC_SCOPE {
        pc_tensor *y = pc_add(r->x, branch_of(r, r->x)), *more = NULL;
        if (r->what == SEEN_BEFORE)
            more = pc_sum(pc_tanh(y));
        pc_tensor *z = pc_add(branch_of(r, y), y);
        if (r->what == SEEN_BEHIND)
            more = pc_sum(pc_tanh(y));
        if (r->what == WRITTEN)
            PC_NO_GRAD
                assert_ok(pc_fill(pc_slice(pc_detach(r->out), 0, 0, 1, 1), 3));
        pc_tensor *last = branch_of(r, z), *loss = pc_sum(pc_mul(last, last));
        assert_ok(pc_backward(more ? pc_add(loss, more) : loss));
        assert_ok(pc_copy(r->out, last));
    }
}

/* Gradients of two products after each other stay within 16 bits. */
static pc_tensor *small(pc_tensor *leaf)
{
    PC_NO_GRAD
        assert_ok(pc_copy(pc_detach(leaf), pc_mul_scalar(leaf, 0.1)));
    return leaf;
}

static residual residual_like(residual r)
{
    pc_seed(4);
    r.x = leaf(PC_SHAPE(r.rows, r.n), PC_F32);
    r.w = leaf(PC_SHAPE(r.n), PC_F32);
    r.b = leaf(PC_SHAPE(r.n), PC_F32);
    r.down = small(leaf(PC_SHAPE(r.n, 24), PC_F32));
    r.up = small(leaf(PC_SHAPE(24, r.n), PC_F32));
    r.out = pc_zeros(PC_SHAPE(r.rows, r.n), PC_F32, test_device());
    return r;
}

static void check_residual(residual r, const char *taken)
{
    PC_SCOPE {
        residual called = residual_like(r), recorded = residual_like(r);
        begin();
        step(&recorded);
        pc_graph *graph = ended();
        if (taken && !plain() && test_device().type == PC_CUDA)
            says(graph, taken);
        for (int i = 0; i < 2; i++) {
            if (i)
                pc_zero_grad(called.x), pc_zero_grad(called.w), pc_zero_grad(called.b), pc_zero_grad(called.down),
                    pc_zero_grad(called.up);
            step(&called);
            assert_ok(pc_graph_launch(graph, NULL));
            assert_true(same(called.out, recorded.out));
            assert_true(same(pc_grad(called.x), pc_grad(recorded.x)));
            assert_true(same(pc_grad(called.w), pc_grad(recorded.w)));
            assert_true(!r.centered || same(pc_grad(called.b), pc_grad(recorded.b)));
            assert_true(same(pc_grad(called.down), pc_grad(recorded.down)));
            assert_true(same(pc_grad(called.up), pc_grad(recorded.up)));
        }
        pc_graph_free(graph);
    }
}

/* Casts of 16 bits: three of normalisations, three of their gradients. Then two sums with the casts of what is added, and
 * of gradients one that comes around a layer, and two casts behind them. */
static void with_what_is_added(void **state)
{
    static const int lengths[] = {8, 64, 96, 200, 384, 768, 1016, 1032};
    (void)state;
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        check_residual(
            (residual){
                .rows = i % 2 ? 37 : 5, .n = lengths[i], .half = i % 3 == 2 ? PC_F16 : PC_BF16, .centered = i % 4 != 3},
            lengths[i] <= 1024 ? "13 into norms" : "10 into norms");
    check_residual((residual){.rows = 300, .n = 40, .half = PC_F32, .centered = true}, NULL);
    check_residual((residual){.rows = 9, .n = 36, .half = PC_BF16, .centered = true}, "6 into norms");
    assert_no_leak();
}

static void with_sums_that_others_see(void **state)
{
    (void)state;
    check_residual((residual){.rows = 9, .n = 40, .half = PC_BF16, .centered = true, .what = SEEN_BEFORE}, NULL);
    check_residual((residual){.rows = 9, .n = 40, .half = PC_BF16, .centered = true, .what = SEEN_BEHIND}, NULL);
    check_residual((residual){.rows = 9, .n = 40, .half = PC_BF16, .centered = true, .what = WRITTEN}, NULL);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_16_bits), cmocka_unit_test(that_others_read),
                                       cmocka_unit_test(with_what_is_added),
                                       cmocka_unit_test(with_sums_that_others_see)};
    return cmocka_run_group_tests_name("plan.norms", tests, NULL, NULL);
}

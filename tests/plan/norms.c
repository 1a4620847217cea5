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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_16_bits), cmocka_unit_test(that_others_read)};
    return cmocka_run_group_tests_name("plan.norms", tests, NULL, NULL);
}

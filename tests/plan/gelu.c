/* Layers of 16 bits with gelu_tanh between them, as GPTs have them: a graph leaves what single calls leave. */
#include "device.h"
#include "plans.h"

#include <math.h>
#include <paracord/amp.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layers {
    int rows, width, inside;
    pc_dtype half;
    enum {
        PLAIN,
        WITHOUT_BIAS,
        SEEN,
        INFERRED
    } what;              /* seen: what is in front of gelu is read by somebody else, too */
    bool by_erf, turned; /* turned: the first layer's weight is a view of the second's */
    pc_tensor *x, *w1, *b1, *w2, *out, *more;
} layers;

static pc_tensor *leaf(pc_shape shape)
{
    pc_tensor *t = pc_detach(pc_randn(shape, PC_F32, test_device()));
    assert_ok(pc_require_grad(t, true));
    return t;
}

static layers layers_like(layers l)
{
    pc_seed(6);
    l.x = leaf(PC_SHAPE(l.rows, l.width));
    l.w1 = leaf(PC_SHAPE(l.inside, l.width));
    l.b1 = leaf(PC_SHAPE(l.inside));
    l.w2 = leaf(PC_SHAPE(l.width, l.inside));
    l.out = pc_zeros(PC_SHAPE(l.rows, l.width), PC_F32, test_device());
    l.more = pc_zeros(PC_SHAPE(), PC_F32, test_device());
    return l;
}

static void step(layers *l)
{
    PC_SCOPE {
        pc_tensor *y = NULL, *z = NULL;
        PC_AUTOCAST(l->half) {
            pc_tensor *w1 = l->turned ? pc_transpose(l->w2, 0, 1) : l->w1;
            y = pc_fn_linear(l->x, w1, l->what == WITHOUT_BIAS ? NULL : l->b1, PC_ACTIVATION_NONE);
            z = pc_cast(pc_fn_linear(l->by_erf ? pc_gelu(y) : pc_gelu_tanh(y), l->w2, NULL, PC_ACTIVATION_NONE),
                        PC_F32);
        }
        if (l->what == SEEN)
            assert_ok(pc_copy(l->more, pc_cast(pc_max(pc_detach(y)), PC_F32)));
        if (l->what != INFERRED)
            assert_ok(pc_backward(pc_mean(pc_mul(z, z))));
        assert_ok(pc_copy(l->out, z));
    }
}

static void close_to(pc_tensor *a, pc_tensor *b, const layers *l, const char *what)
{
    PC_SCOPE {
        const double tolerance = l->half == PC_F32 ? 1e-6 : l->half == PC_F16 ? 4e-3 : 3e-2;
        const double off = pc_item(pc_max(pc_abs(pc_sub(a, b)))), size = pc_item(pc_max(pc_abs(a)));
        if (!(off <= tolerance * (size + 1e-6)))
            fail_msg("%d x %d x %d: %s is off by %g", l->rows, l->width, l->inside, what, off);
    }
}

static void check(layers l, int taken)
{
    char words[32];
    snprintf(words, sizeof words, " %d with gelu", taken);
    PC_SCOPE {
        layers called = layers_like(l), recorded = layers_like(l);
        begin();
        step(&recorded);
        pc_graph *graph = ended();
        if (!plain() && test_device().type == PC_CUDA)
            says(graph, words);
        step(&called);
        assert_ok(pc_graph_launch(graph, NULL));
        close_to(called.out, recorded.out, &l, "the result");
        close_to(called.more, recorded.more, &l, "what is in front of gelu");
        for (int i = 0; i < (l.what == INFERRED ? 0 : 4); i++) {
            pc_tensor *const of[2][4] = {{called.x, called.w1, called.w2, called.b1},
                                         {recorded.x, recorded.w1, recorded.w2, recorded.b1}};
            if (i < 3 || l.what != WITHOUT_BIAS)
                close_to(pc_grad(of[0][i]), pc_grad(of[1][i]), &l, "a gradient");
        }
        pc_graph_free(graph);
    }
}

static void of_any_size(void **state)
{
    (void)state;
    check((layers){.rows = 80, .width = 40, .inside = 64, .half = PC_BF16}, 1);
    check((layers){.rows = 129, .width = 24, .inside = 200, .half = PC_F16}, 1);
    check((layers){.rows = 80, .width = 40, .inside = 64, .half = PC_BF16, .what = WITHOUT_BIAS}, 1);
    check((layers){.rows = 80, .width = 40, .inside = 60, .half = PC_BF16}, 0); /* rows off 16 bytes */
    check((layers){.rows = 80, .width = 37, .inside = 64, .half = PC_BF16}, 1);
    check((layers){.rows = 80, .width = 40, .inside = 64, .half = PC_F32}, 0);
    assert_no_leak();
}

/* Kernels of small layers do either gelu, but leave nothing of what is in front of it, which may be seen; without a gradient nobody
 * reads that. */
static void of_other_layers(void **state)
{
    (void)state;
    check((layers){.rows = 80, .width = 40, .inside = 64, .half = PC_BF16, .what = SEEN}, 1);
    check((layers){.rows = 80, .width = 40, .inside = 64, .half = PC_BF16, .what = INFERRED}, 0);
    check((layers){.rows = 8, .width = 40, .inside = 64, .half = PC_BF16}, 0);
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32};
    for (int k = 0; k < 3; k++)
        for (int form = 0; form < 2; form++) {
            check((layers){3, 40, 19, dtypes[k], INFERRED, .by_erf = form}, 1);   /* few outputs */
            check((layers){33, 70, 190, dtypes[k], INFERRED, .by_erf = form}, 1); /* tiles */
            check((layers){9, 30, 20, dtypes[k], INFERRED, .by_erf = form, .turned = true}, 1);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_any_size), cmocka_unit_test(of_other_layers)};
    return cmocka_run_group_tests_name("plan.gelu", tests, NULL, NULL);
}

/* Functions of one tensor, element by element: every row of ops/pointwise.def. */
#include "ops/golden.h"

#include "base/base.h"

#define RUN(name)                                                                                                      \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0]);                                                                                     \
    }
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) RUN(name)
#define PC__UNARY(name, dtypes, cost, flags, f) RUN(name)
#include "ops/pointwise.def"

static const golden_op ops[] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) {#name, run_##name},
#define PC__UNARY(name, dtypes, cost, flags, f) {#name, run_##name},
#include "ops/pointwise.def"
};

static void bools_have_no_sign(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(2), PC_BOOL, test_device());
        assert_fails(pc_neg(a), PC_ERR_DTYPE, "neg");
        assert_fails(pc_relu(a), PC_ERR_DTYPE, "relu");
    }
    assert_no_leak();
}

static void null_flows(void **state)
{
    (void)state;
    assert_fails(pc_neg(NULL), PC_ERR_ARGUMENT, "neg");
    assert_fails(pc_tanh(pc_exp(NULL)), PC_ERR_ARGUMENT, "exp");
    assert_fails(pc_sqrt(pc_log(pc_sigmoid(pc_relu(NULL)))), PC_ERR_ARGUMENT, "relu");
}

/* float32 within a few units in the last place of the C library's double functions, over the whole range. */
static void close_to_the_c_library(void **state)
{
    (void)state;
    enum { N = 20001 };
    PC_SCOPE {
        pc_tensor *x = pc_sub_scalar(pc_mul_scalar(pc_arange(0, N, 1, PC_F32, test_device()), 0.0085), 85);
        static float hx[N], e[N], s[N], t[N], l[N], f[N], g[N];
        assert_ok(pc_read(x, hx, sizeof hx));
        assert_ok(pc_read(pc_exp(x), e, sizeof e));
        assert_ok(pc_read(pc_sigmoid(x), s, sizeof s));
        assert_ok(pc_read(pc_tanh(x), t, sizeof t));
        assert_ok(pc_read(pc_log(pc_exp(x)), l, sizeof l));
        assert_ok(pc_read(pc_erf(pc_mul_scalar(x, 0.0625)), f, sizeof f));
        assert_ok(pc_read(pc_gelu(pc_mul_scalar(x, 0.0625)), g, sizeof g));
        for (int i = 0; i < N; i++) {
            double want = exp((double)hx[i]), squashed = 1 / (1 + exp(-(double)hx[i]));
            assert_close((double)e[i] / want, 1, 5e-7);
            assert_close((double)s[i] / squashed, 1, 1e-6);
            assert_close(t[i], tanh((double)hx[i]), 2e-7);
            assert_close(l[i], log((double)e[i]), 2e-7 * fabs(log((double)e[i])) + 1e-30);
            assert_close(f[i], erf((double)hx[i] / 16), 3e-7);
            assert_close(g[i], hx[i] / 32 * (1 + erf((double)hx[i] / 16 / sqrt(2))), 2e-6);
        }
    }
    assert_no_leak();
}

/* A dense result has its dense input's memory order, as in PyTorch; what is not dense gives C order. */
static void memory_order_stays(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_randn(PC_SHAPE(2, 3, 4, 5), PC_F32, test_device());
        pc_tensor *turned = pc_permute(a, PC_SHAPE(3, 1, 0, 2)), *gaps = pc_slice(turned, 0, 0, 4, 2);
        pc_tensor *results[] = {pc_exp(turned), pc_add(turned, turned), pc_mul_scalar(turned, 3),
                                pc_cast(turned, PC_F64)};
        for (int i = 0; i < 4; i++)
            for (int d = 0; d < 4; d++)
                assert_int_equal(pc_tensor_stride(results[i], d), pc_tensor_stride(turned, d));
        assert_true(pc_tensor_is_contiguous(pc_exp(gaps)));
        assert_true(pc_tensor_is_contiguous(pc_exp(pc_expand(pc_slice(a, 0, 0, 1, 1), PC_SHAPE(2, 3, 4, 5)))));
        float x[120], y[120];
        assert_ok(pc_read(pc_exp(pc_contiguous(turned)), x, sizeof x));
        assert_ok(pc_read(results[0], y, sizeof y));
        assert_memory_equal(x, y, sizeof x);
    }
    assert_no_leak();
}

static pc_tensor *(*const functions[])(pc_tensor *) = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) pc_##name,
#include "ops/pointwise.def"
};

static void assert_one_value(pc_tensor *t, int function)
{
    if (pc_item_i64(pc_count_nonzero(pc_ne(t, pc_slice(t, 0, 0, 1, 1)))))
        fail_msg("function %d gives one number in several ways", function);
}

/* What functions end at has the slope that they end with, however far it is. */
static void slopes_of_far_numbers(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    static pc_tensor *(*const ends[])(pc_tensor *) = {pc_silu, pc_gelu, pc_gelu_tanh};
    static const float far[COUNT] = {-3e38f, -1e34f, -1e20f, -1e14f, 1e14f, 1e20f, 1e34f, 3e38f};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    for (int i = 0; i < PC__COUNT(ends) * PC__COUNT(dtypes); i++)
        PC_SCOPE {
            float slope[COUNT];
            pc_tensor *x = pc_cast(pc_from_data(far, PC_SHAPE(COUNT), PC_F32, test_device()), dtypes[i % 3]);
            x = pc_detach(x);
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = ends[i / 3](x);
            assert_ok(pc_backward_with(y, pc_full(PC_SHAPE(COUNT), 65536, dtypes[i % 3], test_device())));
            assert_ok(pc_read(pc_cast(pc_grad(x), PC_F32), slope, sizeof slope));
            for (int k = 0; k < COUNT; k++)
                assert_close((double)slope[k], far[k] < 0 ? 0 : 65536, 0);
        }
    assert_no_leak();
}

/* In vectors and behind their end: else plain calls and recorded ones, which cut work otherwise, would differ. */
static void a_place_is_no_matter(void **state)
{
    (void)state;
    enum { PLACES = 37, NUMBERS = 100 };
    for (int i = 0; i < PC__COUNT(functions) * NUMBERS; i++)
        PC_SCOPE {
            const double number = 0.1 + 0.029 * (i % NUMBERS);
            pc_tensor *x = pc_full(PC_SHAPE(PLACES), number, PC_F32, test_device());
            pc_tensor *g = pc_full(PC_SHAPE(PLACES), 0.7, PC_F32, test_device());
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = functions[i / NUMBERS](x);
            assert_one_value(pc_detach(y), i / NUMBERS);
            assert_ok(pc_backward_with(y, g));
            assert_one_value(pc_grad(x), i / NUMBERS);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_place_is_no_matter),   cmocka_unit_test(memory_order_stays),
    cmocka_unit_test(bools_have_no_sign),     cmocka_unit_test(null_flows),
    cmocka_unit_test(close_to_the_c_library), cmocka_unit_test(slopes_of_far_numbers),
};

int main(void)
{
    return golden_main("ops.unary", ops, tests);
}

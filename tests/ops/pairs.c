/* Smaller and larger, powers, bounds, bits and logic: what takes two tensors, or one and numbers. */
#include "ops/golden.h"

#define TWO(name)                                                                                                      \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0], in[1]);                                                                              \
    }
#define ONE(name)                                                                                                      \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0]);                                                                                     \
    }
#define NUMBER(name)                                                                                                   \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        out[0] = pc_##name(in[0], g->args[0]);                                                                         \
    }
TWO(minimum)
TWO(maximum)
TWO(pow)
TWO(bitwise_and)
TWO(bitwise_or)
TWO(bitwise_xor)
TWO(logical_and)
TWO(logical_or)
TWO(logical_xor)
ONE(bitwise_not)
ONE(logical_not)
ONE(isnan)
ONE(isfinite)
NUMBER(pow_scalar)
NUMBER(leaky_relu)
NUMBER(elu)

static void run_clamp(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_clamp(in[0], g->args[0], g->args[1]);
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, run_##name                                                                                              \
    }
static const golden_op ops[] = {
    ROW(minimum),     ROW(maximum),     ROW(pow),        ROW(bitwise_and), ROW(bitwise_or),  ROW(bitwise_xor),
    ROW(bitwise_not), ROW(logical_and), ROW(logical_or), ROW(logical_xor), ROW(logical_not), ROW(isnan),
    ROW(isfinite),    ROW(pow_scalar),  ROW(leaky_relu), ROW(elu),         ROW(clamp),
};

static void refuses(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *two = pc_zeros(PC_SHAPE(2), PC_F32, test_device()),
                  *yes = pc_ones(PC_SHAPE(2), PC_BOOL, test_device());
        pc_tensor *three = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *whole = pc_ones(PC_SHAPE(2), PC_I32, test_device());
        assert_fails(pc_minimum(two, three), PC_ERR_SHAPE, "minimum: the shapes [2] and [3]");
        assert_fails(pc_pow(two, three), PC_ERR_SHAPE, "pow");
        assert_fails(pc_pow(yes, yes), PC_ERR_DTYPE, "pow");
        assert_fails(pc_pow_scalar(whole, -2), PC_ERR_ARGUMENT, "pc_cast");
        assert_fails(pc_floor(yes), PC_ERR_DTYPE, "floor");
        assert_fails(pc_bitwise_and(two, whole), PC_ERR_DTYPE, "bitwise_and: of float32");
        assert_fails(pc_bitwise_not(two), PC_ERR_DTYPE, "bitwise_not: of float32");
        assert_fails(pc_logical_or(two, three), PC_ERR_SHAPE, "[2] and [3]");
        assert_fails(pc_maximum(NULL, two), PC_ERR_ARGUMENT, "maximum");
        assert_fails(pc_isfinite(pc_abs(NULL)), PC_ERR_ARGUMENT, "abs");
        assert_fails(pc_clamp(NULL, 0, 1), PC_ERR_ARGUMENT, "clamp");
        assert_fails(pc_elu(NULL, 1), PC_ERR_ARGUMENT, "elu");
    }
    assert_no_leak();
}

/* Numbers beyond the dtype as bounds of integers. */
static void bounds_of_integers(void **state)
{
    (void)state;
    PC_SCOPE {
        const int32_t from[] = {-5, -1, 0, 1, 5};
        int32_t got[5];
        pc_tensor *a = pc_from_data(from, PC_SHAPE(5), PC_I32, test_device());
        assert_ok(pc_read(pc_clamp(a, -1e15, 3), got, sizeof got));
        assert_memory_equal(got, ((int32_t[]){-5, -1, 0, 1, 3}), sizeof got);
        assert_int_equal(pc_tensor_dtype(pc_clamp(a, -1.5, INFINITY)), PC_F32);
        uint8_t bytes[3];
        pc_tensor *b = pc_from_data((uint8_t[]){0, 7, 255}, PC_SHAPE(3), PC_U8, test_device());
        assert_ok(pc_read(pc_clamp(b, -3, 1000), bytes, sizeof bytes));
        assert_memory_equal(bytes, ((uint8_t[]){0, 7, 255}), sizeof bytes);
    }
    assert_no_leak();
}

/* PyTorch's values, whatever comes back where a bound was taken. Bounds are numbers of the dtype, as those in x are: on
 * them the gradient is 0. */
static void gradients_at_bounds(void **state)
{
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32, PC_F64};
    static const double from[] = {0.1, 0.2, 0.15, 0, 0.3, NAN, INFINITY, -INFINITY};
    static const double back[] = {1, 1, 2, INFINITY, NAN, INFINITY, INFINITY, NAN};
    static const struct {
        double low, high, want[8];
    } cases[] = {{0.1, 0.2, {0, 0, 2, 0, 0, 0, 0, 0}},
                 {0.1, INFINITY, {0, 1, 2, 0, NAN, 0, INFINITY, 0}},
                 {-INFINITY, 0.2, {1, 0, 2, INFINITY, 0, 0, 0, NAN}}};
    (void)state;
    for (int i = 0; i < 4 * 3; i++)
        PC_SCOPE {
            double got[8];
            pc_tensor *x = pc_cast(pc_from_data(from, PC_SHAPE(8), PC_F64, test_device()), dtypes[i / 3]);
            pc_tensor *g = pc_cast(pc_from_data(back, PC_SHAPE(8), PC_F64, test_device()), dtypes[i / 3]);
            x = pc_detach(x);
            assert_ok(pc_require_grad(x, true));
            assert_ok(pc_backward_with(pc_clamp(x, cases[i % 3].low, cases[i % 3].high), g));
            assert_ok(pc_read(pc_cast(pc_grad(x), PC_F64), got, sizeof got));
            for (int k = 0; k < 8; k++)
                if (!golden_near(got[k], cases[i % 3].want[k], 0, PC_F64))
                    fail_msg("%s, bounds %g and %g: the gradient at %g is %g", pc_dtype_name(dtypes[i / 3]),
                             cases[i % 3].low, cases[i % 3].high, from[k], got[k]);
        }
    assert_no_leak();
}

static pc_tensor *leaf_of(const double *numbers, pc_shape shape, pc_dtype dtype)
{
    pc_tensor *t = pc_detach(pc_cast(pc_from_data(numbers, shape, PC_F64, test_device()), dtype));
    assert_ok(pc_require_grad(t, true));
    return t;
}

static void assert_gradient(pc_tensor *leaf, const double *want, int n)
{
    double got[8];
    assert_ok(pc_read(pc_cast(pc_grad(leaf), PC_F64), got, (size_t)n * sizeof *got));
    for (int k = 0; k < n; k++)
        if (!golden_near(got[k], want[k], 1e-6, PC_F32))
            fail_msg("number %d: %g, not %g", k, got[k], want[k]);
}

/* PyTorch's values where a base or an exponent is 0, a base is negative, something is no number, or an infinite gradient comes
 * back; and of an exponent that is broadcast. */
static void gradients_of_odd_powers(void **state)
{
    static const double a[] = {0, 0, 0, 2, -2, NAN, INFINITY, 0}, b[] = {0, 1, -1, 0, 3, 0, 2, NAN};
    static const double along_a[] = {0, 1, -INFINITY, 0, 12, 0, INFINITY, NAN};
    static const double along_b[] = {0, 0, -INFINITY, 0.6931471824645996, NAN, NAN, INFINITY, NAN};
    static const double square[] = {0, 2, 3, 0.5}, row[] = {2, 0}, back[] = {1, INFINITY, 2, 3};
    (void)state;
    PC_SCOPE {
        pc_tensor *x = leaf_of(a, PC_SHAPE(8), PC_F32), *y = leaf_of(b, PC_SHAPE(8), PC_F32);
        assert_ok(pc_backward(pc_sum(pc_pow(x, y))));
        assert_gradient(x, along_a, 8);
        assert_gradient(y, along_b, 8);
        x = leaf_of(square, PC_SHAPE(2, 2), PC_F32), y = leaf_of(row, PC_SHAPE(2), PC_F32);
        assert_ok(pc_backward_with(pc_pow(x, y), pc_detach(leaf_of(back, PC_SHAPE(2, 2), PC_F32))));
        assert_gradient(x, (const double[]){0, 0, 12, 0}, 4);
        assert_gradient(y, (const double[]){19.775021, INFINITY}, 2);
    }
    assert_no_leak();
}

/* A recording makes a region of a chain; its results are those of the single calls. */
static void chains_are_recorded(void **state)
{
    (void)state;
    enum { N = 3000 };
    float want[N], got[N];
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(N), PC_F32, test_device());
        pc_tensor *y = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        for (int recorded = 0; recorded < 2; recorded++) {
            pc_graph *graph = NULL;
            if (recorded)
                assert_ok(pc_graph_begin(pc_stream_current(test_device())));
            pc_tensor *a = pc_leaky_relu(pc_sin(pc_square(x)), 0.1), *b = pc_clamp(pc_softplus(a), 0.5, 0.9);
            pc_tensor *c = pc_pow_scalar(pc_abs(pc_elu(pc_sub(b, x), 0.5)), 1.5);
            assert_ok(pc_copy(y, pc_maximum(pc_floor(c), pc_cos(pc_minimum(c, b)))));
            if (recorded) {
                graph = pc_graph_end(pc_stream_current(test_device()));
                assert_non_null(graph);
                assert_ok(pc_graph_launch(graph, pc_stream_current(test_device())));
            }
            assert_ok(pc_read(y, recorded ? got : want, sizeof got));
            pc_graph_free(graph);
        }
        assert_memory_equal(got, want, sizeof got);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(refuses),
    cmocka_unit_test(bounds_of_integers),
    cmocka_unit_test(gradients_at_bounds),
    cmocka_unit_test(gradients_of_odd_powers),
    cmocka_unit_test(chains_are_recorded),
};

int main(void)
{
    return golden_main("ops.pairs", ops, tests);
}

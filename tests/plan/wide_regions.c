/* Chains of calls long enough that a thread has more neighbours: recorded they have the bits of single calls,
 * whatever the count, where inputs begin, and how one is broadcast. */
#include "device.h"
#include "plans.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

#include <math.h>

enum { WIDTH = 1031, MOST = (1 << 19) + 4 * WIDTH };

typedef struct shape {
    int64_t rows, columns, from; /* from: elements left out in front of each row */
} shape;

static const shape shapes[] = {{1, 1 << 19, 0}, {1, (1 << 19) + 3, 0},   {1, (1 << 19) + 8, 1},
                               {509, WIDTH, 0}, {(1 << 19) / 64, 64, 0}, {(1 << 19) / 12 + 1, 12, 4}};

/* y = silu(x * row + x), and the gradient of all that; `row` has as many elements as a row, or one for each. */
static pc_status chain(pc_tensor *x, pc_tensor *row, pc_tensor *out, pc_tensor *gradient)
{
    pc_status status = PC_ERR_ARGUMENT;
    PC_SCOPE {
        pc_tensor *leaf = pc_detach(x);
        if (pc_require_grad(leaf, true) == PC_OK) {
            pc_tensor *y = pc_silu(pc_add(pc_mul(leaf, row), pc_mul_scalar(leaf, 1.5)));
            status = pc_backward_with(y, pc_detach(y));
            status = status == PC_OK ? pc_copy(out, y) : status;
            status = status == PC_OK ? pc_copy(gradient, pc_grad(leaf)) : status;
        }
    }
    return status;
}

static void same(pc_tensor *a, pc_tensor *b, const char *what, int number)
{
    static uint16_t x[MOST], y[MOST];
    const size_t bytes = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    assert_true(bytes <= sizeof x);
    assert_ok(pc_read(a, x, bytes));
    assert_ok(pc_read(b, y, bytes));
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        if (x[i] != y[i])
            fail_msg("case %d: %s: element %zu is 0x%x in a recording and 0x%x without", number, what, i, y[i], x[i]);
}

static void have_the_bits_of_calls(void **state)
{
    (void)state;
    pc_seed(5);
    for (int i = 0; i < 4 * (int)(sizeof shapes / sizeof *shapes); i += sampled() ? 3 : 1)
        PC_SCOPE {
            const shape *s = &shapes[i / 4];
            const pc_dtype dtype = i % 2 ? PC_F16 : PC_BF16;
            const pc_device device = test_device();
            const pc_shape whole = PC_SHAPE(s->rows, s->columns), part = PC_SHAPE(s->rows, 1);
            pc_tensor *x = pc_cast(pc_randn(PC_SHAPE(s->rows * s->columns + s->from), PC_F32, device), dtype);
            x = pc_reshape(pc_slice(x, 0, s->from, s->rows * s->columns + s->from, 1), whole);
            pc_tensor *row = pc_cast(pc_randn(i % 4 < 2 ? PC_SHAPE(s->columns) : part, PC_F32, device), dtype);
            pc_tensor *out[2], *gradient[2];
            for (int k = 0; k < 2; k++)
                out[k] = pc_zeros(whole, dtype, device), gradient[k] = pc_zeros(whole, dtype, device);
            assert_ok(chain(x, row, out[0], gradient[0]));
            begin();
            assert_ok(chain(x, row, out[1], gradient[1]));
            pc_graph *graph = ended();
            if (!plain())
                says(graph, "region");
            assert_ok(pc_graph_launch(graph, NULL));
            same(out[0], out[1], "result", i);
            same(gradient[0], gradient[1], "gradient", i);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

/* The same of float32 long enough that a thread has more neighbours, of which none lies on a whole access, and a row beside them. */
static void floats_have_the_bits_of_calls(void **state)
{
    enum { ROWS = 1027 }; /* 2^20 and more */
    (void)state;
    for (int whole = 0; whole < 2; whole++)
        PC_SCOPE {
            const pc_shape all = PC_SHAPE(ROWS, WIDTH);
            pc_tensor *more = pc_randn(PC_SHAPE(ROWS * WIDTH + 1), PC_F32, test_device());
            pc_tensor *x = pc_reshape(pc_slice(more, 0, 1, ROWS * WIDTH + 1, 1), all);
            pc_tensor *row = pc_randn(whole ? all : PC_SHAPE(WIDTH), PC_F32, test_device()), *out[2], *gradient[2];
            for (int k = 0; k < 2; k++)
                out[k] = pc_zeros(all, PC_F32, test_device()), gradient[k] = pc_zeros(all, PC_F32, test_device());
            assert_ok(chain(x, row, out[0], gradient[0]));
            begin();
            assert_ok(chain(x, row, out[1], gradient[1]));
            pc_graph *graph = ended();
            assert_ok(pc_graph_launch(graph, NULL));
            assert_close(pc_item(pc_sum(pc_ne(out[0], out[1]))), 0, 0);
            assert_close(pc_item(pc_sum(pc_ne(gradient[0], gradient[1]))), 0, 0);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

/* Bounds that 16 bits do not have, zeros of both signs and NaN among the numbers, and what no whole access takes. */
static void clamps_have_the_bits_of_calls(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 0.1f, 0.2f, 0.09998f, 0.2001f, -3, 3};
    static const double bounds[][2] = {{0.1, 0.2}, {0, 0}, {-0.0, 0.1}, {0.2, 0.1}, {-INFINITY, INFINITY}, {-1, 1e6}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    enum { COUNT = sizeof odd / sizeof *odd };
    (void)state;
    for (int i = 0; i < 18 * 2; i++)
        PC_SCOPE {
            const double *b = bounds[i / 2 % 6];
            pc_tensor *x = pc_cast(pc_from_data(odd, PC_SHAPE(COUNT), PC_F32, test_device()), dtypes[i / 12]);
            x = i % 2 ? pc_contiguous(pc_repeat(x, PC_SHAPE(3))) : pc_slice(x, 0, 1, COUNT, 1);
            pc_tensor *out[2];
            for (int k = 0; k < 2; k++)
                out[k] = pc_zeros(pc_tensor_shape(x), dtypes[i / 12], test_device());
            assert_ok(pc_copy(out[0], pc_clamp(x, b[0], b[1])));
            begin();
            assert_ok(pc_copy(out[1], pc_clamp(x, b[0], b[1])));
            pc_graph *graph = ended();
            assert_ok(pc_graph_launch(graph, NULL));
            same(out[0], out[1], "clamp", i);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

static void back_through_numbers(pc_tensor *x, pc_tensor *g)
{
    PC_SCOPE {
        pc_tensor *y = pc_pow_scalar(pc_exp(pc_elu(pc_leaky_relu(x, 0.1), 0.7)), 1.7);
        assert_ok(pc_backward_with(y, g));
    }
}

/* Bounds, and numbers between those of 16 bits, are one call with what comes back, of the bits of the single ones. */
static void gradients_by_numbers_are_in_regions(void **state)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    static const char *const steps[] = {
        "= maximum -0.5, minimum 0.5, above 0.5, relu_backward, above -0.5, relu_backward",
        "= leaky_relu 0.1, elu 0.7, exp, pow_backward 1.7, exp_backward, elu_backward 0.7, "
        "leaky_relu_backward 0.1"};
    (void)state;
    for (int i = 0; i < 6; i++)
        PC_SCOPE {
            const pc_dtype dtype = dtypes[i % 3];
            pc_tensor *x = pc_cast(pc_randn(PC_SHAPE(WIDTH), PC_F32, test_device()), dtype);
            pc_tensor *g = pc_cast(pc_randn(PC_SHAPE(WIDTH), PC_F32, test_device()), dtype), *out[2];
            pc_graph *graph = NULL;
            for (int k = 0; k < 2; k++) {
                pc_tensor *leaf = pc_detach(x);
                assert_ok(pc_require_grad(leaf, true));
                out[k] = pc_zeros(PC_SHAPE(WIDTH), dtype, test_device());
                if (k)
                    begin();
                if (i < 3)
                    assert_ok(pc_backward_with(pc_clamp(leaf, -0.5, 0.5), g));
                else
                    back_through_numbers(leaf, g);
                assert_ok(pc_copy(out[k], pc_grad(leaf)));
                graph = k ? ended() : NULL;
            }
            if (!plain())
                says(graph, steps[i / 3]);
            assert_ok(pc_graph_launch(graph, NULL));
            same(out[0], out[1], "gradient", i);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

/* Of a chain whose results are read later more often than a region can write: what is beyond is a region, too. */
static void results_beyond_a_region_are_another(void **state)
{
    enum { READ = 6 };
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(WIDTH), PC_F32, test_device()), *out[2][READ], *y[READ];
        pc_graph *graph = NULL;
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < READ; i++)
                out[k][i] = pc_zeros(PC_SHAPE(WIDTH), PC_F32, test_device());
            if (k)
                begin();
            for (int i = 0; i < READ; i++)
                y[i] = i % 2 ? pc_abs(y[i - 1]) : pc_neg(pc_add_scalar(i ? y[i - 1] : x, 1));
            for (int i = 0; i < READ; i++)
                assert_ok(pc_copy(out[k][i], y[i]));
            graph = k ? ended() : NULL;
        }
        if (!plain())
            says(graph, "10 into regions"); /* all but the last of each three, of the copies too */
        assert_ok(pc_graph_launch(graph, NULL));
        for (int i = 0; i < READ; i++)
            same(out[0][i], out[1][i], "result", i);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* A number that goes through the other type of 16 bits loses what that has not, in a recording too. */
static void steps_of_the_other_type_round(void **state)
{
    (void)state;
    pc_seed(7);
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const pc_dtype dtype = i ? PC_F16 : PC_BF16, other = i ? PC_BF16 : PC_F16;
            const pc_shape all = PC_SHAPE(1 << 19);
            pc_tensor *x = pc_cast(pc_mul_scalar(pc_randn(all, PC_F32, test_device()), 3e4), dtype);
            pc_tensor *out[2] = {pc_zeros(all, dtype, test_device()), pc_zeros(all, dtype, test_device())};
            for (int k = 0; k < 2; k++) {
                if (k)
                    begin();
                PC_SCOPE {
                    pc_tensor *between = pc_neg(pc_add_scalar(pc_cast(x, other), 1));
                    assert_ok(pc_copy(out[k], pc_relu(pc_cast(between, dtype))));
                }
            }
            pc_graph *graph = ended();
            if (!plain())
                says(graph, "region");
            assert_ok(pc_graph_launch(graph, NULL));
            same(out[0], out[1], "result", i);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

/* What NaN of 16 bits the host gives comes back as the calls round it. */
static void clamps_of_any_nan_have_the_bits_of_calls(void **state)
{
    static const uint16_t bits[] = {0x7e00, 0xfe00, 0x7fc0, 0xffc1, 0x7f81, 0x3c00, 0x8000, 0x0001, 0x7c01};
    (void)state;
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const pc_dtype dtype = i ? PC_F16 : PC_BF16;
            const pc_shape all = PC_SHAPE(sizeof bits / sizeof *bits);
            pc_tensor *x = pc_from_data(bits, all, dtype, test_device());
            pc_tensor *out[2] = {pc_zeros(all, dtype, test_device()), pc_zeros(all, dtype, test_device())};
            assert_ok(pc_copy(out[0], pc_clamp(x, -1, 2)));
            begin();
            assert_ok(pc_copy(out[1], pc_clamp(x, -1, 2)));
            pc_graph *graph = ended();
            assert_ok(pc_graph_launch(graph, NULL));
            same(out[0], out[1], "clamp", i);
            pc_graph_free(graph);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(have_the_bits_of_calls),
                                       cmocka_unit_test(floats_have_the_bits_of_calls),
                                       cmocka_unit_test(clamps_have_the_bits_of_calls),
                                       cmocka_unit_test(gradients_by_numbers_are_in_regions),
                                       cmocka_unit_test(steps_of_the_other_type_round),
                                       cmocka_unit_test(clamps_of_any_nan_have_the_bits_of_calls),
                                       cmocka_unit_test(results_beyond_a_region_are_another)};
    return cmocka_run_group_tests_name("plan.wide_regions", tests, NULL, NULL);
}

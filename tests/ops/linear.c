/* activation(x w^T + bias). */
#include "ops/golden.h"

#include <paracord/amp.h>

static void run_linear(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_linear(in[0], in[1], g->n_in > 2 ? in[2] : NULL, (pc_activation_kind)g->args[0]);
}

static const golden_op ops[] = {{"linear", run_linear}};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *w = pc_zeros(PC_SHAPE(4, 3), PC_F32, test_device());
        pc_tensor *b = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        pc_tensor *three = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_fn_linear(pc_transpose(x, 0, 1), w, b, PC_ACTIVATION_NONE), PC_ERR_SHAPE,
                     "[3, 2] does not fit a weight of shape [4, 3]");
        assert_fails(pc_fn_linear(x, three, b, PC_ACTIVATION_NONE), PC_ERR_SHAPE, "[out, in]");
        assert_fails(pc_fn_linear(x, w, three, PC_ACTIVATION_NONE), PC_ERR_SHAPE, "bias of shape [3]");
        assert_fails(pc_fn_linear(x, w, pc_reshape(b, PC_SHAPE(1, 1, 4)), PC_ACTIVATION_NONE), PC_ERR_SHAPE, "bias");
        assert_fails(pc_fn_linear(pc_reshape(pc_slice(three, 0, 0, 1, 1), PC_SHAPE_SCALAR), w, b, PC_ACTIVATION_NONE),
                     PC_ERR_SHAPE, "[]");
        assert_fails(pc_fn_linear(pc_cast(x, PC_F64), w, b, PC_ACTIVATION_NONE), PC_ERR_DTYPE,
                     "input float64, weight float32");
        assert_fails(pc_fn_linear(x, w, pc_cast(b, PC_F64), PC_ACTIVATION_NONE), PC_ERR_DTYPE, "bias float64");
        assert_fails(pc_fn_linear(pc_cast(x, PC_I64), pc_cast(w, PC_I64), NULL, PC_ACTIVATION_NONE), PC_ERR_DTYPE,
                     "int64");
        assert_fails(pc_fn_linear(x, w, b, (pc_activation_kind)9), PC_ERR_ARGUMENT, "activation 9");
        assert_fails(pc_fn_linear(NULL, w, b, PC_ACTIVATION_NONE), PC_ERR_ARGUMENT, "linear");
        assert_fails(pc_fn_linear(x, NULL, b, PC_ACTIVATION_NONE), PC_ERR_ARGUMENT, "linear");
        assert_fails(pc_fn_linear(pc_add(x, w), w, b, PC_ACTIVATION_NONE), PC_ERR_SHAPE, "add");
    }
    assert_no_leak();
}

/* As relu alone does: what is no number is not made one. */
static void relu_keeps_nan(void **state)
{
    (void)state;
    PC_SCOPE {
        for (int rows = 1; rows <= 64; rows *= 64)
            for (int outputs = 2; outputs <= 32; outputs *= 16)
                for (int biased = 0; biased < 2; biased++) {
                    pc_tensor *x = pc_full(PC_SHAPE(rows, 64), NAN, PC_F32, test_device()),
                              *w = pc_ones(PC_SHAPE(outputs, 64), PC_F32, test_device()),
                              *b = biased ? pc_ones(PC_SHAPE(outputs), PC_F32, test_device()) : NULL;
                    assert_true(isnan(pc_item(pc_max(pc_fn_linear(x, w, b, PC_ACTIVATION_RELU)))));
                }
    }
}

/* --- against sums in double, in the sizes where one kernel does what several did --- */

typedef struct layer_case {
    int m, n, k;
    pc_activation_kind activation;
    pc_dtype dtype;   /* that autocast computes in; PC_F32: none */
    double tolerance; /* of results in that dtype */
} layer_case;

static double activated(pc_activation_kind kind, double x)
{
    return kind == PC_ACTIVATION_RELU      ? (x > 0 ? x : 0)
           : kind == PC_ACTIVATION_SIGMOID ? 1 / (1 + exp(-x))
           : kind == PC_ACTIVATION_TANH    ? tanh(x)
                                           : x;
}

static double slope(pc_activation_kind kind, double y)
{
    return kind == PC_ACTIVATION_RELU      ? y > 0
           : kind == PC_ACTIVATION_SIGMOID ? y * (1 - y)
           : kind == PC_ACTIVATION_TANH    ? 1 - y * y
                                           : 1;
}

static float *floats(size_t n)
{
    float *list = calloc(n, sizeof *list);
    assert_non_null(list);
    return list;
}

static float *read_all(pc_tensor *t)
{
    float *list = floats((size_t)pc_tensor_count(t));
    assert_ok(pc_read(t, list, (size_t)pc_tensor_count(t) * sizeof *list));
    return list;
}

static void check_forward(const layer_case *c, const float *x, const float *w, const float *b, const float *y)
{
    for (int i = 0; i < c->m; i++)
        for (int j = 0; j < c->n; j++) {
            double sum = (double)b[j];
            for (int l = 0; l < c->k; l++)
                sum += (double)x[i * c->k + l] * (double)w[j * c->k + l];
            assert_close((double)y[i * c->n + j], activated(c->activation, sum), c->tolerance);
        }
}

/* g: the gradient before the activation. Every seventh column of dx and dw. */
static void check_backward(const layer_case *c, const float *x, const float *w, const double *g, const float *dx,
                           const float *dw, const float *db)
{
    for (int l = 0; l < c->k; l += 7) {
        for (int i = 0; i < c->m; i++) {
            double sum = 0;
            for (int j = 0; j < c->n; j++)
                sum += g[i * c->n + j] * (double)w[j * c->k + l];
            assert_close((double)dx[i * c->k + l], sum, c->tolerance);
        }
        for (int j = 0; j < c->n; j++) {
            double sum = 0;
            for (int i = 0; i < c->m; i++)
                sum += g[i * c->n + j] * (double)x[i * c->k + l];
            assert_close((double)dw[j * c->k + l], sum, 2e-4);
        }
    }
    for (int j = 0; j < c->n; j++) {
        double sum = 0;
        for (int i = 0; i < c->m; i++)
            sum += g[i * c->n + j];
        assert_close((double)db[j], sum, 2e-4);
    }
}

static pc_tensor *leaf(pc_tensor *t)
{
    assert_ok(pc_require_grad(t, true));
    return t;
}

/* Numbers that the case's dtype has, of variance scale^2: drawn evenly, as normal ones take longer than the products of them. */
static pc_tensor *numbers(const layer_case *c, pc_shape shape, double scale)
{
    pc_tensor *t = pc_mul_scalar(pc_sub_scalar(pc_rand(shape, PC_F32, test_device()), 0.5), sqrt(12) * scale);
    return c->dtype == PC_F32 ? t : pc_cast(pc_cast(t, c->dtype), PC_F32);
}

static void check_layer(const layer_case *c)
{
    PC_SCOPE {
        pc_tensor *x = leaf(numbers(c, PC_SHAPE(c->m, c->k), 1)), *y = NULL;
        pc_tensor *w = leaf(numbers(c, PC_SHAPE(c->n, c->k), 1 / sqrt((double)c->k)));
        pc_tensor *b = leaf(numbers(c, PC_SHAPE(c->n), 1)), *dy = numbers(c, PC_SHAPE(c->m, c->n), 1);
        PC_AUTOCAST(c->dtype)
            y = pc_fn_linear(x, w, b, c->activation);
        assert_int_equal(pc_tensor_dtype(y), c->dtype);
        y = c->dtype == PC_F32 ? y : pc_cast(y, PC_F32);
        assert_ok(pc_backward_with(y, dy));
        float *hx = read_all(x), *hw = read_all(w), *hb = read_all(b), *hy = read_all(y), *hdy = read_all(dy);
        float *dx = read_all(pc_grad(x)), *dw = read_all(pc_grad(w)), *db = read_all(pc_grad(b));
        double *g = calloc((size_t)(c->m * c->n), sizeof *g);
        for (int i = 0; i < c->m * c->n; i++)
            g[i] = (double)hdy[i] * slope(c->activation, (double)hy[i]);
        check_forward(c, hx, hw, hb, hy);
        check_backward(c, hx, hw, g, dx, dw, db);
        void *all[] = {hx, hw, hb, hy, hdy, dx, dw, db, g};
        for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
            free(all[i]);
    }
}

static void check_in_each_dtype(layer_case c)
{
    static const struct {
        pc_dtype dtype;
        double tolerance;
    } ways[] = {{PC_F32, 2e-4}, {PC_F16, 4e-3}, {PC_BF16, 3e-2}};
    for (int w = 0; w < (c.m <= 64 ? 3 : 1); w++) {
        c.dtype = ways[w].dtype;
        c.tolerance = ways[w].tolerance;
        check_layer(&c);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const layer_case cases[] = {{.m = 32, .n = 128, .k = 3200, .activation = PC_ACTIVATION_RELU},
                                       {.m = 32, .n = 1, .k = 128, .activation = PC_ACTIVATION_NONE},
                                       {.m = 1, .n = 1, .k = 1, .activation = PC_ACTIVATION_NONE},
                                       {.m = 7, .n = 3, .k = 5, .activation = PC_ACTIVATION_TANH},
                                       {.m = 33, .n = 17, .k = 65, .activation = PC_ACTIVATION_RELU},
                                       {.m = 64, .n = 64, .k = 64, .activation = PC_ACTIVATION_SIGMOID},
                                       {.m = 65, .n = 130, .k = 129, .activation = PC_ACTIVATION_RELU},
                                       {.m = 200, .n = 128, .k = 640, .activation = PC_ACTIVATION_RELU},
                                       {.m = 3, .n = 10, .k = 1000, .activation = PC_ACTIVATION_NONE},
                                       {.m = 100, .n = 2, .k = 70, .activation = PC_ACTIVATION_RELU},
                                       {.m = 31, .n = 33, .k = 4, .activation = PC_ACTIVATION_TANH},
                                       {.m = 130, .n = 70, .k = 2, .activation = PC_ACTIVATION_NONE},
                                       {.m = 32, .n = 128, .k = 7000, .activation = PC_ACTIVATION_RELU},
                                       {.m = 5, .n = 132, .k = 1060, .activation = PC_ACTIVATION_TANH},
                                       {.m = 29, .n = 260, .k = 2044, .activation = PC_ACTIVATION_NONE},
                                       {.m = 3, .n = 20, .k = 1000, .activation = PC_ACTIVATION_NONE},
                                       {.m = 7, .n = 19, .k = 5, .activation = PC_ACTIVATION_TANH},
                                       {.m = 2, .n = 2, .k = 4100, .activation = PC_ACTIVATION_NONE},
                                       {.m = 64, .n = 16, .k = 2100, .activation = PC_ACTIVATION_RELU},
                                       {.m = 33, .n = 200, .k = 132, .activation = PC_ACTIVATION_SIGMOID},
                                       {.m = 2, .n = 323, .k = 67, .activation = PC_ACTIVATION_RELU},
                                       {.m = 3, .n = 336, .k = 71, .activation = PC_ACTIVATION_RELU},
                                       {.m = 26, .n = 32, .k = 256, .activation = PC_ACTIVATION_TANH},
                                       {.m = 9, .n = 129, .k = 1540, .activation = PC_ACTIVATION_NONE}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        check_in_each_dtype(cases[i]);
    assert_no_leak();
}

/* Around the ends of vectors, of warps and of what a thread takes at once, with one more output than count as few. */
static void few_outputs(void **state)
{
    (void)state;
    static const int rows[] = {1, 2, 4, 5, 31, 32, 63, 64},
                     lengths[] = {1, 3, 4, 31, 127, 128, 132, 511, 512, 516, 2049};
    enum { ROWS = sizeof rows / sizeof *rows, LENGTHS = sizeof lengths / sizeof *lengths };
    for (int n = 1; n <= 17; n++)
        for (int i = n % 2; i < LENGTHS; i += 2)
            check_in_each_dtype((layer_case){.m = rows[(n + i) % ROWS],
                                             .n = n,
                                             .k = lengths[i],
                                             .activation = (pc_activation_kind)((n + i / 2) % 4)});
    assert_no_leak();
}

static void assert_same(pc_tensor *a, pc_tensor *b)
{
    const size_t bytes = (size_t)pc_tensor_count(a) * sizeof(float);
    float *x = read_all(a), *y = read_all(b);
    assert_memory_equal(x, y, bytes);
    free(x);
    free(y);
}

/* Rows of x further apart than they are long, and beginning where no sixteen bytes do, or where they do. */
static void check_parts_of_rows(int n, int begin, int end)
{
    PC_SCOPE {
        pc_tensor *wide = pc_randn(PC_SHAPE(9, 52), PC_F32, test_device());
        pc_tensor *w = leaf(pc_randn(PC_SHAPE(n, end - begin), PC_F32, test_device()));
        pc_tensor *part = pc_slice(wide, 1, begin, end, 1), *whole = leaf(pc_clone(part));
        (void)leaf(part);
        pc_tensor *one = pc_fn_linear(part, w, NULL, PC_ACTIVATION_RELU),
                  *two = pc_fn_linear(whole, w, NULL, PC_ACTIVATION_RELU);
        assert_same(one, two);
        assert_ok(pc_backward(pc_sum(one)));
        pc_tensor *first = pc_clone(pc_grad(w));
        pc_zero_grad(w);
        assert_ok(pc_backward(pc_sum(two)));
        assert_same(first, pc_grad(w));
        assert_same(pc_grad(part), pc_grad(whole));
    }
}

static void parts_of_rows(void **state)
{
    (void)state;
    for (int n = 6; n <= 24; n += 18) {
        check_parts_of_rows(n, 3, 43);
        check_parts_of_rows(n, 4, 44);
        check_parts_of_rows(n, 8, 51);
        check_parts_of_rows(n, 48, 51);
    }
    assert_no_leak();
}

/* One short row for all, in memory that has no four numbers. */
static void a_row_for_all(void **state)
{
    (void)state;
    for (int n = 5; n <= 25; n += 20)
        PC_SCOPE {
            pc_tensor *row = leaf(pc_randn(PC_SHAPE(1, 3), PC_F32, test_device()));
            pc_tensor *w = leaf(pc_randn(PC_SHAPE(n, 3), PC_F32, test_device())), *all = pc_expand(row, PC_SHAPE(6, 3));
            pc_tensor *y = pc_fn_linear(all, w, NULL, PC_ACTIVATION_RELU);
            assert_same(y, pc_fn_linear(pc_contiguous(all), w, NULL, PC_ACTIVATION_RELU));
            assert_ok(pc_backward(pc_sum(y)));
            assert_true(isfinite(pc_item(pc_sum(pc_grad(w)))) && isfinite(pc_item(pc_sum(pc_grad(row)))));
        }
    assert_no_leak();
}

/* What is not wanted is left out, and the rest is the same to the bit. */
static void without_some(void **state)
{
    (void)state;
    for (int n = 5; n <= 25; n += 20)
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(13, 150), PC_F32, test_device()), *leaf_x = leaf(pc_clone(x));
            pc_tensor *w = leaf(pc_randn(PC_SHAPE(n, 150), PC_F32, test_device()));
            pc_tensor *b = leaf(pc_zeros(PC_SHAPE(n), PC_F32, test_device()));
            pc_tensor *all = pc_fn_linear(leaf_x, w, b, PC_ACTIVATION_TANH);
            assert_ok(pc_backward(pc_sum(all)));
            pc_tensor *dw = pc_clone(pc_grad(w));
            pc_zero_grad(w);
            pc_tensor *bare = pc_fn_linear(x, w, NULL, PC_ACTIVATION_TANH);
            assert_same(all, bare);
            assert_ok(pc_backward(pc_sum(bare)));
            assert_same(dw, pc_grad(w));
        }
    assert_no_leak();
}

/* Infinities and NaN come out where IEEE's arithmetic puts them, whatever the kernel multiplies with. */
static void check_beyond_numbers(int n)
{
    PC_SCOPE {
        static const float rows[4][2] = {{INFINITY, 1}, {3e38f, 0}, {NAN, 1}, {1, -INFINITY}};
        pc_tensor *x = leaf(pc_from_data(rows, PC_SHAPE(4, 2), PC_F32, test_device()));
        pc_tensor *w = leaf(pc_ones(PC_SHAPE(n, 2), PC_F32, test_device()));
        pc_tensor *y = pc_fn_linear(x, w, NULL, PC_ACTIVATION_NONE);
        assert_ok(pc_backward(pc_sum(y)));
        float *got = read_all(y), *dx = read_all(pc_grad(x)), *dw = read_all(pc_grad(w));
        assert_true(got[0] == INFINITY);
        assert_true(got[n] == 3e38f);
        assert_true(isnan(got[2 * n]));
        assert_true(got[4 * n - 1] == -INFINITY);
        assert_true(dx[0] == (float)n && dx[7] == (float)n);
        assert_true(isnan(dw[0]) && dw[2 * n - 1] == -INFINITY);
        free(got);
        free(dx);
        free(dw);
    }
}

static void beyond_numbers(void **state)
{
    (void)state;
    check_beyond_numbers(1);
    check_beyond_numbers(18);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input),     cmocka_unit_test(relu_keeps_nan),
                                          cmocka_unit_test(sizes),         cmocka_unit_test(few_outputs),
                                          cmocka_unit_test(parts_of_rows), cmocka_unit_test(a_row_for_all),
                                          cmocka_unit_test(without_some),  cmocka_unit_test(beyond_numbers)};

int main(void)
{
    return golden_main("ops.linear", ops, tests);
}

/* Minima, products, any and all, variances, norms, dot products. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>

/* The arguments from `from` on: keepdim and dimensions. */
static pc_shape dims_from(const golden *g, int from)
{
    pc_shape dims = {.ndim = g->n_args - from - 1};
    for (int i = 0; i < dims.ndim; i++)
        dims.dim[i] = (int64_t)g->args[from + 1 + i];
    return dims;
}

#define RUN(name, ...)                                                                                                 \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0], ##__VA_ARGS__);                                                                      \
    }
#define ALONG (int)g->args[1], g->args[0] != 0
#define OVER dims_from(g, 0), g->args[0] != 0
RUN(min)
RUN(prod)
RUN(any)
RUN(all)
RUN(count_nonzero)
RUN(min_dim, ALONG, &out[1])
RUN(argmin, ALONG)
RUN(prod_dim, ALONG)
RUN(any_dims, OVER)
RUN(all_dims, OVER)
RUN(count_nonzero_dims, dims_from(g, 0))
RUN(var, g->args[0])
RUN(std, g->args[0])
RUN(var_dims, dims_from(g, 1), g->args[0], g->args[1] != 0)
RUN(std_dims, dims_from(g, 1), g->args[0], g->args[1] != 0)
RUN(norm, g->args[0])
RUN(norm_dims, g->args[0], dims_from(g, 1), g->args[1] != 0)
RUN(dot, in[1])

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, run_##name                                                                                              \
    }
static const golden_op ops[] = {
    ROW(min),      ROW(prod),     ROW(any),       ROW(all),      ROW(count_nonzero),
    ROW(min_dim),  ROW(argmin),   ROW(prod_dim),  ROW(any_dims), ROW(all_dims),
    ROW(var),      ROW(std),      ROW(norm),      ROW(dot),      ROW(count_nonzero_dims),
    ROW(var_dims), ROW(std_dims), ROW(norm_dims),
};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        pc_tensor *none = pc_zeros(PC_SHAPE(0, 3), PC_F32, test_device());
        pc_tensor *whole = pc_zeros(PC_SHAPE(2), PC_I32, test_device());
        pc_tensor *three = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_min(none), PC_ERR_SHAPE, "min: a tensor of shape [0, 3]");
        assert_fails(pc_min_dim(none, 0, false, NULL), PC_ERR_SHAPE, "min");
        assert_fails(pc_argmin(none, 0, true), PC_ERR_SHAPE, "[0, 3]");
        assert_fails(pc_argmin(a, 5, true), PC_ERR_RANGE, "argmin");
        assert_fails(pc_prod_dim(a, 2, true), PC_ERR_RANGE, "prod");
        pc_tensor *indices = a;
        assert_fails(pc_min_dim(a, 5, true, &indices), PC_ERR_RANGE, "dimension 5");
        assert_null(indices);
        assert_fails(pc_any_dims(a, PC_SHAPE(0, 0), true), PC_ERR_ARGUMENT, "any: dimension 0 is named twice");
        assert_fails(pc_all_dims(a, PC_SHAPE(2), true), PC_ERR_RANGE, "all");
        assert_fails(pc_count_nonzero_dims(a, PC_SHAPE(2)), PC_ERR_RANGE, "count_nonzero");
        assert_fails(pc_var(whole, 1), PC_ERR_DTYPE, "var: a int32");
        assert_fails(pc_std_dims(whole, PC_SHAPE(0), 1, false), PC_ERR_DTYPE, "pc_cast");
        assert_fails(pc_var_dims(a, PC_SHAPE(-3), 1, false), PC_ERR_RANGE, "var");
        assert_fails(pc_norm(whole, 2), PC_ERR_DTYPE, "norm: a int32");
        assert_fails(pc_norm(a, NAN), PC_ERR_ARGUMENT, "norm: the order");
        assert_fails(pc_norm(none, INFINITY), PC_ERR_SHAPE, "norm");
        assert_fails(pc_norm_dims(none, -1, PC_SHAPE(0), false), PC_ERR_SHAPE, "order -1");
        assert_fails(pc_norm_dims(a, 2, PC_SHAPE(7), false), PC_ERR_RANGE, "norm");
        assert_fails(pc_dot(a, three), PC_ERR_SHAPE, "dot: the shapes [2, 3] and [3]");
        assert_fails(pc_dot(three, pc_zeros(PC_SHAPE(4), PC_F32, test_device())), PC_ERR_SHAPE, "one length");
        assert_fails(pc_dot(whole, whole), PC_ERR_DTYPE, "dot: of int32");
    }
    assert_no_leak();
}

static void null_flows(void **state)
{
    (void)state;
    pc_tensor *a = pc_zeros(PC_SHAPE(3), PC_F32, test_device()), *indices;
    assert_fails(pc_min(NULL), PC_ERR_ARGUMENT, "min");
    assert_fails(pc_min_dim(NULL, 0, false, &indices), PC_ERR_ARGUMENT, "min");
    assert_fails(pc_argmin(NULL, 0, false), PC_ERR_ARGUMENT, "argmin");
    assert_fails(pc_prod(NULL), PC_ERR_ARGUMENT, "prod");
    assert_fails(pc_any(NULL), PC_ERR_ARGUMENT, "any");
    assert_fails(pc_all_dims(NULL, PC_SHAPE(0), false), PC_ERR_ARGUMENT, "all");
    assert_fails(pc_count_nonzero(NULL), PC_ERR_ARGUMENT, "count_nonzero");
    assert_fails(pc_var(NULL, 1), PC_ERR_ARGUMENT, "var");
    assert_fails(pc_std(NULL, 1), PC_ERR_ARGUMENT, "std");
    assert_fails(pc_norm(NULL, 2), PC_ERR_ARGUMENT, "norm");
    assert_fails(pc_dot(a, NULL), PC_ERR_ARGUMENT, "dot");
    pc_tensor_free(a);
    assert_no_leak();
}

/* Numbers far from 0 beside what they differ by: a difference of sums of squares would have nothing left. */
static void variances_of_large_numbers(void **state)
{
    (void)state;
    static const int shapes[][2] = {{1, 40000}, {3, 1000}, {70, 47}, {300, 4099}};
    for (int i = 0; i < PC__COUNT(shapes) * 2; i++)
        PC_SCOPE {
            const int rows = shapes[i / 2][0], n = shapes[i / 2][1];
            pc_tensor *x = pc_reshape(pc_arange(0, (double)rows * n, 1, PC_F64, test_device()), PC_SHAPE(rows, n));
            x = pc_cast(pc_add_scalar(pc_sub(x, pc_floor(x)), 0), PC_F64);
            pc_tensor *step = pc_cast(pc_arange(0, n, 1, PC_F64, test_device()), PC_F64);
            step = pc_sub(step, pc_mul_scalar(pc_floor(pc_div_scalar(step, 5)), 5)); /* 0 1 2 3 4 0 1 ... */
            x = pc_cast(pc_add_scalar(pc_add(x, step), 1e6), PC_F32);
            double wanted = 0, mean = 0;
            for (int k = 0; k < n; k++)
                mean += k % 5 / (double)n;
            for (int k = 0; k < n; k++)
                wanted += (k % 5 - mean) * (k % 5 - mean) / (n - 1);
            pc_tensor *var = i % 2 ? pc_var_dims(pc_contiguous(pc_transpose(x, 0, 1)), PC_SHAPE(0), 1, false)
                                   : pc_var_dims(x, PC_SHAPE(1), 1, false);
            assert_close(pc_item(pc_max(var)), wanted, 1e-6 * wanted);
            assert_close(pc_item(pc_min(var)), wanted, 1e-6 * wanted);
        }
    assert_no_leak();
}

/* Equal numbers have no variance at all, also where their sum is rounded: a gradient divides by it. */
static void equal_numbers_do_not_vary(void **state)
{
    static const int lengths[] = {2, 3, 7, 24, 49, 100, 255, 256, 300, 5000};
    static const double values[] = {0.1, -1e7 / 3, 1e-20 / 7};
    (void)state;
    for (int i = 0; i < PC__COUNT(lengths) * PC__COUNT(values); i++)
        PC_SCOPE {
            const int n = lengths[i / PC__COUNT(values)];
            pc_tensor *x =
                pc_full(PC_SHAPE(5, n), values[i % PC__COUNT(values)], i % 2 ? PC_F32 : PC_F64, test_device());
            assert_close(pc_item(pc_max(pc_var_dims(x, PC_SHAPE(1), 1, false))), 0, 0);
        }
    assert_no_leak();
}

/* Each of many equal numbers is counted in the end: sums that go on in float32 stop growing, or lose digits. */
static void long_dots_are_exact_enough(void **state)
{
    (void)state;
    enum { N = 3000001 };
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16};
    for (int i = 0; i < PC__COUNT(dtypes); i++)
        PC_SCOPE {
            pc_tensor *a = pc_full(PC_SHAPE(N), 0.1, dtypes[i], test_device()), *one = pc_slice(a, 0, 0, 1, 1);
            const double each = pc_item(pc_cast(one, PC_F64)), wanted = each * each * N;
            assert_close(pc_item(pc_cast(pc_dot(a, a), PC_F64)), wanted,
                         wanted * (dtypes[i] == PC_BF16 ? 0x1p-8 : 5e-7));
            assert_close(pc_item(pc_cast(pc_norm(a, 2), PC_F64)), sqrt(wanted),
                         sqrt(wanted) * (dtypes[i] == PC_BF16 ? 0x1p-8 : 5e-7));
        }
    assert_no_leak();
}

/* 0 1 .. by - 1 0 1 .., every `step`-th of them from the second one on; step 0: the same one. */
static pc_tensor *counted(int n, int by, int step, pc_dtype dtype)
{
    pc_tensor *all = pc_arange(0, (double)n * (step ? step : 1) + 1, 1, PC_F64, test_device());
    all = pc_cast(pc_sub(all, pc_mul_scalar(pc_floor(pc_div_scalar(all, by)), by)), dtype);
    return step ? pc_slice(all, 0, 1, 1 + (int64_t)n * step, step) : pc_expand(pc_slice(all, 0, 1, 2, 1), PC_SHAPE(n));
}

/* Vectors of any step, in one pass and in two. */
static void dots_of_vectors_with_gaps(void **state)
{
    static const int rows[][3] = {{1, 3, 2},     {5, 2, 1},      {300, 1, 7}, {5000, 2, 2},
                                  {70001, 3, 1}, {300007, 1, 2}, {4099, 0, 2}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16};
    (void)state;
    for (int i = 0; i < PC__COUNT(rows) * PC__COUNT(dtypes); i++)
        PC_SCOPE {
            const int *row = rows[i % PC__COUNT(rows)], n = row[0];
            const pc_dtype dtype = dtypes[i / PC__COUNT(rows)];
            pc_tensor *x = counted(n, 5, row[1], dtype), *y = counted(n, 7, row[2], dtype);
            double wanted = 0;
            for (int k = 0; k < n; k++)
                wanted += (1 + k * row[1]) % 5 * ((1 + k * row[2]) % 7);
            assert_close(pc_item(pc_cast(pc_dot(x, y), PC_F64)), wanted, wanted * (dtype == PC_BF16 ? 0x1p-8 : 1e-7));
        }
    assert_no_leak();
}

/* --- all kinds against plain loops, rows, slabs and columns of any size --- */

enum { MOST = 100000 };
static float numbers[MOST];

typedef struct plain {
    double least, product, squares, sizes, largest, var, cubes;
    int64_t place;
    bool any, all;
} plain;

static plain plain_of(const float *x, int64_t n, int64_t step)
{
    plain p = {INFINITY, 1, 0, 0, 0, 0, 0, 0, false, true};
    double mean = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)x[i * step];
        p.place = v < p.least ? i : p.place;
        p.least = fmin(p.least, v);
        p.product *= v;
        p.squares += v * v;
        p.sizes += fabs(v);
        p.cubes += fabs(v * v * v);
        p.largest = fmax(p.largest, fabs(v));
        p.any = p.any || v != 0;
        p.all = p.all && v != 0;
        mean += v / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        p.var += ((double)x[i * step] - mean) * ((double)x[i * step] - mean) / (double)n;
    return p;
}

static void read_all(pc_tensor *t, double *to, int64_t n)
{
    assert_ok(pc_read(pc_cast(t, PC_F64), to, (size_t)n * sizeof *to));
}

static void check_kinds(const int64_t *s, pc_dtype dtype)
{
    enum { KINDS = 10 };
    const int64_t results = s[0] * s[2];
    const double room = dtype == PC_F32 || dtype == PC_F64 ? 1e-5 : 0x1p-7;
    double *got = calloc((size_t)results * KINDS, sizeof *got);
    assert_non_null(got);
    PC_SCOPE {
        pc_tensor *x = pc_cast(pc_from_data(numbers, PC_SHAPE(s[0], s[1], s[2]), PC_F32, test_device()), dtype), *place;
        pc_tensor *found[KINDS] = {pc_min_dim(x, 1, false, &place),
                                   pc_prod_dim(x, 1, false),
                                   pc_norm_dims(x, 2, PC_SHAPE(1), false),
                                   pc_norm_dims(x, 1, PC_SHAPE(1), false),
                                   pc_norm_dims(x, INFINITY, PC_SHAPE(1), false),
                                   pc_var_dims(x, PC_SHAPE(1), 0, false),
                                   place,
                                   pc_any_dims(x, PC_SHAPE(1), false),
                                   pc_all_dims(x, PC_SHAPE(1), false),
                                   pc_norm_dims(x, 3, PC_SHAPE(1), false)};
        for (int k = 0; k < KINDS; k++)
            read_all(found[k], got + k * results, results);
    }
    for (int64_t r = 0; r < results; r++) {
        const plain p = plain_of(numbers + r / s[2] * s[1] * s[2] + r % s[2], s[1], s[2]);
        const double wanted[KINDS] = {p.least, p.product,       sqrt(p.squares), p.sizes, p.largest,
                                      p.var,   (double)p.place, p.any,           p.all,   cbrt(p.cubes)};
        for (int k = 0; k < KINDS; k++)
            if (!(fabs(got[k * results + r] - wanted[k]) <= room * fabs(wanted[k]) + (k == 5 ? 1e-12
                                                                                      : k == 1 && dtype == PC_F16
                                                                                          ? 0x1p-24
                                                                                          : 0)))
                fail_msg("[%d, %d, %d] %s, kind %d, result %d: %g, want %g", (int)s[0], (int)s[1], (int)s[2],
                         pc_dtype_name(dtype), k, (int)r, got[k * results + r], wanted[k]);
    }
    free(got);
}

static void kinds_of_any_size(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},     {300, 1, 1},   {257, 47, 1},  {3, 48, 1},
                                       {5, 1025, 1},  {1, 70000, 1}, {2, 3, 5},     {3, 33, 64},
                                       {1, 5000, 10}, {2, 130, 260}, {1, 30000, 2}, {7, 100, 31},
                                       {129, 31, 1},  {1, 2500, 28}, {1000, 9, 7},  {32769, 3, 1}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    for (int i = 0; i < MOST; i++) /* few are not 1, and fewer 0: products stay numbers of 16 bits */
        numbers[i] = i % 5003 == 777 ? 0 : i % 37 == 5 ? -1 : i % 997 == 3 ? 0.5f : i % 41 == 7 ? -1 : 1;
    for (int i = 0; i < PC__COUNT(sizes) * PC__COUNT(dtypes); i++) {
        const int64_t *s = sizes[i / PC__COUNT(dtypes)];
        if (dtypes[i % PC__COUNT(dtypes)] != PC_F16 || s[1] < 40000) /* whose sums float16 holds */
            check_kinds(s, dtypes[i % PC__COUNT(dtypes)]);
    }
    assert_no_leak();
}

/* Where a norm is 0 its gradient is, too, of whatever order; NaN stays NaN. */
static void norms_of_zeros(void **state)
{
    (void)state;
    static const double orders[] = {0.5, 1, 1.5, 2, 3, INFINITY, -1};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    static const float of[] = {0, 0, 0, 3, -4, 0, 2, NAN, 1};
    for (int k = 0; k < 3; k++)
        for (int o = 0; o < PC__COUNT(orders); o++)
            PC_SCOPE {
                pc_tensor *x = pc_detach(pc_cast(pc_from_data(of, PC_SHAPE(3, 3), PC_F32, test_device()), dtypes[k]));
                float norm[3], slope[9];
                assert_ok(pc_require_grad(x, true));
                pc_tensor *norms = pc_norm_dims(x, orders[o], PC_SHAPE(1), false);
                assert_ok(pc_backward(pc_sum(norms)));
                assert_ok(pc_read(pc_cast(norms, PC_F32), norm, sizeof norm));
                assert_ok(pc_read(pc_cast(pc_grad(x), PC_F32), slope, sizeof slope));
                assert_close((double)norm[0], 0, 0);
                assert_true(isnan(norm[2]));
                assert_close(pc_item(pc_sum(pc_ne(norms, pc_norm_dims(pc_detach(x), orders[o], PC_SHAPE(1), false)))),
                             1, 0);
                for (int i = 0; i < 3; i++)
                    assert_close((double)slope[i], 0, 0);
                if (orders[o] == 2 || orders[o] == 3)
                    assert_true(isnan(slope[7]));
                if (orders[o] == 2)
                    assert_close((double)slope[4], -0.8, dtypes[k] == PC_BF16 ? 4e-3 : 1e-6);
            }
    assert_no_leak();
}

/* Of an order below 0, where each is infinite or its power is too small for a number. */
static void norms_of_large_numbers(void **state)
{
    (void)state;
    static const struct {
        float of[2];
        double order, norm;
    } cases[] = {
        {{INFINITY, INFINITY}, -1, INFINITY}, {{1e30f, 1e31f}, -2, INFINITY}, {{-INFINITY, 3}, -1, 3}, {{2, 2}, -1, 1}};
    for (int i = 0; i < 2 * PC__COUNT(cases); i++)
        PC_SCOPE {
            pc_tensor *x = pc_from_data(cases[i / 2].of, PC_SHAPE(2), PC_F32, test_device());
            assert_ok(pc_require_grad(x, i % 2));
            const double norm = pc_item(pc_norm(x, cases[i / 2].order));
            if (isinf(cases[i / 2].norm))
                assert_true(isinf(norm) && norm > 0);
            else
                assert_close(norm, cases[i / 2].norm, 1e-6);
        }
    assert_no_leak();
}

enum { KINDS = 10 };

/* Kinds that have the same bits in any order, and the variance last, as float32. */
static void kinds_of(pc_tensor *x, int dim, pc_tensor *result[KINDS])
{
    const pc_shape dims = PC_SHAPE(dim);
    pc_tensor *at, *most = pc_max_dim(x, dim, false, &at);
    pc_tensor *const kinds[KINDS] = {pc_norm_dims(x, 1, dims, false),
                                     pc_norm_dims(x, INFINITY, dims, false),
                                     pc_prod_dim(pc_sign(x), dim, false),
                                     pc_prod_dim(x, dim, false),
                                     pc_cast(pc_any_dims(x, dims, false), PC_F32),
                                     pc_cast(pc_all_dims(x, dims, false), PC_F32),
                                     most,
                                     pc_cast(at, PC_F32),
                                     pc_cast(pc_argmin(x, dim, false), PC_F32),
                                     pc_var_dims(x, dims, 0, false)};
    memcpy(result, kinds, sizeof kinds);
}

/* Every second along a dimension of few or many results, as of a copy without gaps. */
static void kinds_of_gapped_views(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{5, 7, 60},  {70, 3, 33},  {2, 300, 17},
                                        {40, 1, 70}, {9, 2, 4000}, {6, 150, 260}};
    for (int i = 0; i < PC__COUNT(shapes) * 3; i++)
        for (int dim = 0; dim < 3; dim++)
            PC_SCOPE {
                pc_shape shape = pc_shape_of(3, shapes[i / 3]);
                shape.dim[i % 3] = 2 * shape.dim[i % 3] + 1;
                pc_seed((uint64_t)i);
                pc_tensor *all = pc_sub_scalar(pc_floor(pc_mul_scalar(pc_rand(shape, PC_F32, test_device()), 3)), 1);
                pc_tensor *x = pc_slice(all, i % 3, 1, shape.dim[i % 3], 2), *got[KINDS], *want[KINDS];
                kinds_of(x, dim, got);
                kinds_of(pc_contiguous(x), dim, want);
                for (int k = 0; k < KINDS; k++) {
                    assert_not_null_ok(got[k]);
                    assert_close(pc_item(pc_max(pc_abs(pc_sub(got[k], want[k])))), 0, k == KINDS - 1 ? 1e-6 : 0);
                }
            }
    assert_no_leak();
}

/* Rows of more than 1,024 pieces, whose extremes met in a block of their own size. */
static void extremes_of_very_long_rows(void **state)
{
    (void)state;
    const int64_t n = 2300000, places[] = {0, 700000, 1200001, n - 1};
    for (int i = 0; i < PC__COUNT(places); i++)
        for (int least = 0; least < 2; least++)
            PC_SCOPE {
                pc_tensor *x = pc_zeros(PC_SHAPE(n), PC_F64, test_device()), *at;
                assert_ok(pc_fill(pc_slice(x, 0, places[i], places[i] + 1, 1), least ? -3 : 3));
                pc_tensor *value = least ? pc_min_dim(x, 0, false, &at) : pc_max_dim(x, 0, false, &at);
                assert_close(pc_item(value), least ? -3 : 3, 0);
                assert_close(pc_item(at), (double)places[i], 0);
                assert_close(pc_item(least ? pc_argmin(x, 0, false) : pc_argmax(x, 0, false)), (double)places[i], 0);
            }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(norms_of_zeros),
    cmocka_unit_test(norms_of_large_numbers),
    cmocka_unit_test(bad_input),
    cmocka_unit_test(null_flows),
    cmocka_unit_test(variances_of_large_numbers),
    cmocka_unit_test(equal_numbers_do_not_vary),
    cmocka_unit_test(long_dots_are_exact_enough),
    cmocka_unit_test(dots_of_vectors_with_gaps),
    cmocka_unit_test(kinds_of_any_size),
    cmocka_unit_test(kinds_of_gapped_views),
    cmocka_unit_test(extremes_of_very_long_rows),
};

int main(void)
{
    return golden_main("ops.reduce_kinds", ops, tests);
}

/* Softmax and its logarithm. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

static void run_softmax(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_softmax(in[0], (int)g->args[0]);
}

static void run_log_softmax(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_log_softmax(in[0], (int)g->args[0]);
}

static const golden_op ops[] = {{"softmax", run_softmax}, {"log_softmax", run_log_softmax}};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        assert_fails(pc_softmax(a, 2), PC_ERR_RANGE, "softmax: dimension 2");
        assert_fails(pc_log_softmax(a, -3), PC_ERR_RANGE, "log_softmax: dimension -3");
        assert_fails(pc_softmax(NULL, 0), PC_ERR_ARGUMENT, "softmax");
        assert_fails(pc_log_softmax(pc_reshape(a, PC_SHAPE(5)), 0), PC_ERR_SHAPE, "reshape");
    }
    assert_no_leak();
}

/* The header of ops.h says nothing against integers: they become float32, as in exp. */
static void integers_become_floats(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 4, 1, PC_I32, test_device());
        assert_int_equal(pc_tensor_dtype(pc_softmax(a, 0)), PC_F32);
        assert_close(pc_item(pc_sum(pc_softmax(a, 0))), 1, 1e-6);
    }
}

enum { LONGEST_ROW = 40003, MOST_ROWS = 5 };

/* Row by row: y = softmax(x) or its logarithm, and the gradient for g. */
static void plain_rows(bool logarithm, int count, int n, const float *x, const float *g, double *y, double *dx)
{
    for (int r = 0; r < count; r++, x += n, g += n, y += n, dx += n) {
        double most = -INFINITY, sum = 0, together = 0;
        for (int i = 0; i < n; i++)
            most = fmax(most, (double)x[i]);
        for (int i = 0; i < n; i++)
            sum += exp((double)x[i] - most);
        for (int i = 0; i < n; i++) {
            y[i] = (double)x[i] - most - log(sum);
            y[i] = logarithm ? y[i] : exp(y[i]);
            together += logarithm ? (double)g[i] : (double)g[i] * y[i];
        }
        for (int i = 0; i < n; i++)
            dx[i] = logarithm ? (double)g[i] - exp(y[i]) * together : y[i] * ((double)g[i] - together);
    }
}

static void assert_near(pc_tensor *t, const double *wanted, int count, double tolerance)
{
    float *got = malloc((size_t)count * sizeof *got);
    assert_non_null(got);
    assert_ok(pc_read(pc_cast(t, PC_F32), got, (size_t)count * sizeof *got));
    for (int i = 0; i < count; i++)
        if (isinf(wanted[i]))
            assert_true((double)got[i] == wanted[i]);
        else
            assert_close((double)got[i], wanted[i], tolerance * fmax(1, fabs(wanted[i])));
    free(got);
}

static void check_rows(int count, int n, pc_dtype dtype, bool logarithm, int skip)
{
    static float x[MOST_ROWS * LONGEST_ROW + 1], g[MOST_ROWS * LONGEST_ROW];
    static double y[MOST_ROWS * LONGEST_ROW], dx[MOST_ROWS * LONGEST_ROW];
    const double tolerance = dtype == PC_BF16 ? 2e-2 : 1e-5;
    for (int i = 0; i < count * n + skip; i++)
        x[i] = (float)(i * 7919 % 33 - 16) / 4; /* exact in 16 bits */
    for (int i = 0; i < count * n; i++)
        g[i] = (float)(i * 31 % 17 - 8) / 64;
    if (n > 3)
        x[skip + 2] = -INFINITY;
    plain_rows(logarithm, count, n, x + skip, g, y, dx);
    PC_SCOPE {
        pc_tensor *all = pc_cast(pc_from_data(x, PC_SHAPE(count * n + skip), PC_F32, test_device()), dtype);
        pc_tensor *t = pc_detach(pc_reshape(pc_slice(all, 0, skip, count * n + skip, 1), PC_SHAPE(count, n)));
        assert_ok(pc_require_grad(t, true));
        pc_tensor *result = logarithm ? pc_log_softmax(t, 1) : pc_softmax(t, 1);
        assert_near(result, y, count * n, tolerance);
        pc_tensor *given = pc_cast(pc_from_data(g, PC_SHAPE(count, n), PC_F32, test_device()), dtype);
        assert_ok(pc_backward_with(result, given));
        assert_near(pc_grad(t), dx, count * n, tolerance);
    }
}

/* Rows that a device keeps in parts of a warp, in a warp, in a block, or reads again, cut and not; on 16 bytes and not. */
static void every_length(void **state)
{
    (void)state;
    static const int lengths[] = {1,    2,    7,    10,   31,   33,   48,   64,    100,
                                  127,  256,  257,  384,  512,  513,  1000, 1001,  1024,
                                  1500, 2047, 2048, 4096, 5003, 8192, 9001, 32768, LONGEST_ROW};
    for (int i = 0; i < PC__COUNT(lengths); i++)
        for (int way = 0; way < 8; way++)
            check_rows(lengths[i] > 1024 ? 2 : MOST_ROWS, lengths[i], way & 1 ? PC_BF16 : PC_F32, way & 2, way >> 2);
    check_rows(2, LONGEST_ROW, PC_F64, true, 0);
    check_rows(3, LONGEST_ROW, PC_F64, false, 1);
    assert_no_leak();
}

/* Of -inf alone, or with a NaN anywhere, nothing is known; the row, or column, between does not mind. */
static void rows_without_an_answer(void **state)
{
    (void)state;
    static const int lengths[] = {3, 40, 3000, 9001, LONGEST_ROW};
    static float x[3 * LONGEST_ROW], y[3 * LONGEST_ROW];
    for (int k = 0; k < PC__COUNT(lengths) * 4; k++)
        PC_SCOPE {
            const int n = lengths[k / 4], rows = n <= 3000 ? 17 : 3;
            for (int i = 0; i < rows * n; i++)
                x[i] = i / n % 3 == 0 ? -INFINITY : i / n % 3 == 2 && i % n == n - 2 ? NAN : (float)(i % 7);
            pc_tensor *t = pc_cast(pc_from_data(x, PC_SHAPE(rows, n), PC_F32, test_device()), k & 1 ? PC_F16 : PC_F32);
            for (int down = 0; down < 2; down++) {
                pc_tensor *in = down ? pc_contiguous(pc_transpose(t, 0, 1)) : t;
                pc_tensor *result = k & 2 ? pc_log_softmax(in, !down) : pc_softmax(in, !down);
                result = pc_cast(down ? pc_contiguous(pc_transpose(result, 0, 1)) : result, PC_F32);
                assert_ok(pc_read(result, y, (size_t)(rows * n) * sizeof *y));
                for (int i = 0; i < rows * n; i++)
                    assert_true(i / n % 3 == 1 ? isfinite(y[i]) : isnan(y[i]));
            }
        }
    assert_no_leak();
}

/* Along the middle: columns are rows of the same, turned; a few and many side by side. */
static void along_the_middle(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{2, 5, 1},    {3, 7, 2},     {1, 1, 40},   {2, 33, 16},  {3, 10, 33},
                                        {2, 130, 70}, {1, 2600, 16}, {2, 700, 33}, {1400, 9, 47}};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    enum { MOST = 1400 * 9 * 47 };
    static float x[MOST], got[2][MOST];
    for (int i = 0; i < MOST; i++)
        x[i] = i % 53 == 7 ? -INFINITY : (float)((int64_t)i * 7919 % 33 - 16) / 4;
    for (int k = 0; k < PC__COUNT(shapes) * PC__COUNT(dtypes) * 2; k++) {
        const int64_t *size = shapes[k / 2 / PC__COUNT(dtypes)], count = size[0] * size[1] * size[2];
        const pc_dtype dtype = dtypes[k / 2 % PC__COUNT(dtypes)];
        float *results[] = {got[0], got[1]};
        for (int gradient = 0; gradient < 2; gradient++)
            for (int turned = 0; turned < 2; turned++)
                PC_SCOPE {
                    pc_tensor *t =
                        pc_cast(pc_from_data(x, PC_SHAPE(size[0], size[1], size[2]), PC_F32, test_device()), dtype);
                    assert_ok(pc_require_grad(t = pc_detach(t), true));
                    pc_tensor *in = turned ? pc_contiguous(pc_transpose(t, 1, 2)) : t;
                    pc_tensor *y = k % 2 ? pc_log_softmax(in, turned ? 2 : 1) : pc_softmax(in, turned ? 2 : 1);
                    y = turned ? pc_transpose(y, 1, 2) : y;
                    if (gradient) {
                        pc_tensor *g =
                            pc_reshape(pc_arange(0, (double)count, 1, PC_F32, test_device()), pc_tensor_shape(t));
                        assert_ok(pc_backward_with(y, pc_cast(pc_mul_scalar(g, 16.0 / (double)count), dtype)));
                    }
                    pc_tensor *read = pc_contiguous(pc_cast(gradient ? pc_grad(t) : y, PC_F32));
                    assert_ok(pc_read(read, results[turned], (size_t)count * sizeof(float)));
                    if (!turned)
                        continue;
                    for (int64_t i = 0; i < count; i++)
                        if (got[0][i] != got[1][i] && !(isnan(got[0][i]) && isnan(got[1][i])))
                            assert_close((double)got[0][i], (double)got[1][i],
                                         (dtype == PC_BF16 ? 2e-2 : 2e-5) * fmax(1, fabs((double)got[1][i])));
                }
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(along_the_middle), cmocka_unit_test(bad_input),
                                          cmocka_unit_test(integers_become_floats), cmocka_unit_test(every_length),
                                          cmocka_unit_test(rows_without_an_answer)};

int main(void)
{
    return golden_main("ops.softmax", ops, tests);
}

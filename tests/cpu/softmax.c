/* Softmax, its logarithm and both gradients along each of three dimensions, against double arithmetic: sizes around those
 * at which rows are transposed, filled up and cut, every float dtype. */
#include "cpu/host.h"

#include "base/base.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/threads.h>
#include <stdlib.h>

static const int64_t shapes[][3] = {{1, 1, 1},     {3, 1, 7},    {130, 2, 1},   {257, 47, 1}, {5, 48, 1},
                                    {3, 77, 1},    {2, 255, 1},  {2, 1030, 1},  {2, 5, 3},    {3, 10, 129},
                                    {1, 1025, 40}, {4, 70, 257}, {1, 33000, 1}, {0, 3, 2},    {2, 3, 0}};

static double *x, *g, *want[2][2]; /* [logarithm or not][value, gradient] */

static void reference(const int64_t *s)
{
    for (int64_t o = 0; o < s[0]; o++)
        for (int64_t i = 0; i < s[2]; i++) {
            const int64_t at = o * s[1] * s[2] + i, step = s[2];
            double most = -INFINITY, sum = 0, dot = 0, all = 0;
            for (int64_t r = 0; r < s[1]; r++)
                most = fmax(most, x[at + r * step]);
            for (int64_t r = 0; r < s[1]; r++)
                sum += exp(x[at + r * step] - most);
            for (int64_t r = 0; r < s[1]; r++) {
                want[0][0][at + r * step] = exp(x[at + r * step] - most) / sum;
                want[1][0][at + r * step] = x[at + r * step] - most - log(sum);
                dot += g[at + r * step] * want[0][0][at + r * step];
                all += g[at + r * step];
            }
            for (int64_t r = 0; r < s[1]; r++) {
                const int64_t k = at + r * step;
                want[0][1][k] = want[0][0][k] * (g[k] - dot);
                want[1][1][k] = g[k] - want[0][0][k] * all;
            }
        }
}

static void compare(pc_tensor *t, const double *values, int64_t count, double units, double least)
{
    double *got = malloc((size_t)(count + 1) * sizeof *got);
    assert_non_null(got);
    assert_ok(pc_read(pc_cast(t, PC_F64), got, (size_t)count * sizeof *got));
    for (int64_t i = 0; i < count; i++)
        assert_close(got[i], values[i], units * (fabs(values[i]) + least));
    free(got);
}

static void check(const int64_t *s, pc_dtype dtype)
{
    const int64_t count = s[0] * s[1] * s[2];
    const double units = dtype == PC_F64 ? 1e-13 : dtype == PC_F32 ? 4e-6 : dtype == PC_F16 ? 4e-3 : 3e-2;
    PC_SCOPE {
        pc_tensor *leaf = pc_cast(pc_from_data(x, PC_SHAPE(s[0], s[1], s[2]), PC_F64, test_device()), dtype);
        pc_tensor *grad = pc_cast(pc_from_data(g, PC_SHAPE(s[0], s[1], s[2]), PC_F64, test_device()), dtype);
        for (int log = 0; log < 2; log++) {
            pc_tensor *own = pc_clone(leaf);
            assert_ok(pc_require_grad(own, true));
            pc_tensor *y = log ? pc_log_softmax(own, 1) : pc_softmax(own, 1);
            compare(y, want[log][0], count, units, 0.02);
            assert_ok(pc_backward_with(y, grad));
            compare(pc_grad(own), want[log][1], count, units, 1);
        }
    }
}

static void any_size(void **state)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    (void)state;
    for (int k = 0; k < PC__COUNT(shapes); k++) {
        const int64_t *s = shapes[k], count = s[0] * s[1] * s[2];
        double *room = malloc((size_t)(6 * count + 1) * sizeof *room);
        assert_non_null(room);
        x = room, g = room + count;
        for (int i = 0; i < 4; i++)
            want[i / 2][i % 2] = room + (2 + i) * count;
        for (int64_t i = 0; i < count; i++) {
            x[i] = (rand() % 256 - 128) / 32.0; /* 16 bits hold them */
            g[i] = (rand() % 256 - 128) / 128.0;
        }
        reference(s);
        for (int d = 0; d < PC__COUNT(dtypes); d++)
            check(s, dtypes[d]);
        free(room);
    }
    assert_no_leak();
}

/* NaN and infinities stay in their own row or column. */
static void nans_stay_where_they_are(void **state)
{
    static const int64_t sizes[] = {3, 60, 300};
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int dim = 0; dim < 2; dim++)
            PC_SCOPE {
                const int64_t n = sizes[k];
                float *values = calloc((size_t)(n * n), sizeof *values);
                assert_non_null(values);
                values[n + 1] = NAN;
                values[0] = -INFINITY;
                pc_tensor *t = pc_from_data(values, PC_SHAPE(n, n), PC_F32, test_device());
                assert_ok(pc_read(pc_softmax(t, dim), values, (size_t)(n * n) * sizeof *values));
                for (int64_t i = 0; i < n * n; i++)
                    assert_int_equal(isnan(values[i]) != 0, (dim ? i / n : i % n) == 1);
                assert_true(values[0] == 0);
                free(values);
            }
    assert_no_leak();
}

static void threads_change_nothing(void **state)
{
    (void)state;
    static float one[300 * 700], more[300 * 700];
    PC_SCOPE {
        pc_tensor *t = pc_randn(PC_SHAPE(300, 700), PC_F32, test_device());
        for (int dim = 0; dim < 2; dim++)
            for (int threads = 1; threads <= 3; threads++) {
                pc_threads_set(threads);
                assert_ok(pc_read(pc_softmax(t, dim), threads == 1 ? one : more, sizeof one));
                if (threads > 1)
                    assert_memory_equal(one, more, sizeof one);
            }
        pc_threads_set(0);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_size),
    cmocka_unit_test(nans_stay_where_they_are),
    cmocka_unit_test(threads_change_nothing),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.softmax", tests, NULL, NULL);
}

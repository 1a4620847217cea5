/* Sums and maxima against plain loops: [outer, reduced, inner] of sizes around those that rows, columns and chunks are cut
 * at, every dtype, NaN and equals in any place, dimensions in other memory orders and not side by side. */
#include "cpu/host.h"

#include "base/base.h"

#include <math.h>
#include <paracord/ops.h>
#include <paracord/threads.h>
#include <stdlib.h>

static const int64_t sizes[][3] = {{1, 1, 1}, {300, 1, 1}, {257, 47, 1},  {3, 48, 1},    {5, 1025, 1},  {1, 70001, 1},
                                   {2, 3, 5}, {3, 33, 64}, {1, 5000, 10}, {2, 257, 300}, {1, 20000, 2}, {7, 100, 31},
                                   {0, 3, 2}, {3, 4, 0},   {129, 31, 1},  {1, 31, 1},    {40, 2, 1},    {1, 16385, 3}};
static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16, PC_I32, PC_I64, PC_U8};

static double *numbers;

static double number(const int64_t *s, int64_t o, int64_t r, int64_t i)
{
    return numbers[(o * s[1] + r) * s[2] + i];
}

static void check(const int64_t *s, pc_dtype dtype, pc_tensor *x)
{
    const int64_t results = s[0] * s[2];
    pc_tensor *index, *most = pc_max_dim(x, 1, false, &index);
    pc_tensor *sum =
        dtype == PC_F16 ? pc_sum_dims(pc_cast(x, PC_F32), PC_SHAPE(1), false) : pc_sum_dims(x, PC_SHAPE(1), false);
    double *sums = calloc((size_t)results + 1, sizeof *sums), *maxima = calloc((size_t)results + 1, sizeof *maxima);
    int64_t *places = calloc((size_t)results + 1, sizeof *places);
    assert_true(sums && maxima && places);
    assert_ok(pc_read(pc_cast(sum, PC_F64), sums, (size_t)results * sizeof *sums));
    assert_ok(pc_read(pc_cast(most, PC_F64), maxima, (size_t)results * sizeof *maxima));
    assert_ok(pc_read(index, places, (size_t)results * sizeof *places));
    for (int64_t o = 0; o < s[0]; o++)
        for (int64_t i = 0; i < s[2]; i++) {
            double total = 0, best = number(s, o, 0, i);
            int64_t place = 0;
            for (int64_t r = 0; r < s[1]; r++) {
                const double a = number(s, o, r, i);
                total += a;
                if (a > best || (isnan(a) && !isnan(best)))
                    best = a, place = r;
            }
            const int64_t at = o * s[2] + i;
            if (isnan(best))
                assert_true(isnan(sums[at]) && isnan(maxima[at]));
            else {
                assert_close(sums[at], total, dtype == PC_BF16 ? fabs(total) / 200 : 0);
                assert_true(maxima[at] == best);
            }
            assert_int_equal(places[at], place);
        }
    free(sums);
    free(maxima);
    free(places);
}

/* Whole numbers, whose sums are exact; `nans` in a thousand are NaN. */
static void fill(const int64_t *s, pc_dtype dtype, int nans)
{
    const int64_t count = s[0] * s[1] * s[2];
    numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = rand() % 1000 < nans ? NAN : rand() % 21 - (dtype == PC_U8 ? 0 : 10);
}

static void any_size(void **state)
{
    (void)state;
    for (int k = 0; k < PC__COUNT(sizes); k++)
        for (int d = 0; d < PC__COUNT(dtypes); d++)
            for (int nans = 0; nans <= (d < 4 ? 1 : 0); nans++)
                PC_SCOPE {
                    const int64_t *s = sizes[k];
                    fill(s, dtypes[d], nans);
                    pc_tensor *x =
                        pc_cast(pc_from_data(numbers, PC_SHAPE(s[0], s[1], s[2]), PC_F64, test_device()), dtypes[d]);
                    check(s, dtypes[d], x);
                    /* the same numbers in another order of memory */
                    check(s, dtypes[d], pc_permute(pc_contiguous(pc_permute(x, PC_SHAPE(2, 0, 1))), PC_SHAPE(1, 2, 0)));
                    check(s, dtypes[d], pc_transpose(pc_contiguous(pc_transpose(x, 1, 2)), 1, 2));
                    free(numbers);
                }
    assert_no_leak();
}

static void dimensions_apart(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(5, 33, 7, 20), PC_F32, test_device()), *views[] = {x, pc_transpose(x, 1, 3)};
        const pc_shape lists[] = {PC_SHAPE(0, 2, 3), PC_SHAPE(0, 2), PC_SHAPE(1, 3), PC_SHAPE(0, 3), PC_SHAPE(1, 2)};
        for (int v = 0; v < 2; v++)
            for (int i = 0; i < PC__COUNT(lists); i++)
                for (int keep = 0; keep < 2; keep++) {
                    pc_tensor *once = pc_sum_dims(views[v], lists[i], keep), *steps = pc_cast(views[v], PC_F64);
                    for (int d = 0; d < lists[i].ndim; d++)
                        steps = pc_sum_dims(steps, PC_SHAPE(lists[i].dim[d]), true);
                    assert_true(pc_tensor_is_contiguous(once));
                    steps = pc_reshape(steps, pc_tensor_shape(once));
                    const double off = pc_item(
                        pc_max(pc_mul(pc_sub(pc_cast(once, PC_F64), steps), pc_sub(pc_cast(once, PC_F64), steps))));
                    assert_true(off < 1e-9);
                }
        /* rounded once: 16 bits could not hold what the first pass makes */
        pc_tensor *ones = pc_ones(PC_SHAPE(3, 2, 1000), PC_BF16, test_device());
        float half[2];
        assert_ok(pc_read(pc_cast(pc_sum_dims(pc_mul_scalar(ones, 1.0078125), PC_SHAPE(0, 2), false), PC_F32), half,
                          sizeof half));
        assert_true(half[0] == 3024 && half[1] == 3024);
    }
    assert_no_leak();
}

static void threads_change_nothing(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(3, 700, 501), PC_F32, test_device());
        for (int d = 0; d < 4; d++) {
            float one[3 * 700 * 1], more[3 * 700 * 1];
            for (int threads = 1; threads <= 3; threads++) {
                pc_threads_set(threads);
                pc_tensor *sum = d < 3 ? pc_sum_dims(x, PC_SHAPE(d), false) : pc_sum(x);
                pc_tensor *part =
                    d < 3 ? pc_reshape(pc_slice(pc_reshape(sum, PC_SHAPE(-1)), 0, 0, 1500, 1), PC_SHAPE(1500)) : sum;
                assert_ok(pc_read(part, threads == 1 ? one : more, d < 3 ? 1500 * sizeof *one : sizeof *one));
                if (threads > 1)
                    assert_memory_equal(one, more, d < 3 ? 1500 * sizeof *one : sizeof *one);
            }
        }
        pc_threads_set(0);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_size),
    cmocka_unit_test(dimensions_apart),
    cmocka_unit_test(threads_change_nothing),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.reduce", tests, NULL, NULL);
}

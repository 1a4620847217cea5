/* Batches of products and losses over many numbers: the same bits for any number of threads, and what plain loops give. */
#include "cpu/host.h"

#include "base/base.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/threads.h>
#include <stdlib.h>

/* `make` with one, two and three threads; the bytes of the first. */
static void *same_bits(pc_tensor *(*make)(void *context), void *context, size_t bytes)
{
    void *one = malloc(bytes), *more = malloc(bytes);
    assert_true(one && more);
    for (int threads = 1; threads <= 3; threads++)
        PC_SCOPE {
            pc_threads_set(threads);
            assert_ok(pc_read(make(context), threads == 1 ? one : more, bytes));
            if (threads > 1)
                assert_memory_equal(one, more, bytes);
        }
    pc_threads_set(0);
    free(more);
    return one;
}

static pc_tensor *product(void *context)
{
    pc_tensor **in = context;
    return pc_matmul(in[0], in[1]);
}

/* [batches, rows, k] by [batches or 1, k, columns], also of a transposed second factor. */
static void products(void **state)
{
    static const int64_t sizes[][4] = {{40, 50, 64, 70}, {3000, 3, 3, 3},   {2000, 8, 5, 33},
                                       {7, 1, 300, 257}, {5, 200, 100, 31}, {0, 3, 4, 5}};
    (void)state;
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (int way = 0; way < 3; way++)
            PC_SCOPE {
                const int64_t *s = sizes[i], n = s[0] * s[1] * s[3], seconds = way == 1 ? 1 : s[0];
                pc_tensor *b = pc_randn(PC_SHAPE(seconds, s[2], s[3]), PC_F32, test_device());
                if (way == 2)
                    b = pc_transpose(pc_contiguous(pc_transpose(b, 1, 2)), 1, 2);
                pc_tensor *in[] = {pc_randn(PC_SHAPE(s[0], s[1], s[2]), PC_F32, test_device()), b};
                float *got = same_bits(product, in, (size_t)n * sizeof *got),
                      *x = malloc((size_t)(s[0] * s[1] * s[2] + 1) * 4);
                float *y = malloc((size_t)(seconds * s[2] * s[3] + 1) * sizeof *y);
                assert_true(x && y);
                assert_ok(pc_read(in[0], x, (size_t)(s[0] * s[1] * s[2]) * sizeof *x));
                assert_ok(pc_read(b, y, (size_t)(seconds * s[2] * s[3]) * sizeof *y));
                for (int64_t k = 0; k < n; k += 1 + n / 5000) {
                    const int64_t batch = k / s[3] / s[1], row = k / s[3], column = k % s[3];
                    const float *from = y + (way == 1 ? 0 : batch * s[2] * s[3]) + column;
                    double sum = 0;
                    for (int64_t j = 0; j < s[2]; j++)
                        sum += (double)x[row * s[2] + j] * (double)from[j * s[3]];
                    assert_close(got[k], sum, 1e-4);
                }
                free(got), free(x), free(y);
            }
    assert_no_leak();
}

static pc_tensor *bce(void *context)
{
    pc_tensor **in = context;
    return pc_bce_with_logits(in[0], in[1]);
}

static pc_tensor *mse(void *context)
{
    pc_tensor **in = context;
    return pc_mse(in[0], in[1]);
}

static pc_tensor *bce_gradient(void *context)
{
    pc_tensor **in = context, *leaf = pc_clone(in[0]);
    assert_ok(pc_require_grad(leaf, true));
    assert_ok(pc_backward(pc_bce_with_logits(leaf, in[1])));
    return pc_grad(leaf);
}

/* Of 1 to 400,000 numbers, small and large, in double arithmetic. */
static void losses(void **state)
{
    static const int64_t sizes[] = {1, 17, 4095, 4097, 400003};
    (void)state;
    for (int i = 0; i < PC__COUNT(sizes); i++)
        PC_SCOPE {
            const int64_t n = sizes[i];
            pc_tensor *in[] = {pc_mul_scalar(pc_randn(PC_SHAPE(n), PC_F32, test_device()), 20),
                               pc_rand(PC_SHAPE(n), PC_F32, test_device())};
            float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
            assert_true(x && y);
            assert_ok(pc_read(in[0], x, (size_t)n * sizeof *x));
            assert_ok(pc_read(in[1], y, (size_t)n * sizeof *y));
            float *entropy = same_bits(bce, in, sizeof *entropy), *square = same_bits(mse, in, sizeof *square);
            float *gradient = same_bits(bce_gradient, in, (size_t)n * sizeof *gradient);
            double sums[2] = {0};
            for (int64_t k = 0; k < n; k++) {
                const double a = (double)x[k], b = (double)y[k], part = (1 / (1 + exp(-a)) - b) / (double)n;
                sums[0] += fmax(a, 0) - a * b + log1p(exp(-fabs(a)));
                sums[1] += (a - b) * (a - b);
                assert_close(gradient[k], part, 1e-6 * (fabs(part) + 0.1 / (double)n));
            }
            assert_close(*entropy, sums[0] / (double)n, 1e-6 * sums[0] / (double)n);
            assert_close(*square, sums[1] / (double)n, 1e-6 * sums[1] / (double)n);
            free(entropy), free(square), free(gradient), free(x), free(y);
        }
    assert_no_leak();
}

/* 16-bit numbers give what float32 of the same values gives, rounded once. */
static void losses_of_16_bits(void **state)
{
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16};
    (void)state;
    for (int d = 0; d < 2; d++)
        PC_SCOPE {
            enum { N = 9001 };
            static float got[N], want[N];
            pc_tensor *half[] = {pc_cast(pc_randn(PC_SHAPE(N), PC_F32, test_device()), dtypes[d]),
                                 pc_cast(pc_rand(PC_SHAPE(N), PC_F32, test_device()), dtypes[d])};
            pc_tensor *whole[] = {pc_cast(half[0], PC_F32), pc_cast(half[1], PC_F32)};
            assert_true(pc_item(bce(half)) == pc_item(pc_cast(bce(whole), dtypes[d])));
            assert_true(pc_item(mse(half)) == pc_item(pc_cast(mse(whole), dtypes[d])));
            assert_ok(pc_read(pc_cast(bce_gradient(half), PC_F32), got, sizeof got));
            assert_ok(pc_read(pc_cast(pc_cast(bce_gradient(whole), dtypes[d]), PC_F32), want, sizeof want));
            assert_memory_equal(got, want, sizeof got);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products),
    cmocka_unit_test(losses),
    cmocka_unit_test(losses_of_16_bits),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.batches", tests, NULL, NULL);
}

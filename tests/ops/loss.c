/* Losses. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <paracord/amp.h>
#include <paracord/random.h>

static void run_bce_with_logits(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_bce_with_logits(in[0], in[1]);
}

static void run_mse(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_mse(in[0], in[1]);
}

static void run_cross_entropy(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_cross_entropy(in[0], in[1]);
}

static const golden_op ops[] = {
    {"bce_with_logits", run_bce_with_logits},
    {"mse", run_mse},
    {"cross_entropy", run_cross_entropy},
};

static void bad_pairs(void **state)
{
    (void)state;
    pc_tensor *(*const losses[])(pc_tensor *, pc_tensor *) = {pc_bce_with_logits, pc_mse};
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            pc_tensor *x = pc_zeros(PC_SHAPE(4, 1), PC_F32, test_device());
            pc_tensor *y = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
            assert_fails(losses[i](x, y), PC_ERR_SHAPE, "the input has shape [4, 1] and the target [4]");
            assert_fails(losses[i](pc_cast(y, PC_I64), pc_cast(y, PC_I64)), PC_ERR_DTYPE, "int64");
            assert_fails(losses[i](NULL, y), PC_ERR_ARGUMENT, ops[i].name);
            assert_fails(losses[i](x, NULL), PC_ERR_ARGUMENT, ops[i].name);
            assert_fails(losses[i](x, pc_reshape(y, PC_SHAPE(3))), PC_ERR_SHAPE, "reshape");
        }
    assert_no_leak();
}

static void bad_labels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device());
        pc_tensor *labels = pc_zeros(PC_SHAPE(3), PC_I64, test_device());
        assert_fails_on_device(pc_cross_entropy(x, pc_arange(0, 3, 1, PC_I64, test_device())), PC_ERR_RANGE,
                               "the label of row 2 is 2; it must be 0 to 1");
        assert_fails_on_device(pc_cross_entropy(x, pc_arange(-1, 2, 1, PC_I64, test_device())), PC_ERR_RANGE,
                               "row 0 is -1");
        assert_fails_on_device(pc_cross_entropy(pc_zeros(PC_SHAPE(2, 40000), PC_F32, test_device()),
                                                pc_arange(39999, 40001, 1, PC_I64, test_device())),
                               PC_ERR_RANGE, "the label of row 1 is 40000; it must be 0 to 39999");
        assert_fails(pc_cross_entropy(x, pc_slice(labels, 0, 0, 2, 1)), PC_ERR_SHAPE, "[3, 2] and the labels [2]");
        assert_fails(pc_cross_entropy(labels, labels), PC_ERR_SHAPE, "[n, classes]");
        assert_fails(pc_cross_entropy(x, pc_cast(labels, PC_F32)), PC_ERR_DTYPE, "labels are float32");
        assert_fails(pc_cross_entropy(pc_cast(x, PC_I32), labels), PC_ERR_DTYPE, "int32");
        assert_fails(pc_cross_entropy(NULL, labels), PC_ERR_ARGUMENT, "cross_entropy");
        assert_fails(pc_cross_entropy(x, NULL), PC_ERR_ARGUMENT, "cross_entropy");
    }
    assert_no_leak();
}

/* No rows have no mean. */
static void empty_batches_give_nan(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(0, 2), PC_F32, test_device());
        assert_true(isnan(pc_item(pc_bce_with_logits(x, x))));
        assert_true(isnan(pc_item(pc_mse(x, x))));
        assert_true(isnan(pc_item(pc_cross_entropy(x, pc_zeros(PC_SHAPE(0), PC_I64, test_device())))));
        x = pc_zeros(PC_SHAPE(0, 600), PC_F32, test_device());
        assert_true(isnan(pc_item(pc_cross_entropy(x, pc_zeros(PC_SHAPE(0), PC_I64, test_device())))));
    }
}

enum { ROWS = 1500, CLASSES = 3 }; /* more than a block's work */

typedef struct results {
    pc_tensor *loss, *dx, *dy;
} results;

/* `twice` the gradient of the loss arrives, or one; `by_hand`: 16-bit logits are cast in front of the loss. */
static results loss_of(pc_tensor *values, pc_tensor *target, pc_tensor *labels, bool twice, bool by_hand)
{
    results r;
    pc_tensor *x = pc_clone(values), *y = pc_clone(target);
    assert_ok(pc_require_grad(x, true));
    assert_ok(pc_require_grad(y, true));
    pc_dtype half = pc_tensor_dtype(x);
    PC_AUTOCAST(by_hand ? PC_F32 : half) {
        pc_tensor *logits = pc_neg(x);
        logits = by_hand ? pc_cast(logits, PC_F32) : logits;
        r.loss = labels    ? pc_cross_entropy(logits, labels)
                 : by_hand ? pc_bce_with_logits(logits, pc_cast(y, PC_F32))
                           : pc_bce_with_logits(logits, y);
    }
    assert_not_null_ok(r.loss);
    assert_int_equal(pc_tensor_dtype(r.loss), PC_F32);
    assert_ok(pc_backward(twice ? pc_mul_scalar(r.loss, 1.7) : r.loss));
    assert_fails(pc_backward(r.loss) == PC_OK, PC_ERR_STATE, "already differentiated");
    r.dx = pc_grad(x);
    r.dy = pc_grad(y);
    assert_int_equal(pc_tensor_dtype(r.dx), half);
    return r;
}

static void assert_same_bits(pc_tensor *a, pc_tensor *b)
{
    static float of_a[ROWS * CLASSES], of_b[ROWS * CLASSES];
    if (!a && !b)
        return;
    size_t bytes = (size_t)pc_tensor_count(a) * sizeof *of_a;
    assert_int_equal(pc_tensor_dtype(a), pc_tensor_dtype(b));
    assert_ok(pc_read(pc_cast(a, PC_F32), of_a, bytes));
    assert_ok(pc_read(pc_cast(b, PC_F32), of_b, bytes));
    assert_memory_equal(of_a, of_b, bytes);
}

/* Under autocast a loss takes 16-bit logits as they are: what comes is that of logits cast to float32. */
static void half_logits(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++)
        PC_SCOPE {
            const pc_dtype half = i % 2 ? PC_F16 : PC_BF16, other = i / 2 % 2 ? PC_F32 : half;
            const bool twice = i / 4 % 2, of_classes = i / 8 % 2;
            pc_shape shape = i / 16 ? PC_SHAPE(ROWS, CLASSES) : PC_SHAPE(2, CLASSES);
            pc_seed(3);
            pc_tensor *x = pc_cast(pc_mul_scalar(pc_randn(shape, PC_F32, test_device()), 4), half);
            pc_tensor *y = pc_cast(pc_rand(shape, PC_F32, test_device()), other);
            pc_tensor *labels = of_classes ? pc_full(PC_SHAPE(shape.dim[0]), 1, PC_I64, test_device()) : NULL;
            results got = loss_of(x, y, labels, twice, false), want = loss_of(x, y, labels, twice, true);
            assert_same_bits(got.loss, want.loss);
            assert_same_bits(got.dx, want.dx);
            assert_same_bits(got.dy, want.dy);
            PC_AUTOCAST(half)
                assert_same_bits(of_classes ? pc_cross_entropy(pc_neg(x), labels) : pc_bce_with_logits(pc_neg(x), y),
                                 want.loss);
        }
    assert_no_leak();
}

enum { SAMPLES = 7, KINDS = 4 };

/* The weighted mean and its gradient at the logits, in double, from softmax by its formula. */
static double weighted(const double *x, int width, const int64_t *labels, const double *weights, double *dx)
{
    double loss = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double logits[KINDS] = {0}, most = 0, sum = 0;
        int kinds = width == 1 ? 2 : width;
        for (int k = 0; k < kinds; k++) { /* one logit is the second of two, the first is 0 */
            logits[k] = width == 1 ? (k ? x[i] : 0) : x[i * width + k];
            most = k && most > logits[k] ? most : logits[k];
        }
        for (int k = 0; k < kinds; k++)
            sum += exp(logits[k] - most);
        double w = weights[labels[i]];
        loss += w * (log(sum) + most - logits[labels[i]]) / SAMPLES;
        for (int k = width == 1; k < kinds; k++)
            dx[width == 1 ? i : i * width + k] = w * (exp(logits[k] - most) / sum - (k == labels[i] ? 1 : 0)) / SAMPLES;
    }
    return loss;
}

static void assert_weighted(int width, pc_dtype dtype, const double *weights, double tolerance)
{
    double x[SAMPLES * KINDS], want[SAMPLES * KINDS];
    float got[SAMPLES * KINDS], y[SAMPLES];
    int64_t labels[SAMPLES];
    for (int i = 0; i < SAMPLES * width; i++)
        x[i] = (i * 37 % 11 - 5) * 0.75; /* 0 is among them */
    x[0] = 40, x[width] = -40;
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)(labels[i] = i * 5 % (width == 1 ? 2 : width));
    double loss = weighted(x, width, labels, weights, want);
    PC_SCOPE {
        pc_device device = test_device();
        pc_tensor *in = pc_cast(pc_from_data(x, PC_SHAPE(SAMPLES, width), PC_F64, device), dtype);
        pc_tensor *w = pc_from_data(weights, PC_SHAPE(width == 1 ? 2 : width), PC_F64, device);
        assert_ok(pc_require_grad(in, true));
        w = pc_cast(w, PC_F32);
        pc_tensor *l = width == 1
                           ? pc_bce_with_logits_weighted(in, pc_from_data(y, PC_SHAPE(SAMPLES, 1), PC_F32, device), w)
                           : pc_cross_entropy_weighted(in, pc_from_data(labels, PC_SHAPE(SAMPLES), PC_I64, device), w);
        assert_not_null_ok(l);
        assert_true(fabs(pc_item(l) - loss) < tolerance * loss);
        assert_ok(pc_backward(l));
        assert_ok(pc_read(pc_cast(pc_grad(in), PC_F32), got, (size_t)(SAMPLES * width) * sizeof *got));
        for (int i = 0; i < SAMPLES * width; i++)
            assert_true(fabs((double)got[i] - want[i]) < tolerance);
    }
}

static void weights_of_classes(void **state)
{
    (void)state;
    static const double weights[][KINDS] = {{1, 1, 1, 1}, {0.5, 3, 0, 2}, {0.25, 12.5, 1, 1}};
    for (int i = 0; i < 3; i++)
        for (int width = 1; width <= KINDS; width++) {
            assert_weighted(width, PC_F32, weights[i], 2e-6);
            assert_weighted(width, PC_F64, weights[i], 1e-6); /* the gradient is read in float32 */
        }
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device()),
                  *w = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *labels = pc_zeros(PC_SHAPE(3), PC_I64, test_device());
        assert_fails(pc_cross_entropy_weighted(x, labels, NULL), PC_ERR_ARGUMENT, "cross_entropy_weighted");
        assert_fails(pc_cross_entropy_weighted(x, labels, x), PC_ERR_SHAPE, "one for each of 2 classes");
        assert_fails(pc_cross_entropy_weighted(x, w, w), PC_ERR_SHAPE, "the labels [2]");
        assert_fails(pc_bce_with_logits_weighted(x, w, w), PC_ERR_SHAPE, "the target [2]");
        assert_fails(pc_bce_with_logits_weighted(x, x, labels), PC_ERR_SHAPE, "int64 of shape [3]");
        assert_fails_on_device(pc_cross_entropy_weighted(x, pc_arange(0, 3, 1, PC_I64, test_device()), w), PC_ERR_RANGE,
                               "2");
        pc_tensor *none = pc_zeros(PC_SHAPE(0, 2), PC_F32, test_device());
        assert_true(isnan(pc_item(pc_bce_with_logits_weighted(none, none, w))));
    }
    assert_no_leak();
}

/* Rows of -100 have no loss, no gradient and no part in the number that the sum is divided by. */
static void weighted_rows_that_are_ignored(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 0, NAN, 9, -INFINITY, -1, 0.5f, 3, 2, 2, 1}, weights[] = {INFINITY, 3, 2};
    static const int64_t all[] = {1, -100, 2, -100}, counted[] = {1, 2}, none[] = {-100, -100};
    PC_SCOPE {
        pc_tensor *in = pc_from_data(x, PC_SHAPE(4, 3), PC_F32, test_device());
        pc_tensor *w = pc_from_data(weights, PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *rows = pc_contiguous(pc_slice(in, 0, 0, 4, 2));
        assert_ok(pc_require_grad(in, true));
        assert_ok(pc_require_grad(rows, true));
        pc_tensor *got = pc_cross_entropy_weighted(in, pc_from_data(all, PC_SHAPE(4), PC_I64, test_device()), w);
        pc_tensor *want = pc_cross_entropy_weighted(rows, pc_from_data(counted, PC_SHAPE(2), PC_I64, test_device()), w);
        assert_not_null_ok(got);
        assert_close(pc_item(got), pc_item(want), 1e-6);
        assert_ok(pc_backward(got));
        assert_ok(pc_backward(want));
        float dx[12], of_rows[6];
        assert_ok(pc_read(pc_grad(in), dx, sizeof dx));
        assert_ok(pc_read(pc_grad(rows), of_rows, sizeof of_rows));
        for (int i = 0; i < 12; i++)
            assert_close(dx[i], i / 3 % 2 ? 0 : of_rows[i / 6 * 3 + i % 3], 1e-6);
        assert_true(
            isnan(pc_item(pc_cross_entropy_weighted(rows, pc_from_data(none, PC_SHAPE(2), PC_I64, test_device()), w))));
    }
    assert_no_leak();
}

/* A mean that 16 bits hold, of a sum that they do not. */
static void weighted_means_of_16_bits(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    for (int bf16 = 0; bf16 < 2; bf16++)
        PC_SCOPE {
            const pc_dtype dtype = bf16 ? PC_BF16 : PC_F16;
            pc_tensor *x = pc_full(PC_SHAPE(MANY, 1), 96, dtype, test_device());
            pc_tensor *w = pc_ones(PC_SHAPE(2), PC_F32, test_device());
            pc_tensor *labels = pc_zeros(PC_SHAPE(MANY), PC_I64, test_device());
            pc_tensor *loss = pc_bce_with_logits_weighted(x, pc_zeros(PC_SHAPE(MANY, 1), dtype, test_device()), w);
            assert_int_equal(pc_tensor_dtype(loss), dtype);
            assert_close(pc_item(loss), 96, 0);
            pc_tensor *two[] = {pc_zeros(PC_SHAPE(MANY, 1), dtype, test_device()), x};
            loss = pc_cross_entropy_weighted(pc_cat(two, 2, 1), labels, w);
            assert_int_equal(pc_tensor_dtype(loss), dtype);
            assert_close(pc_item(loss), 96, 0);
        }
    assert_no_leak();
}

enum { MOST_CLASSES = 40003, MOST_EXAMPLES = 9, MOST_ROWS = 5000 };

static void check_classes(int count, int n, pc_dtype dtype, int skip)
{
    static float x[MOST_EXAMPLES * MOST_CLASSES + 1], got[MOST_EXAMPLES * MOST_CLASSES];
    static int64_t labels[MOST_ROWS];
    static double sum[MOST_ROWS];
    double loss = 0;
    const double tolerance = dtype == PC_BF16 ? 1e-2 : 1e-5;
    for (int i = 0; i < count * n + skip; i++)
        x[i] = n > 1 && i % 11 == 3 ? -INFINITY : (float)((int64_t)i * 7919 % 33 - 16) / 4 + 20; /* exact in 16 bits */
    const float *row = x + skip;
    for (int r = 0; r < count; r++, row += n) {
        for (labels[r] = (r * 37 + n / 2) % n; n > 1 && isinf(row[labels[r]]);)
            labels[r] = (labels[r] + 1) % n;
        sum[r] = 0;
        for (int i = 0; i < n; i++)
            sum[r] += exp((double)row[i] - 20);
        loss += log(sum[r]) - ((double)row[labels[r]] - 20);
    }
    PC_SCOPE {
        pc_tensor *all = pc_cast(pc_from_data(x, PC_SHAPE(count * n + skip), PC_F32, test_device()), dtype);
        pc_tensor *t = pc_detach(pc_reshape(pc_slice(all, 0, skip, count * n + skip, 1), PC_SHAPE(count, n)));
        assert_ok(pc_require_grad(t, true));
        pc_tensor *result = pc_cross_entropy(t, pc_from_data(labels, PC_SHAPE(count), PC_I64, test_device()));
        assert_close(pc_item(result), loss / count, tolerance * fmax(1, loss / count));
        assert_ok(pc_backward(pc_mul_scalar(result, count)));
        assert_ok(pc_read(pc_cast(pc_grad(t), PC_F32), got, (size_t)(count * n) * sizeof *got));
        for (int i = 0; i < count * n; i++) {
            const double p = exp((double)x[skip + i] - 20) / sum[i / n];
            assert_close((double)got[i], p - (labels[i / n] == i % n), tolerance);
        }
    }
}

/* Few classes and many, rows on 16 bytes and not, cut and not. */
static void any_number_of_classes(void **state)
{
    (void)state;
    static const int classes[] = {1, 2, 3, 10, 32, 127, 128, 130, 1000, 2048, 2053, 5003, MOST_CLASSES};
    for (int i = 0; i < PC__COUNT(classes); i++)
        for (int way = 0; way < 4; way++)
            check_classes(classes[i] > 1000 ? 3 : MOST_EXAMPLES, classes[i], way & 1 ? PC_BF16 : PC_F32, way >> 1);
    check_classes(MOST_EXAMPLES, MOST_CLASSES, PC_F64, 1);
    assert_no_leak();
}

/* Rows for a part of a block, for one of any size, and for several. */
static void any_number_of_rows(void **state)
{
    (void)state;
    static const int sizes[][2] = {{2, 399},  {33, 200}, {41, 32},   {80, 28},    {64, 80},      {19, 57},
                                   {300, 57}, {300, 10}, {600, 599}, {2100, 130}, {MOST_ROWS, 7}};
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (int way = 0; way < 2; way++)
            check_classes(sizes[i][0], sizes[i][1], way ? PC_BF16 : PC_F32, way);
    check_classes(19, 57, PC_F64, 1);
    check_classes(300, 10, PC_F64, 0);
    assert_no_leak();
}

/* The loss of k from 0 to n - 1 whose targets are 1, but .5 for 0: log(1 + exp(-k)) each. */
static double softplus(int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n && k < 60; k++)
        sum += log1p(exp(-(double)k));
    return sum;
}

static void pairs_of_any_count(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 255, 1025, 4097, 8193, 100003};
    for (int i = 0; i < PC__COUNT(counts); i++)
        PC_SCOPE {
            const double n = (double)counts[i];
            pc_tensor *x = pc_arange(0, n, 1, PC_F64, test_device()),
                      *y = pc_zeros(PC_SHAPE(counts[i]), PC_F64, test_device());
            assert_close(pc_item(pc_mse(x, y)), (n - 1) * (2 * n - 1) / 6, 1e-12 * n * n);
            assert_close(pc_item(pc_bce_with_logits(x, pc_sigmoid(pc_mul_scalar(x, 1000)))), softplus(counts[i]) / n,
                         1e-12);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_number_of_classes),
    cmocka_unit_test(any_number_of_rows),
    cmocka_unit_test(pairs_of_any_count),
    cmocka_unit_test(weights_of_classes),
    cmocka_unit_test(weighted_rows_that_are_ignored),
    cmocka_unit_test(weighted_means_of_16_bits),
    cmocka_unit_test(bad_pairs),
    cmocka_unit_test(bad_labels),
    cmocka_unit_test(empty_batches_give_nan),
    cmocka_unit_test(half_logits),
};

int main(void)
{
    return golden_main("ops.loss", ops, tests);
}

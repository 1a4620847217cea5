/* Losses with options. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <paracord/loss.h>
#include <paracord/amp.h>
#include <paracord/random.h>

static pc_reduction reduction_of(const golden *g)
{
    return (pc_reduction)g->args[0];
}

static void run_mse_loss(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_mse_loss(in[0], in[1], reduction_of(g));
}

static void run_l1_loss(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_l1_loss(in[0], in[1], reduction_of(g));
}

static void run_huber_loss(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_huber_loss(in[0], in[1], g->args[1], reduction_of(g));
}

static void run_smooth_l1_loss(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_smooth_l1_loss(in[0], in[1], g->args[1], reduction_of(g));
}

static void run_kl_div(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_kl_div(in[0], in[1], g->args[1] > 0, reduction_of(g));
}

static pc_fn_bce_options bce_options(const golden *g, pc_tensor **in)
{
    const bool has_weight = g->args[1] > 0, has_pos = g->args[2] > 0;
    return (pc_fn_bce_options){.reduction = reduction_of(g),
                               .weight = has_weight ? pc_detach(in[2]) : NULL,
                               .pos_weight = has_pos ? pc_detach(in[g->n_in - 1]) : NULL};
}

static void run_bce(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_bce(in[0], in[1], bce_options(g, in));
}

static void run_bce_with_logits(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_bce_with_logits(in[0], in[1], bce_options(g, in));
}

static pc_fn_cross_entropy_options class_options(const golden *g, pc_tensor **in)
{
    return (pc_fn_cross_entropy_options){.reduction = reduction_of(g),
                                         .ignore = g->args[1] > 0,
                                         .ignore_index = (int64_t)g->args[2],
                                         .label_smoothing = g->args[3],
                                         .weight = g->n_in > 2 ? pc_detach(in[2]) : NULL};
}

static void run_nll_loss(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_nll_loss(in[0], in[1], class_options(g, in));
}

static void run_cross_entropy(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_cross_entropy(in[0], in[1], class_options(g, in));
}

static const golden_op ops[] = {
    {"mse_loss", run_mse_loss},
    {"l1_loss", run_l1_loss},
    {"huber_loss", run_huber_loss},
    {"smooth_l1_loss", run_smooth_l1_loss},
    {"kl_div", run_kl_div},
    {"fn_bce", run_bce},
    {"fn_bce_with_logits", run_bce_with_logits},
    {"fn_nll_loss", run_nll_loss},
    {"fn_cross_entropy", run_cross_entropy},
};

#define BCE(...) ((pc_fn_bce_options){__VA_ARGS__})
#define CLASSES(...) ((pc_fn_cross_entropy_options){__VA_ARGS__})

static void bad_pairs(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(4, 1), PC_F32, test_device());
        pc_tensor *y = pc_zeros(PC_SHAPE(4), PC_F32, test_device()), *n = pc_cast(y, PC_I64);
        assert_fails(pc_l1_loss(x, y, PC_REDUCTION_SUM), PC_ERR_SHAPE, "l1_loss: the input has shape [4, 1]");
        assert_fails(pc_mse_loss(x, y, PC_REDUCTION_SUM), PC_ERR_SHAPE, "mse_loss");
        assert_fails(pc_l1_loss(n, n, PC_REDUCTION_SUM), PC_ERR_DTYPE, "one must be floating");
        assert_fails(pc_l1_loss(NULL, y, PC_REDUCTION_SUM), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_l1_loss(y, y, PC_REDUCTION_BATCH_MEAN), PC_ERR_ARGUMENT, "no reduction 3");
        assert_fails(pc_kl_div(y, y, false, (pc_reduction)4), PC_ERR_ARGUMENT, "no reduction 4");
        assert_fails(pc_huber_loss(y, y, 0, PC_REDUCTION_SUM), PC_ERR_ARGUMENT, "delta is 0");
        assert_fails(pc_smooth_l1_loss(y, y, -1, PC_REDUCTION_SUM), PC_ERR_ARGUMENT, "beta is -1");
        assert_fails(pc_fn_bce(y, y, BCE(.pos_weight = y)), PC_ERR_ARGUMENT, "no pos_weight");
        assert_fails(pc_fn_bce(y, y, BCE(.weight = n)), PC_ERR_DTYPE, "the weight is int64");
        assert_fails(pc_fn_bce(y, y, BCE(.weight = x)), PC_ERR_SHAPE, "[4, 1]; it must broadcast");
        assert_fails(pc_fn_bce_with_logits(y, y, BCE(.pos_weight = x)), PC_ERR_SHAPE,
                     "the pos_weight has shape [4, 1]");
        assert_fails(pc_fn_bce_with_logits(x, y, BCE(0)), PC_ERR_SHAPE, "the target [4]");
    }
    assert_no_leak();
}

static void bad_classes(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_device device = test_device();
        pc_tensor *x = pc_zeros(PC_SHAPE(3, 2), PC_F32, device), *labels = pc_zeros(PC_SHAPE(3), PC_I64, device);
        pc_tensor *high = pc_arange(0, 3, 1, PC_I64, device);
        assert_fails_on_device(pc_fn_cross_entropy(x, high, CLASSES(0)), PC_ERR_RANGE, "the label of row 2 is 2");
        assert_fails_on_device(pc_fn_cross_entropy(x, high, CLASSES(.reduction = PC_REDUCTION_NONE)), PC_ERR_RANGE,
                               "2");
        assert_fails_on_device(pc_fn_nll_loss(x, high, CLASSES(.weight = pc_ones(PC_SHAPE(2), PC_F32, device))),
                               PC_ERR_RANGE, "2");
        assert_fails_on_device(pc_fn_cross_entropy(x, pc_full(PC_SHAPE(3), -101, PC_I64, device), CLASSES(0)),
                               PC_ERR_RANGE, "is -101");
        assert_not_null_ok(pc_fn_cross_entropy(x, high, CLASSES(.ignore = true, .ignore_index = 2)));
        assert_fails(pc_fn_cross_entropy(x, pc_reshape(x, PC_SHAPE(2, 3)), CLASSES(0)), PC_ERR_SHAPE, "labels [2, 3]");
        assert_fails(pc_fn_cross_entropy(x, pc_cast(labels, PC_F32), CLASSES(0)), PC_ERR_DTYPE, "are float32");
        assert_fails(pc_fn_cross_entropy(labels, labels, CLASSES(0)), PC_ERR_DTYPE, "int64");
        assert_fails(pc_fn_cross_entropy(pc_scalar(1, PC_F32, device), labels, CLASSES(0)), PC_ERR_SHAPE, "[]");
        assert_fails(pc_fn_cross_entropy(x, pc_cast(x, PC_I64), CLASSES(0)), PC_ERR_DTYPE, "probabilities");
        assert_fails(pc_fn_cross_entropy(x, x, CLASSES(.ignore = true)), PC_ERR_ARGUMENT, "none is ignored");
        assert_fails(pc_fn_cross_entropy(x, labels, CLASSES(.label_smoothing = 2)), PC_ERR_ARGUMENT, "smoothing is 2");
        assert_fails(pc_fn_cross_entropy(x, labels, CLASSES(.label_smoothing = NAN)), PC_ERR_ARGUMENT, "nan");
        assert_fails(pc_fn_nll_loss(x, labels, CLASSES(.label_smoothing = 0.1)), PC_ERR_ARGUMENT, "cross_entropy does");
        assert_fails(pc_fn_nll_loss(x, labels, CLASSES(.weight = labels)), PC_ERR_SHAPE, "each of 2 classes");
        assert_fails(pc_fn_nll_loss(x, labels, CLASSES(.reduction = PC_REDUCTION_BATCH_MEAN)), PC_ERR_ARGUMENT, "3");
        assert_fails(pc_fn_nll_loss(NULL, labels, CLASSES(0)), PC_ERR_ARGUMENT, "NULL");
    }
    assert_no_leak();
}

static double read_at(pc_tensor *t, int64_t i)
{
    return pc_item(pc_slice(pc_reshape(t, PC_SHAPE(pc_tensor_count(t))), 0, i, i + 1, 1));
}

/* Many rows and classes, by the kernel and by other ops; ignored rows hold NaN, and their gradients are 0. */
static void assert_rows(int64_t rows, int64_t classes, pc_dtype dtype, pc_reduction reduction, double tolerance)
{
    PC_SCOPE {
        pc_seed(7);
        pc_device device = test_device();
        pc_tensor *labels = pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(rows), PC_F32, device), (double)classes), PC_I64);
        pc_tensor *none = pc_lt(pc_rand(PC_SHAPE(rows), PC_F32, device), pc_scalar(0.3, PC_F32, device));
        pc_tensor *some = pc_masked_fill(labels, none, -7), *kept = pc_cast(pc_logical_not(none), PC_F32);
        pc_tensor *values = pc_cast(pc_randn(PC_SHAPE(rows, classes), PC_F32, device), dtype);
        pc_tensor *x = pc_masked_fill(values, pc_unsqueeze(none, 1), NAN), *y = pc_clone(values);
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_require_grad(y, true));
        pc_tensor *loss =
            pc_fn_cross_entropy(x, some, CLASSES(.reduction = reduction, .ignore = true, .ignore_index = -7));
        pc_tensor *p = pc_gather(pc_log_softmax(pc_cast(y, PC_F32), 1), 1, pc_unsqueeze(labels, 1));
        pc_tensor *want = pc_neg(pc_sum(pc_mul(pc_squeeze(p, 1), kept)));
        if (reduction == PC_REDUCTION_MEAN)
            want = pc_div(want, pc_sum(kept));
        assert_close(pc_item(loss), pc_item(want), tolerance * (1 + fabs(pc_item(want))));
        assert_ok(pc_backward(pc_mul_scalar(loss, 2)));
        assert_ok(pc_backward(pc_mul_scalar(want, 2)));
        pc_tensor *off = pc_abs(pc_sub(pc_cast(pc_grad(x), PC_F32), pc_cast(pc_grad(y), PC_F32)));
        assert_true(pc_item(pc_max(off)) < tolerance);
    }
}

static void rows_that_count_for_nothing(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 7}, {70, 5}, {5000, 3}, {900, 100}, {300, 700}, {3, 60000}, {40, 3000}};
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (int r = 0; r < 2; r++) {
            assert_rows(sizes[i][0] + 1, sizes[i][1], PC_F32, r ? PC_REDUCTION_SUM : PC_REDUCTION_MEAN, 1e-4);
            assert_rows(sizes[i][0] + 1, sizes[i][1], PC_F64, r ? PC_REDUCTION_SUM : PC_REDUCTION_MEAN, 1e-4);
            assert_rows(sizes[i][0] + 1, sizes[i][1], PC_BF16, r ? PC_REDUCTION_SUM : PC_REDUCTION_MEAN, 2e-2);
        }
    assert_no_leak();
}

static void nothing_counts(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(3, 4), PC_F32, test_device());
        pc_tensor *labels = pc_full(PC_SHAPE(3), -100, PC_I64, test_device());
        assert_ok(pc_require_grad(x, true));
        pc_tensor *loss = pc_cross_entropy(x, labels);
        assert_true(isnan(pc_item(loss)));
        assert_ok(pc_backward(loss));
        assert_close(pc_item(pc_sum(pc_abs(pc_grad(x)))), 0, 0);
        pc_tensor *no_classes = pc_zeros(PC_SHAPE(3, 0), PC_F32, test_device());
        assert_true(isnan(pc_item(pc_cross_entropy(no_classes, labels))));
        assert_close(pc_item(pc_fn_cross_entropy(x, labels, CLASSES(.reduction = PC_REDUCTION_SUM))), 0, 0);
    }
    assert_no_leak();
}

/* 16 bits under autocast give float32. */
static void autocast(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(2, 3), 0.5, PC_BF16, test_device());
        pc_tensor *labels = pc_zeros(PC_SHAPE(2), PC_I64, test_device());
        PC_AUTOCAST(PC_BF16) {
            assert_int_equal(pc_tensor_dtype(pc_l1_loss(x, x, PC_REDUCTION_NONE)), PC_F32);
            assert_int_equal(pc_tensor_dtype(pc_fn_nll_loss(x, labels, CLASSES(0))), PC_F32);
            assert_int_equal(pc_tensor_dtype(pc_fn_cross_entropy(x, labels, CLASSES(.label_smoothing = 0.1))), PC_F32);
        }
        assert_int_equal(pc_tensor_dtype(pc_l1_loss(x, x, PC_REDUCTION_NONE)), PC_BF16);
    }
    assert_no_leak();
}

static void infinite_differences(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(2), INFINITY, PC_F32, test_device());
        pc_tensor *y = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        pc_tensor *loss = pc_huber_loss(x, y, 1.5, PC_REDUCTION_SUM);
        assert_true(isinf(pc_item(loss)));
        assert_ok(pc_backward(loss));
        assert_close(read_at(pc_grad(x), 1), 1.5, 0);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_pairs),      cmocka_unit_test(bad_classes), cmocka_unit_test(rows_that_count_for_nothing),
    cmocka_unit_test(nothing_counts), cmocka_unit_test(autocast),    cmocka_unit_test(infinite_differences),
};

int main(void)
{
    return golden_main("ops.losses", ops, tests);
}

/* Pooling with options and to sizes, and pictures of other sizes. */
#include "ops/golden.h"

#include "base/base.h"
#include "ops/resample.h"

#include <math.h>
#include <paracord/random.h>
#include <paracord/sample.h>

static void check_order(const golden *g, const pc_tensor *y)
{
    assert_not_null_ok(y);
    if (pc_tensor_size(y, 1) == 1 || pc_tensor_size(y, 2) * pc_tensor_size(y, 3) == 1)
        return;
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_int_equal(pc_tensor_stride(y, 1), 1);
    else
        assert_true(pc_tensor_is_contiguous(y));
}

static pc_fn_pool2d_options spec_of(const golden *g)
{
    return (pc_fn_pool2d_options){.kernel = {(int)g->args[0], (int)g->args[1]},
                                  .stride = {(int)g->args[2], (int)g->args[3]},
                                  .padding = {(int)g->args[4], (int)g->args[5]},
                                  .ceil_mode = g->args[6] > 0,
                                  .exclude_padding = g->args[7] > 0};
}

static void run_max_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    check_order(g, out[0] = pc_fn_max_pool2d(in[0], spec_of(g)));
}

static void run_avg_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    check_order(g, out[0] = pc_fn_avg_pool2d(in[0], spec_of(g)));
}

static void run_adaptive_avg(const golden *g, pc_tensor **in, pc_tensor **out)
{
    check_order(g, out[0] = pc_fn_adaptive_avg_pool2d(in[0], (int64_t)g->args[0], (int64_t)g->args[1]));
}

static void run_adaptive_max(const golden *g, pc_tensor **in, pc_tensor **out)
{
    check_order(g, out[0] = pc_fn_adaptive_max_pool2d(in[0], (int64_t)g->args[0], (int64_t)g->args[1]));
}

static void run_upsample(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const double *a = g->args;
    const pc_fn_upsample_options options = {.size = {(int64_t)a[0], (int64_t)a[1]},
                                            .scale = {a[2], a[3]},
                                            .mode = (pc_upsample_mode)a[4],
                                            .align_corners = a[5] > 0};
    check_order(g, out[0] = pc_fn_upsample(in[0], options));
}

static const golden_op ops[] = {
    {"max_pool2d_ceil", run_max_pool2d},
    {"avg_pool2d_ceil", run_avg_pool2d},
    {"adaptive_avg_pool2d", run_adaptive_avg},
    {"adaptive_max_pool2d", run_adaptive_max},
    {"upsample", run_upsample},
};

#define UP(...) ((pc_fn_upsample_options){__VA_ARGS__})

static void bad_sizes(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(1, 2, 4, 3), PC_F32, test_device());
        pc_tensor *flat = pc_reshape(x, PC_SHAPE(2, 4, 3)),
                  *none = pc_zeros(PC_SHAPE(1, 2, 0, 3), PC_F32, test_device());
        assert_fails(pc_fn_adaptive_avg_pool2d(flat, 1, 1), PC_ERR_SHAPE, "adaptive_avg_pool2d");
        assert_fails(pc_fn_adaptive_max_pool2d(pc_cast(x, PC_I32), 1, 1), PC_ERR_DTYPE, "int32");
        assert_fails(pc_fn_adaptive_max_pool2d(x, -1, 1), PC_ERR_ARGUMENT, "-1 x 1");
        assert_fails(pc_fn_adaptive_avg_pool2d(none, 1, 1), PC_ERR_SHAPE, "no places");
        assert_fails(pc_fn_upsample(flat, UP(.size = {2})), PC_ERR_SHAPE, "upsample");
        assert_fails(pc_fn_upsample(pc_cast(x, PC_I32), UP(.size = {2})), PC_ERR_DTYPE, "int32");
        assert_fails(pc_fn_upsample(none, UP(.size = {2})), PC_ERR_SHAPE, "no places");
        assert_fails(pc_fn_upsample(x, UP(0)), PC_ERR_ARGUMENT, "a size or a scale");
        assert_fails(pc_fn_upsample(x, UP(.size = {2}, .scale = {2})), PC_ERR_ARGUMENT, "a size or a scale");
        assert_fails(pc_fn_upsample(x, UP(.size = {2}, .scale = {0, 2})), PC_ERR_ARGUMENT, "a size or a scale");
        assert_fails(pc_fn_upsample(x, UP(.size = {0, 2}, .scale = {2})), PC_ERR_ARGUMENT, "a size or a scale");
        assert_fails(pc_fn_upsample(x, UP(.size = {-2})), PC_ERR_ARGUMENT, "-2 rows");
        assert_fails(pc_fn_upsample(x, UP(.scale = {1, 0.1})), PC_ERR_ARGUMENT, "0 columns");
        assert_fails(pc_fn_upsample(x, UP(.scale = {NAN})), PC_ERR_ARGUMENT, "nan rows");
        assert_fails(pc_fn_upsample(x, UP(.size = {2}, .align_corners = true)), PC_ERR_ARGUMENT, "no corners");
        assert_fails(pc_fn_upsample(x, UP(.size = {2}, .mode = (pc_upsample_mode)7)), PC_ERR_ARGUMENT, "no mode 7");
        assert_fails(pc_fn_upsample(NULL, UP(.size = {2})), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_fn_upsample(x, UP(.size = {INT32_MAX})), PC_ERR_MEMORY, "more elements");
        assert_fails(pc_fn_adaptive_avg_pool2d(x, INT32_MAX, INT32_MAX), PC_ERR_MEMORY, "more elements");
        assert_fails(pc_fn_upsample(x, UP(.size = {1 + (int64_t)INT32_MAX})), PC_ERR_ARGUMENT, "2^31 - 1");
    }
    assert_no_leak();
}

/* Of many places, by planes and by channels the same; the sum of the gradients of means is that of the result. */
static void assert_orders(pc_fn_upsample_options options, int channels)
{
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(2, channels, 37, 41), PC_F32, test_device());
        pc_tensor *last = pc_detach(as_channels_last(x));
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_require_grad(last, true));
        pc_tensor *y = pc_fn_upsample(x, options), *z = pc_fn_upsample(last, options);
        assert_not_null_ok(y);
        assert_close(pc_item(pc_max(pc_abs(pc_sub(y, z)))), 0, 0);
        pc_tensor *g = pc_randn(pc_tensor_shape(y), PC_F32, test_device());
        assert_ok(pc_backward_with(y, g));
        assert_ok(pc_backward_with(z, g));
        assert_close(pc_item(pc_max(pc_abs(pc_sub(pc_grad(x), pc_grad(last))))), 0, 1e-5);
        assert_close(pc_item(pc_sum(pc_cast(pc_grad(x), PC_F64))), pc_item(pc_sum(pc_cast(g, PC_F64))), 1e-2);
    }
}

static void many_places(void **state)
{
    (void)state;
    pc_seed(3);
    for (int i = 0; i < 8; i++) {
        const pc_upsample_mode mode = i % 2 ? PC_UPSAMPLE_BILINEAR : PC_UPSAMPLE_NEAREST;
        assert_orders(UP(.size = {13 + 50 * (i / 4), 90}, .mode = mode, .align_corners = i % 4 == 3), 1 + i);
        assert_orders(UP(.scale = {i % 4 == 1 ? 0.37 : 2.6, 1.9}, .mode = mode), 1 + i);
    }
    assert_no_leak();
}

/* A scale that leaves as many rows leaves the rows, and the nearest of twice as many are each row twice. */
static void scales_that_change_nothing(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(0, 12, 1, PC_F32, test_device()), PC_SHAPE(1, 1, 3, 4));
        for (int mode = PC_UPSAMPLE_NEAREST; mode <= PC_UPSAMPLE_BILINEAR; mode++) {
            pc_tensor *y = pc_fn_upsample(x, UP(.scale = {1.3, 1.2}, .mode = (pc_upsample_mode)mode));
            assert_not_null_ok(y);
            assert_close(pc_item(pc_max(pc_abs(pc_sub(x, y)))), 0, 0);
        }
        pc_tensor *twice = pc_fn_upsample(x, UP(.scale = {2.3, 2.2})), *same = pc_fn_upsample(x, UP(.size = {6, 8}));
        assert_close(pc_item(pc_max(pc_abs(pc_sub(twice, same)))), 0, 0);
    }
    assert_no_leak();
}

/* Columns that stay as they are know nothing of each other. */
static void neighbours_of_nan(void **state)
{
    (void)state;
    PC_SCOPE {
        const float pixels[] = {1, NAN, 3, 4};
        pc_tensor *x = pc_from_data(pixels, PC_SHAPE(1, 1, 1, 4), PC_F32, test_device());
        for (int corners = 0; corners < 2; corners++) {
            pc_tensor *y =
                pc_fn_upsample(x, UP(.size = {3, 4}, .mode = PC_UPSAMPLE_BILINEAR, .align_corners = corners > 0));
            assert_int_equal(pc_item_i64(pc_count_nonzero(pc_isnan(y))), 3);
        }
    }
    assert_no_leak();
}

/* What the gradient looks for: every output that has a part of an input is among those of the input. */
static void assert_found(const pc__axis *axis)
{
    for (int64_t i = 0; i < axis->in; i++) {
        const pc__outputs s = pc__outputs_of(axis, i);
        for (int64_t o = 0; o < axis->out; o++) {
            const pc__taps taps = pc__taps_of(axis, o);
            if (pc__weight_in(&taps, i) > 0 && (o < s.first || o >= s.end))
                fail_msg("kind %d, %d to %d: output %d has a part of %d", (int)axis->kind, (int)axis->in,
                         (int)axis->out, (int)o, (int)i);
        }
    }
}

static void every_part_is_found(void **state)
{
    (void)state;
    for (int in = 1; in < 22; in++)
        for (int out = 1; out < 50; out++) {
            const double step = (double)in / out, scaled = in / (out + 0.7),
                         corners = out > 1 ? (in - 1.) / (out - 1) : 0;
            const pc__axis all[] = {{in, out, step, PC__NEAREST},  {in, out, scaled, PC__NEAREST},
                                    {in, out, step, PC__BILINEAR}, {in, out, scaled, PC__BILINEAR},
                                    {in, out, 0, PC__AREA},        {in, out, corners, PC__BILINEAR_CORNERS}};
            for (int k = 0; k < PC__COUNT(all); k++)
                assert_found(&all[k]);
        }
}

/* Beyond what float32 counts one by one. */
static void nearest_of_long_lines(void **state)
{
    (void)state;
    const pc__axis equal = {1 << 25, 1 << 25, 1, PC__NEAREST}, doubled = {1 << 24, 1 << 25, 0.5, PC__NEAREST};
    assert_int_equal(pc__taps_of(&equal, (1 << 24) + 1).first, (1 << 24) + 1);
    assert_int_equal(pc__taps_of(&doubled, (1 << 24) + 3).first, (1 << 23) + 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_part_is_found), cmocka_unit_test(bad_sizes),

    cmocka_unit_test(many_places),         cmocka_unit_test(scales_that_change_nothing),
    cmocka_unit_test(neighbours_of_nan),   cmocka_unit_test(nearest_of_long_lines)};

int main(void)
{
    return golden_main("ops.resample", ops, tests);
}

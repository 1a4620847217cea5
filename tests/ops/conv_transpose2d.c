/* Convolutions led back, and those along one dimension. */
#include "channels_last.h"
#include "ops/apart.h"
#include "ops/golden.h"

#include <paracord/random.h>

static pc_fn_conv_transpose2d_options transposed_options(const golden *g)
{
    const int rows = (int)g->args[0], columns = (int)g->args[1];
    return (pc_fn_conv_transpose2d_options){.stride = {rows / 100, columns / 100},
                                            .padding = {rows / 10 % 10, columns / 10 % 10},
                                            .output_padding = {rows % 10, columns % 10},
                                            .groups = (int)g->args[2],
                                            .dilation = {(int)g->args[3], (int)g->args[4]}};
}

static void run_transposed(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_conv_transpose2d(in[0], in[1], g->n_in > 2 ? in[2] : NULL, transposed_options(g));
    assert_not_null_ok(out[0]);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_true(pc_tensor_stride(out[0], 1) == 1 && pc_tensor_size(out[0], 1) > 1);
    else
        assert_true(pc_tensor_is_contiguous(out[0]));
}

static void run_conv1d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const bool same = g->args[1] < 0;
    out[0] = pc_fn_conv1d(in[0], in[1], g->n_in > 2 ? in[2] : NULL,
                          (pc_fn_conv1d_options){.stride = (int)g->args[0],
                                                 .padding = same ? 0 : (int)g->args[1],
                                                 .dilation = (int)g->args[2],
                                                 .groups = (int)g->args[3],
                                                 .activation = (pc_activation_kind)g->args[4],
                                                 .same = same});
}

static const golden_op ops[] = {{"conv_transpose2d", run_transposed}, {"conv1d", run_conv1d}};

static pc_tensor *zeros(pc_shape shape)
{
    return pc_zeros(shape, PC_F32, test_device());
}

static void bad_input(void **state)
{
    (void)state;
    typedef pc_fn_conv_transpose2d_options options;
    PC_SCOPE {
        pc_tensor *x = zeros(PC_SHAPE(1, 4, 3, 3)), *w = zeros(PC_SHAPE(4, 2, 3, 3)), *b = zeros(PC_SHAPE(2));
#define FAILS(x, w, b, status, words, ...)                                                                             \
    assert_fails(pc_fn_conv_transpose2d(x, w, b, (options){__VA_ARGS__}), status, words)
        FAILS(zeros(PC_SHAPE(1, 2, 3, 3)), w, b, PC_ERR_SHAPE, "[1, 2, 3, 3]", 0);
        FAILS(x, zeros(PC_SHAPE(4, 18)), b, PC_ERR_SHAPE, "[4, 18]", 0);
        FAILS(x, w, zeros(PC_SHAPE(3)), PC_ERR_SHAPE, "bias of shape [3]", 0);
        FAILS(x, w, b, PC_ERR_SHAPE, "bias of shape [2]", .groups = 2);
        FAILS(x, w, b, PC_ERR_ARGUMENT, "3 groups", .groups = 3);
        FAILS(x, w, b, PC_ERR_ARGUMENT, "stride -1", .stride = {1, -1});
        FAILS(x, w, b, PC_ERR_ARGUMENT, "padding -2", .padding = {-2, 0});
        FAILS(x, w, b, PC_ERR_ARGUMENT, "an output padding of 2 must be at least 0, and below the stride, 2",
              .stride = {2, 2}, .output_padding = {1, 2});
        FAILS(x, w, b, PC_ERR_ARGUMENT, "output padding of -1", .output_padding = {-1, 0});
        FAILS(x, w, b, PC_ERR_ARGUMENT, "dilation -1", .dilation = {-1, 0});
        FAILS(x, w, b, PC_ERR_SHAPE, "-1 rows", .padding = {3, 0});
        FAILS(zeros(PC_SHAPE(1, 4, 0, 3)), w, b, PC_ERR_SHAPE, "[1, 4, 0, 3]", 0);
        FAILS(x, zeros(PC_SHAPE(4, 2, 0, 3)), b, PC_ERR_SHAPE, "no taps", 0);
        FAILS(x, pc_cast(w, PC_F64), b, PC_ERR_DTYPE, "weight float64", 0);
        FAILS(NULL, w, b, PC_ERR_ARGUMENT, "x is NULL", 0);
        FAILS(x, NULL, b, PC_ERR_ARGUMENT, "weight is NULL", 0);
#undef FAILS
        pc_tensor *line = zeros(PC_SHAPE(1, 4, 9)), *taps = zeros(PC_SHAPE(6, 4, 3));
        assert_fails(pc_fn_conv1d(x, taps, NULL, (pc_fn_conv1d_options){0}), PC_ERR_SHAPE, "[n, c, length]");
        assert_fails(pc_fn_conv1d(line, w, NULL, (pc_fn_conv1d_options){0}), PC_ERR_SHAPE, "[out, c / groups, k]");
        assert_fails(pc_fn_conv1d(line, taps, NULL, (pc_fn_conv1d_options){.groups = 2}), PC_ERR_SHAPE, "[6, 4, 3]");
        assert_fails(pc_fn_conv1d(line, taps, NULL, (pc_fn_conv1d_options){.stride = -1}), PC_ERR_ARGUMENT, "stride");
        assert_fails(pc_fn_conv1d(line, taps, NULL, (pc_fn_conv1d_options){.dilation = 5}), PC_ERR_SHAPE, "too small");
    }
    assert_no_leak();
}

/* It is the gradient of the convolution's input, whatever kernel does it. */
static void as_a_gradient(void **state)
{
    static const struct {
        int64_t c, o, side;
        int kernel, stride, padding, dilation, groups;
    } list[] = {{3, 32, 12, 3, 1, 1, 1, 1},  {16, 24, 11, 4, 2, 1, 1, 1}, {32, 32, 9, 3, 2, 1, 1, 32},
                {64, 64, 7, 3, 1, 1, 1, 1},  {12, 8, 13, 3, 1, 2, 2, 1},  {24, 24, 8, 5, 1, 2, 1, 24},
                {16, 32, 10, 3, 3, 0, 1, 4}, {1, 8, 16, 2, 2, 0, 1, 1},   {32, 3, 12, 4, 2, 1, 1, 1}};
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int k = 0; k < 8; k++)
            PC_SCOPE {
                const pc_dtype dtype = dtypes[k / 2];
                const int s = list[i].stride, p = list[i].padding, d = list[i].dilation, g = list[i].groups;
                pc_seed(11 + (uint64_t)i);
                pc_tensor *x = pc_zeros(PC_SHAPE(2, list[i].c, list[i].side, list[i].side), PC_F64, PC_DEVICE_CPU);
                pc_tensor *w =
                    pc_randn(PC_SHAPE(list[i].o, list[i].c / g, list[i].kernel, list[i].kernel), PC_F64, PC_DEVICE_CPU);
                w = pc_cast(pc_cast(w, dtype), PC_F64);
                assert_ok(pc_require_grad(x, true));
                pc_tensor *y = pc_fn_conv2d(
                    x, w, NULL,
                    (pc_fn_conv2d_options){.stride = {s, s}, .padding = {p, p}, .dilation = {d, d}, .groups = g});
                pc_tensor *dy = pc_randn(pc_tensor_shape(y), PC_F64, PC_DEVICE_CPU);
                dy = pc_cast(pc_cast(dy, dtype), PC_F64);
                assert_ok(pc_backward(pc_sum(pc_mul(y, dy))));
                const int more =
                    (int)list[i].side - (((int)pc_tensor_size(y, 2) - 1) * s - 2 * p + d * (list[i].kernel - 1) + 1);
                pc_tensor *from = pc_to(dy, test_device(), dtype, false);
                pc_tensor *back = pc_fn_conv_transpose2d(
                    k % 2 ? as_channels_last(from) : from, pc_to(w, test_device(), dtype, false), NULL,
                    (pc_fn_conv_transpose2d_options){.stride = {s, s},
                                                     .padding = {p, p},
                                                     .output_padding = {more, more},
                                                     .dilation = {d, d},
                                                     .groups = g});
                assert_not_null_ok(back);
                const double near = dtype == PC_F64 ? 1e-12 : dtype == PC_F32 ? 1e-5 : dtype == PC_F16 ? 3e-3 : 2e-2;
                if (!(apart(pc_to(back, PC_DEVICE_CPU, PC_F64, false), pc_grad(x)) < near))
                    fail_msg("case %d, %s: %g apart", i, pc_dtype_name(dtype),
                             apart(pc_to(back, PC_DEVICE_CPU, PC_F64, false), pc_grad(x)));
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input), cmocka_unit_test(as_a_gradient)};

int main(void)
{
    return golden_main("ops.conv_transpose2d", ops, tests);
}

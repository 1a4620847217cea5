/* Windows of one place over pictures in C order are products of matrices: the same numbers as over channels last, which
 * the convolution's kernels do, and gradients of their operands; a batch's sum for the weights is rounded once. */
#include "channels_last.h"
#include "device.h"
#include "ops/apart.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, h, w, o;
    int stride[2];
    pc_dtype dtype;
    bool bias;
    pc_activation_kind activation;
} layer;

enum { Y, DX, DWEIGHT, DBIAS, RESULTS };

static pc_tensor *drawn(const layer *l, pc_shape shape)
{
    return pc_cast(pc_randn(shape, PC_F32, test_device()), l->dtype);
}

/* Of copies, so that each way has its own gradients. */
static void run(const layer *l, pc_tensor *const in[4], bool channels_last, pc_tensor *out[RESULTS])
{
    pc_tensor *x = channels_last ? as_channels_last(in[0]) : pc_clone(in[0]);
    pc_tensor *weight = pc_clone(in[1]), *bias = l->bias ? pc_clone(in[2]) : NULL;
    assert_ok(pc_require_grad(x, true));
    assert_ok(pc_require_grad(weight, true));
    if (bias)
        assert_ok(pc_require_grad(bias, true));
    pc_tensor *y = pc_fn_conv2d(
        x, weight, bias, (pc_fn_conv2d_options){.stride = {l->stride[0], l->stride[1]}, .activation = l->activation});
    assert_not_null_ok(y);
    if (l->c > 1 && l->o > 1) /* else both orders are one */
        assert_int_equal(pc_tensor_is_contiguous(y), !channels_last);
    assert_ok(pc_backward_with(y, in[3]));
    out[Y] = y, out[DX] = pc_grad(x), out[DWEIGHT] = pc_grad(weight), out[DBIAS] = bias ? pc_grad(bias) : NULL;
}

static void both_orders(const layer *l)
{
    static const double near[] = {[PC_F32] = 1e-5, [PC_F64] = 1e-12, [PC_F16] = 4e-3, [PC_BF16] = 3e-2};
    PC_SCOPE {
        pc_tensor *in[4] = {
            drawn(l, PC_SHAPE(l->n, l->c, l->h, l->w)), drawn(l, PC_SHAPE(l->o, l->c, 1, 1)), drawn(l, PC_SHAPE(l->o)),
            drawn(l, PC_SHAPE(l->n, l->o, (l->h - 1) / l->stride[0] + 1, (l->w - 1) / l->stride[1] + 1))};
        pc_tensor *flat[RESULTS], *last[RESULTS];
        run(l, in, false, flat);
        run(l, in, true, last);
        for (int i = 0; i < RESULTS; i++)
            if (flat[i] && apart_by_one(flat[i], last[i]) > near[l->dtype])
                fail_msg("x %lldx%lldx%lldx%lld to %lld by %d x %d, %s, result %d: %g apart", (long long)l->n,
                         (long long)l->c, (long long)l->h, (long long)l->w, (long long)l->o, l->stride[0], l->stride[1],
                         pc_dtype_name(l->dtype), i, apart_by_one(flat[i], last[i]));
    }
}

static void as_over_channels_last(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    /* 16 bits round in front of a bias and an activation of their own, and the sign of what is near zero with it. */
    static const pc_activation_kind activations[] = {PC_ACTIVATION_NONE, PC_ACTIVATION_RELU, PC_ACTIVATION_SILU};
    pc_seed(31);
    for (int i = 0; i < 72; i++) {
        const layer l = {.n = 1 + i % 5,
                         .c = 1 + i * 7 % 19,
                         .h = 3 + i % 6,
                         .w = 4 + i * 5 % 11,
                         .o = 1 + i * 3 % 17,
                         .stride = {i < 36 ? 1 : 1 + i % 3, i < 36 ? 1 : 1 + i / 2 % 3},
                         .dtype = dtypes[i % 4],
                         .bias = i % 3 != 0,
                         .activation = activations[i % 4 < 2 ? i / 4 % 3 : i / 4 % 2 * 2]};
        both_orders(&l);
    }
}

/* One output of windows that are whole pictures, or few: what a matrix makes of each window, pictures and weights in both orders. */
static void few_places(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    static const double near[] = {[PC_F32] = 1e-5, [PC_F64] = 1e-12, [PC_F16] = 4e-3, [PC_BF16] = 3e-2};
    static const int sizes[][6] = {/* n, c, side, o, kernel, stride */
                                   {7, 20, 5, 1, 5, 1}, {3, 1, 9, 2, 9, 1},  {40, 13, 5, 3, 3, 2}, {2, 70, 4, 5, 2, 1},
                                   {5, 64, 3, 1, 2, 2}, {9, 8, 6, 40, 6, 1}, {70, 9, 4, 30, 4, 1}};
    pc_seed(32);
    for (int i = 0; i < 16 * (int)(sizeof sizes / sizeof *sizes); i++)
        PC_SCOPE {
            const int *z = sizes[i / 16], out = (z[2] - z[4]) / z[5] + 1;
            const layer l = {.dtype = dtypes[i % 4]};
            pc_tensor *x = pc_mul_scalar(drawn(&l, PC_SHAPE(z[0], z[1], z[2], z[2])), .25);
            pc_tensor *weight = pc_mul_scalar(drawn(&l, PC_SHAPE(z[3], z[1], z[4], z[4])), .25);
            pc_tensor *y =
                pc_fn_conv2d(i / 4 % 2 ? as_channels_last(x) : x, i / 8 % 2 ? as_channels_last(weight) : weight, NULL,
                             (pc_fn_conv2d_options){.stride = {z[5], z[5]}});
            pc_tensor *flat = pc_cast(pc_reshape(weight, PC_SHAPE(z[3], z[1] * z[4] * z[4])), PC_F64);
            for (int place = 0; place < out * out; place++) {
                const int row = place / out, column = place % out, top = row * z[5], left = column * z[5];
                pc_tensor *window = pc_slice(pc_slice(x, 2, top, top + z[4], 1), 3, left, left + z[4], 1);
                window = pc_cast(pc_reshape(pc_contiguous(window), PC_SHAPE(z[0], z[1] * z[4] * z[4])), PC_F64);
                pc_tensor *want = pc_matmul(window, pc_contiguous(pc_transpose(flat, 0, 1)));
                pc_tensor *got = pc_slice(pc_slice(y, 2, row, row + 1, 1), 3, column, column + 1, 1);
                const double off = apart_by_one(pc_reshape(pc_contiguous(got), PC_SHAPE(z[0], z[3])), want);
                if (!(off <= near[l.dtype]))
                    fail_msg("size %d, way %d, place %d: %g apart", i / 16, i % 16, place, off);
            }
        }
    assert_no_leak();
}

/* One tap, or what is left of more over a picture of one row, of pictures in C order: a window is no row of memory there. */
static void one_tap_in_c_order(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{8, 64, 1, 2}, {3, 70, 3, 1}, {8, 100, 1, 3}, {2, 64, 1, 30}};
    pc_seed(33);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        PC_SCOPE {
            const int64_t *z = sizes[i];
            const bool rows = i == 3;
            pc_tensor *x = pc_randn(PC_SHAPE(z[0], z[1], z[2], z[3]), PC_F32, test_device());
            pc_tensor *weight = pc_randn(PC_SHAPE(1, z[1], rows ? 3 : 1, 1), PC_F32, test_device());
            pc_tensor *middle = pc_contiguous(pc_slice(weight, 2, rows, rows + 1, 1));
            pc_tensor *got = pc_fn_conv2d(x, weight, NULL, (pc_fn_conv2d_options){.padding = {rows, 0}});
            pc_tensor *want =
                pc_matmul(pc_reshape(middle, PC_SHAPE(1, z[1])), pc_reshape(x, PC_SHAPE(z[0], z[1], z[2] * z[3])));
            assert_not_null_ok(got);
            if (!(apart_by_one(pc_reshape(pc_contiguous(got), PC_SHAPE(z[0], 1, z[2] * z[3])), want) <= 1e-5))
                fail_msg("size %d", i);
        }
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(2, 64, 8, 8), PC_F32, test_device());
        pc_tensor *weight = pc_randn(PC_SHAPE(3, 64, 1, 1), PC_F32, test_device());
        pc_tensor *got =
            pc_fn_conv2d(x, weight, NULL, (pc_fn_conv2d_options){.activation = PC_ACTIVATION_GELU, .pool = 2});
        pc_tensor *want = pc_fn_max_pool2d(pc_gelu(pc_fn_conv2d(x, weight, NULL, (pc_fn_conv2d_options){0})),
                                           (pc_fn_pool2d_options){.kernel = {2, 2}});
        assert_not_null_ok(got);
        assert_true(apart_by_one(pc_contiguous(got), pc_contiguous(want)) <= 1e-5);
    }
    assert_no_leak();
}

/* 48 pictures of 514 ones each: bfloat16 has 512 and 516, and of the sum 24704, but 24576 of rounded parts. */
static void parts_are_not_rounded(void **state)
{
    (void)state;
    const pc_device d = test_device();
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(48, 2, 2, 257), 1, PC_BF16, d);
        pc_tensor *weight = pc_zeros(PC_SHAPE(2, 2, 1, 1), PC_BF16, d);
        assert_ok(pc_require_grad(weight, true));
        assert_ok(pc_backward_with(pc_fn_conv2d(x, weight, NULL, (pc_fn_conv2d_options){0}), x));
        assert_close(pc_item(pc_max(pc_grad(weight))), 24704, 0);
    }
}

/* The same of an operand that is one matrix for a batch, with that dimension and without. */
static void whatever_was_broadcast(void **state)
{
    (void)state;
    for (int dimensions = 2; dimensions <= 3; dimensions++)
        PC_SCOPE {
            pc_tensor *x = pc_full(PC_SHAPE(48, 2, 514), 1, PC_BF16, test_device());
            pc_tensor *one = pc_zeros(PC_SHAPE(1, 2, 2), PC_BF16, test_device());
            one = dimensions == 2 ? pc_squeeze(one, 0) : one;
            assert_ok(pc_require_grad(one, true));
            assert_ok(pc_backward_with(pc_matmul(one, x), x));
            assert_close(pc_item(pc_max(pc_grad(one))), 24704, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_over_channels_last), cmocka_unit_test(few_places),
                                       cmocka_unit_test(one_tap_in_c_order), cmocka_unit_test(parts_are_not_rounded),
                                       cmocka_unit_test(whatever_was_broadcast)};
    return cmocka_run_group_tests_name("ops.conv2d_product", tests, NULL, NULL);
}

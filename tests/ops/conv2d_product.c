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
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_over_channels_last), cmocka_unit_test(parts_are_not_rounded),
                                       cmocka_unit_test(whatever_was_broadcast)};
    return cmocka_run_group_tests_name("ops.conv2d_product", tests, NULL, NULL);
}

/* Weights that lie channels last: results and gradients are those of the same weights in C order, and the gradient lies as
 * they do. */
#include "channels_last.h"
#include "device.h"
#include "ops/apart.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, side, o;
    int kernel, stride, pool;
    pc_activation_kind activation;
    bool last; /* the pictures, too */
} layer;

static const layer layers[] = {
    {2, 3, 9, 5, 3, 1, 1, PC_ACTIVATION_NONE, true},    {2, 8, 10, 16, 3, 2, 1, PC_ACTIVATION_RELU, true},
    {3, 32, 8, 32, 3, 1, 1, PC_ACTIVATION_NONE, true},  {2, 5, 12, 7, 5, 1, 2, PC_ACTIVATION_TANH, true},
    {1, 4, 11, 6, 3, 1, 1, PC_ACTIVATION_SILU, false},  {2, 16, 9, 24, 3, 1, 2, PC_ACTIVATION_RELU, false},
    {4, 6, 8, 1, 2, 2, 1, PC_ACTIVATION_SIGMOID, true}, {1, 40, 6, 48, 3, 1, 1, PC_ACTIVATION_RELU, true},
};

enum { Y, DX, DWEIGHT, DBIAS, RESULTS };

static void run(const layer *l, pc_tensor *const in[3], bool last, pc_tensor *out[RESULTS])
{
    pc_tensor *x = l->last ? as_channels_last(in[0]) : pc_clone(in[0]);
    pc_tensor *weight = last ? as_channels_last(in[1]) : pc_clone(in[1]), *bias = pc_clone(in[2]);
    assert_ok(pc_require_grad(x, true));
    assert_ok(pc_require_grad(weight, true));
    assert_ok(pc_require_grad(bias, true));
    out[Y] = pc_fn_conv2d(x, weight, bias,
                          (pc_fn_conv2d_options){.stride = {l->stride, l->stride},
                                                 .padding = {l->kernel / 2, l->kernel / 2},
                                                 .activation = l->activation,
                                                 .pool = l->pool});
    assert_not_null_ok(out[Y]);
    assert_ok(pc_backward_with(out[Y], pc_detach(out[Y])));
    out[DX] = pc_grad(x), out[DWEIGHT] = pc_grad(weight), out[DBIAS] = pc_grad(bias);
    assert_int_equal(pc_tensor_stride(out[DWEIGHT], 1), pc_tensor_stride(weight, 1));
}

static void are_the_same_weights(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    static const double room[] = {[PC_F32] = 1e-5, [PC_F64] = 1e-12, [PC_F16] = 4e-3, [PC_BF16] = 3e-2};
    pc_seed(77);
    for (int i = 0; i < 4 * (int)(sizeof layers / sizeof *layers); i++)
        PC_SCOPE {
            const layer *l = &layers[i / 4];
            const pc_shape shapes[] = {PC_SHAPE(l->n, l->c, l->side, l->side),
                                       PC_SHAPE(l->o, l->c, l->kernel, l->kernel), PC_SHAPE(l->o)};
            pc_tensor *in[3], *flat[RESULTS], *last[RESULTS];
            for (int k = 0; k < 3; k++)
                in[k] = pc_cast(pc_mul_scalar(pc_randn(shapes[k], PC_F32, test_device()), .25), dtypes[i % 4]);
            run(l, in, false, flat);
            run(l, in, true, last);
            for (int k = 0; k < RESULTS; k++)
                if (!(apart_by_one(last[k], flat[k]) <= room[dtypes[i % 4]]))
                    fail_msg("layer %d, %s, result %d: %g apart", i / 4, pc_dtype_name(dtypes[i % 4]), k,
                             apart_by_one(last[k], flat[k]));
        }
    assert_no_leak();
}

/* So few outputs that places lie side by side for gradients of weights and bias, which doubles never do: of pictures in both orders. */
static void few_outputs(void **state)
{
    (void)state;
    static const layer few[] = {
        {5, 2, 21, 1, 3, 1, 1, PC_ACTIVATION_RELU, true},     {3, 1, 33, 4, 7, 1, 1, PC_ACTIVATION_NONE, true},
        {2, 9, 26, 2, 5, 2, 1, PC_ACTIVATION_SIGMOID, true},  {4, 7, 19, 3, 3, 1, 1, PC_ACTIVATION_TANH, false},
        {17, 40, 10, 1, 3, 1, 1, PC_ACTIVATION_RELU, false},  {1, 24, 70, 2, 5, 2, 1, PC_ACTIVATION_SILU, false},
        {2, 48, 12, 5, 1, 1, 1, PC_ACTIVATION_RELU, true},    {3, 4, 40, 4, 6, 3, 1, PC_ACTIVATION_RELU, false},
        {1, 2, 150, 1, 3, 1, 1, PC_ACTIVATION_SIGMOID, true},
    };
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    static const double room[] = {[PC_F32] = 2e-5, [PC_F16] = 8e-3, [PC_BF16] = 6e-2};
    pc_seed(78);
    for (int i = 0; i < 6 * (int)(sizeof few / sizeof *few); i++)
        PC_SCOPE {
            const layer *l = &few[i / 6];
            const pc_dtype dtype = dtypes[i % 3];
            const pc_shape shapes[] = {PC_SHAPE(l->n, l->c, l->side, l->side),
                                       PC_SHAPE(l->o, l->c, l->kernel, l->kernel), PC_SHAPE(l->o)};
            pc_tensor *in[3], *wide[3], *got[RESULTS], *want[RESULTS];
            for (int k = 0; k < 3; k++) {
                in[k] = pc_cast(pc_mul_scalar(pc_randn(shapes[k], PC_F32, test_device()), .25), dtype);
                wide[k] = pc_cast(in[k], PC_F64);
            }
            run(l, in, i % 6 >= 3, got);
            run(l, wide, false, want);
            for (int k = 0; k < RESULTS; k++)
                if (!(apart_by_one(pc_cast(got[k], PC_F64), want[k]) <= room[dtype]))
                    fail_msg("layer %d, %s, result %d: %g apart", i / 6, pc_dtype_name(dtype), k,
                             apart_by_one(pc_cast(got[k], PC_F64), want[k]));
        }
    assert_no_leak();
}

/* An infinite pixel is seen by the taps of its column alone: gradients of the others stay what they were. */
static void an_infinite_pixel(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++)
        PC_SCOPE {
            const pc_dtype dtype = half ? PC_BF16 : PC_F32;
            pc_tensor *x = pc_full(PC_SHAPE(2, 1, 33, 33), 1, dtype, test_device());
            pc_tensor *weight = pc_full(PC_SHAPE(1, 1, 3, 3), .5, dtype, test_device());
            assert_ok(pc_fill(pc_slice(pc_slice(pc_slice(x, 0, 0, 1, 1), 2, 5, 6, 1), 3, 0, 1, 1), INFINITY));
            assert_ok(pc_require_grad(weight, true));
            pc_tensor *y = pc_fn_conv2d(x, weight, NULL, (pc_fn_conv2d_options){0});
            assert_ok(pc_backward_with(y, pc_full(PC_SHAPE(2, 1, 31, 31), 1, dtype, test_device())));
            float of[9];
            assert_ok(pc_read(pc_cast(pc_contiguous(pc_grad(weight)), PC_F32), of, sizeof of));
            for (int i = 0; i < 9; i++)
                if (i % 3 ? !(fabs(of[i] - 2 * 31 * 31.0) <= 8) : of[i] != INFINITY)
                    fail_msg("%s, tap %d: %g", pc_dtype_name(dtype), i, of[i]);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_the_same_weights), cmocka_unit_test(few_outputs),
                                       cmocka_unit_test(an_infinite_pixel)};
    return cmocka_run_group_tests_name("ops.conv2d_weights", tests, NULL, NULL);
}

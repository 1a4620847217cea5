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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_the_same_weights)};
    return cmocka_run_group_tests_name("ops.conv2d_weights", tests, NULL, NULL);
}

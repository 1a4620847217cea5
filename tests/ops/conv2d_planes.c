/* Convolutions of few channels whose pictures lie in C order: read as they lie, forward and for the weights' gradient, at every
 * edge and distance, where rows lie on whole accesses and where they do not. */
#include "channels_last.h"
#include "device.h"
#include "ops/apart.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, h, w, o;
    int kh, kw, stride, padding, pool;
    pc_activation_kind activation;
} layer;

enum { X, WEIGHT, BIAS, NUMBERS };
enum { Y, DX, DWEIGHT, DBIAS, RESULTS };

static pc_tensor *drawn(pc_shape shape, pc_dtype dtype)
{
    return pc_cast(pc_mul_scalar(pc_randn(shape, PC_F32, PC_DEVICE_CPU), 0.5), dtype);
}

/* y, and the gradients of the sum of its squares. */
static void convolve(const layer *l, pc_tensor *const in[NUMBERS], pc_dtype dtype, pc_device device, bool last,
                     pc_tensor *out[RESULTS])
{
    pc_tensor *leaf[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        leaf[i] = pc_clone(pc_to(in[i], device, dtype, false));
        if (last && i < BIAS)
            leaf[i] = as_channels_last(leaf[i]);
        assert_ok(pc_require_grad(leaf[i], true));
    }
    pc_tensor *y = pc_fn_conv2d(leaf[X], leaf[WEIGHT], leaf[BIAS],
                                (pc_fn_conv2d_options){.stride = {l->stride, l->stride},
                                                       .padding = {l->padding, l->padding},
                                                       .activation = l->activation,
                                                       .pool = l->pool});
    assert_not_null_ok(y);
    assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
    out[Y] = pc_to(y, PC_DEVICE_CPU, PC_F64, false);
    for (int i = 0; i < NUMBERS; i++)
        out[DX + i] = pc_to(pc_grad(leaf[i]), PC_DEVICE_CPU, PC_F64, false);
}

static void as_in_double(void **state)
{
    static const layer list[] = {
        {2, 5, 21, 24, 3, 3, 3, 2, 0, 1, PC_ACTIVATION_NONE},  {3, 2, 17, 20, 4, 5, 5, 1, 2, 1, PC_ACTIVATION_RELU},
        {2, 3, 19, 23, 2, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE},  {2, 1, 12, 16, 6, 7, 7, 3, 3, 1, PC_ACTIVATION_TANH},
        {9, 4, 5, 8, 8, 3, 2, 1, 3, 1, PC_ACTIVATION_NONE},    {2, 7, 14, 12, 5, 3, 3, 1, 1, 2, PC_ACTIVATION_RELU},
        {1, 2, 6, 150, 1, 4, 4, 3, 5, 1, PC_ACTIVATION_NONE},  {2, 8, 9, 10, 9, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
        {5, 1, 11, 13, 3, 3, 3, 2, 1, 2, PC_ACTIVATION_RELU},  {1, 6, 40, 4, 2, 2, 2, 2, 0, 1, PC_ACTIVATION_SIGMOID},
        {2, 1, 31, 28, 24, 5, 5, 1, 2, 1, PC_ACTIVATION_NONE}, {2, 1, 9, 33, 12, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
    };
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    static const double near[] = {1e-5, 4e-3, 3e-2};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int kind = 0; kind < 6; kind++)
            PC_SCOPE {
                const layer *l = &list[i];
                const pc_dtype dtype = dtypes[kind / 2];
                if (sampled() && kind % 2 && (i + kind) % 3)
                    continue;
                pc_seed(51 + (uint64_t)i);
                pc_tensor *in[NUMBERS] = {drawn(PC_SHAPE(l->n, l->c, l->h, l->w), dtype),
                                          drawn(PC_SHAPE(l->o, l->c, l->kh, l->kw), dtype),
                                          drawn(PC_SHAPE(l->o), dtype)};
                pc_tensor *exact[RESULTS], *found[RESULTS];
                convolve(l, in, PC_F64, PC_DEVICE_CPU, false, exact);
                convolve(l, in, dtype, test_device(), kind % 2, found);
                for (int k = 0; k < RESULTS; k++)
                    if (!(apart(found[k], exact[k]) < near[kind / 2]))
                        fail_msg("layer %d, kind %d, result %d: %g apart", i, kind, k, apart(found[k], exact[k]));
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(as_in_double)};

/* By these kernels wherever they can, unless the caller says otherwise. */
int main(void)
{
    if (setenv("PARACORD_ONLY", "conv2d=direct,conv2d_input=direct,conv2d_weights=direct", 0) != 0)
        return 1;
    return cmocka_run_group_tests_name("ops.conv2d_planes", tests, NULL, NULL);
}

/* Convolutions whose tiles are few and whose sums are long, so that these are cut into parts: near the exact numbers, the
 * same bits again, and of float32 the same bits whether a pooling is part of the call or a call of its own. */
#include "channels_last.h"
#include "device.h"
#include "ops/apart.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, h, w, o;
    int kernel, stride, padding, pool;
} layer;

static const layer layers[] = {
    {2, 40, 9, 11, 20, 5, 1, 2, 1},  {1, 33, 13, 12, 21, 5, 1, 2, 2}, {2, 48, 10, 9, 48, 4, 2, 1, 1},
    {2, 24, 13, 14, 70, 7, 2, 3, 2}, {1, 96, 10, 10, 16, 3, 1, 1, 3}, {1, 40, 20, 19, 40, 7, 3, 2, 2},
};

enum { Y, DX, RESULTS };

/* y and dx; with `alone` the pooling is a call of its own. */
static void convolve(const layer *l, pc_tensor *const in[3], pc_dtype dtype, pc_device device, bool last, bool alone,
                     pc_tensor *out[RESULTS])
{
    pc_tensor *x = pc_clone(pc_to(in[0], device, dtype, false));
    if (last)
        x = as_channels_last(x);
    assert_ok(pc_require_grad(x, true));
    const pc_fn_conv2d_options options = {
        .stride = {l->stride, l->stride}, .padding = {l->padding, l->padding}, .pool = alone ? 1 : l->pool};
    pc_tensor *y = pc_fn_conv2d(x, pc_to(in[1], device, dtype, false), pc_to(in[2], device, dtype, false), options);
    assert_not_null_ok(y);
    if (alone && l->pool > 1)
        y = pc_fn_max_pool2d(y, (pc_fn_pool2d_options){.kernel = {l->pool, l->pool}});
    assert_not_null_ok(y);
    assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
    out[Y] = pc_to(y, PC_DEVICE_CPU, PC_F64, false);
    out[DX] = pc_to(pc_grad(x), PC_DEVICE_CPU, PC_F64, false);
}

static bool same_bits(pc_tensor *a, pc_tensor *b)
{
    return pc_item(pc_sum(pc_ne(a, b))) == 0;
}

static void in_parts(void **state)
{
    static const struct {
        pc_dtype dtype;
        double near;
    } kinds[] = {{PC_F32, 4e-6}, {PC_BF16, 3e-2}};
    (void)state;
    for (int i = 0; i < (int)(sizeof layers / sizeof *layers); i++)
        for (int kind = sampled() ? i % 2 : 0; kind < 4; kind += sampled() ? 2 : 1)
            PC_SCOPE {
                const layer *l = &layers[i];
                const pc_dtype dtype = kinds[kind / 2].dtype;
                pc_seed(60 + (uint64_t)i);
                pc_tensor *in[3] = {
                    pc_randn(PC_SHAPE(l->n, l->c, l->h, l->w), PC_F32, PC_DEVICE_CPU),
                    pc_mul_scalar(pc_randn(PC_SHAPE(l->o, l->c, l->kernel, l->kernel), PC_F32, PC_DEVICE_CPU), 0.1),
                    pc_randn(PC_SHAPE(l->o), PC_F32, PC_DEVICE_CPU)};
                for (int k = 0; k < 3; k++)
                    in[k] = pc_cast(in[k], dtype);
                pc_tensor *exact[RESULTS], *ours[RESULTS], *again[RESULTS], *alone[RESULTS];
                convolve(l, in, PC_F64, PC_DEVICE_CPU, kind % 2, false, exact);
                convolve(l, in, dtype, test_device(), kind % 2, false, ours);
                convolve(l, in, dtype, test_device(), kind % 2, false, again);
                convolve(l, in, dtype, test_device(), kind % 2, true, alone);
                for (int k = 0; k < (dtype == PC_F32 || l->pool == 1 ? RESULTS : DX); k++) { /* rounding makes ties */
                    if (!(apart(ours[k], exact[k]) < kinds[kind / 2].near))
                        fail_msg("layer %d, kind %d, result %d: %g apart", i, kind, k, apart(ours[k], exact[k]));
                    assert_true(same_bits(ours[k], again[k]));
                }
                if (dtype == PC_F32)
                    assert_true(same_bits(ours[Y], alone[Y]));
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(in_parts)};

/* By our tiles, whatever the size. */
int main(void)
{
    if (setenv("PARACORD_ONLY", "conv2d=-split,conv2d_input=-split", 1) != 0)
        return 1;
    (void)pc_choice_set(PC_CHOICE_OWN);
    return cmocka_run_group_tests_name("ops.conv2d_split_k", tests, NULL, NULL);
}

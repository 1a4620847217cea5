/* Convolutions of 16-bit pictures, most of up to eight channels: tiles at every edge, kernels of many taps, outputs in several
 * groups, odd numbers of everything; and numbers that are infinite, which zero weights make no zeros of. */
#include "channels_last.h"
#include "device.h"
#include "ops/apart.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, h, w, o;
    int kh, kw, stride, padding, pool;
    pc_activation_kind activation;
} layer;

enum { Y, DX, DWEIGHT, DBIAS, RESULTS };

static pc_fn_conv2d_options options_of(const layer *l)
{
    return (pc_fn_conv2d_options){.stride = {l->stride, l->stride},
                                  .padding = {l->padding, l->padding},
                                  .activation = l->activation,
                                  .pool = l->pool};
}

static pc_tensor *drawn(pc_shape shape, pc_dtype dtype, double scale)
{
    return pc_cast(pc_mul_scalar(pc_randn(shape, PC_F32, PC_DEVICE_CPU), scale), dtype);
}

/* y, and the gradients of the sum of its squares; where `stopped`, none of x. */
static void convolve(const layer *l, pc_tensor *const in[3], pc_dtype dtype, pc_device device, bool last, bool stopped,
                     pc_tensor *out[RESULTS])
{
    pc_tensor *leaf[3];
    for (int i = 0; i < 3; i++) {
        leaf[i] = pc_clone(pc_to(in[i], device, dtype, false));
        if (i == 0 && last)
            leaf[i] = as_channels_last(leaf[i]);
        if (i > 0 || !stopped)
            assert_ok(pc_require_grad(leaf[i], true));
    }
    pc_tensor *y = pc_fn_conv2d(leaf[0], leaf[1], leaf[2], options_of(l));
    assert_not_null_ok(y);
    assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
    out[Y] = pc_to(y, PC_DEVICE_CPU, PC_F64, false);
    for (int i = 0; i < 3; i++)
        out[DX + i] = i == 0 && stopped ? NULL : pc_to(pc_grad(leaf[i]), PC_DEVICE_CPU, PC_F64, false);
}

static void as_in_double(void **state)
{
    static const layer list[] = {
        {2, 3, 37, 40, 40, 5, 5, 1, 2, 1, PC_ACTIVATION_RELU},    {1, 7, 33, 35, 14, 5, 5, 1, 2, 2, PC_ACTIVATION_RELU},
        {3, 1, 20, 70, 19, 7, 7, 2, 3, 1, PC_ACTIVATION_NONE},    {2, 6, 12, 12, 9, 9, 9, 1, 4, 1, PC_ACTIVATION_TANH},
        {1, 5, 14, 13, 66, 3, 3, 1, 1, 2, PC_ACTIVATION_SIGMOID}, {2, 4, 21, 22, 24, 3, 2, 1, 1, 1, PC_ACTIVATION_NONE},
        {2, 8, 19, 18, 5, 3, 3, 1, 1, 2, PC_ACTIVATION_NONE},     {40, 2, 5, 4, 3, 2, 3, 1, 0, 1, PC_ACTIVATION_RELU},
        {2, 3, 34, 34, 6, 11, 11, 4, 2, 1, PC_ACTIVATION_RELU},   {1, 7, 9, 100, 7, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
        {9, 6, 17, 17, 7, 4, 4, 1, 0, 2, PC_ACTIVATION_TANH},     {1, 8, 30, 30, 8, 5, 5, 1, 6, 1, PC_ACTIVATION_RELU},
        {2, 3, 13, 15, 5, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},     {1, 1, 20, 23, 1, 3, 3, 2, 1, 1, PC_ACTIVATION_NONE},
        {3, 2, 9, 11, 16, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},     {2, 5, 7, 8, 8, 1, 1, 1, 0, 1, PC_ACTIVATION_RELU},
        {2, 24, 11, 13, 40, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE},   {3, 33, 9, 30, 33, 3, 3, 2, 1, 1, PC_ACTIVATION_NONE},
        {2, 256, 6, 7, 64, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE}, /* many weights for few places */
        {2, 70, 9, 11, 3, 1, 1, 1, 0, 1, PC_ACTIVATION_RELU},  /* dot products */
        {1, 64, 6, 5, 1, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},      {1, 4, 8, 45, 2, 5, 5, 1, 2, 1, PC_ACTIVATION_NONE},
        {2, 8, 5, 6, 3, 4, 4, 2, 3, 1, PC_ACTIVATION_RELU},
    };
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int kind = sampled() ? i % 2 : 0; kind < 4; kind += sampled() ? 2 : 1)
            PC_SCOPE {
                const layer *l = &list[i];
                const pc_dtype dtype = kind < 2 ? PC_F16 : PC_BF16;
                const bool stopped = kind == 3; /* then nothing goes by float32 for the input's sake */
                pc_seed(31 + (uint64_t)i);
                pc_tensor *in[3] = {drawn(PC_SHAPE(l->n, l->c, l->h, l->w), dtype, 0.5),
                                    drawn(PC_SHAPE(l->o, l->c, l->kh, l->kw), dtype, 0.2),
                                    drawn(PC_SHAPE(l->o), dtype, 0.2)};
                pc_tensor *exact[RESULTS], *first[RESULTS], *again[RESULTS];
                convolve(l, in, PC_F64, PC_DEVICE_CPU, kind % 2, stopped, exact);
                convolve(l, in, dtype, test_device(), kind % 2, stopped, first);
                convolve(l, in, dtype, test_device(), kind % 2, stopped, again);
                for (int k = 0; k < RESULTS; k++) {
                    if (!first[k])
                        continue;
                    if (!(apart(first[k], exact[k]) < (dtype == PC_F16 ? 4e-3 : 3e-2)))
                        fail_msg("layer %d, kind %d, result %d: %g apart", i, kind, k, apart(first[k], exact[k]));
                    assert_close(pc_item(pc_sum(pc_ne(first[k], again[k]))), 0, 0);
                }
            }
    assert_no_leak();
}

static double nans(pc_tensor *t)
{
    return pc_item(pc_sum(pc_ne(t, t)));
}

static double infinities(pc_tensor *t)
{
    return pc_item(
        pc_sum(pc_cast(pc_eq(pc_abs(t), pc_full(PC_SHAPE(1), INFINITY, pc_tensor_dtype(t), PC_DEVICE_CPU)), PC_F32)));
}

/* Places that share a vector do not share their pixels. */
static void infinite_neighbours(void **state)
{
    static const layer list[] = {{1, 5, 9, 40, 4, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
                                 {1, 3, 9, 40, 5, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE}};
    (void)state;
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const layer *l = &list[i];
            pc_seed(10);
            pc_tensor *in[3] = {drawn(PC_SHAPE(1, l->c, l->h, l->w), PC_BF16, 1),
                                drawn(PC_SHAPE(l->o, l->c, l->kh, l->kw), PC_BF16, 1),
                                drawn(PC_SHAPE(l->o), PC_BF16, 1)};
            pc_tensor *out[RESULTS];
            for (int x = 2; x < 38; x += 7)
                assert_ok(
                    pc_fill(pc_slice(pc_slice(pc_slice(in[0], 1, 0, 1, 1), 2, 4, 5, 1), 3, x, x + 1, 1), INFINITY));
            convolve(l, in, PC_BF16, test_device(), true, true, out);
            assert_close(infinities(out[Y]), 6. * (double)(l->o * l->kh * l->kw), 0);
            assert_close(nans(out[Y]), 0, 0);
        }
    assert_no_leak();
}

/* Of an infinite pixel windows make infinities, no NaN, and one under no window touches nothing. */
static void infinite_pixels(void **state)
{
    static const layer under_first = {1, 3, 9, 9, 14, 3, 3, 1, 0, 1, PC_ACTIVATION_NONE},
                       unused = {2, 3, 12, 12, 14, 3, 3, 2, 0, 1, PC_ACTIVATION_NONE};
    (void)state;
    for (int c = 3; c <= 5; c += 2)
        PC_SCOPE {
            layer l = under_first;
            l.c = c;
            pc_seed(9);
            pc_tensor *in[3] = {drawn(PC_SHAPE(l.n, c, l.h, l.w), PC_BF16, 1),
                                drawn(PC_SHAPE(l.o, c, 3, 3), PC_BF16, 1), drawn(PC_SHAPE(l.o), PC_BF16, 1)};
            pc_tensor *out[RESULTS];
            assert_ok(pc_fill(pc_slice(pc_slice(pc_slice(in[0], 1, 0, 1, 1), 2, 4, 5, 1), 3, 4, 5, 1), INFINITY));
            convolve(&l, in, PC_BF16, test_device(), true, true, out);
            assert_close(nans(out[Y]), 0, 0);
            assert_true(isinf(pc_item(pc_max(pc_mul(out[Y], out[Y])))));

            l = unused;
            l.c = c;
            in[0] = drawn(PC_SHAPE(l.n, c, l.h, l.w), PC_BF16, 1);
            assert_ok(pc_fill(pc_slice(pc_slice(in[0], 2, 11, 12, 1), 3, 4, 5, 1), INFINITY));
            convolve(&l, in, PC_BF16, test_device(), true, true, out);
            for (int k = 0; k < RESULTS; k++)
                if (out[k])
                    assert_true(isfinite(pc_item(pc_sum(out[k]))));
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(as_in_double), cmocka_unit_test(infinite_pixels),
                                          cmocka_unit_test(infinite_neighbours)};

/* By these kernels wherever they can. */
int main(void)
{
    if (setenv("PARACORD_ONLY", "conv2d=shallow,conv2d_input=shallow,conv2d_weights=shallow", 1) != 0)
        return 1;
    return cmocka_run_group_tests_name("ops.conv2d_shallow", tests, NULL, NULL);
}

/* Convolutions of pictures and weights in C order leave the bits that channels last leaves: results and gradients, of sizes
 * around those of the squares that are turned, of float32 and 16-bit numbers. */
#include "channels_last.h"
#include "cpu/host.h"

#include "base/base.h"

#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/ops.h>
#include <stdlib.h>

enum { MOST = 100000, RESULTS = 4, ORDERS = 4 };

typedef struct sizes {
    int64_t n, c, h, w, o;
    int pool;
    pc_activation_kind activation;
} sizes;

static const sizes all[] = {{1, 3, 19, 17, 36, 0, PC_ACTIVATION_RELU}, {2, 5, 4, 5, 3, 0, PC_ACTIVATION_RELU},
                            {1, 1, 33, 31, 1, 0, PC_ACTIVATION_NONE},  {2, 2, 16, 18, 17, 0, PC_ACTIVATION_TANH},
                            {3, 4, 9, 64, 5, 2, PC_ACTIVATION_RELU},   {1, 2, 32, 32, 16, 0, PC_ACTIVATION_SIGMOID},
                            {1, 1, 3, 3, 40, 0, PC_ACTIVATION_RELU},   {2, 3, 12, 15, 6, 3, PC_ACTIVATION_TANH}};

static float got[ORDERS][RESULTS][MOST];
static int64_t counts[RESULTS];

static void keep(int order, int which, pc_tensor *t)
{
    t = pc_contiguous(pc_cast(t, PC_F32));
    counts[which] = pc_tensor_count(t);
    assert_true(counts[which] <= MOST);
    assert_ok(pc_read(t, got[order][which], (size_t)counts[which] * sizeof(float)));
}

static void run(const sizes *s, pc_dtype dtype, int order)
{
    PC_SCOPE {
        pc_seed(7);
        pc_tensor *x = pc_cast(pc_randn(PC_SHAPE(s->n, s->c, s->h, s->w), PC_F32, test_device()), dtype);
        pc_tensor *w = pc_cast(pc_randn(PC_SHAPE(s->o, s->c, 3, 3), PC_F32, test_device()), dtype);
        pc_tensor *b = pc_cast(pc_randn(PC_SHAPE(s->o), PC_F32, test_device()), dtype);
        x = order & 1 ? as_channels_last(x) : x;
        w = order & 2 ? as_channels_last(w) : w;
        pc_tensor *leaves[] = {x, w, b};
        for (int i = 0; i < 3; i++)
            assert_ok(pc_require_grad(leaves[i], true));
        pc_tensor *y = pc_fn_conv2d(
            x, w, b, (pc_fn_conv2d_options){.padding = {1, 1}, .pool = s->pool, .activation = s->activation});
        assert_non_null(y);
        pc_seed(8);
        const pc_shape shape = pc_tensor_shape(y);
        assert_ok(pc_backward_with(y, pc_cast(pc_randn(shape, PC_F32, test_device()), dtype)));
        keep(order, 0, y);
        for (int i = 0; i < 3; i++)
            keep(order, 1 + i, pc_grad(leaves[i]));
    }
}

static void check(pc_dtype dtype)
{
    for (int i = 0; i < PC__COUNT(all); i++)
        for (int order = 0; order < ORDERS; order++) {
            run(&all[i], dtype, order);
            for (int k = 0; k < RESULTS; k++)
                assert_memory_equal(got[0][k], got[order][k], (size_t)counts[k] * sizeof(float));
        }
}

static void same_bits(void **state)
{
    (void)state;
    check(PC_F32);
    check(PC_F16);
    check(PC_BF16);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_bits),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.conv_order", tests, NULL, NULL);
}

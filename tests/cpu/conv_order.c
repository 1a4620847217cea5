/* Convolutions of pictures in C order leave the bits that channels last leaves: results and gradients, of sizes around
 * those of the squares that are turned. */
#include "channels_last.h"
#include "cpu/host.h"

#include "base/base.h"

#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/ops.h>
#include <stdlib.h>

enum { MOST = 100000, RESULTS = 4 };

typedef struct sizes {
    int64_t n, c, h, w, o;
    int pool;
    pc_activation_kind activation;
} sizes;

static const sizes all[] = {{1, 3, 19, 17, 36, 0, PC_ACTIVATION_RELU}, {2, 5, 4, 5, 3, 0, PC_ACTIVATION_RELU},
                            {1, 1, 33, 31, 1, 0, PC_ACTIVATION_NONE},  {2, 2, 16, 18, 17, 0, PC_ACTIVATION_TANH},
                            {3, 4, 9, 64, 5, 2, PC_ACTIVATION_RELU},   {1, 2, 32, 32, 16, 0, PC_ACTIVATION_SIGMOID},
                            {1, 1, 3, 3, 40, 0, PC_ACTIVATION_RELU},   {2, 3, 12, 15, 6, 3, PC_ACTIVATION_TANH}};

static float got[2][RESULTS][MOST];
static int64_t counts[RESULTS];

static void keep(int order, int which, pc_tensor *t)
{
    t = pc_contiguous(t);
    counts[which] = pc_tensor_count(t);
    assert_true(counts[which] <= MOST);
    assert_ok(pc_read(t, got[order][which], (size_t)counts[which] * sizeof(float)));
}

static void run(const sizes *s, int order)
{
    PC_SCOPE {
        pc_seed(7);
        pc_tensor *x = pc_randn(PC_SHAPE(s->n, s->c, s->h, s->w), PC_F32, test_device());
        pc_tensor *w = pc_randn(PC_SHAPE(s->o, s->c, 3, 3), PC_F32, test_device());
        pc_tensor *b = pc_randn(PC_SHAPE(s->o), PC_F32, test_device());
        if (order == 1) /* channels last */
            x = as_channels_last(x);
        pc_tensor *leaves[] = {x, w, b};
        for (int i = 0; i < 3; i++)
            assert_ok(pc_require_grad(leaves[i], true));
        pc_tensor *y = pc_fn_conv2d(
            x, w, b, (pc_fn_conv2d_options){.padding = {1, 1}, .pool = s->pool, .activation = s->activation});
        assert_non_null(y);
        pc_seed(8);
        const pc_shape shape = pc_tensor_shape(y);
        assert_ok(pc_backward(pc_sum(pc_mul(y, pc_randn(shape, PC_F32, test_device())))));
        keep(order, 0, y);
        for (int i = 0; i < 3; i++)
            keep(order, 1 + i, pc_grad(leaves[i]));
    }
}

static void same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(all); i++) {
        run(&all[i], 0);
        run(&all[i], 1);
        for (int k = 0; k < RESULTS; k++)
            assert_memory_equal(got[0][k], got[1][k], (size_t)counts[k] * sizeof(float));
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_bits),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.conv_order", tests, NULL, NULL);
}

/* numbers.c: numbers that make no sense where a training or a shape is described: refused with the range, never taken.
 */
#include "support.h"

#include <math.h>
#include <paracord/augment.h>
#include <paracord/fit.h>
#include <paracord/nn.h>

static const double no_rates[] = {-1, -1e-9, NAN, INFINITY, -INFINITY, 1e300};

static void rates_are_numbers_above_zero(void **state)
{
    (void)state;
    pc_module *net = pc_linear(2, 1);
    assert_not_null_ok(net);
    for (size_t i = 0; i < sizeof no_rates / sizeof *no_rates; i++) {
        assert_fails(pc_sgd(net, .lr = no_rates[i]), PC_ERR_ARGUMENT, "pc_sgd: lr");
        assert_fails(pc_adam(net, .lr = no_rates[i]), PC_ERR_ARGUMENT, "pc_adam: lr");
        assert_fails(pc_adam(net, .epsilon = no_rates[i]), PC_ERR_ARGUMENT, "above 0 and finite");
        assert_fails(pc_sgd(net, .momentum = no_rates[i]), PC_ERR_ARGUMENT, "in [0, 1)");
        assert_fails(pc_sgd(net, .weight_decay = no_rates[i]), PC_ERR_ARGUMENT, "at least 0 and finite");
        assert_fails(pc_adam(net, .weight_decay = no_rates[i]), PC_ERR_ARGUMENT, "at least 0 and finite");
        assert_fails(pc_adam(net, .beta1 = no_rates[i]), PC_ERR_ARGUMENT, "inside (0, 1)");
        assert_fails(pc_adam(net, .beta2 = no_rates[i]), PC_ERR_ARGUMENT, "inside (0, 1)");
        assert_fails(pc_dropout(no_rates[i]), PC_ERR_ARGUMENT, "0 to 1");
    }
    pc_module_free(net);
}

static void a_rate_that_is_refused_leaves_the_old_one(void **state)
{
    (void)state;
    pc_module *net = pc_linear(2, 1);
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.5);
    assert_not_null_ok(sgd);
    for (size_t i = 0; i < sizeof no_rates / sizeof *no_rates; i++) {
        assert_fails((pc_optimizer_set_lr(sgd, no_rates[i]), 1), PC_ERR_ARGUMENT,
                     "at least 0 and finite; it stays 0.5");
        assert_close(pc_optimizer_lr(sgd), 0.5, 0);
    }
    pc_optimizer_set_lr(sgd, 0); /* the end of a schedule */
    assert_false(pc_failed());
    assert_close(pc_optimizer_lr(sgd), 0, 0);
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

static void shapes_have_eight_dimensions_at_most(void **state)
{
    (void)state;
    const int counts[] = {9, 40, INT32_MAX, -1, -40, INT32_MIN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pc_shape shape = {.ndim = counts[i], .dim = {0, 1, 2, 3, 4, 5, 6, 7}};
        PC_SCOPE {
            pc_tensor *t = pc_zeros(PC_SHAPE(2, 3), PC_F32, PC_DEVICE_CPU);
            char memory[8] = {0};
            assert_fails(pc_empty(shape, PC_F32, PC_DEVICE_CPU), PC_ERR_SHAPE, "0 to 8 dimensions");
            assert_fails(pc_rand(shape, PC_F32, PC_DEVICE_CPU), PC_ERR_SHAPE, "0 to 8 dimensions");
            assert_fails(pc_from_data(memory, shape, PC_F32, PC_DEVICE_CPU), PC_ERR_SHAPE, "0 to 8 dimensions");
            assert_fails(pc_from_memory(memory, shape, PC_F32, NULL, NULL), PC_ERR_SHAPE, "0 to 8 dimensions");
            assert_fails(pc_reshape(t, shape), PC_ERR_SHAPE, "reshape: a tensor has 0 to 8 dimensions");
            assert_fails(pc_permute(t, shape), PC_ERR_SHAPE, "permute: a tensor has 0 to 8 dimensions");
            assert_fails(pc_expand(t, shape), PC_ERR_SHAPE, "expand: a tensor has 0 to 8 dimensions");
            assert_fails(pc_sum_dims(t, shape, false), PC_ERR_SHAPE, "sum: a tensor has 0 to 8 dimensions");
            assert_fails(pc_mean_dims(t, shape, false), PC_ERR_SHAPE, "mean: a tensor has 0 to 8 dimensions");
            assert_fails(pc_init_weight(shape, PC_INIT_HE, 1, 1), PC_ERR_SHAPE, "0 to 8 dimensions");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_numbers_above_zero),
                                       cmocka_unit_test(a_rate_that_is_refused_leaves_the_old_one),
                                       cmocka_unit_test(shapes_have_eight_dimensions_at_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

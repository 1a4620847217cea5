/* Initial weights: their ranges, their spread, and that a seed gives them again. */
#include "nn/networks.h"

/* All within +-limit, close to it at both ends, with the variance of a uniform distribution, limit^2 / 3. */
static void assert_uniform(pc_tensor *t, double limit)
{
    double *v = values_of(t), low = INFINITY, high = -INFINITY, squares = 0;
    int64_t n = pc_tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
        squares += v[i] * v[i];
    }
    free(v);
    assert_true(low >= -limit * (1 + 1e-6) && low < -0.99 * limit);
    assert_true(high <= limit * (1 + 1e-6) && high > 0.99 * limit);
    assert_close(squares / (double)n / (limit * limit / 3), 1, 0.05);
}

static void assert_zero(pc_tensor *t)
{
    double *v = values_of(t);
    for (int64_t i = 0; i < pc_tensor_count(t); i++)
        assert_true(v[i] == 0);
    free(v);
}

static void ranges(void **state)
{
    (void)state;
    pc_seed(5);
    const int in = 200, out = 300, window = 9;
    for (int kind = 0; kind < PC_INIT_KINDS; kind++) {
        pc_module *linear = pc_linear(in, out, .init = (pc_init_kind)kind);
        pc_module *conv = pc_conv2d(20, 30, 3, .init = (pc_init_kind)kind);
        double linear_limits[] = {1 / sqrt(in), sqrt(6.0 / (in + out)), sqrt(6.0 / in)};
        double conv_limits[] = {1 / sqrt(20 * window), sqrt(6.0 / (50 * window)), sqrt(6.0 / (20 * window))};
        assert_uniform(pc_module_parameter(linear, "weight"), linear_limits[kind]);
        assert_uniform(pc_module_parameter(conv, "weight"), conv_limits[kind]);
        if (kind != PC_INIT_TORCH) {
            assert_zero(pc_module_parameter(linear, "bias"));
            assert_zero(pc_module_parameter(conv, "bias"));
        }
        pc_module_free(linear);
        pc_module_free(conv);
    }
    pc_module *wide = pc_linear(4, 20000); /* PyTorch's biases are drawn too */
    assert_uniform(pc_module_parameter(wide, "bias"), 0.5);
    pc_module_free(wide);
    assert_nothing_left();
}

static void seeds_give_them_again(void **state)
{
    (void)state;
    pc_module *nets[3];
    for (int i = 0; i < 3; i++) {
        pc_seed(i < 2 ? 11 : 12);
        nets[i] = pc_sequential(pc_linear(5, 4), pc_linear(4, 5));
    }
    assert_true(distance(pc_module_parameter(nets[0], "1.weight"), pc_module_parameter(nets[1], "1.weight")) == 0);
    assert_true(distance(pc_module_parameter(nets[0], "1.weight"), pc_module_parameter(nets[2], "1.weight")) > 0.01);
    for (int i = 0; i < 3; i++)
        pc_module_free(nets[i]);
    assert_fails(pc_init_weight(PC_SHAPE(2), (pc_init_kind)-1, 1, 1), PC_ERR_ARGUMENT, "initialiser");
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges), cmocka_unit_test(seeds_give_them_again)};
    return cmocka_run_group_tests_name("nn.init", tests, NULL, NULL);
}

/* Maxima and averages over windows. */
#include "ops/golden.h"

static pc_pool2d_spec spec_of(const golden *g)
{
    return (pc_pool2d_spec){.kernel = {(int)g->args[0], (int)g->args[1]},
                            .stride = {(int)g->args[2], (int)g->args[3]},
                            .padding = {(int)g->args[4], (int)g->args[5]}};
}

static void check_order(const golden *g, const pc_tensor *y)
{
    assert_not_null_ok(y);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_int_equal(pc_tensor_stride(y, 1), 1);
    else
        assert_true(pc_tensor_is_contiguous(y));
}

static void run_max_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_max_pool2d(in[0], spec_of(g));
    check_order(g, out[0]);
}

static void run_avg_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_avg_pool2d(in[0], spec_of(g));
    check_order(g, out[0]);
}

static const golden_op ops[] = {{"max_pool2d", run_max_pool2d}, {"avg_pool2d", run_avg_pool2d}};

#define SPEC(...) ((pc_pool2d_spec){__VA_ARGS__})

static void bad_input(void **state)
{
    (void)state;
    pc_tensor *(*const pools[])(pc_tensor *, pc_pool2d_spec) = {pc_fn_max_pool2d, pc_fn_avg_pool2d};
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const char *who = ops[i].name;
            pc_tensor *x = pc_zeros(PC_SHAPE(1, 2, 4, 3), PC_F32, test_device());
            const pc_pool2d_spec two = {.kernel = {2, 2}};
            assert_fails(pools[i](pc_reshape(x, PC_SHAPE(2, 4, 3)), two), PC_ERR_SHAPE, who);
            assert_fails(pools[i](pc_cast(x, PC_I32), two), PC_ERR_DTYPE, "int32");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 4})), PC_ERR_SHAPE, "too small for a window of 2 x 4");
            assert_fails(pools[i](x, SPEC(.kernel = {0, 2})), PC_ERR_ARGUMENT, "kernel 0");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .stride = {1, -1})), PC_ERR_ARGUMENT, "stride -1");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {2, 0})), PC_ERR_ARGUMENT, "padding 2");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {-1, 0})), PC_ERR_ARGUMENT, "padding -1");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {0, INT32_MAX})), PC_ERR_ARGUMENT,
                         "half the kernel");
            assert_fails(pools[i](NULL, two), PC_ERR_ARGUMENT, who);
            assert_fails(pools[i](pc_add(x, pc_zeros(PC_SHAPE(5), PC_F32, test_device())), two), PC_ERR_SHAPE, "add");
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input)};

int main(void)
{
    return golden_main("ops.pool2d", ops, tests);
}

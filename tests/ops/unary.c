/* Functions of one tensor, element by element. */
#include "ops/golden.h"

#define UNARY(name)                                                                                                    \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0]);                                                                                     \
    }
UNARY(neg)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)

static const golden_op ops[] = {
    {"neg", run_neg},   {"exp", run_exp},         {"log", run_log},   {"sqrt", run_sqrt},
    {"relu", run_relu}, {"sigmoid", run_sigmoid}, {"tanh", run_tanh},
};

static void bools_have_no_sign(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(2), PC_BOOL, test_device());
        assert_fails(pc_neg(a), PC_ERR_DTYPE, "neg");
        assert_fails(pc_relu(a), PC_ERR_DTYPE, "relu");
    }
    assert_no_leak();
}

static void null_flows(void **state)
{
    (void)state;
    assert_fails(pc_neg(NULL), PC_ERR_ARGUMENT, "neg");
    assert_fails(pc_tanh(pc_exp(NULL)), PC_ERR_ARGUMENT, "exp");
    assert_fails(pc_sqrt(pc_log(pc_sigmoid(pc_relu(NULL)))), PC_ERR_ARGUMENT, "relu");
}

/* float32 within a few units in the last place of the C library's double functions, over the whole range. */
static void close_to_the_c_library(void **state)
{
    (void)state;
    enum { N = 20001 };
    PC_SCOPE {
        pc_tensor *x = pc_sub_scalar(pc_mul_scalar(pc_arange(0, N, 1, PC_F32, test_device()), 0.0085), 85);
        static float hx[N], e[N], s[N], t[N];
        assert_ok(pc_read(x, hx, sizeof hx));
        assert_ok(pc_read(pc_exp(x), e, sizeof e));
        assert_ok(pc_read(pc_sigmoid(x), s, sizeof s));
        assert_ok(pc_read(pc_tanh(x), t, sizeof t));
        for (int i = 0; i < N; i++) {
            double want = exp((double)hx[i]), squashed = 1 / (1 + exp(-(double)hx[i]));
            assert_close((double)e[i] / want, 1, 5e-7);
            assert_close((double)s[i] / squashed, 1, 1e-6);
            assert_close(t[i], tanh((double)hx[i]), 2e-7);
        }
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bools_have_no_sign),
    cmocka_unit_test(null_flows),
    cmocka_unit_test(close_to_the_c_library),
};

int main(void)
{
    return golden_main("ops.unary", ops, tests);
}

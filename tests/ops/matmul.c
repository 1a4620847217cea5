/* Matrix products. */
#include "ops/golden.h"

static void run_matmul(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_matmul(in[0], in[1]);
}

static const golden_op ops[] = {{"matmul", run_matmul}};

static pc_tensor *zeros(pc_shape shape)
{
    return pc_zeros(shape, PC_F32, test_device());
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = zeros(PC_SHAPE(2, 3)), *b = zeros(PC_SHAPE(4, 2));
        assert_fails(pc_matmul(a, b), PC_ERR_SHAPE, "[2, 3] x [4, 2]: the inner sizes 3 and 4 differ");
        assert_fails(pc_matmul(a, zeros(PC_SHAPE(2))), PC_ERR_SHAPE, "inner sizes 3 and 2");
        assert_fails(pc_matmul(zeros(PC_SHAPE(2)), a = zeros(PC_SHAPE(3, 2))), PC_ERR_SHAPE, "inner sizes 2 and 3");
        assert_fails(pc_matmul(zeros(PC_SHAPE(2, 2, 3)), zeros(PC_SHAPE(3, 3, 2))), PC_ERR_SHAPE, "broadcast");
        assert_fails(pc_matmul(zeros(PC_SHAPE_SCALAR), a), PC_ERR_SHAPE, "at least one dimension");
        assert_fails(pc_matmul(a, pc_cast(b, PC_F64)), PC_ERR_DTYPE, "float32 and float64");
        assert_fails(pc_matmul(pc_cast(a, PC_I32), pc_cast(b, PC_I32)), PC_ERR_DTYPE, "int32");
        pc_tensor *tall = pc_reshape(zeros(PC_SHAPE(0)), PC_SHAPE((int64_t)1 << 40, 0));
        assert_fails(pc_matmul(tall, pc_transpose(tall, 0, 1)), PC_ERR_MEMORY, "matmul");
        assert_fails(pc_matmul(NULL, b), PC_ERR_ARGUMENT, "matmul");
        assert_fails(pc_matmul(a, pc_reshape(b, PC_SHAPE(3))), PC_ERR_SHAPE, "reshape");
    }
    assert_no_leak();
}

/* Beyond the kernel's blocks, in each combination of transposed operands, against sums in double. */
static void large_products(void **state)
{
    (void)state;
    enum { M = 157, K = 311, N = 203 };
    for (int turned = 0; turned < 4; turned++)
        PC_SCOPE {
            pc_tensor *a = pc_randn(turned & 1 ? PC_SHAPE(K, M) : PC_SHAPE(M, K), PC_F32, test_device());
            pc_tensor *b = pc_randn(turned & 2 ? PC_SHAPE(N, K) : PC_SHAPE(K, N), PC_F32, test_device());
            a = turned & 1 ? pc_transpose(a, 0, 1) : a;
            b = turned & 2 ? pc_transpose(b, 0, 1) : b;
            static float ha[M * K], hb[K * N], hy[M * N];
            assert_ok(pc_read(a, ha, sizeof ha));
            assert_ok(pc_read(b, hb, sizeof hb));
            assert_ok(pc_read(pc_matmul(a, b), hy, sizeof hy));
            for (int i = 0; i < M; i++)
                for (int j = 0; j < N; j++) {
                    double want = 0;
                    for (int k = 0; k < K; k++)
                        want += (double)ha[i * K + k] * (double)hb[k * N + j];
                    assert_close((double)hy[i * N + j], want, 2e-4);
                }
        }
    assert_no_leak();
}

/* TF32 is asked for by a thread, and is near: the factors keep 10 bits of their fraction. */
static void precision_is_a_choice(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_rand(PC_SHAPE(64, 64), PC_F32, test_device()),
                  *b = pc_rand(PC_SHAPE(64, 64), PC_F32, test_device()), *exact = pc_matmul(a, b);
        assert_int_equal(pc_matmul_precision_set(PC_PRECISION_TF32), PC_PRECISION_F32);
        pc_tensor *near = pc_matmul(a, b);
        assert_int_equal(pc_matmul_precision_set(PC_PRECISION_F32), PC_PRECISION_TF32);
        pc_tensor *off = pc_sub(near, exact), *mean = pc_mean(exact);
        assert_true(sqrt(pc_item(pc_mean(pc_mul(off, off)))) < 1e-3 * pc_item(mean));
    }
}

/* An operand's gradient is the same whether the other one, or what is saved for it, is asked for too. */
static void gradients_of_one_operand(void **state)
{
    (void)state;
    enum { BATCH = 2, M = 3, K = 4, N = 5 };
    double of_a[2][BATCH * M * K], of_b[2][K * N];
    for (int needs = 1; needs < 4; needs++)
        PC_SCOPE {
            pc_tensor *a = pc_reshape(pc_arange(0, BATCH * M * K, 1, PC_F64, test_device()), PC_SHAPE(BATCH, M, K)),
                      *b = pc_reshape(pc_arange(0, K * N, 1, PC_F64, test_device()), PC_SHAPE(K, N));
            if (needs & 1)
                assert_ok(pc_require_grad(a, true));
            if (needs & 2)
                assert_ok(pc_require_grad(b, true));
            pc_tensor *y = pc_matmul(a, b);
            assert_ok(pc_backward_with(y, pc_detach(y)));
            if (needs & 1)
                assert_ok(pc_read(pc_grad(a), of_a[needs == 3], sizeof of_a[0]));
            if (needs & 2)
                assert_ok(pc_read(pc_grad(b), of_b[needs == 3], sizeof of_b[0]));
        }
    assert_memory_equal(of_a[0], of_a[1], sizeof of_a[0]);
    assert_memory_equal(of_b[0], of_b[1], sizeof of_b[0]);
    assert_no_leak();
}

/* Matrices of few rows, all times one, whose rows do not go on from one to the next, are one product of copies: as the products and
 * gradients of their contiguous copies. Numbers are small integers, whose sums are exact in any order. */
static void slight_matrices_of_a_batch(void **state)
{
    (void)state;
    enum { BATCH = 70, ROWS = 3, K = 509, N = 120 };
    static float y[2][BATCH * ROWS * N], da[2][BATCH * ROWS * K], db[2][K * N];
    PC_SCOPE {
        pc_tensor *columns = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(BATCH, K, ROWS), PC_F32, test_device()), 8));
        pc_tensor *b = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(K, N), PC_F32, test_device()), 8));
        pc_tensor *turned = pc_transpose(columns, 1, 2), *of[] = {turned, pc_contiguous(turned)};
        pc_tensor *seed = pc_floor(pc_mul_scalar(pc_rand(PC_SHAPE(BATCH, ROWS, N), PC_F32, test_device()), 4));
        for (int whole = 0; whole < 2; whole++) {
            pc_tensor *a = of[whole], *own = pc_clone(b);
            assert_ok(pc_require_grad(a, true));
            assert_ok(pc_require_grad(own, true));
            pc_tensor *product = pc_matmul(a, own);
            assert_ok(pc_backward_with(product, seed));
            assert_ok(pc_read(product, y[whole], sizeof y[0]));
            assert_ok(pc_read(pc_contiguous(pc_grad(a)), da[whole], sizeof da[0]));
            assert_ok(pc_read(pc_grad(own), db[whole], sizeof db[0]));
        }
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(da[0], da[1], sizeof da[0]);
    assert_memory_equal(db[0], db[1], sizeof db[0]);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slight_matrices_of_a_batch),
    cmocka_unit_test(precision_is_a_choice),
    cmocka_unit_test(bad_input),
    cmocka_unit_test(large_products),
    cmocka_unit_test(gradients_of_one_operand),
};

int main(void)
{
    return golden_main("ops.matmul", ops, tests);
}

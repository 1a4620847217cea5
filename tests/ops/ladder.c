/* The lessons' kernels compute what the ops do, at every rung. */
#include <math.h>

#include "device.h"

#include <paracord/ladder.h>
#include <paracord/ops.h>

static double apart(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *d = pc_sub(a, b);
    return sqrt(pc_item(pc_max(pc_mul(d, d))));
}

static void every_rung_adds(void **state)
{
    (void)state;
    const pc_rung *rungs;
    const int count = pc_ladder_rungs(PC_LADDER_ADD, test_device(), &rungs);
    static const int64_t sizes[] = {1, 3, 6, 1023, 1025, 100003};
    assert_true(count > 2);
    for (int rung = 0; rung < count; rung++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            PC_SCOPE {
                pc_tensor *a = pc_randn(PC_SHAPE(sizes[i]), PC_F32, test_device()),
                          *b = pc_randn(PC_SHAPE(sizes[i]), PC_F32, test_device()),
                          *c = pc_full(PC_SHAPE(sizes[i]), NAN, PC_F32, test_device());
                assert_ok(pc_ladder_climb(PC_LADDER_ADD, rung, a, b, c));
                assert_close(apart(pc_add(a, b), c), 0, 0);
                /* a view that begins between two wide accesses */
                if (sizes[i] < 3)
                    continue;
                pc_tensor *c1 = pc_slice(c, 0, 1, PC_END_OF_DIM, 1), *a1 = pc_slice(a, 0, 1, PC_END_OF_DIM, 1),
                          *b1 = pc_slice(b, 0, 0, sizes[i] - 1, 1);
                assert_ok(pc_fill(c, NAN));
                assert_ok(pc_ladder_climb(PC_LADDER_ADD, rung, a1, b1, c1));
                assert_close(apart(pc_add(a1, b1), c1), 0, 0);
            }
    assert_no_leak();
}

static void every_rung_multiplies(void **state)
{
    (void)state;
    const pc_rung *rungs;
    const int count = pc_ladder_rungs(PC_LADDER_MATMUL, test_device(), &rungs);
    assert_true(count > 2);
    for (int rung = 0; rung < count; rung++)
        for (int n = 128; n <= 384; n += 128)
            PC_SCOPE {
                pc_tensor *a = pc_randn(PC_SHAPE(n, n), PC_F32, test_device()),
                          *b = pc_randn(PC_SHAPE(n, n), PC_F32, test_device()),
                          *c = pc_full(PC_SHAPE(n, n), NAN, PC_F32, test_device());
                assert_ok(pc_ladder_climb(PC_LADDER_MATMUL, rung, a, b, c));
                assert_close(apart(pc_matmul(a, b), c), 0, 1e-4);
            }
    assert_no_leak();
}

static void multiply_adds(void **state)
{
    (void)state;
    float got[1536];
    PC_SCOPE {
        pc_tensor *x = pc_arange(0, 1536, 1, PC_F32, test_device());
        assert_ok(pc_ladder_fma(x, 3));
        assert_ok(pc_read(x, got, sizeof got));
    }
    for (int i = 0; i < 1536; i++)
        assert_close(got[i], i / 8.0 + 0.875, 1e-3);
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_device device = test_device();
        pc_tensor *a = pc_zeros(PC_SHAPE(128, 128), PC_F32, device), *b = pc_zeros(PC_SHAPE(130, 130), PC_F32, device),
                  *i = pc_zeros(PC_SHAPE(128, 128), PC_I32, device);
        assert_fails(pc_ladder_climb(PC_LADDER_MATMUL, 99, a, a, a), PC_ERR_ARGUMENT, "no rung 99; they are 0 to");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, -1, a, a, a), PC_ERR_ARGUMENT, "no rung -1");
        assert_fails(pc_ladder_climb(PC_LADDER_MATMUL, 0, b, b, b), PC_ERR_SHAPE, "multiple of 128");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, 0, a, b, a), PC_ERR_SHAPE, "alike");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, 0, i, i, i), PC_ERR_DTYPE, "int32");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, 0, pc_transpose(a, 0, 1), a, a), PC_ERR_SHAPE, "contiguous");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, 0, NULL, a, a), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_ladder_climb(PC_LADDER_ADD, 0, a, a, NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_ladder_fma(a, 1), PC_ERR_ARGUMENT, "multiple of 768");
        assert_fails(pc_ladder_fma(NULL, 1), PC_ERR_ARGUMENT, "NULL");
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_rung_adds),
    cmocka_unit_test(every_rung_multiplies),
    cmocka_unit_test(multiply_adds),
    cmocka_unit_test(bad_input),
};

int main(void)
{
    return cmocka_run_group_tests_name("ops.ladder", tests, NULL, NULL);
}

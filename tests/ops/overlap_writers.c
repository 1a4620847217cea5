/* Everything that writes in place, where memory is shared: each case by itself (overlap.c draws views at random). */
#include "device.h"

#include <paracord/autograd.h>
#include <paracord/ladder.h>
#include <paracord/ops.h>

static void a_matrix_becomes_its_transpose(void **state)
{
    (void)state;
    for (int dtype = PC_U8; dtype < PC_DTYPE_COUNT; dtype++)
        PC_SCOPE {
            pc_tensor *m =
                pc_reshape(pc_cast(pc_arange(0, 16, 1, PC_F32, test_device()), (pc_dtype)dtype), PC_SHAPE(4, 4));
            assert_ok(pc_copy(m, pc_transpose(m, 0, 1)));
            float got[16];
            assert_ok(pc_read(pc_cast(m, PC_F32), got, sizeof got));
            for (int i = 0; i < 16; i++)
                assert_close(got[i], i % 4 * 4 + i / 4, 0);
        }
    assert_no_leak();
}

/* Filling gives an element that is there several times one value: as in PyTorch it may. */
static void fill_takes_repeated_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device());
        assert_ok(pc_fill(pc_expand(pc_slice(a, 1, 1, 2, 1), PC_SHAPE(4, 3, 5)), 2));
        assert_close(pc_item(pc_sum(a)), 6, 0);
        pc_tensor *none = pc_expand(pc_zeros(PC_SHAPE(0, 1), PC_F32, test_device()), PC_SHAPE(0, 3));
        assert_ok(pc_copy(none, pc_zeros(PC_SHAPE(3), PC_F32, test_device()))); /* nothing is there twice */
    }
    assert_no_leak();
}

static void rungs_of_ladders(void **state)
{
    (void)state;
    enum { N = 128 };
    const pc_rung *rungs;
    for (int rung = 0; rung < pc_ladder_rungs(PC_LADDER_MATMUL, test_device(), &rungs); rung++)
        PC_SCOPE {
            pc_tensor *a =
                pc_mul_scalar(pc_reshape(pc_arange(0, N * N, 1, PC_F32, test_device()), PC_SHAPE(N, N)), 1.0 / N / N);
            pc_tensor *want = pc_matmul(a, a);
            assert_ok(pc_ladder_climb(PC_LADDER_MATMUL, rung, a, a, a));
            assert_true(pc_item(pc_max(pc_mul(pc_sub(a, want), pc_sub(a, want)))) < 1e-4);
        }
    for (int rung = 0; rung < pc_ladder_rungs(PC_LADDER_ADD, test_device(), &rungs); rung++)
        PC_SCOPE {
            pc_tensor *line = pc_arange(0, 65, 1, PC_F32, test_device());
            assert_ok(pc_ladder_climb(PC_LADDER_ADD, rung, pc_slice(line, 0, 0, 64, 1), pc_slice(line, 0, 0, 64, 1),
                                      pc_slice(line, 0, 1, 65, 1)));
            float got[65];
            assert_ok(pc_read(line, got, sizeof got));
            for (int i = 0; i < 65; i++)
                assert_close(got[i], i ? 2 * (i - 1) : 0, 0);
        }
    assert_no_leak();
}

/* The gradient that a walk brings is a view of the one that the leaf has. */
static void a_gradient_that_comes_back_turned(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_reshape(pc_arange(0, 9, 1, PC_F32, test_device()), PC_SHAPE(3, 3));
        assert_ok(pc_require_grad(w, true));
        assert_ok(pc_backward_with(w, pc_reshape(pc_arange(0, 9, 1, PC_F32, test_device()), PC_SHAPE(3, 3))));
        assert_ok(pc_backward_with(pc_transpose(w, 0, 1), pc_grad(w)));
        float got[9];
        assert_ok(pc_read(pc_grad(w), got, sizeof got));
        for (int i = 0; i < 9; i++)
            assert_close(got[i], i + (i % 3 * 3 + i / 3), 0);
    }
    assert_no_leak();
}

static const pc_module_class plain = {.name = "Plain", .forward = pc_forward};

static void parameters_that_share_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *line = pc_zeros(PC_SHAPE(6), PC_F32, test_device());
        for (int apart = 0; apart < 2; apart++) {
            pc_module *module = pc_module_new(&plain, 0);
            assert_ok(pc_module_add_parameter(module, "first", pc_slice(line, 0, 0, 3, 1)));
            assert_ok(pc_module_add_parameter(module, "second", pc_slice(line, 0, 2 + apart, 5 + apart, 1)));
            if (apart) {
                pc_optimizer *sgd = pc_sgd(module, .lr = 1);
                assert_not_null_ok(sgd);
                pc_optimizer_free(sgd);
            } else {
                assert_fails(pc_sgd(module), PC_ERR_ARGUMENT, "\"first\" and \"second\"");
                assert_fails(pc_adam(module), PC_ERR_ARGUMENT, "share memory");
            }
            pc_module_free(module);
        }
    }
    assert_no_leak();
}

/* The state names the module's own tensors, the other way round. */
static void a_state_of_the_module_itself(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_module *module = pc_module_new(&plain, 0);
        pc_tensor *a = pc_ones(PC_SHAPE(3), PC_F32, test_device()), *b = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_ok(pc_module_add_parameter(module, "a", a));
        assert_ok(pc_module_add_parameter(module, "b", b));
        const pc_parameter swapped[] = {{"a", b}, {"b", a}};
        assert_ok(pc_module_load(module, swapped, 2));
        assert_close(pc_item(pc_sum(a)), 0, 0);
        assert_close(pc_item(pc_sum(b)), 3, 0);
        pc_module_free(module);
    }
    assert_no_leak();
}

/* Memory of the program under two tensors. */
static void memory_wrapped_twice(void **state)
{
    (void)state;
    only_on_the_cpu();
    PC_SCOPE {
        float line[6] = {0, 1, 2, 3, 4, 5};
        pc_tensor *to = pc_from_memory(line + 1, PC_SHAPE(5), PC_F32, NULL, NULL);
        pc_tensor *from = pc_from_memory(line, PC_SHAPE(5), PC_F32, NULL, NULL);
        assert_ok(pc_saxpy(to, 1, from));
        for (int i = 1; i < 6; i++)
            assert_close(line[i], 2 * i - 1, 0);
        union {
            int32_t narrow[4];
            int64_t wide[2];
        } bits = {.narrow = {1, 2, 3, 4}};
        assert_ok(pc_copy(pc_from_memory(bits.wide, PC_SHAPE(2), PC_I64, NULL, NULL),
                          pc_from_memory(bits.narrow, PC_SHAPE(2), PC_I32, NULL, NULL)));
        assert_int_equal(bits.wide[0], 1);
        assert_int_equal(bits.wide[1], 2);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_becomes_its_transpose),
        cmocka_unit_test(fill_takes_repeated_memory),
        cmocka_unit_test(rungs_of_ladders),
        cmocka_unit_test(a_gradient_that_comes_back_turned),
        cmocka_unit_test(parameters_that_share_memory),
        cmocka_unit_test(a_state_of_the_module_itself),
        cmocka_unit_test(memory_wrapped_twice),
    };
    return cmocka_run_group_tests_name("ops.overlap_writers", tests, NULL, NULL);
}

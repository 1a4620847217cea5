/* Comparisons, and choice by a condition. */
#include "ops/golden.h"

#define COMPARE(name)                                                                                                  \
    static void run_##name(const golden *g, pc_tensor **in, pc_tensor **out)                                           \
    {                                                                                                                  \
        (void)g;                                                                                                       \
        out[0] = pc_##name(in[0], in[1]);                                                                              \
    }
COMPARE(eq)
COMPARE(ne)
COMPARE(lt)
COMPARE(le)
COMPARE(gt)
COMPARE(ge)

static void run_where(const golden *g, pc_tensor **in, pc_tensor **out)
{
    (void)g;
    out[0] = pc_where(in[0], in[1], in[2]);
}

static const golden_op ops[] = {
    {"eq", run_eq}, {"ne", run_ne}, {"lt", run_lt},       {"le", run_le},
    {"gt", run_gt}, {"ge", run_ge}, {"where", run_where},
};

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *two = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *three = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *yes = pc_ones(PC_SHAPE(2), PC_BOOL, test_device());
        assert_fails(pc_eq(two, three), PC_ERR_SHAPE, "eq: the shapes [2] and [3]");
        assert_fails(pc_ge(three, two), PC_ERR_SHAPE, "ge");
        assert_fails(pc_lt(NULL, two), PC_ERR_ARGUMENT, "lt");
        assert_fails(pc_ne(pc_add(two, three), two), PC_ERR_SHAPE, "add");
        assert_fails(pc_where(two, two, two), PC_ERR_DTYPE, "bool");
        assert_fails(pc_where(yes, two, three), PC_ERR_SHAPE, "[2] and [3]");
        assert_fails(pc_where(yes, three, three), PC_ERR_SHAPE, "where");
        assert_fails(pc_where(NULL, two, two), PC_ERR_ARGUMENT, "where");
        assert_fails(pc_where(yes, two, NULL), PC_ERR_ARGUMENT, "where");
    }
    assert_no_leak();
}

static void comparisons_are_not_recorded(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        assert_ok(pc_require_grad(a, true));
        pc_tensor *y = pc_eq(a, a);
        assert_false(pc_requires_grad(y));
        assert_true(pc_is_leaf(y));
        assert_fails(pc_backward(pc_sum(y)), PC_ERR_STATE, "require");
    }
    assert_no_leak();
}

/* Of operands without elements the result has the shape of all together. */
static void of_nothing(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 1, 1, 0), PC_F32, test_device()),
                  *b = pc_zeros(PC_SHAPE(2, 5, 1, 0), PC_F32, test_device());
        pc_tensor *yes = pc_eq(a, a);
        const pc_shape made = pc_tensor_shape(pc_where(yes, a, b)), turned = pc_tensor_shape(pc_where(yes, b, a));
        for (int i = 0; i < 4; i++) {
            assert_int_equal(made.dim[i], ((int[]){2, 5, 1, 0})[i]);
            assert_int_equal(turned.dim[i], made.dim[i]);
        }
    }
    assert_no_leak();
}

/* In the memory order of an operand. */
static void lies_as_its_operands(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_permute(pc_ones(PC_SHAPE(2, 3, 4, 5), PC_F32, test_device()), PC_SHAPE(0, 3, 1, 2));
        pc_tensor *y = pc_where(pc_gt(a, pc_scalar(0, PC_F32, test_device())), a, pc_scalar(0, PC_F32, test_device()));
        for (int i = 0; i < 4; i++)
            assert_int_equal(pc_tensor_stride(y, i), pc_tensor_stride(a, i));
        assert_close(pc_item(pc_sum(y)), 120, 0);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_input),
    cmocka_unit_test(comparisons_are_not_recorded),
    cmocka_unit_test(of_nothing),
    cmocka_unit_test(lies_as_its_operands),
};

int main(void)
{
    return golden_main("ops.compare", ops, tests);
}

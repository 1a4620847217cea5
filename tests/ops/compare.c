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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_input),
    cmocka_unit_test(comparisons_are_not_recorded),
};

int main(void)
{
    return golden_main("ops.compare", ops, tests);
}

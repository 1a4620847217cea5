/* Arithmetic with a number instead of a tensor: the bits are those of the same call with a tensor that is full of it. */
#include "device.h"

#include "ops/number.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/autograd.h>

enum { MOST = 5000 };

static const struct {
    int op;
    pc_tensor *(*with_tensor)(pc_tensor *, pc_tensor *);
    pc_tensor *(*with_number)(pc_tensor *, double);
} ops[] = {
    {PC__OP_add, pc_add, pc_add_scalar},
    {PC__OP_sub, pc_sub, pc_sub_scalar},
    {PC__OP_mul, pc_mul, pc_mul_scalar},
    {PC__OP_div, pc_div, pc_div_scalar},
};
enum { OPS = sizeof ops / sizeof *ops };

static const double numbers[] = {.5, .1, 3, -1, 0, -0., 255, 1e-9, 7e4, 1e39, 0x1.000001p0, INFINITY, NAN};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static double number_in(double number, pc_dtype dtype)
{
    return dtype == PC_U8 ? (uint8_t)(int64_t)number : dtype == PC_I32 ? (int32_t)(int64_t)number : number;
}

/* In the dtype of the result; 16-bit numbers that meet one which is none of theirs as float32. */
static pc_tensor *with_full_tensor(int i, pc_tensor *a, double number, bool first, pc_dtype dtype)
{
    const pc_dtype within = pc__number_fits(number, dtype) ? dtype : PC_F32;
    a = pc_cast(a, within);
    pc_tensor *b = pc_scalar(number_in(number, within), within, test_device());
    return pc_cast(first ? ops[i].with_tensor(b, a) : ops[i].with_tensor(a, b), dtype);
}

static void assert_same_bits(const pc_tensor *got, const pc_tensor *want, const char *what, double number)
{
    static _Alignas(8) char a[MOST * 8], b[MOST * 8];
    assert_not_null_ok(got);
    assert_not_null_ok(want);
    const size_t size = pc_dtype_size(pc_tensor_dtype(got)), bytes = (size_t)pc_tensor_count(got) * size;
    assert_int_equal(pc_tensor_dtype(got), pc_tensor_dtype(want));
    assert_int_equal(pc_tensor_count(got), pc_tensor_count(want));
    assert_ok(pc_read(got, a, bytes));
    assert_ok(pc_read(want, b, bytes));
    for (size_t i = 0; i < bytes; i += size)
        if (memcmp(a + i, b + i, size) != 0)
            fail_msg("%s of %s, %g: other bits in element %zu of %lld", what, pc_dtype_name(pc_tensor_dtype(got)),
                     number, i / size, (long long)pc_tensor_count(got));
}

static pc_tensor *values(int64_t n, pc_dtype dtype)
{
    pc_tensor *x = pc_sub_scalar(pc_arange(0, (double)n, 1, PC_F32, test_device()), 3);
    return pc_cast(dtype >= PC_F16 ? pc_div(x, pc_full(PC_SHAPE(1), 7, PC_F32, test_device())) : x, dtype);
}

static void all_sides(pc_tensor *x)
{
    for (int i = 0; i < OPS; i++)
        for (int k = 0; k < NUMBERS; k++)
            for (int first = 0; first < 2; first++)
                PC_SCOPE {
                    pc_tensor *y =
                        first ? pc__with_number(ops[i].op, x, numbers[k], true) : ops[i].with_number(x, numbers[k]);
                    assert_not_null_ok(y);
                    assert_same_bits(y, with_full_tensor(i, x, numbers[k], first, pc_tensor_dtype(y)),
                                     pc__ops[ops[i].op].name, numbers[k]);
                }
}

static void all_dtypes_and_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 5, 16, 300, 2049, MOST};
    for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            PC_SCOPE {
                all_sides(values(sizes[s], (pc_dtype)dtype));
            }
    assert_no_leak();
}

static void views(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++)
        PC_SCOPE {
            pc_tensor *x = pc_reshape(values(40 * 30, (pc_dtype)dtype), PC_SHAPE(40, 30));
            all_sides(pc_transpose(x, 0, 1));
            all_sides(pc_slice(x, 1, 1, 29, 3));
            all_sides(pc_expand(pc_slice(x, 1, 4, 5, 1), PC_SHAPE(40, 30)));
            all_sides(pc_reshape(pc_slice(pc_slice(x, 0, 1, 2, 1), 1, 5, 6, 1), PC_SHAPE_SCALAR));
        }
    assert_no_leak();
}

static pc_tensor *gradient_of(pc_tensor *x, int i, double number, bool first, bool full)
{
    pc_tensor *y = full    ? with_full_tensor(i, x, number, first, pc_tensor_dtype(x))
                   : first ? pc__with_number(ops[i].op, x, number, true)
                           : ops[i].with_number(x, number);
    assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
    pc_tensor *g = pc_clone(pc_grad(x));
    pc_zero_grad(x);
    return g;
}

/* With a number in front 16-bit values stay such in the rule, where float32 would have rounded once. */
static void gradients(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < OPS; i++)
            for (int k = 0; k < 4; k++)
                for (int first = 0; first < 1 + pc__number_fits(numbers[k], dtypes[d]); first++)
                    PC_SCOPE {
                        pc_tensor *x = values(300, dtypes[d]);
                        assert_ok(pc_require_grad(x, true));
                        assert_same_bits(gradient_of(x, i, numbers[k], first, false),
                                         gradient_of(x, i, numbers[k], first, true), pc__ops[ops[i].op].name,
                                         numbers[k]);
                    }
    assert_no_leak();
}

/* A float32 gradient, as a layer's weights have it, comes to 16-bit numbers times one that is none of theirs as it is, and
 * is rounded behind it. */
static void gradients_wider_than_the_input(void **state)
{
    (void)state;
    for (int i = 0; i < OPS; i++)
        PC_SCOPE {
            pc_tensor *w = pc_cast(pc_reshape(values(64, PC_F32), PC_SHAPE(8, 8)), PC_BF16), *got[2];
            for (int full = 0; full < 2; full++) {
                pc_tensor *x = pc_reshape(values(64, PC_F32), PC_SHAPE(8, 8));
                assert_ok(pc_require_grad(x, true));
                pc_tensor *narrow = pc_cast(x, PC_BF16),
                          *y = full ? with_full_tensor(i, narrow, .1, false, PC_BF16) : ops[i].with_number(narrow, .1);
                assert_ok(pc_backward(pc_sum(pc_cast(pc_fn_linear(w, y, NULL, PC_ACTIVATION_NONE), PC_F32))));
                got[full] = pc_clone(pc_grad(x));
            }
            assert_same_bits(got[0], got[1], pc__ops[ops[i].op].name, .1);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_dtypes_and_sizes),
        cmocka_unit_test(views),
        cmocka_unit_test(gradients),
        cmocka_unit_test(gradients_wider_than_the_input),
    };
    return cmocka_run_group_tests_name("ops.numbers", tests, NULL, NULL);
}

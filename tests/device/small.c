/* Small calls, which a GPU does several of in a launch: chains of them between other work. What they compute is what
 * large calls compute, to the bit. PARACORD_TEST_DEVICE picks the device; cpu unless set. */
#include "small.h"

#include "ops/number.h"
#include "ops/table.h"

#include <paracord/autograd.h>

#include <math.h>

static const int lengths[] = {1, 2, 3, 4, 5, 16, 31, 255, 1023, 1024, 1025, MOST - 1, MOST, MOST + 1, 3 * MOST};

static void chains(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int calls = 1; calls < 3 * AT_ONCE + 3; calls += calls < 4 ? 1 : AT_ONCE - 1)
            PC_SCOPE {
                pc_tensor *a = full(lengths[k], 1), *one = full(lengths[k], 1), *twice = NULL;
                for (int i = 0; i < calls; i++) {
                    a = pc_add(a, one);
                    twice = pc_add(a, a);
                }
                assert_all(twice, 2 * (calls + 1));
                assert_all(a, calls + 1);
            }
}

/* --- the same bits as in calls that are not small --- */

typedef pc_tensor *(*unary)(pc_tensor *a);
typedef pc_tensor *(*binary)(pc_tensor *a, pc_tensor *b);

static void assert_same_bits(const char *what, const pc_tensor *little, const pc_tensor *large)
{
    static double some[MOST], all[3 * MOST];
    const size_t size = pc_dtype_size(pc_tensor_dtype(large)), bytes = (size_t)pc_tensor_count(little) * size;
    assert_int_equal(pc_tensor_dtype(little), pc_tensor_dtype(large));
    assert_ok(pc_read(little, some, bytes));
    assert_ok(pc_read(large, all, 3 * MOST * size));
    if (memcmp(some, all, bytes) != 0)
        fail_msg("%s of %d %s: other bits", what, (int)pc_tensor_count(little), pc_dtype_name(pc_tensor_dtype(large)));
}

static pc_tensor *scaled(pc_tensor *a)
{
    return pc_mul_scalar(a, 0.7);
}

static pc_tensor *taken_from_one(pc_tensor *a)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_sub(pc_ones(PC_SHAPE(1, 1), pc_tensor_dtype(a), test_device()), a));
    }
    return result;
}

static pc_tensor *taken_from_a_number(pc_tensor *a)
{
    return pc__with_number(PC__OP_sub, a, 3, true);
}

static pc_tensor *plus_a_row(pc_tensor *a)
{
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_add(pc_unsqueeze(a, 0), a));
    }
    return result;
}

static const struct {
    const char *name;
    unary one;
    binary two;
    bool fractions; /* of integers it has none, or makes others */
} ops[] = {
    {"add", .two = pc_add},
    {"sub", .two = pc_sub},
    {"mul", .two = pc_mul},
    {"div", .two = pc_div, .fractions = true},
    {"neg", .one = pc_neg},
    {"exp", .one = pc_exp, .fractions = true},
    {"log", .one = pc_log, .fractions = true},
    {"sqrt", .one = pc_sqrt, .fractions = true},
    {"relu", .one = pc_relu},
    {"tanh", .one = pc_tanh, .fractions = true},
    {"sigmoid", .one = pc_sigmoid, .fractions = true},
    {"clone", .one = pc_clone},
    {"scaled", .one = scaled, .fractions = true},
    {"taken from one", .one = taken_from_one},
    {"taken from a number", .one = taken_from_a_number},
    {"plus a row", .one = plus_a_row},
};
enum { OPS = sizeof ops / sizeof *ops };

static void compare(pc_tensor *x, pc_tensor *y, pc_tensor *a, pc_tensor *b)
{
    const bool fractions = pc_tensor_dtype(a) == PC_F32 || pc_tensor_dtype(a) == PC_F64;
    pc_tensor *little[OPS]; /* one behind the other, nothing read between */
    for (int i = 0; i < OPS; i++)
        if (fractions || !ops[i].fractions)
            little[i] = ops[i].one ? ops[i].one(x) : ops[i].two(x, y);
    for (int i = 0; i < OPS; i++)
        if (fractions || !ops[i].fractions)
            assert_same_bits(ops[i].name, little[i], ops[i].one ? ops[i].one(a) : ops[i].two(a, b));
    const double factor = fractions ? 3.3 : 3, number = fractions ? -7.1 : -7;
    assert_ok(pc_saxpy(x, factor, y));
    assert_ok(pc_saxpy(a, factor, b));
    assert_same_bits("saxpy", x, a);
    assert_ok(pc_fill(x, number));
    assert_ok(pc_copy(y, x));
    assert_ok(pc_fill(b, number));
    assert_same_bits("copy of a fill", y, b);
}

static void same_bits(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_I32, PC_I64};
    static double values[2][3 * MOST];
    for (int i = 0; i < 3 * MOST; i++) {
        values[0][i] = i % 97 == 5 ? -0.0 : i % 89 == 7 ? NAN : ((i * 7919) % 1000 - 500) / 7.7;
        values[1][i] = i % 83 == 3 ? INFINITY : ((i * 104729) % 1000 - 300) / 12.34;
    }
    for (int k = 0; k < (int)(sizeof lengths / sizeof *lengths); k++)
        for (int d = 0; d < 4; d++)
            PC_SCOPE {
                const int n = lengths[k] < MOST ? lengths[k] : MOST;
                pc_tensor *t[4];
                for (int i = 0; i < 4; i++)
                    t[i] = pc_to(pc_from_data(values[i % 2], PC_SHAPE(i < 2 ? n : 3 * MOST), PC_F64, PC_DEVICE_CPU),
                                 test_device(), dtypes[d], false);
                compare(t[0], t[1], t[2], t[3]);
            }
}

/* A list is of one dtype. */
static void dtypes_in_turn(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = full(10, 0), *n = pc_zeros(PC_SHAPE(10), PC_I64, test_device()), *one = full(10, 1),
                  *two = pc_full(PC_SHAPE(10), 2, PC_I64, test_device());
        for (int i = 0; i < 3 * AT_ONCE; i++) {
            assert_ok(pc_saxpy(x, 1, one));
            if (i % 3 == 0)
                assert_ok(pc_saxpy(n, 1, two));
        }
        assert_all(x, 3 * AT_ONCE);
        assert_all(pc_cast(n, PC_F32), 2 * AT_ONCE);
    }
}

/* Gradients of the activations, which are ops of their own. */
static void gradients(void **state)
{
    (void)state;
    const unary functions[] = {pc_relu, pc_sigmoid, pc_tanh};
    for (int k = 0; k < 3; k++)
        PC_SCOPE {
            pc_tensor *t[2];
            for (int large = 0; large < 2; large++) {
                float values[3 * MOST];
                for (int i = 0; i < 3 * MOST; i++)
                    values[i] = (float)(i % 201 - 100) / 17;
                t[large] = pc_from_data(values, PC_SHAPE(large ? 3 * MOST : 77), PC_F32, test_device());
                assert_ok(pc_require_grad(t[large], true));
                assert_ok(pc_backward(pc_sum(functions[k](t[large]))));
            }
            assert_same_bits("a gradient", pc_grad(t[0]), pc_grad(t[1]));
        }
}

/* Shapes, strides and dtypes that are not held, between such that are. */
static void between_others(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(4, 4), 1, PC_F32, test_device()), *y = x;
        double want = 1;
        for (int i = 0; i < 3 * AT_ONCE; i++) {
            y = pc_add(y, x);
            want += 1;
            if (i % 5 == 0)
                y = pc_transpose(pc_add(pc_transpose(y, 0, 1), x), 0, 1), want += 1;
            if (i % 7 == 0)
                y = pc_sub_scalar(y, 2), want -= 2;
            if (i % 11 == 0)
                y = pc_cast(pc_add(pc_cast(y, PC_I32), pc_cast(x, PC_I32)), PC_F32), want += 1;
            if (i % 13 == 0)
                y = pc_mul_scalar(pc_matmul(y, x), 0.25);
            if (i % 17 == 0)
                y = pc_add(pc_slice(pc_cat((pc_tensor *[]){x, y}, 2, 0), 0, 4, 8, 1), x), want += 1;
            if (i % 19 == 0)
                y = pc_to(pc_to(y, PC_DEVICE_CPU, PC_F32, false), test_device(), PC_F32, false);
            if (i % 23 == 0)
                assert_close(pc_item(pc_mean(y)), want, 0);
        }
        assert_all(pc_contiguous(y), want);
        pc_tensor *nothing = pc_empty(PC_SHAPE(0), PC_F32, test_device());
        assert_int_equal(pc_tensor_count(pc_add(nothing, nothing)), 0);
    }
}

static void in_place(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = full(40, 0), *front = pc_slice(x, 0, 0, 20, 1), *back = pc_slice(x, 0, 20, 40, 1),
                  *odd = pc_slice(x, 0, 1, 8, 1), *was = NULL;
        assert_ok(pc_fill(front, 1)); /* 1 0 */
        for (int i = 0; i < 2 * AT_ONCE; i++) {
            assert_ok(pc_saxpy(back, 1, front));
            if (i == AT_ONCE)
                was = pc_clone(back);
        }
        assert_all(back, 2 * AT_ONCE);
        assert_all(was, AT_ONCE + 1);
        assert_ok(pc_copy(front, back));
        assert_ok(pc_fill(odd, 3)); /* its address is no multiple of 16 */
        assert_ok(pc_saxpy(odd, -1, odd));
        assert_all(odd, 0);
        assert_all(pc_slice(front, 0, 8, 20, 1), 2 * AT_ONCE);
        assert_all(pc_slice(front, 0, 0, 1, 1), 2 * AT_ONCE);
    }
}

/* Blocks go back to the cache, and to the device, while calls that use them are held. */
static void freed_between(void **state)
{
    (void)state;
    pc_tensor *sum = full(64, 0);
    for (int i = 0; i < 20 * AT_ONCE; i++) {
        pc_tensor *a = full(64, i), *b = full(64, 1), *c = pc_mul(a, b), *d = pc_add(sum, c);
        pc_tensor_free(a);
        pc_tensor_free(b);
        pc_tensor_free(c);
        pc_tensor_free(sum);
        sum = d;
        if (i % 50 == 49)
            assert_ok(pc_memory_trim(test_device()));
    }
    assert_all(sum, 20 * AT_ONCE * (20 * AT_ONCE - 1) / 2);
    pc_tensor_free(sum);
}

int main(void)
{
    unsetenv("PARACORD_CACHE"); /* with the cache off each free asks the stream, which lets go of what is held */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),        cmocka_unit_test(same_bits),      cmocka_unit_test(dtypes_in_turn),
        cmocka_unit_test(gradients),     cmocka_unit_test(between_others), cmocka_unit_test(in_place),
        cmocka_unit_test(freed_between),
    };
    return cmocka_run_group_tests_name("device.small", tests, NULL, NULL);
}

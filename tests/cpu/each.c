/* Loops over 16-bit numbers against the same sums in float32 rounded once, bit by bit: every length around those of
 * vectors, operands side by side, apart and repeated; casts of every such number. Copies
 * apart and choices by a condition, of every size of element. */
#include "cpu/host.h"

#include "base/base.h"
#include "tensor/half.h"

#include <math.h>
#include <paracord/ops.h>

enum { MOST = 150, STEPS = 3, EACH = 1 << 16 };

static const double odd[] = {0,    -0.0, 1,      -1,    INFINITY, -INFINITY, NAN, 65504,
                             3e38, 6e-8, -1e-40, 0.333, 1.5,      -2.5,      5e-5};

static uint16_t rounded(float value, pc_dtype dtype)
{
    return dtype == PC_F16 ? pc__f16_of(value).bits : pc__bf16_of(value).bits;
}

static float number(uint16_t bits, pc_dtype dtype)
{
    return dtype == PC_F16 ? pc__f16_float((pc_f16){bits}) : pc__bf16_float((pc_bf16){bits});
}

static float add(float a, float b)
{
    return a + b;
}

static float sub(float a, float b)
{
    return a - b;
}

static float mul(float a, float b)
{
    return a * b;
}

static float divide(float a, float b)
{
    return a / b;
}

static float neg(float a, float b)
{
    (void)b;
    return -a;
}

static float relu(float a, float b)
{
    (void)b;
    return a <= 0 ? 0 : a;
}

static pc_tensor *do_neg(pc_tensor *a, pc_tensor *b)
{
    (void)b;
    return pc_neg(a);
}

static pc_tensor *do_relu(pc_tensor *a, pc_tensor *b)
{
    (void)b;
    return pc_relu(a);
}

static const struct {
    const char *name;
    pc_tensor *(*op)(pc_tensor *a, pc_tensor *b);
    float (*value)(float a, float b);
} ops[] = {{"add", pc_add, add},    {"sub", pc_sub, sub}, {"mul", pc_mul, mul},
           {"div", pc_div, divide}, {"neg", do_neg, neg}, {"relu", do_relu, relu}};

/* The same number; zeros are the same with either sign, as in sums that the compiler orders. */
static void same(uint16_t got, uint16_t want, pc_dtype dtype, const char *name, int64_t n, int64_t i)
{
    const float a = number(got, dtype), b = number(want, dtype);
    if (got != want && !(isnan(a) && isnan(b)) && !(a == 0 && b == 0))
        fail_msg("%s in %s, element %lld of %lld: %04x, not %04x", name, pc_dtype_name(dtype), (long long)i,
                 (long long)n, got, want);
}

/* n elements of every `step`th of a tensor with `bits`. */
static pc_tensor *apart(uint16_t *bits, int64_t n, int64_t step, pc_dtype dtype, int seed)
{
    for (int64_t i = 0; i < n * step; i++)
        bits[i] = rounded((float)(i % 7 ? sin((double)(i + seed)) * 3 : odd[(i / 7 + seed) % PC__COUNT(odd)]), dtype);
    return pc_slice(pc_from_data(bits, PC_SHAPE(n * step), dtype, test_device()), 0, 0, PC_END_OF_DIM, step);
}

static void check(int op, pc_dtype dtype, int64_t n, int64_t left, int64_t right, bool repeats)
{
    static uint16_t a[MOST * STEPS], b[MOST * STEPS], got[MOST];
    PC_SCOPE {
        pc_tensor *x = apart(a, n, left, dtype, op), *y = apart(b, repeats ? 1 : n, right, dtype, 11);
        assert_ok(pc_read(ops[op].op(x, y), got, (size_t)n * sizeof *got));
        for (int64_t i = 0; i < n; i++) {
            const float value = ops[op].value(number(a[i * left], dtype), number(b[repeats ? 0 : i * right], dtype));
            same(got[i], rounded(value, dtype), dtype, ops[op].name, n, i);
        }
    }
}

static void rounded_once(void **state)
{
    (void)state;
    for (int dtype = PC_F16; dtype <= PC_BF16; dtype++)
        for (int op = 0; op < PC__COUNT(ops); op++)
            for (int64_t n = 1; n < MOST; n++)
                for (int64_t left = 1; left <= STEPS; left += 2)
                    for (int64_t right = 1; right < STEPS; right++)
                        for (int repeats = 0; repeats < 2; repeats++)
                            check(op, (pc_dtype)dtype, n, left, right, repeats);
    assert_no_leak();
}

/* Elements between those that are copied to stay what they were. */
static void copies_apart(void **state)
{
    static const pc_dtype dtypes[] = {PC_U8, PC_F16, PC_I32, PC_F64};
    static double got[MOST * STEPS];
    (void)state;
    for (int d = 0; d < PC__COUNT(dtypes); d++)
        for (int64_t n = 1; n < MOST; n += 1 + n / 10)
            for (int64_t to = 1; to <= STEPS; to++)
                for (int64_t from = 1; from <= STEPS; from++)
                    PC_SCOPE {
                        pc_tensor *x = pc_cast(pc_arange(0, (double)(n * from), 1, PC_I32, test_device()), dtypes[d]);
                        pc_tensor *y = pc_full(PC_SHAPE(n * to), 9, dtypes[d], test_device());
                        assert_ok(
                            pc_copy(pc_slice(y, 0, 0, PC_END_OF_DIM, to), pc_slice(x, 0, 0, PC_END_OF_DIM, from)));
                        assert_ok(pc_read(pc_cast(y, PC_F64), got, (size_t)(n * to) * sizeof *got));
                        for (int64_t i = 0; i < n * to; i++)
                            assert_true(got[i] == (i % to ? 9 : (double)(i / to * from % (d ? 512 : 256))));
                    }
    assert_no_leak();
}

/* Operands dense, apart and repeated: bit k of `how` for the condition, one choice, the other. */
static void choices(void **state)
{
    static const pc_dtype dtypes[] = {PC_U8, PC_F16, PC_F32, PC_I64};
    static double got[MOST];
    static bool conditions[MOST * STEPS];
    (void)state;
    for (int i = 0; i < MOST * STEPS; i++)
        conditions[i] = i * i % 5 < 2;
    for (int d = 0; d < PC__COUNT(dtypes); d++)
        for (int64_t n = 1; n < MOST; n += 1 + n / 10)
            for (int64_t how = 0; how < 16; how++)
                PC_SCOPE {
                    const int64_t c = how & 1 ? 3 : 1, x = how & 2 ? 2 : 1, y = how & 4 ? 2 : 1, left = how & 8 ? 1 : n;
                    pc_tensor *numbers = pc_cast(pc_arange(0, (double)(2 * n), 1, PC_I32, test_device()), dtypes[d]);
                    pc_tensor *condition = pc_from_data(conditions, PC_SHAPE(n * c), PC_BOOL, test_device());
                    pc_tensor *chosen =
                        pc_where(pc_slice(condition, 0, 0, PC_END_OF_DIM, c), pc_slice(numbers, 0, 0, left * x, x),
                                 pc_slice(numbers, 0, 0, n * y, y));
                    assert_ok(pc_read(pc_cast(chosen, PC_F64), got, (size_t)n * sizeof *got));
                    for (int64_t i = 0; i < n; i++)
                        assert_true(got[i] == (double)((conditions[i * c] ? i % left * x : i * y) % (d ? 512 : 256)));
                }
    assert_no_leak();
}

static void casts(void **state)
{
    static uint16_t all[EACH * 2], got[EACH];
    static float floats[EACH];
    (void)state;
    for (int dtype = PC_F16; dtype <= PC_BF16; dtype++)
        for (int64_t step = 1; step <= 2; step++)
            PC_SCOPE {
                const pc_dtype from = (pc_dtype)dtype, other = from == PC_F16 ? PC_BF16 : PC_F16;
                for (int64_t i = 0; i < EACH * step; i++)
                    all[i] = (uint16_t)(i / step);
                pc_tensor *whole = pc_from_data(all, PC_SHAPE(EACH * step), from, test_device());
                pc_tensor *x = pc_slice(whole, 0, 0, PC_END_OF_DIM, step);
                pc_tensor *wide = pc_cast(x, PC_F32);
                assert_ok(pc_read(wide, floats, sizeof floats));
                for (int64_t i = 0; i < EACH; i++)
                    if (!isnan(number((uint16_t)i, from)) || !isnan(floats[i]))
                        assert_true(floats[i] == number((uint16_t)i, from));
                assert_ok(pc_read(pc_cast(x, other), got, sizeof got));
                for (int64_t i = 0; i < EACH; i++)
                    same(got[i], rounded(number((uint16_t)i, from), other), other, "cast", EACH, i);
                assert_ok(pc_read(pc_cast(wide, from), got, sizeof got));
                for (int64_t i = 0; i < EACH; i++)
                    same(got[i], (uint16_t)i, from, "cast back", EACH, i);
            }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rounded_once),
    cmocka_unit_test(copies_apart),
    cmocka_unit_test(choices),
    cmocka_unit_test(casts),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.each", tests, NULL, NULL);
}

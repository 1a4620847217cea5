/* Functions of float32 against the C library's of double, over all bit patterns at a stride: NaN, infinities
 * and subnormal numbers too. The bounds are those that src/cpu/level/functions.h states. */
#include "cpu/host.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16 };

/* Distance in units in the last place of the float that `want` rounds to. */
static double units(double got, double want)
{
    const double most = 0x1.fffffep127;
    int exponent;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (fabs(want) > most || isinf(got)) /* beyond float: either infinity or, right below, the largest */
        return fabs(want) > most * (1 - 0x1p-23) && (got > 0) == (want > 0) && fabs(got) >= most ? 0 : INFINITY;
    (void)frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static void sweep(pc_tensor *(*ours)(pc_tensor *), double (*theirs)(double), double bound, uint32_t step)
{
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    assert_true(x && y);
    for (uint64_t first = 0; first <= UINT32_MAX; first += (uint64_t)N * step)
        PC_SCOPE {
            for (uint64_t i = 0; i < N; i++) {
                const uint32_t bits = (uint32_t)(first + i * step);
                memcpy(&x[i], &bits, sizeof bits);
            }
            assert_ok(pc_read(ours(pc_from_data(x, PC_SHAPE(N), PC_F32, test_device())), y, N * sizeof *y));
            for (int i = 0; i < N; i++)
                if (!(units((double)y[i], theirs((double)x[i])) <= bound))
                    fail_msg("of %a: %a and not %a: more than %g units", (double)x[i], (double)y[i],
                             theirs((double)x[i]), bound);
        }
    free(x);
    free(y);
    assert_no_leak();
}

#define TEST(name, bound)                                                                                              \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        sweep(pc_##name, name, bound, 1021);                                                                           \
    }
TEST(exp, 1.1)
TEST(log, 1)
TEST(tanh, 2)
TEST(erf, 2.5)
TEST(sin, 1.5)
TEST(cos, 1.5)

/* Blocks of small angles have loops of their own, to the same bits: what is beside an angle changes nothing. */
static void neighbours_change_no_angle(void **state)
{
    enum { BLOCK = 256 };
    static pc_tensor *(*const functions[])(pc_tensor *) = {pc_sin, pc_cos};
    (void)state;
    for (int f = 0; f < 2; f++)
        for (uint32_t first = 0; first < 0x48000000; first += 255 * 4999)
            PC_SCOPE {
                float x[BLOCK], y[4][BLOCK]; /* of values and gradients: among small ones, beside a large one */
                for (uint32_t i = 0; i < BLOCK; i++) {
                    const uint32_t bits = (first + i * 4999) | (i & 1) << 31;
                    memcpy(&x[i], &bits, sizeof bits);
                }
                for (int large = 0; large < 2; large++) {
                    x[BLOCK - 1] = large ? 1e30F : 1;
                    pc_tensor *a = pc_from_data(x, PC_SHAPE(BLOCK), PC_F32, test_device());
                    assert_ok(pc_require_grad(a, true));
                    pc_tensor *b = functions[f](a);
                    assert_ok(pc_backward(pc_sum(b)));
                    assert_ok(pc_read(b, y[large], sizeof y[large]));
                    assert_ok(pc_read(pc_grad(a), y[2 + large], sizeof y[large]));
                }
                assert_memory_equal(y[0], y[1], (BLOCK - 1) * sizeof(float));
                assert_memory_equal(y[2], y[3], (BLOCK - 1) * sizeof(float));
            }
    assert_no_leak();
}

static pc_tensor *elu(pc_tensor *x)
{
    return pc_elu(x, 1);
}

static double elu_wide(double x)
{
    return x > 0 ? x : expm1(x);
}

static void test_expm1(void **state)
{
    (void)state;
    sweep(elu, elu_wide, 2, 1021);
}

/* Powers of all kinds of numbers, and of those next to 1, whose powers are large. */
static void test_pow(void **state)
{
    (void)state;
    static float x[N], y[N], z[N];
    uint32_t seed = 1;
    for (int turn = 0; turn < 40; turn++)
        PC_SCOPE {
            for (int i = 0; i < 2 * N; i++) {
                const uint32_t bits = seed = seed * 1664525u + 1013904223u, about_one = 0x3f000000u + (bits >> 8);
                float *const to = i < N ? x : y;
                memcpy(&to[i % N], i < N && turn % 2 ? &about_one : &bits, sizeof bits);
                if (i >= N && turn % 4 >= 2)
                    y[i % N] = (float)((int)(bits >> 16) - 0x8000) * 0.0078125F;
            }
            pc_tensor *a = pc_from_data(x, PC_SHAPE(N), PC_F32, test_device());
            pc_tensor *b = pc_from_data(y, PC_SHAPE(N), PC_F32, test_device());
            assert_ok(pc_read(pc_pow(a, b), z, sizeof z));
            for (int i = 0; i < N; i++)
                if (!(units((double)z[i], pow((double)x[i], (double)y[i])) <= 0.6))
                    fail_msg("pow(%a, %a): %a and not %a", (double)x[i], (double)y[i], (double)z[i],
                             pow((double)x[i], (double)y[i]));
        }
    assert_no_leak();
}

/* The C standard's annex F has an answer for each pair of these. */
static void ends_of_pow(void **state)
{
    (void)state;
    static const float ends[] = {0,     -0.0F, 1,     -1,       2,         -2,  3,           -3,           0.5F,
                                 -1.5F, 0.75F, 1e30F, INFINITY, -INFINITY, NAN, 16777215.0F, -16777216.0F, 0x1p-149F};
    enum { COUNT = sizeof ends / sizeof *ends };
    PC_SCOPE {
        float z[COUNT * COUNT];
        pc_tensor *a = pc_from_data(ends, PC_SHAPE(COUNT, 1), PC_F32, test_device());
        pc_tensor *b = pc_from_data(ends, PC_SHAPE(COUNT), PC_F32, test_device());
        assert_ok(pc_read(pc_pow(a, b), z, sizeof z));
        for (int i = 0; i < COUNT * COUNT; i++) {
            const double want = pow((double)ends[i / COUNT], (double)ends[i % COUNT]);
            if (!(units((double)z[i], want) <= 0.6) || (want == 0 && !signbit(want) != !signbit(z[i])))
                fail_msg("pow(%a, %a): %a and not %a", (double)ends[i / COUNT], (double)ends[i % COUNT], (double)z[i],
                         want);
        }
    }
    assert_no_leak();
}

/* What a stride may miss. */
static void ends(void **state)
{
    static const float x[] = {0,          -0.0F,    INFINITY, -INFINITY, NAN,       88.72283F, 88.72284F,
                              -87.33655F, -103.97F, -104.1F,  0x1p-149F, 0x1p-126F, 1};
    enum { COUNT = sizeof x / sizeof *x };
    static const struct {
        pc_tensor *(*ours)(pc_tensor *);
        double (*theirs)(double);
        double bound;
    } functions[] = {{pc_exp, exp, 1.1}, {pc_log, log, 1},   {pc_tanh, tanh, 2}, {pc_erf, erf, 2.5},
                     {pc_sin, sin, 1.5}, {pc_cos, cos, 1.5}, {elu, elu_wide, 2}};
    (void)state;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        PC_SCOPE {
            float y[COUNT];
            assert_ok(pc_read(functions[f].ours(pc_from_data(x, PC_SHAPE(COUNT), PC_F32, test_device())), y, sizeof y));
            for (int i = 0; i < COUNT; i++)
                assert_true(units((double)y[i], functions[f].theirs((double)x[i])) <= functions[f].bound);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exp),
    cmocka_unit_test(test_log),
    cmocka_unit_test(test_tanh),
    cmocka_unit_test(test_erf),
    cmocka_unit_test(ends),
    cmocka_unit_test(test_sin),
    cmocka_unit_test(neighbours_change_no_angle),
    cmocka_unit_test(test_cos),
    cmocka_unit_test(test_expm1),
    cmocka_unit_test(test_pow),
    cmocka_unit_test(ends_of_pow),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.functions", tests, NULL, NULL);
}

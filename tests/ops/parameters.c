/* Functions that have a number, and their gradients: of 16 bits computed in float32 and rounded once, whatever the order in
 * memory. */
#include "device.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

#include <math.h>

enum { ROWS = 40, COLUMNS = 72, MANY = 1100, MOST = 4 * MANY * COLUMNS, ALL = 1 << 16 };

static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32, PC_F64};

/* How far a number is from another one in units of the last place that a dtype has there; beyond its largest numbers all are one. */
static double units_apart(double got, double want, pc_dtype dtype)
{
    static const struct {
        int bits, least, most;
    } formats[] = {
        [PC_F16] = {10, -14, 15}, [PC_BF16] = {7, -126, 127}, [PC_F32] = {23, -126, 127}, [PC_F64] = {52, -1022, 1023}};
    const int bits = formats[dtype].bits, least = formats[dtype].least, most = formats[dtype].most;
    if (got != got || want != want)
        return got != got && want != want ? 0 : INFINITY;
    if (got == want)
        return 0;
    const double end = ldexp(2, most < 1023 ? most : 1022);
    const double a = fmax(-end, fmin(got, end)), b = fmax(-end, fmin(want, end));
    const int exponent = b == 0 ? least : ilogb(b);
    return fabs(a - b) / ldexp(1, (exponent < least ? least : exponent > most ? most : exponent) - bits);
}

static double allowed(pc_dtype dtype)
{
    return dtype == PC_F16 || dtype == PC_BF16 ? 0.52 : 6;
}

static double leaky_relu(double x, double c)
{
    return x > 0 ? x : x * c;
}
static double leaky_relu_slope(double x, double c)
{
    return x > 0 ? 1 : c;
}
static double elu(double x, double c)
{
    return x > 0 ? x : c * expm1(x);
}
static double elu_slope(double x, double c)
{
    return x > 0 ? 1 : c * exp(x);
}
static double pow_slope(double x, double c)
{
    return c == 0 ? 0 : c * pow(x, c - 1);
}

static const struct {
    const char *name;
    pc_tensor *(*call)(pc_tensor *, double);
    double number;
    double (*value)(double, double), (*slope)(double, double);
} cases[] = {
    {"leaky_relu", pc_leaky_relu, 0.1, leaky_relu, leaky_relu_slope},
    {"elu", pc_elu, 0.7, elu, elu_slope},
    {"pow", pc_pow_scalar, 2.3, pow, pow_slope},
    {"pow", pc_pow_scalar, 3, pow, pow_slope},
    {"pow", pc_pow_scalar, -1.6, pow, pow_slope},
    {"pow", pc_pow_scalar, 1, pow, pow_slope},
    {"pow", pc_pow_scalar, 0, pow, pow_slope},
};
enum { CASES = sizeof cases / sizeof *cases };

static pc_tensor *dense(pc_tensor *t)
{
    return t;
}
static pc_tensor *turned(pc_tensor *t)
{
    return pc_transpose(t, 0, 1);
}
static pc_tensor *with_gaps(pc_tensor *t)
{
    return pc_slice(t, 1, 1, PC_END_OF_DIM, 2);
}

static void read_wide(pc_tensor *t, double *to)
{
    assert_ok(pc_read(pc_cast(t, PC_F64), to, (size_t)pc_tensor_count(t) * sizeof *to));
}

static void hold(int i, pc_dtype dtype, pc_tensor *(*view)(pc_tensor *), int64_t rows)
{
    static double x[MOST], g[MOST], y[MOST], dx[MOST];
    const double number = dtype == PC_F64 ? cases[i].number : (double)(float)cases[i].number;
    const bool below = cases[i].call != pc_pow_scalar;
    const pc_device device = test_device();
    pc_tensor *leaf = pc_randn(PC_SHAPE(rows, COLUMNS), PC_F64, device);
    leaf = pc_detach(pc_cast(below ? leaf : pc_add_scalar(pc_abs(leaf), 0.25), dtype));
    assert_ok(pc_require_grad(leaf, true));
    pc_tensor *in = view(leaf), *out = cases[i].call(in, cases[i].number);
    pc_tensor *back = pc_cast(pc_randn(pc_tensor_shape(out), PC_F64, device), dtype);
    assert_ok(pc_backward_with(out, back));
    read_wide(in, x), read_wide(back, g), read_wide(out, y), read_wide(view(pc_grad(leaf)), dx);
    for (int64_t k = 0; k < pc_tensor_count(in); k++) {
        const double value = cases[i].value(x[k], number), slope = g[k] * cases[i].slope(x[k], number);
        if (!(units_apart(y[k], value, dtype) <= allowed(dtype)) ||
            !(units_apart(dx[k], slope, dtype) <= allowed(dtype)))
            fail_msg("%s by %g of %s, element %lld: of %a it is %a, not %a, and the gradient %a, not %a", cases[i].name,
                     number, pc_dtype_name(dtype), (long long)k, x[k], y[k], value, dx[k], slope);
    }
}

static void round_once(void **state)
{
    static pc_tensor *(*const views[])(pc_tensor *) = {dense, turned, with_gaps};
    (void)state;
    pc_seed(3);
    for (int i = 0; i < CASES; i++)
        for (int d = 0; d < 4; d++)
            for (int v = 0; v < 3; v++)
                PC_SCOPE {
                    hold(i, dtypes[d], views[v], ROWS);
                    hold(i, dtypes[d], views[v], d == 1 ? MANY : 3);
                }
    assert_no_leak();
}

/* A gradient of 0 where the power is 0, whatever comes back, and what IEEE's arithmetic gives elsewhere. */
static void odd_gradients(void **state)
{
    static const double at[] = {0, 0, -2, INFINITY, NAN, -3}, back[] = {1, INFINITY, 2, 1, 1, NAN};
    static const struct {
        double number, want[6];
    } powers[] = {{0, {0, 0, 0, 0, 0, 0}},
                  {1, {1, INFINITY, 2, 1, 1, NAN}},
                  {3, {0, NAN, 24, INFINITY, NAN, NAN}},
                  {-3, {-INFINITY, -INFINITY, -0.375, 0, NAN, NAN}},
                  {1.25, {0, NAN, NAN, INFINITY, NAN, NAN}}};
    (void)state;
    for (int i = 0; i < 5 * 4; i++)
        PC_SCOPE {
            double got[6];
            const pc_dtype dtype = dtypes[i % 4];
            pc_tensor *x = pc_detach(pc_cast(pc_from_data(at, PC_SHAPE(6), PC_F64, test_device()), dtype));
            assert_ok(pc_require_grad(x, true));
            assert_ok(pc_backward_with(pc_pow_scalar(x, powers[i / 4].number),
                                       pc_cast(pc_from_data(back, PC_SHAPE(6), PC_F64, test_device()), dtype)));
            read_wide(pc_grad(x), got);
            for (int k = 0; k < 6; k++)
                if (!(units_apart(got[k], powers[i / 4].want[k], dtype) <= 1))
                    fail_msg("%s: the gradient of the power %g at %g is %g, not %g", pc_dtype_name(dtype),
                             powers[i / 4].number, at[k], got[k], powers[i / 4].want[k]);
        }
    assert_no_leak();
}

/* A float32 gradient, as a layer's weights have it, comes to 16-bit numbers that met a number which is none of theirs. */
static void gradients_wider_than_the_input(void **state)
{
    enum { SIDE = 8 };
    const pc_shape square = PC_SHAPE(SIDE, SIDE);
    (void)state;
    for (int i = 0; i < CASES; i++)
        PC_SCOPE {
            double x[SIDE * SIDE], w[SIDE * SIDE], dx[SIDE * SIDE];
            pc_tensor *layer = pc_cast(pc_randn(square, PC_F32, test_device()), PC_BF16);
            pc_tensor *leaf = pc_detach(pc_add_scalar(pc_rand(square, PC_F32, test_device()), 0.5));
            assert_ok(pc_require_grad(leaf, true));
            pc_tensor *narrow = pc_cast(leaf, PC_BF16), *y = cases[i].call(narrow, cases[i].number);
            assert_ok(pc_backward(pc_sum(pc_cast(pc_fn_linear(layer, y, NULL, PC_ACTIVATION_NONE), PC_F32))));
            read_wide(narrow, x), read_wide(layer, w), read_wide(pc_grad(leaf), dx);
            for (int k = 0; k < SIDE * SIDE; k++) {
                double back = 0;
                for (int row = 0; row < SIDE; row++)
                    back += w[row * SIDE + k % SIDE];
                const double want = back * cases[i].slope(x[k], (double)(float)cases[i].number);
                if (!(units_apart(dx[k], want, PC_BF16) <= 2))
                    fail_msg("%s by %g: the gradient is %g, not %g", cases[i].name, cases[i].number, dx[k], want);
            }
        }
    assert_no_leak();
}

static void hold_power(const double *x, const double *y, const double *got, int n, pc_dtype dtype)
{
    for (int k = 0; k < n; k++) {
        const double want = pow(x[k], y[k]);
        if (!(units_apart(got[k], want, dtype) <= allowed(dtype)) || (want == 0 && !signbit(want) != !signbit(got[k])))
            fail_msg("%s: %a to the power of %a is %a, not %a", pc_dtype_name(dtype), x[k], y[k], got[k], want);
    }
}

/* All numbers of 16 bits, NaN and infinities among them, to powers of all kinds, as numbers and as tensors. */
static void powers_of_all(void **state)
{
    static const double powers[] = {2.5,  3,  -1.5, 1. / 3, 0.1, 7,        -3,        1,  0,    33.3, 64,
                                    -64., 65, 150,  -700,   0.3, INFINITY, -INFINITY, -4, -0.7, 5.5,  NAN};
    static uint16_t bits[ALL];
    static double x[ALL], y[ALL], got[ALL];
    (void)state;
    for (int i = 0; i < ALL; i++)
        bits[i] = (uint16_t)i;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < (int)(sizeof powers / sizeof *powers); i++)
            for (int full = 0; full < 2; full++)
                PC_SCOPE {
                    pc_tensor *a = pc_from_data(bits, PC_SHAPE(ALL), dtypes[d], test_device());
                    pc_tensor *b = pc_full(PC_SHAPE(ALL), powers[i], dtypes[d], test_device());
                    read_wide(a, x), read_wide(b, y);
                    for (int k = 0; k < ALL && !full; k++)
                        y[k] = (double)(float)powers[i];
                    read_wide(full ? pc_pow(a, b) : pc_pow_scalar(a, powers[i]), got);
                    hold_power(x, y, got, ALL, dtypes[d]);
                }
    assert_no_leak();
}

/* The C standard's annex F has an answer for each pair of these. */
static void ends_of_powers(void **state)
{
    static const double ends[] = {0,   -0., 1,    -1,  2,        -2,        3,   -3,    0.5,   -1.5,
                                  .75, 63,  -63., -65, INFINITY, -INFINITY, NAN, 20000, -257., 0x1p-24};
    enum { N = sizeof ends / sizeof *ends };
    (void)state;
    for (int d = 0; d < 3; d++)
        PC_SCOPE {
            double x[N * N], y[N * N], got[N * N];
            const pc_shape square = PC_SHAPE(N, N);
            pc_tensor *a = pc_cast(pc_from_data(ends, PC_SHAPE(N, 1), PC_F64, test_device()), dtypes[d]);
            pc_tensor *b = pc_cast(pc_from_data(ends, PC_SHAPE(N), PC_F64, test_device()), dtypes[d]);
            read_wide(pc_expand(a, square), x), read_wide(pc_expand(b, square), y), read_wide(pc_pow(a, b), got);
            hold_power(x, y, got, N * N, dtypes[d]);
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_once),
        cmocka_unit_test(odd_gradients),
        cmocka_unit_test(gradients_wider_than_the_input),
        cmocka_unit_test(powers_of_all),
        cmocka_unit_test(ends_of_powers),
    };
    return cmocka_run_group_tests_name("ops.parameters", tests, NULL, NULL);
}

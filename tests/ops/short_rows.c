/* Reductions and softmax of short rows and of few, on drawn shapes and memory orders: results and gradients on the test's
 * device against the cpu's in float64, with infinities and NaN among the numbers. Each case has its own seed;
 * PARACORD_CASES=5000 draws so many, PARACORD_SEED=N begins there. */
#include "device.h"

#include "base/base.h"
#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

static struct {
    uint64_t seed, drawn;
    char text[512]; /* what it is, for messages */
} now;

static int draw(int n)
{
    return (int)(pc_uniform(now.seed, 1, now.drawn++) * n);
}

#define ONE_OF(array) ((array)[draw(PC__COUNT(array))])

/* --- numbers, and where they lie --- */

enum { PLAIN, WITH_INFINITIES, WITH_NAN };

/* float64 on the cpu; quarters, which all dtypes have, and of which many are equal. */
static pc_tensor *numbers(const pc_shape *shape, int kind)
{
    const int64_t count = pc__count(shape->ndim, shape->dim);
    double *values = malloc((size_t)PC__MAX(count, 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        const int v = draw(1 << 16), rare = v >> 8 == 0;
        values[i] = (v % 33 - 16) / 4.0;
        if (rare && kind != PLAIN)
            values[i] = v % 5 || kind == WITH_INFINITIES ? (v % 7 ? -INFINITY : INFINITY) : NAN;
    }
    pc_tensor *t = pc_from_data(values, *shape, PC_F64, PC_DEVICE_CPU);
    free(values);
    return t;
}

/* The same as `dtype` on the test's device: as such, from some element of a larger tensor on, every second or so of one
 * along a dimension, its dimensions turned in memory. */
static pc_tensor *placed(pc_tensor *exact, pc_dtype dtype)
{
    pc_tensor *t = pc_to(exact, test_device(), dtype, false);
    pc_shape shape = pc_tensor_shape(t);
    const int dim = draw(shape.ndim), step = 1 + draw(3), other = draw(shape.ndim);
    const int64_t more = 1 + draw(9), count = pc_tensor_count(t);
    const double gap = pc__is_float(dtype) ? NAN : 99; /* more than any number here */
    pc_tensor *place = NULL;
    switch (draw(5)) {
    case 0:
        place = pc_full(PC_SHAPE(count + more), gap, dtype, test_device());
        place = pc_reshape(pc_slice(place, 0, more, PC_END_OF_DIM, 1), shape);
        break;
    case 1:
        shape.dim[dim] = (shape.dim[dim] + 1) * step + more;
        place =
            pc_slice(pc_full(shape, gap, dtype, test_device()), dim, more, more + pc_tensor_size(t, dim) * step, step);
        break;
    case 2:
        return pc_transpose(pc_contiguous(pc_transpose(t, dim, other)), dim, other);
    default:
        return t;
    }
    assert_ok(pc_copy(place, t));
    return place;
}

/* --- a case --- */

static double tolerance_of(pc_dtype dtype)
{
    return dtype == PC_F64 ? 1e-11 : dtype == PC_F32 ? 1e-4 : dtype == PC_F16 ? 8e-3 : 6e-2;
}

/* Infinities and NaN where they are wanted, else to within `tolerance` of the largest. */
static void assert_same(const char *what, pc_tensor *want, pc_tensor *got, double tolerance)
{
    assert_not_null_ok(want);
    assert_not_null_ok(got);
    const int64_t n = pc_tensor_count(want);
    assert_int_equal(pc_tensor_count(got), n);
    double *a = malloc((size_t)PC__MAX(n, 1) * sizeof *a), *b = malloc((size_t)PC__MAX(n, 1) * sizeof *b), most = 1;
    assert_true(a && b);
    assert_ok(pc_read(pc_cast(want, PC_F64), a, (size_t)n * sizeof *a));
    assert_ok(pc_read(pc_to(got, PC_DEVICE_CPU, PC_F64, false), b, (size_t)n * sizeof *b));
    for (int64_t i = 0; i < n; i++)
        most = isfinite(a[i]) ? fmax(most, fabs(a[i])) : most;
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) || fabs(a[i] - b[i]) <= tolerance * most))
            fail_msg("PARACORD_SEED=%llu: %s: element %lld of %s is %g, want %g", (unsigned long long)now.seed,
                     now.text, (long long)i, what, b[i], a[i]);
    free(a);
    free(b);
}

static pc_tensor *softmax_of(pc_tensor *t, int dim, bool logarithm)
{
    return logarithm ? pc_log_softmax(t, dim) : pc_softmax(t, dim);
}

/* Around the limits of what a thread keeps, of vectors and of parts of warps. */
static int any_length(void)
{
    static const int lengths[] = {1,  2,  3,  4,  5,  7,  8,   9,   12,  15,  16,  17,  24,  31,  32,  33,  40,   48,
                                  63, 64, 65, 69, 77, 96, 128, 129, 255, 256, 257, 300, 512, 513, 700, 900, 1025, 3001};
    return ONE_OF(lengths);
}

static int any_width(void)
{
    static const int widths[] = {1, 1, 1, 1, 2, 3, 4, 5, 8, 13, 15, 16, 20, 31, 32, 33, 40, 52, 64, 100};
    return ONE_OF(widths);
}

/* [outer][n][inner], a few elements, more than a GPU has threads, or so many that a block has several turns. */
static pc_shape any_shape(void)
{
    const int n = draw(6) ? any_length() : 1 + draw(70), inner = any_width(), size = n * inner;
    const int most = draw(3) ? 66000 : 600000;
    const int outer = draw(30) == 0 ? 0 : draw(3) ? 1 + draw(2000) / size : most / size + 1 + draw(9);
    return PC_SHAPE(outer, n, inner);
}

static void describe(const char *op, const pc_tensor *x, pc_dtype dtype, int kind, int dim)
{
    snprintf(now.text, sizeof now.text, "%s of %s %s along %d, numbers of kind %d", op, pc_dtype_name(dtype),
             PC__SHAPE_OF(x), dim, kind);
}

static pc_dtype any_float(void)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    return ONE_OF(dtypes);
}

static void a_softmax(void)
{
    const pc_shape shape = any_shape();
    const pc_dtype dtype = any_float();
    const int kind = draw(3), dim = 1 + (shape.dim[2] == 1 && draw(2)); /* at times along the dimension of 1 */
    const bool logarithm = draw(2);
    pc_tensor *want_x = numbers(&shape, kind), *x = placed(want_x, dtype);
    describe(logarithm ? "log_softmax" : "softmax", x, dtype, kind, dim);
    assert_ok(pc_require_grad(want_x, true));
    assert_ok(pc_require_grad(x, true));
    pc_tensor *want = softmax_of(want_x, dim, logarithm), *got = softmax_of(x, dim, logarithm);
    assert_same("the result", want, got, tolerance_of(dtype));
    if (pc_tensor_count(want) == 0)
        return;
    pc_tensor *dy = pc_mul_scalar(numbers(&shape, PLAIN), 1.0 / 16);
    assert_ok(pc_backward_with(want, dy));
    assert_ok(pc_backward_with(got, placed(dy, dtype)));
    assert_same("the gradient", pc_grad(want_x), pc_grad(x), 2 * tolerance_of(dtype));
}

/* Up to four dimensions, some elements or more than a GPU has threads, of which few are along each of most. */
static pc_shape any_dims(void)
{
    const int most = draw(3) ? 3000 : 80000;
    pc_shape shape = {.ndim = 1 + draw(4)};
    int64_t count = 1;
    for (int i = 0; i < shape.ndim; i++) {
        shape.dim[i] = draw(3) ? any_length() : 1 + draw(3);
        shape.dim[i] = count * shape.dim[i] > most ? 1 + draw(3) : shape.dim[i];
        count *= shape.dim[i];
    }
    const int wide = draw(shape.ndim);
    if (draw(3) == 0)
        shape.dim[wide] = most * shape.dim[wide] / count / (1 + draw(2)) + 1;
    return shape;
}

static void a_sum(void)
{
    const pc_shape shape = any_dims();
    const pc_dtype dtype = draw(6) ? any_float() : PC_I64;
    const int kind = dtype == PC_I64 ? PLAIN : draw(3);
    pc_shape dims = {0};
    for (int d = 0; d < shape.ndim; d++)
        if (draw(2))
            dims.dim[dims.ndim++] = d;
    pc_tensor *exact = pc_cast(numbers(&shape, kind), dtype), *x = placed(exact, dtype);
    describe("sum", x, dtype, kind, dims.ndim ? (int)dims.dim[0] : -1);
    if (dtype != PC_I64) {
        assert_ok(pc_require_grad(exact = pc_detach(pc_cast(exact, PC_F64)), true));
        assert_ok(pc_require_grad(x, true));
    }
    const bool keep = draw(2);
    pc_tensor *want = pc_sum_dims(exact, dims, keep), *got = pc_sum_dims(x, dims, keep);
    assert_same("the result", want, got, tolerance_of(dtype));
    if (dtype == PC_I64)
        return;
    const pc_shape result = pc_tensor_shape(got);
    pc_tensor *dy = numbers(&result, PLAIN);
    assert_ok(pc_backward_with(want, dy));
    assert_ok(pc_backward_with(got, result.ndim ? placed(dy, dtype) : pc_to(dy, test_device(), dtype, false)));
    assert_same("the gradient", pc_grad(exact), pc_grad(x), 0);
}

/* Values and places are the cpu's to the last bit. */
static void a_maximum(void)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F32, PC_F64, PC_F16, PC_BF16, PC_I32, PC_I64, PC_U8};
    const pc_shape shape = any_dims();
    const pc_dtype dtype = ONE_OF(dtypes);
    const bool whole = dtype <= PC_I64;
    const int kind = whole ? PLAIN : draw(3), dim = draw(shape.ndim);
    pc_tensor *exact = numbers(&shape, kind);
    exact = pc_cast(whole ? pc_add_scalar(exact, 4) : exact, dtype);
    pc_tensor *x = placed(exact, dtype), *want_place = NULL, *place = NULL;
    describe("max", x, dtype, kind, dim);
    if (!whole) {
        assert_ok(pc_require_grad(exact, true));
        assert_ok(pc_require_grad(x, true));
    }
    pc_tensor *want = pc_max_dim(exact, dim, true, &want_place), *got = pc_max_dim(x, dim, true, &place);
    assert_same("the result", want, got, 0);
    assert_same("the place", want_place, place, 0);
    assert_same("argmax", want_place, pc_argmax(x, dim, false), 0);
    assert_same("the whole", pc_max(exact), pc_max(x), 0);
    if (whole)
        return;
    const pc_shape result = pc_tensor_shape(got);
    pc_tensor *dy = numbers(&result, PLAIN);
    assert_ok(pc_backward_with(want, pc_cast(dy, dtype)));
    assert_ok(pc_backward_with(got, placed(dy, dtype)));
    assert_same("the gradient", pc_grad(exact), pc_grad(x), 0);
    pc_zero_grad(exact);
    pc_zero_grad(x);
    assert_ok(pc_backward(pc_max(exact)));
    assert_ok(pc_backward(pc_max(x)));
    assert_same("the gradient of the whole", pc_grad(exact), pc_grad(x), tolerance_of(dtype));
}

/* Equals far from each other in a tensor that many blocks share. */
static void the_most_of_many(void **state)
{
    (void)state;
    enum { MANY = 1300001, EACH = 300000, EQUALS = 5 };
    float *x = calloc(MANY, sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < MANY; i += EACH)
        x[i] = 2;
    PC_SCOPE {
        pc_tensor *t = pc_from_data(x, PC_SHAPE(MANY), PC_F32, test_device());
        assert_ok(pc_require_grad(t, true));
        assert_ok(pc_backward(pc_max(t)));
        assert_ok(pc_read(pc_grad(t), x, MANY * sizeof *x));
        for (int i = 0; i < MANY; i++)
            assert_close((double)x[i], i % EACH ? 0 : 1.0 / EQUALS, 1e-7);
    }
    free(x);
    assert_no_leak();
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void drawn_cases(void **state)
{
    (void)state;
    static void (*const kinds[])(void) = {a_softmax, a_sum, a_maximum};
    const uint64_t first = number_from("PARACORD_SEED", 1), count = number_from("PARACORD_CASES", 200);
    for (uint64_t seed = first; seed < first + count; seed++)
        PC_SCOPE {
            now.seed = seed;
            now.drawn = 0;
            ONE_OF(kinds)();
        }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_cases),
        cmocka_unit_test(the_most_of_many),
    };
    return cmocka_run_group_tests_name("ops.short_rows", tests, NULL, NULL);
}

/* Ops on drawn shapes, dtypes and memory orders: results and gradients on the test's device against the cpu's in
 * float64. Each case has its own seed; PARACORD_CASES=5000 draws so many, PARACORD_SEED=N begins there. Of
 * 50,000 about one fails in float32 where rounding decides on which side of a jump a sum of nearly 0 lies. */
#include "channels_last.h"
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
#define DESCRIBE(...) snprintf(now.text, sizeof now.text, __VA_ARGS__)

static pc_dtype any_dtype(void)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F32, PC_F64, PC_F16, PC_BF16};
    return ONE_OF(dtypes);
}

/* Around the sides of vectors, warps and tiles. */
static int any_size(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40, 64, 65, 96, 130};
    return ONE_OF(sizes);
}

static pc_shape any_shape(void)
{
    enum { MOST = 20000 };
    pc_shape shape = {.ndim = 1 + draw(4)};
    int64_t count = 1;
    for (int i = 0; i < shape.ndim; i++) {
        shape.dim[i] = draw(40) ? any_size() : 0;
        if (count * shape.dim[i] > MOST)
            shape.dim[i] = 1 + draw(3);
        count *= shape.dim[i];
    }
    return shape;
}

/* --- numbers, and where they lie --- */

/* float64 on the cpu, of values that `dtype` has, up to `most`. */
static pc_tensor *numbers(pc_shape shape, pc_dtype dtype, double most)
{
    const int64_t count = pc__count(shape.ndim, shape.dim);
    double *values = malloc((size_t)PC__MAX(count, 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = most * (2 * pc_uniform(now.seed, 2, now.drawn++) - 1);
    pc_tensor *t = pc_from_data(values, shape, PC_F64, PC_DEVICE_CPU);
    free(values);
    return pc_cast(pc_cast(t, dtype), PC_F64);
}

/* The end of a larger tensor along a dimension, whose other numbers are NaN. */
static pc_tensor *end_of_a_larger_one(pc_tensor *t, int dim)
{
    pc_shape shape = pc_tensor_shape(t);
    const int64_t more = 1 + draw(3);
    shape.dim[dim] += more;
    pc_tensor *end = pc_slice(pc_full(shape, NAN, pc_tensor_dtype(t), test_device()), dim, more, PC_END_OF_DIM, 1);
    assert_ok(pc_copy(end, t));
    return end;
}

/* The same numbers as `dtype` on the test's device, in some memory order. */
static pc_tensor *placed(pc_tensor *exact, pc_dtype dtype)
{
    pc_tensor *t = pc_to(exact, test_device(), dtype, false);
    const int last = pc_tensor_ndim(t) - 1;
    switch (draw(6)) {
    case 0:
        return last >= 0 ? end_of_a_larger_one(t, 0) : t;
    case 1:
        return last >= 0 ? end_of_a_larger_one(t, last) : t;
    case 2:
        return last >= 1 ? pc_transpose(pc_contiguous(pc_transpose(t, last, last - 1)), last, last - 1) : t;
    case 3: /* channels last */
        if (last == 3)
            return as_channels_last(t);
        return t;
    default:
        return t;
    }
}

/* --- a case --- */

static double tolerance_of(pc_dtype dtype)
{
    return dtype == PC_F64 ? 1e-11 : dtype == PC_F32 ? 1e-4 : dtype == PC_F16 ? 8e-3 : 6e-2;
}

/* To within `tolerance` of the largest, or of 0.1 where sums of larger numbers cancel. */
static void assert_same(const char *what, pc_tensor *want, pc_tensor *got, double tolerance)
{
    assert_not_null_ok(want);
    assert_not_null_ok(got);
    const int64_t n = pc_tensor_count(want);
    assert_int_equal(pc_tensor_count(got), n);
    double *a = malloc((size_t)PC__MAX(n, 1) * sizeof *a), *b = malloc((size_t)PC__MAX(n, 1) * sizeof *b), most = 0.1;
    assert_true(a && b);
    assert_ok(pc_read(pc_cast(want, PC_F64), a, (size_t)n * sizeof *a));
    assert_ok(pc_read(pc_to(got, PC_DEVICE_CPU, PC_F64, false), b, (size_t)n * sizeof *b));
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * most))
            fail_msg("PARACORD_SEED=%llu: %s: element %lld of %s is %g, want %g (up to %g)",
                     (unsigned long long)now.seed, now.text, (long long)i, what, b[i], a[i], most);
    free(a);
    free(b);
}

enum { MOST_INPUTS = 4 };
typedef pc_tensor *op_fn(pc_tensor *const *in, const void *settings);

typedef struct case_of {
    op_fn *op;
    const void *settings;
    pc_dtype dtype;
    pc_tensor *in[MOST_INPUTS]; /* float64 on the cpu; NULL: not there */
    bool delicate;              /* derivatives that jump, sums that cancel: in 16 bits rounding decides */
} case_of;

static void check(const case_of *c)
{
    pc_tensor *there[MOST_INPUTS] = {0};
    for (int i = 0; i < MOST_INPUTS; i++)
        if (c->in[i]) {
            there[i] = placed(c->in[i], c->dtype);
            assert_ok(pc_require_grad(c->in[i], true));
            assert_ok(pc_require_grad(there[i], true));
        }
    pc_tensor *want = c->op(c->in, c->settings), *got = c->op(there, c->settings);
    const double tolerance = tolerance_of(c->dtype);
    assert_same("the result", want, got, tolerance);
    if (pc_tensor_count(want) == 0 || (c->delicate && tolerance > 1e-3))
        return;
    pc_tensor *dy = numbers(pc_tensor_shape(want), c->dtype, 1);
    assert_ok(pc_backward_with(want, dy));
    assert_ok(pc_backward_with(got, placed(dy, c->dtype)));
    for (int i = 0; i < MOST_INPUTS; i++) {
        char what[48];
        snprintf(what, sizeof what, "the gradient of input %d", i);
        if (c->in[i])
            assert_same(what, pc_grad(c->in[i]), pc_grad(there[i]), 2 * tolerance);
    }
}

/* --- the ops --- */

static pc_tensor *convolve(pc_tensor *const *in, const void *spec)
{
    return pc_fn_conv2d(in[0], in[1], in[2], *(const pc_fn_conv2d_options *)spec);
}

static void a_convolution(void)
{
    static const int channels[] = {1, 2, 3, 4, 8, 12, 16, 24, 32, 33, 48, 64, 72};
    const pc_dtype dtype = any_dtype();
    const int kh = 1 + draw(5), kw = draw(4) ? kh : 1 + draw(5), c = ONE_OF(channels), o = ONE_OF(channels);
    const int n = 1 + draw(4), more = draw(8) ? 0 : 12;
    const bool stride = draw(2), bias = draw(3);
    const pc_fn_conv2d_options spec = {.stride = {1 + stride * draw(2), 1 + stride * draw(2)},
                                       .padding = {draw(PC__MIN(kh, 3)), draw(PC__MIN(kw, 3))},
                                       .activation = (pc_activation_kind)draw(4),
                                       .pool = 1 + draw(3) % 2};
    const int h = kh + (spec.pool - 1) * spec.stride[0] + draw(20) + more; /* one result, or more */
    const int w = kw + (spec.pool - 1) * spec.stride[1] + draw(20) + more;
    DESCRIBE("conv2d of %s [%d, %d, %d, %d] by [%d, %d, %d, %d], stride %d, %d, padding %d, %d, activation %d, pool %d",
             pc_dtype_name(dtype), n, c, h, w, o, c, kh, kw, spec.stride[0], spec.stride[1], spec.padding[0],
             spec.padding[1], spec.activation, spec.pool);
    check(&(case_of){convolve, &spec, dtype,
                     .in = {numbers(PC_SHAPE(n, c, h, w), dtype, 1),
                            numbers(PC_SHAPE(o, c, kh, kw), dtype, 1 / sqrt(c * kh * kw)),
                            bias ? numbers(PC_SHAPE(o), dtype, 1) : NULL},
                     .delicate = spec.activation != PC_ACTIVATION_NONE || spec.pool > 1});
}

static pc_tensor *transform(pc_tensor *const *in, const void *activation)
{
    return pc_fn_linear(in[0], in[1], in[2], *(const pc_activation_kind *)activation);
}

static void a_linear_layer(void)
{
    const pc_dtype dtype = any_dtype();
    const int m = any_size(), n = any_size(), k = draw(3) ? any_size() : any_size() * any_size();
    const pc_activation_kind activation = (pc_activation_kind)draw(4);
    DESCRIBE("linear of %s [%d, %d] by [%d, %d], activation %d", pc_dtype_name(dtype), m, k, n, k, activation);
    check(&(case_of){transform, &activation, dtype,
                     .in = {numbers(PC_SHAPE(m, k), dtype, 1), numbers(PC_SHAPE(n, k), dtype, 1 / sqrt(k)),
                            draw(3) ? numbers(PC_SHAPE(n), dtype, 1) : NULL},
                     .delicate = activation != PC_ACTIVATION_NONE});
}

static pc_tensor *multiply(pc_tensor *const *in, const void *settings)
{
    (void)settings;
    return pc_matmul(in[0], in[1]);
}

static void a_product(void)
{
    const pc_dtype dtype = any_dtype();
    const int m = any_size(), n = any_size(), k = any_size(), batch = 1 + draw(3), of = draw(4);
    DESCRIBE("matmul of %s [%d, %d, %d] by [%d, %d], batches of %d", pc_dtype_name(dtype), batch, m, k, k, n, of);
    check(&(case_of){multiply, NULL, dtype,
                     .in = {numbers(of & 1 ? PC_SHAPE(batch, m, k) : PC_SHAPE(m, k), dtype, 1),
                            numbers(of & 2 ? PC_SHAPE(batch, k, n) : PC_SHAPE(k, n), dtype, 1)}});
}

static pc_tensor *collect(pc_tensor *const *in, const void *settings)
{
    const int *how = settings; /* which, along which dimension */
    switch (how[0]) {
    case 0:
        return pc_sum(in[0]);
    case 1:
        return pc_sum_dims(in[0], PC_SHAPE(how[1]), false);
    case 2:
        return pc_mean_dims(in[0], PC_SHAPE(how[1]), true);
    case 3:
        return pc_softmax(in[0], how[1]);
    case 4:
        return pc_log_softmax(in[0], how[1]);
    case 5:
        return pc_max_dim(in[0], how[1], false, NULL);
    case 6:
        return pc_min_dim(in[0], how[1], false, NULL);
    case 7:
        return pc_var_dims(in[0], PC_SHAPE(how[1]), 0, true);
    default:
        return pc_norm_dims(in[0], 2, PC_SHAPE(how[1]), false);
    }
}

static void a_reduction(void)
{
    const pc_dtype dtype = any_dtype();
    const pc_shape shape = any_shape();
    const int how[] = {draw(9), draw(shape.ndim)};
    pc_tensor *x = numbers(shape, dtype, 1);
    DESCRIBE("reduction %d of %s %s along %d", how[0], pc_dtype_name(dtype), PC__SHAPE_OF(x), how[1]);
    if (pc_tensor_count(x)) /* means and maxima of nothing are errors, or NaN */
        check(&(case_of){collect, how, dtype, .in = {x}, .delicate = how[0] == 5 || how[0] == 6});
}

static pc_tensor *combine(pc_tensor *const *in, const void *which)
{
    switch (*(const int *)which) {
    case 0:
        return pc_add(in[0], in[1]);
    case 1:
        return pc_sub(in[0], in[1]);
    case 2:
        return pc_mul(in[0], in[1]);
    case 3:
        return pc_div(in[0], pc_add_scalar(pc_mul(in[1], in[1]), 1));
    default:
        return pc_exp(pc_tanh(pc_mul(in[0], in[1])));
    }
}

/* Dimensions of size 1 go with any size, and the first ones may be missing. */
static void an_elementwise_op(void)
{
    const pc_dtype dtype = any_dtype();
    const int which = draw(5);
    pc_shape a = any_shape(), b = a;
    for (int i = 0; i < a.ndim; i++) {
        b.dim[i] = draw(4) ? a.dim[i] : 1;
        a.dim[i] = draw(5) ? a.dim[i] : 1;
    }
    if (b.ndim > 1 && draw(3) == 0) {
        b.ndim--;
        for (int i = 0; i < b.ndim; i++)
            b.dim[i] = b.dim[i + 1];
    }
    DESCRIBE("op %d of %s %s and %s", which, pc_dtype_name(dtype), pc__shape_format(a.ndim, a.dim).s,
             pc__shape_format(b.ndim, b.dim).s);
    check(&(case_of){combine, &which, dtype, .in = {numbers(a, dtype, 1), numbers(b, dtype, 1)}, .delicate = true});
}

typedef struct pooling {
    bool average;
    pc_fn_pool2d_options spec;
} pooling;

static pc_tensor *pool(pc_tensor *const *in, const void *settings)
{
    const pooling *p = settings;
    return p->average ? pc_fn_avg_pool2d(in[0], p->spec) : pc_fn_max_pool2d(in[0], p->spec);
}

static void a_pooling(void)
{
    const pc_dtype dtype = any_dtype();
    const int kh = 1 + draw(4), kw = 1 + draw(4);
    const pooling p = {draw(2), {.kernel = {kh, kw}, .stride = {draw(4), draw(4)}, .padding = {draw(kh / 2 + 1), 0}}};
    const int n = 1 + draw(3), c = any_size(), h = kh + draw(18), w = kw + draw(18);
    DESCRIBE("%s pooling of %s [%d, %d, %d, %d], kernel %d, %d, stride %d, %d, padding %d",
             p.average ? "average" : "max", pc_dtype_name(dtype), n, c, h, w, kh, kw, p.spec.stride[0],
             p.spec.stride[1], p.spec.padding[0]);
    check(&(case_of){pool, &p, dtype, .in = {numbers(PC_SHAPE(n, c, h, w), dtype, 1)}, .delicate = !p.average});
}

static pc_tensor *join(pc_tensor *const *in, const void *settings)
{
    const int *of = settings; /* how many, along which dimension */
    pc_tensor *all = pc_cat(in, of[0], of[1]);
    assert_not_null_ok(all);
    int64_t rows[20];
    for (int i = 0; i < PC__COUNT(rows); i++)
        rows[i] = i * 7 % pc_tensor_size(all, of[1]);
    pc_tensor *index = pc_from_data(rows, PC_SHAPE(PC__COUNT(rows)), PC_I64, pc_tensor_device(all));
    return pc_index_select(all, of[1], index);
}

static void a_join(void)
{
    const pc_dtype dtype = any_dtype();
    pc_shape shape = any_shape();
    const int of[] = {1 + draw(MOST_INPUTS), draw(shape.ndim)};
    case_of c = {.op = join, .settings = of, .dtype = dtype};
    for (int i = 0; i < of[0]; i++) {
        shape.dim[of[1]] = i ? draw(9) : 1 + draw(9);
        c.in[i] = numbers(shape, dtype, 1);
    }
    DESCRIBE("cat of %d %s along %d of %d dimensions, and index_select", of[0], pc_dtype_name(dtype), of[1],
             shape.ndim);
    check(&c);
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void drawn_cases(void **state)
{
    (void)state;
    static void (*const kinds[])(void) = {a_convolution,     a_linear_layer, a_product, a_reduction,
                                          an_elementwise_op, a_pooling,      a_join,    a_convolution};
    const uint64_t first = number_from("PARACORD_SEED", 1), count = number_from("PARACORD_CASES", 160);
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
    };
    return cmocka_run_group_tests_name("ops.random_shapes", tests, NULL, NULL);
}

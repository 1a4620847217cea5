/* Convolutions with taps apart or channels in groups. */
#include "channels_last.h"
#include "ops/golden.h"
#include "ops/slopes.h"

#include <paracord/random.h>
#include <paracord/threads.h>

static void run_more(const golden *g, pc_tensor **in, pc_tensor **out)
{
    const bool same = g->args[2] < 0;
    const pc_fn_conv2d_options options = {.stride = {(int)g->args[0], (int)g->args[1]},
                                          .padding = {same ? 0 : (int)g->args[2], same ? 0 : (int)g->args[3]},
                                          .dilation = {(int)g->args[4], (int)g->args[5]},
                                          .groups = (int)g->args[6],
                                          .activation = (pc_activation_kind)g->args[7],
                                          .same = same};
    out[0] = pc_fn_conv2d(in[0], in[1], g->n_in > 2 ? in[2] : NULL, options);
    assert_not_null_ok(out[0]);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_true(pc_tensor_stride(out[0], 1) == 1 && pc_tensor_size(out[0], 1) > 1);
    else
        assert_true(pc_tensor_is_contiguous(out[0]));
}

static const golden_op ops[] = {{"conv2d_more", run_more}};

static pc_tensor *zeros(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return pc_zeros(PC_SHAPE(a, b, c, d), PC_F32, test_device());
}

static pc_tensor *conv(pc_tensor *x, pc_tensor *w, pc_fn_conv2d_options options)
{
    return pc_fn_conv2d(x, w, NULL, options);
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = zeros(1, 4, 5, 5), *w = zeros(6, 2, 3, 3);
        assert_fails(conv(x, w, (pc_fn_conv2d_options){0}), PC_ERR_SHAPE, "([out, c, kh, kw])");
        assert_fails(conv(x, w, (pc_fn_conv2d_options){.groups = 3}), PC_ERR_SHAPE, "([out, c / groups, kh, kw])");
        assert_fails(conv(x, zeros(3, 2, 3, 3), (pc_fn_conv2d_options){.groups = 2}), PC_ERR_ARGUMENT,
                     "2 groups do not divide 4 channels in and 3 out");
        assert_fails(conv(x, zeros(3, 4, 3, 3), (pc_fn_conv2d_options){.groups = -1}), PC_ERR_ARGUMENT, "-1 groups");
        assert_fails(conv(x, zeros(3, 4, 3, 3), (pc_fn_conv2d_options){.dilation = {1, -2}}), PC_ERR_ARGUMENT,
                     "dilation -2");
        assert_fails(conv(x, zeros(3, 4, 3, 3), (pc_fn_conv2d_options){.dilation = {3, 1}}), PC_ERR_SHAPE,
                     "too small for a kernel of 3 x 3 with its dilation");
        assert_fails(conv(x, zeros(3, 4, 3, 3), (pc_fn_conv2d_options){.dilation = {INT32_MAX, 1}}), PC_ERR_SHAPE,
                     "with its dilation");
        assert_fails(conv(x, w, (pc_fn_conv2d_options){.groups = 2, .pool = 4}), PC_ERR_SHAPE, "and pooling");
        assert_fails(conv(x, w, (pc_fn_conv2d_options){.groups = 2, .same = true, .stride = {1, 2}}), PC_ERR_ARGUMENT,
                     "same padding needs stride 1 and padding 0, not stride 2 and padding 0");
        assert_fails(conv(x, w, (pc_fn_conv2d_options){.groups = 2, .same = true, .padding = {1, 0}}), PC_ERR_ARGUMENT,
                     "padding 1");
        assert_fails(conv(pc_reshape(x, PC_SHAPE(4, 5, 5)), w, (pc_fn_conv2d_options){.same = true}), PC_ERR_SHAPE,
                     "[4, 5, 5]");
        assert_fails(conv(x, pc_cast(w, PC_F64), (pc_fn_conv2d_options){.groups = 2}), PC_ERR_DTYPE, "weight float64");
    }
    assert_no_leak();
}

/* --- against sums by the book: whole numbers, so that every order of adding gives the same --- */

typedef struct sizes {
    int64_t n, c, h, w, o;
    int kh, kw;
    pc_fn_conv2d_options options;
} sizes;

typedef struct numbers {
    int count[4]; /* x, weight, y, bias */
    float *x, *weight, *y, *bias, *dx, *dweight, *dbias, *dy;
} numbers;

static int side(int64_t size, int kernel, const pc_fn_conv2d_options *o, int i)
{
    return ((int)size + 2 * o->padding[i] - o->dilation[i] * (kernel - 1) - 1) / o->stride[i] + 1;
}

static float *whole_numbers(int count, uint32_t seed)
{
    float *list = malloc((size_t)count * sizeof *list);
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        list[i] = (float)(int)((seed >> 24) % 3) - 1;
    }
    return list;
}

/* The thread sanitizer need not follow what one thread alone reads and writes. */
__attribute__((no_sanitize("thread"))) static void by_the_book(const sizes *z, numbers *b)
{
    const pc_fn_conv2d_options *o = &z->options;
    const int oh = side(z->h, z->kh, o, 0), ow = side(z->w, z->kw, o, 1), cg = (int)z->c / o->groups,
              og = (int)z->o / o->groups;
    for (int i = 0; i < (int)z->n * (int)z->o * oh * ow; i++) {
        const int q = i % ow, r = i / ow % oh, out = i / ow / oh % (int)z->o, n = i / ow / oh / (int)z->o;
        b->y[i] = b->bias[out];
        b->dbias[out] += b->dy[i];
        for (int k = 0; k < cg * z->kh * z->kw; k++) {
            const int h = r * o->stride[0] - o->padding[0] + k / z->kw % z->kh * o->dilation[0],
                      w = q * o->stride[1] - o->padding[1] + k % z->kw * o->dilation[1];
            if (h < 0 || h >= z->h || w < 0 || w >= z->w)
                continue;
            const int c = out / og * cg + k / z->kw / z->kh, at = ((n * (int)z->c + c) * (int)z->h + h) * (int)z->w + w;
            const int tap = out * cg * z->kh * z->kw + k;
            b->y[i] += b->x[at] * b->weight[tap];
            b->dx[at] += b->dy[i] * b->weight[tap];
            b->dweight[tap] += b->dy[i] * b->x[at];
        }
    }
}

static numbers make(const sizes *z)
{
    const pc_fn_conv2d_options *o = &z->options;
    const int places = side(z->h, z->kh, o, 0) * side(z->w, z->kw, o, 1);
    numbers b = {.count = {(int)(z->n * z->c * z->h * z->w), (int)(z->o * z->c / o->groups) * z->kh * z->kw,
                           (int)(z->n * z->o) * places, (int)z->o}};
    b.x = whole_numbers(b.count[0], 1), b.weight = whole_numbers(b.count[1], 2), b.dy = whole_numbers(b.count[2], 3);
    b.bias = whole_numbers(b.count[3], 4);
    b.y = calloc((size_t)b.count[2], sizeof *b.y), b.dx = calloc((size_t)b.count[0], sizeof *b.dx);
    b.dweight = calloc((size_t)b.count[1], sizeof *b.dweight);
    b.dbias = calloc((size_t)b.count[3], sizeof *b.dbias);
    by_the_book(z, &b);
    return b;
}

static void drop(numbers *b)
{
    float *all[] = {b->x, b->weight, b->y, b->bias, b->dx, b->dweight, b->dbias, b->dy};
    for (int i = 0; i < 8; i++)
        free(all[i]);
}

static void assert_numbers(int number, const char *what, pc_tensor *t, const float *expected, int count)
{
    float *found = malloc((size_t)count * sizeof *found);
    assert_not_null_ok(t);
    assert_ok(pc_read(pc_to(t, PC_DEVICE_CPU, PC_F32, false), found, (size_t)count * sizeof *found));
    for (int i = 0; i < count; i++)
        if (found[i] != expected[i])
            fail_msg("case %d, %s, %s: element %d is %g, not %g", number, pc_dtype_name(pc_tensor_dtype(t)), what, i,
                     (double)found[i], (double)expected[i]);
    free(found);
}

static pc_tensor *parameter(const float *list, pc_shape shape, pc_dtype dtype)
{
    pc_tensor *t = pc_cast(pc_from_data(list, shape, PC_F32, test_device()), dtype);
    assert_ok(pc_require_grad(t, true));
    return t;
}

static void check(int number, const sizes *z, const numbers *b, pc_dtype dtype, bool last)
{
    const pc_shape picture = PC_SHAPE(z->n, z->c, z->h, z->w);
    pc_tensor *x = parameter(b->x, picture, dtype), *bias = parameter(b->bias, PC_SHAPE(z->o), dtype);
    pc_tensor *weight = parameter(b->weight, PC_SHAPE(z->o, z->c / z->options.groups, z->kh, z->kw), dtype);
    pc_tensor *y = pc_fn_conv2d(last ? as_channels_last(x) : x, weight, bias, z->options);
    assert_not_null_ok(y);
    assert_numbers(number, "y", y, b->y, b->count[2]);
    pc_tensor *dy = pc_cast(pc_from_data(b->dy, pc_tensor_shape(y), PC_F32, test_device()), dtype);
    assert_ok(pc_backward(pc_sum(pc_mul(y, dy))));
    assert_numbers(number, "dx", pc_grad(x), b->dx, b->count[0]);
    assert_numbers(number, "dweight", pc_grad(weight), b->dweight, b->count[1]);
    assert_numbers(number, "dbias", pc_grad(bias), b->dbias, b->count[3]);
}

#define OPTIONS(s, p, d, g)                                                                                            \
    {                                                                                                                  \
        .stride = {s, s}, .padding = {p, p}, .dilation = {d, d}, .groups = g                                           \
    }
#define UNEVEN(s0, s1, p0, p1, d0, d1, g)                                                                              \
    {                                                                                                                  \
        .stride = {s0, s1}, .padding = {p0, p1}, .dilation = {d0, d1}, .groups = g                                     \
    }

static bool is_forced(const char *row)
{
    const char *only = getenv("PARACORD_ONLY");
    return only && strstr(only, row);
}

/* The row "split" takes no groups: where PARACORD_ONLY puts it first, layers with groups are done as in the run without. */
static bool whole_only(void)
{
    return is_forced("conv2d=split");
}

/* Channels beyond whole vectors, rows beyond whole blocks, windows beyond the pictures. */
static void as_by_the_book(void **state)
{
    static const sizes list[] = {
        {2, 32, 9, 11, 32, 3, 3, OPTIONS(1, 1, 1, 32)},
        {1, 70, 7, 9, 70, 3, 3, OPTIONS(2, 1, 1, 70)},
        {2, 5, 12, 13, 5, 5, 3, UNEVEN(1, 1, 2, 0, 1, 1, 5)},
        {1, 33, 8, 14, 33, 3, 3, OPTIONS(1, 2, 2, 33)},
        {1, 19, 9, 7, 57, 2, 4, UNEVEN(2, 1, 0, 3, 1, 2, 19)},
        {3, 16, 6, 17, 16, 1, 7, UNEVEN(1, 1, 0, 3, 1, 1, 16)},
        {1, 48, 5, 5, 48, 7, 7, OPTIONS(1, 3, 1, 48)},
        {2, 24, 11, 10, 24, 3, 3, UNEVEN(3, 2, 4, 1, 3, 2, 24)},
        {2, 8, 9, 10, 12, 3, 3, OPTIONS(1, 1, 1, 4)},
        {1, 64, 6, 7, 32, 3, 3, OPTIONS(1, 1, 1, 2)},
        {2, 12, 9, 9, 18, 3, 2, UNEVEN(2, 1, 1, 0, 1, 1, 3)},
        {1, 20, 7, 8, 40, 1, 1, OPTIONS(1, 0, 1, 4)},
        {2, 16, 11, 12, 20, 3, 3, OPTIONS(1, 2, 2, 1)},
        {1, 7, 16, 15, 9, 3, 3, OPTIONS(1, 4, 4, 1)},
        {1, 3, 17, 18, 33, 5, 3, UNEVEN(2, 1, 3, 2, 2, 3, 1)},
        {2, 8, 10, 11, 8, 3, 3, UNEVEN(1, 2, 1, 3, 2, 4, 2)},
        {2, 1, 21, 6, 4, 3, 3, UNEVEN(4, 6, 5, 6, 6, 4, 1)},
        {2, 64, 9, 23, 64, 5, 5, OPTIONS(1, 2, 1, 64)},
        {2, 36, 12, 19, 36, 7, 7, OPTIONS(2, 3, 1, 36)},
        {1, 132, 10, 17, 132, 3, 3, OPTIONS(1, 2, 2, 132)},
        {1, 8, 12, 22, 8, 4, 5, UNEVEN(2, 1, 1, 6, 1, 3, 8)},
        {3, 16, 8, 21, 16, 3, 5, UNEVEN(1, 2, 0, 1, 2, 1, 16)},
        {2, 44, 13, 14, 72, 5, 5, OPTIONS(1, 4, 2, 1)},
        {3, 40, 16, 15, 36, 7, 7, OPTIONS(2, 5, 2, 2)},
        {4, 40, 16, 15, 36, 7, 7, OPTIONS(1, 5, 2, 2)},
        {1, 140, 9, 10, 140, 7, 7, OPTIONS(1, 3, 1, 140)},
        {2, 4, 3, 2, 4, 3, 3, OPTIONS(1, 2, 1, 4)},
        {2, 2, 131, 90, 2, 5, 3, OPTIONS(1, 2, 2, 2)}, /* planes of several strips of rows */
        {1, 3, 7, 2100, 3, 4, 5, UNEVEN(1, 1, 5, 6, 2, 1, 3)},
        {1, 5, 4, 3, 5, 2, 2, UNEVEN(1, 1, 3, 0, 1, 2, 5)},
        {2, 35, 11, 13, 35, 3, 3, OPTIONS(2, 1, 1, 7)}, /* few channels a group, groups beyond whole blocks */
        {1, 12, 9, 30, 18, 3, 3, UNEVEN(3, 2, 2, 1, 1, 1, 6)},
        {2, 8, 14, 15, 8, 3, 3, UNEVEN(4, 2, 3, 3, 2, 3, 2)},
        {1, 6, 70, 75, 6, 3, 3, UNEVEN(2, 3, 1, 4, 1, 2, 3)},
        {1, 8, 10, 12, 12, 1, 1, OPTIONS(3, 0, 1, 4)},
        {2, 18, 9, 45, 18, 3, 5, UNEVEN(2, 2, 1, 2, 1, 1, 18)},
        {1, 17, 6, 20, 51, 3, 3, OPTIONS(1, 1, 1, 17)},
        {1, 60, 12, 25, 60, 3, 3, OPTIONS(1, 1, 1, 3)},
        {2, 6, 5, 6, 4, 6, 5, UNEVEN(5, 7, 4, 3, 1, 1, 2)}, /* more lots of taps and places than are kept */
        {1, 4, 9, 40, 4, 3, 7, UNEVEN(1, 6, 1, 0, 1, 5, 2)},
        {1, 3, 9, 12, 3, 5, 5, OPTIONS(2, 0, 1, 3)}, /* windows that end before the picture does */
        {3, 4, 6, 8, 4, 3, 3, OPTIONS(2, 0, 1, 4)},
        {2, 12, 11, 14, 12, 5, 5, OPTIONS(2, 2, 1, 12)}, /* squares of places under windows two apart */
        {2, 12, 10, 13, 12, 5, 5, OPTIONS(2, 1, 1, 12)},
        {2, 8, 11, 8, 8, 3, 3, OPTIONS(2, 0, 1, 8)},
        {1, 8, 12, 15, 8, 3, 3, UNEVEN(2, 2, 3, 1, 1, 1, 8)},
        {1, 72, 5, 17, 72, 7, 7, OPTIONS(2, 3, 1, 72)},
        {2, 2, 61, 70, 2, 5, 5, OPTIONS(1, 2, 1, 2)}, /* planes in several parts */
        {2, 3, 50, 66, 3, 3, 3, OPTIONS(2, 1, 1, 3)},
        {1, 33, 70, 40, 33, 3, 3, OPTIONS(1, 1, 1, 33)}, /* strips that are turned */
        {1, 70, 40, 80, 70, 7, 7, OPTIONS(4, 3, 1, 70)},
        {2, 3, 21, 14, 3, 5, 5, OPTIONS(2, 4, 2, 3)}, /* windows as far apart as their taps, and half as far */
        {1, 4, 31, 18, 4, 3, 3, OPTIONS(2, 3, 4, 4)},
        {2, 6, 19, 16, 6, 3, 3, UNEVEN(2, 2, 2, 3, 2, 3, 6)},
        {2, 8, 26, 15, 8, 5, 5, UNEVEN(1, 1, 3, 1, 1, 1, 8)}, /* few channels last: strips of columns */
        {1, 12, 29, 13, 12, 3, 3, UNEVEN(1, 1, 0, 2, 3, 2, 12)},
        {2, 4, 23, 9, 4, 7, 7, UNEVEN(2, 2, 1, 5, 1, 1, 4)},
        {1, 16, 4, 9, 16, 3, 3, UNEVEN(2, 1, 1, 0, 1, 2, 16)},
        {10, 16, 16, 16, 16, 3, 3, OPTIONS(1, 0, 2, 8)}, /* weights whose sums a block walks */
        {1, 40, 9, 21, 40, 5, 5, OPTIONS(1, 2, 1, 40)},  /* channels that do not fill the last block, by 16 bytes */
        {3, 16, 7, 7, 16, 5, 5, OPTIONS(1, 0, 1, 16)},   /* going back, more around the picture than it is wide */
    };
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++) {
        if (whole_only() && list[i].options.groups > 1)
            continue;
        numbers b = make(&list[i]);
        for (int k = 0; k < 8; k++)
            PC_SCOPE {
                if (sampled() && (i + k + k / 2) % 2) /* each dtype in one of the layouts */
                    continue;
                check(i, &list[i], &b, dtypes[k / 2], k % 2);
            }
        drop(&b);
    }
    assert_no_leak();
}

/* Signs, so that sums are whole numbers that float16 has. */
static pc_tensor *signs(pc_shape shape, pc_dtype dtype)
{
    return pc_cast(pc_sign(pc_sub_scalar(pc_rand(shape, PC_F32, test_device()), 0.5)), dtype);
}

static void check_many(pc_dtype dtype, int64_t c, int64_t h, int64_t w, int kernel, int stride)
{
    enum { N = 4 };
    if (dtype == PC_F16 && is_forced("conv2d=tile")) /* the only row for them: the run without has done it */
        return;
    const pc_fn_conv2d_options o = {
        .stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}, .dilation = {1, 1}, .groups = (int)c};
    const pc_shape from = PC_SHAPE(N, c, h, w), to = PC_SHAPE(N, c, (h - 1) / stride + 1, (w - 1) / stride + 1);
    pc_tensor *x = as_channels_last(signs(from, dtype)), *dy = as_channels_last(signs(to, dtype)), *y[N], *dx[N],
              *dw = NULL;
    pc_tensor *weight = signs(PC_SHAPE(c, 1, kernel, kernel), dtype);
    for (int i = 0; i < N; i++) {
        const slopes one = slopes_of(pc_slice(x, 0, i, i + 1, 1), weight, pc_slice(dy, 0, i, i + 1, 1), o);
        y[i] = one.y, dx[i] = one.dx;
        dw = dw ? pc_add(dw, one.dw) : one.dw;
    }
    const slopes all = slopes_of(x, weight, dy, o);
    assert_true(all_equal(all.y, pc_cat(y, N, 0)));
    assert_true(all_equal(all.dx, pc_cat(dx, N, 0)));
    assert_true(all_equal(all.dw, dw));
}

/* Pictures enough for threads with more channels and taps each, and for several turns of each; results are those of the
 * pictures one by one. */
static void many_pictures(void **state)
{
    (void)state;
    if (whole_only())
        skip();
    for (int stride = 1; stride <= 2; stride++)
        PC_SCOPE {
            check_many(PC_F16, 32, 104, 160, 3, stride);
            check_many(PC_F16, 8, 67600 * stride, 1, 3, stride);
            if (!sampled() || stride == 1)
                check_many(PC_F32, 36, 104, 144, 3, stride);
            if (!sampled() || stride == 2) {
                check_many(PC_F16, 12, 150 * stride, 170, 5, stride);
                check_many(PC_F16, 40, 52, 90, 5, stride);
            }
        }
    assert_no_leak();
}

/* A convolution of no channels is the bias. */
static void no_channels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *b = pc_full(PC_SHAPE(4), 3, PC_F32, test_device()), *w = zeros(4, 0, 2, 2);
        assert_ok(pc_require_grad(w, true));
        pc_tensor *y = pc_fn_conv2d(zeros(2, 0, 5, 5), w, b, (pc_fn_conv2d_options){.groups = 2, .dilation = {2, 2}});
        assert_not_null_ok(y);
        assert_int_equal(pc_tensor_count(y), 2 * 4 * 3 * 3);
        assert_close(pc_item(pc_min(y)), 3, 0);
        assert_ok(pc_backward(pc_sum(y)));
    }
    assert_no_leak();
}

/* Of a tensor as floats. */
static int nans_in(pc_tensor *t)
{
    return (int)pc_item(pc_sum(pc_isnan(pc_cast(t, PC_F32))));
}

/* The NaN that a GPU computes, whose bits are all set, reaches all that a host's does, rounded to TF32 or not. */
static void any_nan_is_kept(void **state)
{
    (void)state;
    enum { C = 24, SIDE = 9, COUNT = C * SIDE * SIDE };
    static const uint32_t bits[2] = {0x7fc00000, 0x7fffffff};
    static const uint16_t half_bits[2] = {0x7e00, 0x7fff};
    static float x[COUNT];
    static uint16_t half[COUNT];
    const pc_precision before = pc_matmul_precision_set(PC_PRECISION_TF32);
    for (int groups = 1; groups <= 2; groups++) {
        for (int k = 0; k < 2; k++)
            PC_SCOPE {
                const pc_fn_conv2d_options options = {.padding = {2, 2}, .dilation = {2, 2}, .groups = groups};
                const pc_dtype dtypes[] = {PC_F32, PC_F16};
                memcpy(&x[COUNT / 2], &bits[k], sizeof *x);
                half[COUNT / 2] = half_bits[k];
                for (int d = 0; d < 2; d++) {
                    pc_tensor *in =
                        pc_from_data(d ? (const void *)half : x, PC_SHAPE(1, SIDE, SIDE, C), dtypes[d], test_device());
                    pc_tensor *w = pc_ones(PC_SHAPE(C, C / groups, 3, 3), dtypes[d], test_device());
                    assert_ok(pc_require_grad(in, true));
                    assert_ok(pc_require_grad(w, true));
                    pc_tensor *y = pc_fn_conv2d(pc_permute(in, PC_SHAPE(0, 3, 1, 2)), w, NULL, options);
                    assert_ok(pc_backward(pc_sum(y)));
                    assert_int_equal(nans_in(y), 9 * C / groups);
                    assert_int_equal(nans_in(pc_grad(w)), 9 * C / groups);
                }
            }
    }
    (void)pc_matmul_precision_set(before);
    assert_no_leak();
}

/* The same bits however many threads there are, and with an activation and a pooling behind it as by themselves. */
static void what_follows(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_seed(5);
        pc_tensor *x = pc_randn(PC_SHAPE(3, 24, 21, 22), PC_F32, test_device());
        pc_tensor *w = pc_randn(PC_SHAPE(24, 1, 3, 3), PC_F32, test_device());
        pc_tensor *b = pc_randn(PC_SHAPE(24), PC_F32, test_device());
        pc_fn_conv2d_options options = {.groups = 24, .padding = {1, 1}};
        pc_tensor *y =
            pc_fn_max_pool2d(pc_relu(pc_fn_conv2d(x, w, b, options)), (pc_fn_pool2d_options){.kernel = {2, 2}});
        options.activation = PC_ACTIVATION_RELU, options.pool = 2;
        assert_close(pc_item(pc_sum(pc_ne(pc_fn_conv2d(x, w, b, options), y))), 0, 0);
        const int threads = pc_threads_get();
        pc_threads_set(1);
        assert_close(pc_item(pc_sum(pc_ne(pc_fn_conv2d(x, w, b, options), y))), 0, 0);
        pc_threads_set(threads);
    }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input),       cmocka_unit_test(as_by_the_book),
                                          cmocka_unit_test(many_pictures),   cmocka_unit_test(no_channels),
                                          cmocka_unit_test(any_nan_is_kept), cmocka_unit_test(what_follows)};

int main(void)
{
    return golden_main("ops.convolve", ops, tests);
}

/* Maxima and averages over windows. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/random.h>
#include <stdlib.h>

static pc_fn_pool2d_options spec_of(const golden *g)
{
    return (pc_fn_pool2d_options){.kernel = {(int)g->args[0], (int)g->args[1]},
                                  .stride = {(int)g->args[2], (int)g->args[3]},
                                  .padding = {(int)g->args[4], (int)g->args[5]}};
}

static void check_order(const golden *g, const pc_tensor *y)
{
    assert_not_null_ok(y);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_int_equal(pc_tensor_stride(y, 1), 1);
    else
        assert_true(pc_tensor_is_contiguous(y));
}

static void run_max_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_max_pool2d(in[0], spec_of(g));
    check_order(g, out[0]);
}

static void run_avg_pool2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    out[0] = pc_fn_avg_pool2d(in[0], spec_of(g));
    check_order(g, out[0]);
}

static const golden_op ops[] = {{"max_pool2d", run_max_pool2d}, {"avg_pool2d", run_avg_pool2d}};

#define SPEC(...) ((pc_fn_pool2d_options){__VA_ARGS__})

/* The places of maxima are there for gradients alone. */
static void maxima_without_a_gradient(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
    pc_seed(5);
    for (int i = 0; i < 32; i++)
        PC_SCOPE {
            const int kernel = 1 + i % 5;
            const pc_fn_pool2d_options options = {.kernel = {kernel, kernel},
                                                  .stride = {1 + i % 3, 1 + i % 2},
                                                  .padding = {kernel / 2, i % 2 ? kernel / 2 : 0}};
            pc_tensor *x =
                pc_cast(pc_randn(PC_SHAPE(2, 1 + i % 9, 6 + i % 4, 7 + i), PC_F32, test_device()), dtypes[i % 4]);
            x = i / 4 % 2 ? as_channels_last(x) : x;
            pc_tensor *plain = pc_fn_max_pool2d(x, options);
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = pc_fn_max_pool2d(x, options);
            assert_close(pc_item(pc_sum(pc_ne(plain, y))), 0, 0);
        }
}

static void bad_input(void **state)
{
    (void)state;
    pc_tensor *(*const pools[])(pc_tensor *, pc_fn_pool2d_options) = {pc_fn_max_pool2d, pc_fn_avg_pool2d};
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            const char *who = ops[i].name;
            pc_tensor *x = pc_zeros(PC_SHAPE(1, 2, 4, 3), PC_F32, test_device());
            const pc_fn_pool2d_options two = {.kernel = {2, 2}};
            assert_fails(pools[i](pc_reshape(x, PC_SHAPE(2, 4, 3)), two), PC_ERR_SHAPE, who);
            assert_fails(pools[i](pc_cast(x, PC_I32), two), PC_ERR_DTYPE, "int32");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 4})), PC_ERR_SHAPE, "too small for a window of 2 x 4");
            assert_fails(
                pools[i](pc_expand(pc_slice(pc_slice(x, 2, 0, 1, 1), 3, 0, 1, 1), PC_SHAPE(1, 2, 46341, 46341)), two),
                PC_ERR_SHAPE, "2^31 elements");
            assert_fails(pools[i](pc_slice(x, 2, 0, 0, 1), SPEC(.kernel = {2, 2}, .padding = {1, 0})), PC_ERR_SHAPE,
                         "[1, 2, 0, 3] has no places");
            assert_fails(pools[i](x, SPEC(.kernel = {0, 2})), PC_ERR_ARGUMENT, "kernel 0");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .stride = {1, -1})), PC_ERR_ARGUMENT, "stride -1");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {2, 0})), PC_ERR_ARGUMENT, "padding 2");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {-1, 0})), PC_ERR_ARGUMENT, "padding -1");
            assert_fails(pools[i](x, SPEC(.kernel = {2, 2}, .padding = {0, INT32_MAX})), PC_ERR_ARGUMENT,
                         "half the kernel");
            assert_fails(pools[i](NULL, two), PC_ERR_ARGUMENT, who);
            assert_fails(pools[i](pc_add(x, pc_zeros(PC_SHAPE(5), PC_F32, test_device())), two), PC_ERR_SHAPE, "add");
        }
    assert_no_leak();
}

/* Channels that are brought together are averaged as each alone, and so are their gradients, bit for bit. */
static void channels_keep_apart(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64};
    for (int i = 0; i < 32; i++)
        PC_SCOPE {
            static const int counts[] = {16, 20, 6};
            const int channels = counts[i / 2 % 3], wide = 7 + i % 3;
            const int kernel = 2 + i / 4 % 4, step = i % 3 + 1;
            const pc_fn_pool2d_options options = {.kernel = {kernel, kernel},
                                                  .stride = {step, step},
                                                  .padding = {kernel / 2, kernel / 2},
                                                  .ceil_mode = i / 8 % 2,
                                                  .exclude_padding = i / 16 % 2};
            pc_tensor *x = pc_cast(pc_randn(PC_SHAPE(2, 9, wide, channels), PC_F32, test_device()), dtypes[i % 4]);
            x = pc_detach(pc_permute(x, PC_SHAPE(0, 3, 1, 2)));
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = pc_fn_avg_pool2d(x, options);
            assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
            for (int c = 0; c < channels; c++) {
                pc_tensor *one = pc_contiguous(pc_detach(pc_slice(x, 1, c, c + 1, 1)));
                assert_ok(pc_require_grad(one, true));
                pc_tensor *own = pc_fn_avg_pool2d(one, options);
                assert_ok(pc_backward(pc_sum(pc_mul(own, own))));
                assert_close(pc_item(pc_sum(pc_ne(own, pc_slice(y, 1, c, c + 1, 1)))), 0, 0);
                assert_close(pc_item(pc_sum(pc_ne(pc_grad(one), pc_slice(pc_grad(x), 1, c, c + 1, 1)))), 0, 0);
            }
        }
    assert_no_leak();
}

/* --- against plain loops --- */

typedef struct windows {
    int n, c, h, w, kernel, stride, padding;
    bool ceil;
} windows;

static int out_of(const windows *s, int size)
{
    int count = (size + 2 * s->padding - s->kernel + (s->ceil ? s->stride - 1 : 0)) / s->stride + 1;
    return s->ceil && (count - 1) * s->stride >= size + s->padding ? count - 1 : count;
}

/* The maxima of planes, and their gradient where output i is given 1 + i % 3. */
static void plain_planes(const windows *s, const float *x, float *y, float *dx)
{
    const int oh = out_of(s, s->h), ow = out_of(s, s->w);
    for (int i = 0; i < s->n * s->c * oh * ow; i++) {
        const int at = i / (oh * ow) * s->h * s->w;
        const float *plane = x + at;
        const int top = i / ow % oh * s->stride - s->padding, left = i % ow * s->stride - s->padding;
        int most = -1;
        for (int r = top < 0 ? 0 : top; r < top + s->kernel && r < s->h; r++)
            for (int c = left < 0 ? 0 : left; c < left + s->kernel && c < s->w; c++)
                if (most < 0 || plane[r * s->w + c] > plane[most] || plane[r * s->w + c] != plane[r * s->w + c])
                    most = r * s->w + c;
        y[i] = plane[most];
        dx[at + most] += (float)(1 + i % 3);
    }
}

static void assert_same(pc_tensor *t, const float *wanted, int count)
{
    float *got = malloc((size_t)count * sizeof *got);
    assert_non_null(got);
    assert_ok(pc_read(pc_cast(t, PC_F32), got, (size_t)count * sizeof *got));
    for (int i = 0; i < count; i++)
        if (got[i] != wanted[i] && !(got[i] != got[i] && wanted[i] != wanted[i]))
            fail_msg("element %d is %g, not %g", i, (double)got[i], (double)wanted[i]);
    free(got);
}

static void check_windows(windows s, pc_dtype dtype, bool channels_last, int skip)
{
    const int oh = out_of(&s, s.h), ow = out_of(&s, s.w);
    const int in = s.n * s.c * s.h * s.w, out = s.n * s.c * oh * ow;
    float *x = malloc((size_t)(in + skip) * sizeof *x), *y = malloc((size_t)out * sizeof *y);
    float *dx = calloc((size_t)in, sizeof *dx), *dy = malloc((size_t)out * sizeof *dy);
    assert_true(x && y && dx && dy);
    for (int i = 0; i < in + skip; i++)
        x[i] = i % 101 == 50 ? NAN : i % 37 == 5 ? -INFINITY : (float)(i % 4099 * 7919 % 64 - 32); /* ties, too */
    for (int i = 0; i < out; i++)
        dy[i] = (float)(1 + i % 3);
    plain_planes(&s, x + skip, y, dx);
    PC_SCOPE {
        pc_tensor *all = pc_cast(pc_from_data(x, PC_SHAPE(in + skip), PC_F32, test_device()), dtype);
        pc_tensor *t = pc_reshape(pc_slice(all, 0, skip, in + skip, 1), PC_SHAPE(s.n, s.c, s.h, s.w));
        if (channels_last)
            t = as_channels_last(t);
        t = pc_detach(t);
        const pc_fn_pool2d_options spec = {.kernel = {s.kernel, s.kernel},
                                           .stride = {s.stride, s.stride},
                                           .padding = {s.padding, s.padding},
                                           .ceil_mode = s.ceil};
        assert_same(pc_fn_max_pool2d(t, spec), y, out);
        assert_ok(pc_require_grad(t, true));
        pc_tensor *pooled = pc_fn_max_pool2d(t, spec);
        assert_same(pooled, y, out);
        pc_tensor *g = pc_from_data(dy, PC_SHAPE(s.n, s.c, oh, ow), PC_F32, test_device());
        assert_ok(pc_backward_with(pooled, pc_cast(g, dtype)));
        assert_same(pc_grad(t), dx, in);
    }
    free(x), free(y), free(dx), free(dy);
}

/* Planes and channels, alone and by packs, with what is left at the ends; NaN, ties and whole windows of -inf. */
static void every_window_is_seen(void **state)
{
    (void)state;
    static const windows list[] = {
        {1, 1, 1, 1, 1, 1, 0, false},   {2, 3, 9, 11, 3, 2, 1, false}, {2, 8, 7, 13, 3, 2, 1, false},
        {1, 16, 8, 8, 2, 2, 0, false},  {3, 4, 6, 16, 3, 2, 1, false}, {1, 5, 10, 9, 3, 1, 1, false},
        {2, 8, 12, 5, 5, 3, 2, false},  {1, 2, 9, 24, 2, 3, 0, false}, {1, 24, 5, 5, 4, 1, 2, false},
        {1, 2, 19, 19, 9, 5, 4, false}, {2, 12, 7, 9, 2, 2, 0, false}, {2, 20, 6, 7, 3, 2, 1, false},
        {1, 6, 8, 9, 2, 2, 0, false},   {2, 1, 9, 41, 3, 2, 1, false}, {1, 2, 8, 75, 2, 3, 0, false},
        {2, 3, 5, 90, 3, 2, 0, false},  {2, 7, 9, 33, 2, 2, 0, false}, {1, 15, 8, 11, 3, 4, 1, false}};
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    for (int i = 0; i < PC__COUNT(list); i++)
        for (int k = 0; k < 3; k++)
            for (int way = 0; way < 6; way++) {
                windows s = list[i];
                s.ceil = way >= 3;
                check_windows(s, dtypes[k], way % 3 == 1, way % 3 == 2 ? 1 : 0);
            }
    assert_no_leak();
}

/* Windows of more numbers in a row than kernels keep together. */
static void wide_windows(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F64};
    for (int k = 0; k < 3; k++) {
        check_windows((windows){1, 15, 78, 80, 75, 1, 1, false}, dtypes[k], true, 0);
        check_windows((windows){1, 7, 150, 151, 149, 2, 3, true}, dtypes[k], true, 0);
    }
    assert_no_leak();
}

/* So many that a thread takes several. */
static void many_windows(void **state)
{
    (void)state;
    check_windows((windows){1, 1, 727, 727, 3, 1, 0, false}, PC_F32, false, 0);
    check_windows((windows){2, 8, 183, 183, 3, 2, 1, false}, PC_F32, true, 0);
    check_windows((windows){4, 8, 184, 183, 3, 2, 1, true}, PC_BF16, true, 0);
    check_windows((windows){3, 3, 121, 130, 4, 1, 1, false}, PC_F16, true, 0);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(maxima_without_a_gradient), cmocka_unit_test(bad_input),    cmocka_unit_test(channels_keep_apart),
    cmocka_unit_test(every_window_is_seen),      cmocka_unit_test(wide_windows), cmocka_unit_test(many_windows)};

int main(void)
{
    return golden_main("ops.pool2d", ops, tests);
}

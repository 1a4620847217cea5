/* Normalisations: layer_norm, rms_norm, group_norm, batch_norm. */
#include "ops/golden.h"

#include "base/base.h"

#include <math.h>
#include <paracord/threads.h>
#include <stdlib.h>

/* Those of in[1], in[2], ... whose bit is set: weight, bias, running mean and variance. */
static void take(pc_tensor **in, int flags, pc_tensor *list[4])
{
    for (int i = 0, next = 1; i < 4; i++)
        list[i] = flags >> i & 1 ? in[next++] : NULL;
}

static pc_shape last_dims(const pc_tensor *x, int dims)
{
    pc_shape shape = {.ndim = dims};
    for (int i = 0; i < dims; i++)
        shape.dim[i] = pc_tensor_size(x, i - dims);
    return shape;
}

static void run_layer_norm(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *p[4];
    take(in, (int)g->args[2], p);
    out[0] = pc_fn_layer_norm(in[0], last_dims(in[0], (int)g->args[0]), p[0], p[1], g->args[1]);
}

static void run_rms_norm(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *p[4];
    take(in, (int)g->args[2], p);
    out[0] = pc_fn_rms_norm(in[0], last_dims(in[0], (int)g->args[0]), p[0], g->args[1]);
}

static void run_group_norm(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *p[4];
    take(in, (int)g->args[2], p);
    out[0] = pc_fn_group_norm(in[0], (int64_t)g->args[0], p[0], p[1], g->args[1]);
}

static void run_batch_norm(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *p[4], *running[2] = {NULL, NULL};
    take(in, (int)g->args[3], p);
    for (int i = 0; p[2] && i < 2; i++)
        running[i] = pc_detach(pc_clone(p[2 + i]));
    out[0] = pc_fn_batch_norm(in[0], running[0], running[1], p[0], p[1], g->args[0] != 0, g->args[1], g->args[2]);
    out[1] = running[0] ? pc_cat(running, 2, 0) : NULL;
}

static const golden_op ops[] = {{"layer_norm", run_layer_norm},
                                {"rms_norm", run_rms_norm},
                                {"group_norm", run_group_norm},
                                {"batch_norm", run_batch_norm}};

static void bad_rows(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device()),
                  *w = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *whole = pc_zeros(PC_SHAPE(2, 3), PC_I64, test_device());
        pc_tensor *half = pc_ones(PC_SHAPE(3), PC_BF16, test_device());
        assert_fails(pc_fn_layer_norm(x, PC_SHAPE(2), NULL, NULL, 1e-5), PC_ERR_SHAPE,
                     "layer_norm: an input of shape [2, 3]");
        pc_tensor *wide = pc_expand(pc_zeros(PC_SHAPE(1, 1), PC_F32, test_device()), PC_SHAPE(46341, 46341));
        assert_fails(pc_fn_layer_norm(wide, PC_SHAPE(46341, 46341), NULL, NULL, 1e-5), PC_ERR_SHAPE, "2^31 elements");
        assert_fails(pc_fn_layer_norm(x, PC_SHAPE_SCALAR, NULL, NULL, 1e-5), PC_ERR_SHAPE, "normalized shape []");
        assert_fails(pc_fn_layer_norm(x, PC_SHAPE(1, 2, 3), NULL, NULL, 1e-5), PC_ERR_SHAPE, "[1, 2, 3]");
        assert_fails(pc_fn_rms_norm(x, PC_SHAPE(3), w, 1e-5), PC_ERR_SHAPE, "rms_norm: a parameter of shape [2]");
        assert_fails(pc_fn_layer_norm(x, PC_SHAPE(3), NULL, w, 1e-5), PC_ERR_SHAPE, "a parameter of shape [2]");
        assert_fails(pc_fn_layer_norm(whole, PC_SHAPE(3), NULL, NULL, 1e-5), PC_ERR_DTYPE, "the input is int64");
        assert_fails(pc_fn_layer_norm(x, PC_SHAPE(3), half, NULL, 1e-5), PC_ERR_DTYPE, "a parameter bfloat16");
        assert_fails(pc_fn_rms_norm(x, PC_SHAPE(3), NULL, -1), PC_ERR_ARGUMENT, "epsilon is -1");
        assert_fails(pc_fn_layer_norm(NULL, PC_SHAPE(3), NULL, NULL, 1e-5), PC_ERR_ARGUMENT, "pc_fn_layer_norm");
    }
    assert_no_leak();
}

static void bad_channels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 4, 3), PC_F32, test_device());
        pc_tensor *w = pc_ones(PC_SHAPE(3), PC_F32, test_device()), *four = pc_ones(PC_SHAPE(4), PC_F32, test_device());
        pc_tensor *one = pc_zeros(PC_SHAPE(1, 4), PC_F32, test_device()),
                  *row = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        assert_fails(pc_fn_group_norm(x, 3, NULL, NULL, 1e-5), PC_ERR_ARGUMENT,
                     "group_norm: 3 groups of the 4 channels");
        assert_fails(pc_fn_group_norm(x, 0, NULL, NULL, 1e-5), PC_ERR_ARGUMENT, "0 groups");
        assert_fails(pc_fn_group_norm(x, 2, w, NULL, 1e-5), PC_ERR_SHAPE, "a weight of shape [3]");
        assert_fails(pc_fn_group_norm(row, 2, NULL, NULL, 1e-5), PC_ERR_SHAPE, "[n, channels, ...]");
        assert_fails(pc_fn_group_norm(one, 4, NULL, NULL, 1e-5), PC_ERR_SHAPE, "one number");
        assert_fails(pc_fn_group_norm(x, 2, NULL, NULL, NAN), PC_ERR_ARGUMENT, "epsilon");
        assert_fails(pc_fn_batch_norm(x, four, NULL, NULL, NULL, true, 0.1, 1e-5), PC_ERR_ARGUMENT,
                     "give both or none");
        assert_fails(pc_fn_batch_norm(x, NULL, NULL, NULL, NULL, false, 0.1, 1e-5), PC_ERR_ARGUMENT, "evaluation");
        assert_fails(pc_fn_batch_norm(one, NULL, NULL, NULL, NULL, true, 0.1, 1e-5), PC_ERR_SHAPE, "one number");
        assert_fails(pc_fn_batch_norm(x, w, w, NULL, NULL, true, 0.1, 1e-5), PC_ERR_SHAPE,
                     "a running mean of shape [3]");
        assert_fails(pc_fn_batch_norm(x, four, four, NULL, NULL, true, 0.1, 1e-5), PC_ERR_ARGUMENT, "share memory");
        assert_fails(pc_fn_batch_norm(x, NULL, NULL, NULL, four, true, -1, 1e-5), PC_ERR_ARGUMENT, "momentum");
        assert_fails(pc_fn_batch_norm(x, NULL, NULL, pc_cast(four, PC_F64), NULL, true, 0.1, 1e-5), PC_ERR_DTYPE,
                     "float64");
    }
    assert_no_leak();
}

/* --- any size, beside plain sums --- */

typedef struct shape {
    int batches, channels, inner, groups; /* groups 0: batch_norm */
} shape;

enum { MOST = 1 << 20 };
static float x_of[MOST], g_of[MOST];
static double y_of[MOST], dx_of[MOST], dw_of[MOST], db_of[MOST], w_of[MOST], b_of[MOST];

static int place(const shape *s, int b, int c, int i)
{
    return (b * s->channels + c) * s->inner + i;
}

/* One group of channels of one batch, or of all batches (batch < 0). */
static void plain_group(const shape *s, int batch, int first, int channels, bool stored)
{
    double sum = 0, squares = 0, of_g = 0, of_gx = 0, n = 0;
    const int from = batch < 0 ? 0 : batch, to = batch < 0 ? s->batches : batch + 1;
#define EACH                                                                                                           \
    for (int b = from; b < to; b++)                                                                                    \
        for (int c = first; c < first + channels; c++)                                                                 \
            for (int i = 0, k; i < s->inner && (k = place(s, b, c, i), true); i++)
    EACH sum += (double)x_of[k], n++;
    const double mean = stored ? 0.5 : sum / n;
    EACH squares += pow((double)x_of[k] - mean, 2);
    const double rstd = 1 / sqrt((stored ? 2 : squares / n) + 1e-3);
    EACH
    {
        const double off = ((double)x_of[k] - mean) * rstd, g = (double)g_of[k];
        y_of[k] = off * w_of[c] + b_of[c];
        dw_of[c] += g * off;
        db_of[c] += g;
        of_g += g * w_of[c];
        of_gx += g * w_of[c] * off;
    }
    EACH
    {
        const double off = ((double)x_of[k] - mean) * rstd, g = (double)g_of[k] * w_of[c];
        dx_of[k] = stored ? rstd * g : rstd * (g - of_g / n - off * of_gx / n);
    }
#undef EACH
}

static void plain(const shape *s, bool stored)
{
    const int count = s->batches * s->channels * s->inner;
    for (int i = 0; i < count; i++) {
        x_of[i] = (float)(i % 33 * 7919 % 33 - 16) / 4 + (float)(i / s->inner % s->channels % 5); /* exact in 16 bits */
        g_of[i] = (float)(i % 17 * 31 % 17 - 8) / 64;
    }
    for (int c = 0; c < s->channels; c++) {
        w_of[c] = (double)(c * 5 % 11 + 1) / 8;
        b_of[c] = (double)(c % 7 - 3) / 4;
        dw_of[c] = db_of[c] = 0;
    }
    for (int b = 0; b < (s->groups ? s->batches : 1); b++)
        for (int g = 0; g < (s->groups ? s->groups : s->channels); g++) {
            const int size = s->channels / (s->groups ? s->groups : s->channels);
            plain_group(s, s->groups ? b : -1, g * size, size, stored);
        }
}

static void assert_near(const char *what, pc_tensor *t, const double *wanted, int count, double tolerance)
{
    float *got = malloc((size_t)count * sizeof *got);
    assert_non_null(got);
    assert_ok(pc_read(pc_contiguous(pc_cast(t, PC_F32)), got, (size_t)count * sizeof *got));
    for (int i = 0; i < count; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= tolerance * fmax(1, fabs(wanted[i]))))
            fail_msg("%s %d is %g, want %g", what, i, (double)got[i], wanted[i]);
    free(got);
}

static pc_tensor *vector(const double *values, int n, pc_dtype dtype)
{
    pc_tensor *t = pc_cast(pc_from_data(values, PC_SHAPE(n), PC_F64, test_device()), dtype);
    assert_ok(pc_require_grad(t, true));
    return t;
}

typedef struct way {
    pc_dtype dtype, parameters;
    bool last, stored;
    int skip; /* numbers in front of x, so that it lies on no boundary */
} way;

static pc_tensor *laid(const float *values, const shape *s, const way *w)
{
    const int count = s->batches * s->channels * s->inner, n = count + w->skip;
    pc_tensor *t = pc_cast(pc_from_data(values, PC_SHAPE(count), PC_F32, test_device()), w->dtype);
    t = pc_reshape(t, PC_SHAPE(s->batches, s->channels, s->inner));
    t = w->last ? pc_contiguous(pc_transpose(t, 1, 2)) : t;
    pc_tensor *room = pc_zeros(PC_SHAPE(n), w->dtype, test_device());
    pc_tensor *in = pc_slice(room, 0, w->skip, n, 1);
    in = pc_reshape(in, w->last ? PC_SHAPE(s->batches, s->inner, s->channels)
                                : PC_SHAPE(s->batches, s->channels, s->inner));
    assert_ok(pc_copy(in, t));
    return w->last ? pc_transpose(in, 1, 2) : in;
}

/* Beside what plain() has left. */
static void check_channels(const shape *s, const way *w)
{
    const int count = s->batches * s->channels * s->inner, c = s->channels;
    const bool half = w->dtype == PC_BF16 || w->dtype == PC_F16;
    PC_SCOPE {
        pc_tensor *x = pc_detach(laid(x_of, s, w)), *g = laid(g_of, s, w), *mean = NULL, *var = NULL;
        pc_tensor *weight = vector(w_of, c, w->parameters), *bias = vector(b_of, c, w->parameters);
        assert_ok(pc_require_grad(x, true));
        if (w->stored)
            mean = pc_full(PC_SHAPE(c), 0.5, w->parameters, test_device()),
            var = pc_full(PC_SHAPE(c), 2, w->parameters, test_device());
        pc_tensor *y = s->groups ? pc_fn_group_norm(x, s->groups, weight, bias, 1e-3)
                                 : pc_fn_batch_norm(x, mean, var, weight, bias, !w->stored, 0.1, 1e-3);
        assert_not_null_ok(y);
        assert_near("y", y, y_of, count, half ? 1e-2 : 1e-5);
        for (int d = 0; s->inner > 1 && c > 1 && d < 3; d++)
            assert_int_equal(pc_tensor_stride(y, d), pc_tensor_stride(g, d));
        assert_ok(pc_backward_with(y, g));
        assert_near("dx", pc_grad(x), dx_of, count, half ? 1e-2 : 1e-5);
        assert_near("dweight", pc_grad(weight), dw_of, c, w->parameters == PC_BF16 ? 1e-2 : 1e-4);
        assert_near("dbias", pc_grad(bias), db_of, c, w->parameters == PC_BF16 ? 1e-2 : 1e-4);
    }
}

/* The emulated GPU takes each dtype and each other choice once a shape, in other pairs from shape to shape. */
static bool passed_over(int i, int kind)
{
    return sampled() && (i + kind + kind / 4) % 4 != 0;
}

static void any_channels(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {2, 3, 5, 0},     {7, 1, 3, 0},     {33, 17, 1, 0},   {300, 8, 1, 0},   {4, 64, 49, 0},  {3, 16, 784, 0},
        {1, 2, 40000, 0}, {2, 300, 6, 0},   {5000, 16, 1, 0}, {2, 130, 300, 0}, {2, 6, 5, 3},    {3, 8, 1, 2},
        {2, 32, 49, 8},   {2, 64, 100, 1},  {1, 4, 40000, 2}, {3, 129, 7, 43},  {40, 16, 9, 16}, {2, 1024, 1, 4},
        {1, 3, 20000, 1}, {16, 5, 49, 0},   {9, 3, 7, 0},     {33, 16, 16, 0},  {20, 12, 9, 4},  {208, 331, 1, 0},
        {120, 600, 1, 0}, {500, 135, 1, 0}, {530, 130, 1, 0}, {16, 11, 48, 0},  {2, 6, 1200, 2}, {1, 3, 8209, 0},
        {1, 11, 2053, 0}, {7, 3, 1009, 0},  {3, 21862, 1, 0}, {11, 6101, 1, 0}, {720, 98, 1, 0}, {9, 16386, 1, 0},
        {5, 16387, 1, 0}, {900, 74, 1, 0},  {5, 6, 24, 0},    {4, 3, 56, 0},    {10, 2, 18, 0},  {4, 33, 2051, 0},
        {5, 32, 1664, 0}, {300, 35, 28, 0}, {9, 140, 256, 0}, {9, 2, 1024, 0}};
    for (int i = 0; i < PC__COUNT(shapes); i++)
        for (int stored = 0; stored < (shapes[i].groups ? 1 : 2); stored++) {
            plain(&shapes[i], stored);
            for (int k = 0; k < 16; k++) {
                if (passed_over(i, k))
                    continue;
                static const pc_dtype dtypes[4] = {PC_F32, PC_BF16, PC_F64, PC_F16};
                way w = {.dtype = dtypes[k & 3], .last = k & 4, .stored = stored, .skip = k & 8 ? 1 : 0};
                w.parameters = w.dtype == PC_F16 || (w.dtype == PC_BF16 && k & 8) ? PC_F32 : w.dtype;
                check_channels(&shapes[i], &w);
            }
        }
    assert_no_leak();
}

/* Rows are the channels of a plain normalisation whose weights go the other way. */
static void plain_rows(int rows, int n, bool centered)
{
    memset(dw_of, 0, (size_t)n * sizeof *dw_of);
    memset(db_of, 0, (size_t)n * sizeof *db_of);
    for (int i = 0; i < n; i++) {
        w_of[i] = (double)(i * 5 % 11 + 1) / 8;
        b_of[i] = centered ? (double)(i % 7 - 3) / 4 : 0;
    }
    for (int r = 0; r < rows; r++) {
        float *x = x_of + r * n, *g = g_of + r * n;
        double sum = 0, squares = 0, of_g = 0, of_gx = 0;
        for (int i = 0; i < n; i++) {
            x[i] = (float)((r * n + i) % 33 * 7919 % 33 - 16) / 4 + (float)(r % 5);
            g[i] = (float)((r * n + i) % 17 * 31 % 17 - 8) / 64;
            sum += (double)x[i];
        }
        const double mean = centered ? sum / n : 0;
        for (int i = 0; i < n; i++)
            squares += pow((double)x[i] - mean, 2);
        const double rstd = 1 / sqrt(squares / n + 1e-3);
        for (int i = 0; i < n; i++) {
            const double off = ((double)x[i] - mean) * rstd;
            y_of[r * n + i] = off * w_of[i] + b_of[i];
            dw_of[i] += (double)g[i] * off;
            db_of[i] += (double)g[i];
            of_g += (double)g[i] * w_of[i];
            of_gx += (double)g[i] * w_of[i] * off;
        }
        for (int i = 0; i < n; i++) {
            const double off = ((double)x[i] - mean) * rstd;
            dx_of[r * n + i] = rstd * ((double)g[i] * w_of[i] - (centered ? of_g / n : 0) - off * of_gx / n);
        }
    }
}

/* Beside what plain_rows() has left. */
static void check_rows(int rows, int n, const way *w, bool centered)
{
    const bool half = w->dtype == PC_BF16 || w->dtype == PC_F16;
    const shape s = {1, rows, n, 0};
    PC_SCOPE {
        pc_tensor *x = pc_detach(pc_reshape(laid(x_of, &s, w), PC_SHAPE(rows, n)));
        pc_tensor *g = pc_reshape(laid(g_of, &s, w), PC_SHAPE(rows, n));
        pc_tensor *weight = vector(w_of, n, w->parameters), *bias = vector(b_of, n, w->parameters);
        assert_ok(pc_require_grad(x, true));
        pc_tensor *y = centered ? pc_fn_layer_norm(x, PC_SHAPE(n), weight, bias, 1e-3)
                                : pc_fn_rms_norm(x, PC_SHAPE(n), weight, 1e-3);
        assert_not_null_ok(y);
        assert_near("y", y, y_of, rows * n, half ? 1e-2 : 1e-5);
        assert_ok(pc_backward_with(y, g));
        assert_near("dx", pc_grad(x), dx_of, rows * n, half ? 1e-2 : 1e-5);
        assert_near("dweight", pc_grad(weight), dw_of, n, w->parameters == PC_BF16 ? 1e-2 : 1e-4);
        if (centered)
            assert_near("dbias", pc_grad(bias), db_of, n, w->parameters == PC_BF16 ? 1e-2 : 1e-4);
    }
}

static void check_other_rows(int rows, int n, const way *w, bool centered)
{
    plain_rows(rows, n, centered);
    check_rows(rows, n, w, centered);
}

/* A row of one number is its bias, whatever the number: its gradient is 0, not what rounding leaves of one. */
static void rows_of_one_number(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(300, 1), PC_F32, test_device()),
                  *weight = pc_rand(PC_SHAPE(1), PC_F32, test_device());
        pc_tensor *g = pc_randn(PC_SHAPE(300, 1), PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_backward_with(pc_fn_layer_norm(x, PC_SHAPE(1), weight, NULL, 1e-5), g));
        assert_close(pc_item(pc_max(pc_abs(pc_grad(x)))), 0, 0);
    }
    assert_no_leak();
}

/* Rows that a device keeps in a warp, in a block, or reads again; on 16 bytes and not; few and many. */
static void any_rows(void **state)
{
    (void)state;
    static const int lengths[] = {1,    2,    7,    16,   33,   64,   100,  256,  264,  512,   768,
                                  1000, 1001, 1024, 2048, 2056, 4096, 5003, 8192, 9001, 16384, 20000};
    for (int i = 0; i < PC__COUNT(lengths); i++)
        for (int centered = 0; centered < 2; centered++) {
            const int rows = lengths[i] > 1024 ? 3 : lengths[i] > 64 ? 17 : 83;
            plain_rows(rows, lengths[i], centered);
            for (int k = 8 * centered; k < 8 * centered + 8; k++) {
                if (passed_over(i, k))
                    continue;
                static const pc_dtype dtypes[4] = {PC_F32, PC_BF16, PC_F64, PC_F16};
                way w = {.dtype = dtypes[k & 3], .skip = k & 4 ? 1 : 0};
                w.parameters = w.dtype == PC_F16 || (w.dtype == PC_BF16 && k & 4) ? PC_F32 : w.dtype;
                check_rows(rows, lengths[i], &w, centered);
            }
        }
    const way plain_way = {.dtype = PC_F32, .parameters = PC_F32};
    check_other_rows(5000, 24, &plain_way, true);
    check_other_rows(3000, 40, &(way){.dtype = PC_BF16, .parameters = PC_F32}, true);
    check_other_rows(2113, 261, &(way){.dtype = PC_BF16, .parameters = PC_F32}, true);
    /* More rows than blocks, or than there should be sums. */
    check_other_rows(133, 2052, &plain_way, true);
    check_other_rows(134, 4104, &(way){.dtype = PC_BF16, .parameters = PC_BF16}, true);
    /* Pairs of 16 bits, and rows that lie off them. */
    check_other_rows(133, 4098, &(way){.dtype = PC_BF16, .parameters = PC_BF16}, true);
    check_other_rows(3, 8190, &(way){.dtype = PC_BF16, .parameters = PC_BF16}, false);
    check_other_rows(3, 8190, &(way){.dtype = PC_F16, .parameters = PC_F32, .skip = 1}, true);
    check_other_rows(1, 300001, &plain_way, true);
    check_other_rows(3, 70000, &(way){.dtype = PC_BF16, .parameters = PC_BF16, .skip = 1}, false);
    check_other_rows(2, 65536, &(way){.dtype = PC_F64, .parameters = PC_F64}, true);
    assert_no_leak();
}

/* A mean far from 0 leaves the variance its digits. */
static void far_from_zero(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x =
            pc_add_scalar(pc_reshape(pc_arange(0, 4096, 1, PC_F32, test_device()), PC_SHAPE(2, 1, 2048)), 1e6);
        pc_tensor *near = pc_sub_scalar(x, 1e6);
        pc_tensor *list[][2] = {
            {pc_fn_layer_norm(x, PC_SHAPE(2048), NULL, NULL, 0), pc_fn_layer_norm(near, PC_SHAPE(2048), NULL, NULL, 0)},
            {pc_fn_group_norm(x, 1, NULL, NULL, 0), pc_fn_group_norm(near, 1, NULL, NULL, 0)},
            {pc_fn_batch_norm(x, NULL, NULL, NULL, NULL, true, 0, 0),
             pc_fn_batch_norm(near, NULL, NULL, NULL, NULL, true, 0, 0)}};
        for (int i = 0; i < PC__COUNT(list); i++)
            assert_true(pc_item(pc_max(pc_abs(pc_sub(list[i][0], list[i][1])))) < 1e-4);
    }
    assert_no_leak();
}

/* Nothing in: no results, gradients of zeros, and running statistics as they were. */
static void nothing(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(0, 3, 2), PC_F32, test_device()),
                  *mean = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *var = pc_full(PC_SHAPE(3), 2, PC_F32, test_device()),
                  *w = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        pc_tensor *long_w = pc_ones(PC_SHAPE(3, 2), PC_F32, test_device());
        assert_ok(pc_require_grad(w, true));
        assert_ok(pc_require_grad(long_w, true));
        pc_tensor *y = pc_fn_batch_norm(x, mean, var, w, NULL, true, 0.5, 1e-5);
        assert_int_equal(pc_tensor_count(y), 0);
        assert_ok(pc_backward(pc_sum(y)));
        assert_close(pc_item(pc_sum(pc_grad(w))), 0, 0);
        assert_close(pc_item(pc_sum(mean)), 3, 0);
        assert_close(pc_item(pc_sum(var)), 6, 0);
        pc_zero_grad(w);
        assert_ok(pc_backward(pc_sum(pc_fn_group_norm(x, 3, w, NULL, 1e-5))));
        assert_close(pc_item(pc_sum(pc_grad(w))), 0, 0);
        assert_ok(pc_backward(pc_sum(pc_fn_layer_norm(x, PC_SHAPE(3, 2), long_w, NULL, 1e-5))));
        assert_close(pc_item(pc_sum(pc_grad(long_w))), 0, 0);
        assert_int_equal(
            pc_tensor_count(pc_fn_rms_norm(pc_zeros(PC_SHAPE(2, 0), PC_F32, test_device()), PC_SHAPE(0), NULL, 0)), 0);
    }
    assert_no_leak();
}

/* The same bits whatever number of threads. */
static void any_threads(void **state)
{
    (void)state;
    const int before = pc_threads_get();
    float sums[2][4];
    for (int k = 0; k < 2; k++)
        PC_SCOPE {
            pc_threads_set(k ? 5 : 1);
            pc_seed(3);
            pc_tensor *x = pc_randn(PC_SHAPE(40, 24, 33), PC_F32, test_device()),
                      *w = pc_ones(PC_SHAPE(24), PC_F32, test_device());
            pc_tensor *v = pc_ones(PC_SHAPE(33), PC_F32, test_device());
            pc_tensor *g = pc_randn(PC_SHAPE(40, 24, 33), PC_F32, test_device());
            assert_ok(pc_require_grad(w, true));
            assert_ok(pc_require_grad(v, true));
            pc_tensor *list[] = {pc_fn_batch_norm(x, NULL, NULL, w, NULL, true, 0, 1e-5),
                                 pc_fn_group_norm(x, 4, w, NULL, 1e-5),
                                 pc_fn_layer_norm(x, PC_SHAPE(33), v, NULL, 1e-5)};
            for (int i = 0; i < 3; i++) {
                sums[k][i] = (float)pc_item(pc_sum(pc_mul(list[i], g)));
                assert_ok(pc_backward_with(list[i], g));
            }
            sums[k][3] = (float)(pc_item(pc_sum(pc_square(pc_grad(w)))) + pc_item(pc_sum(pc_square(pc_grad(v)))));
        }
    pc_threads_set(before);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    assert_no_leak();
}

/* Long rows without weight and bias are those with ones and zeros, by whatever number of threads. */
static void long_rows(void **state)
{
    (void)state;
    enum { N = 70001 };
    const int before = pc_threads_get();
    PC_SCOPE {
        pc_seed(4);
        pc_tensor *x = pc_randn(PC_SHAPE(2, N), PC_F32, test_device()),
                  *g = pc_randn(PC_SHAPE(2, N), PC_F32, test_device());
        pc_tensor *weight = pc_ones(PC_SHAPE(N), PC_F32, test_device()),
                  *bias = pc_zeros(PC_SHAPE(N), PC_F32, test_device()), *y[3], *dx[3];
        assert_ok(pc_require_grad(weight, true));
        for (int k = 0; k < 3; k++) {
            pc_tensor *leaf = pc_detach(x);
            pc_threads_set(k ? 5 : 1);
            assert_ok(pc_require_grad(leaf, true));
            y[k] = pc_fn_layer_norm(leaf, PC_SHAPE(N), k > 1 ? weight : NULL, k > 1 ? bias : NULL, 1e-5);
            assert_ok(pc_backward_with(y[k], g));
            dx[k] = pc_grad(leaf);
        }
        assert_close(pc_item(pc_sum(pc_ne(y[0], y[1]))), 0, 0);
        assert_close(pc_item(pc_sum(pc_ne(dx[0], dx[1]))), 0, 0);
        assert_close(pc_item(pc_max(pc_abs(pc_sub(y[0], y[2])))), 0, 1e-6);
        assert_close(pc_item(pc_max(pc_abs(pc_sub(dx[0], dx[2])))), 0, 1e-6);
    }
    pc_threads_set(before);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_rows),     cmocka_unit_test(bad_channels),
    cmocka_unit_test(any_channels), cmocka_unit_test(rows_of_one_number),
    cmocka_unit_test(any_rows),     cmocka_unit_test(far_from_zero),
    cmocka_unit_test(nothing),      cmocka_unit_test(any_threads),
    cmocka_unit_test(long_rows),
};

int main(void)
{
    return golden_main("ops.norm", ops, tests);
}

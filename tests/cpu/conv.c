/* Convolution and pooling of every level against plain loops in double, forward and backward, fused or not. */
#include "levels.h"

#include <math.h>
#include <paracord/ops.h>

typedef struct sample {
    const kernels *k;
    pc__conv s;
    array x, weight, bias, y, dy, dx, dweight, dbias;
    double *full, *dfull; /* the convolution before pooling, activated; the gradient before the activation */
    const double *sums;   /* the convolution without bias and activation */
    uint8_t *argmax;
} sample;

static int64_t x_at(const pc__conv *s, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return ((n * s->h + h) * s->w + w) * s->c + c;
}

/* Call with every product x[in] * weight[tap] that goes into out, but where `factor`, unless NULL, is 0 for that. */
static inline void each_product(const pc__conv *s, const double *factor, void *context,
                                void (*body)(void *context, int64_t out, int64_t in, int64_t tap))
{
    const int64_t oh = pc__conv_oh(s), ow = pc__conv_ow(s);
    for (int64_t out = 0; out < s->n * oh * ow * s->o; out++) {
        if (factor && factor[out] == 0)
            continue;
        const int64_t o = out % s->o, j = out / s->o % ow, i = out / s->o / ow % oh, n = out / s->o / ow / oh;
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t kh = 0; kh < s->kh; kh++)
                for (int64_t kw = 0; kw < s->kw; kw++) {
                    const int64_t h = i * s->sh + kh - s->ph, w = j * s->sw + kw - s->pw;
                    if (h >= 0 && h < s->h && w >= 0 && w < s->w)
                        body(context, out, x_at(s, n, h, w, c), ((o * s->c + c) * s->kh + kh) * s->kw + kw);
                }
    }
}

typedef struct plain {
    array x, weight;
    double *sums;
} plain;

static void forward_product(void *context, int64_t out, int64_t in, int64_t tap)
{
    plain *p = context;
    p->sums[out] += get(p->x, in) * get(p->weight, tap);
}

static double *dx_want, *dweight_want;

static void backward_product(void *context, int64_t out, int64_t in, int64_t tap)
{
    sample *t = context;
    dx_want[in] += t->dfull[out] * get(t->weight, tap);
    dweight_want[tap] += t->dfull[out] * get(t->x, in);
}

static void compare(const sample *t, const char *what, array got, const double *want, double scale)
{
    for (int64_t i = 0; i < got.n; i++)
        if (!(fabs(get(got, i) - want[i]) <= tolerance(t->k) * scale))
            fail_msg("%s %s: x %lldx%lldx%lldx%lld o %lld kernel %lldx%lld stride %lldx%lld pad %lldx%lld pool %lld "
                     "act %d: %s[%lld]: got %.9g, want %.9g",
                     t->k->level, t->k->is_double ? "f64" : "f32", (long long)t->s.n, (long long)t->s.h,
                     (long long)t->s.w, (long long)t->s.c, (long long)t->s.o, (long long)t->s.kh, (long long)t->s.kw,
                     (long long)t->s.sh, (long long)t->s.sw, (long long)t->s.ph, (long long)t->s.pw,
                     (long long)t->s.pool, t->s.activation, what, (long long)i, get(got, i), want[i]);
}

/* Forward from the plain sums; the kernel's own argmax is checked to point at the maximum. */
static void check_forward(sample *t, bool with_bias)
{
    const pc__conv *s = &t->s;
    const int64_t oh = pc__conv_oh(s), ow = pc__conv_ow(s), yh = pc__conv_yh(s), yw = pc__conv_yw(s);
    const int64_t pool = PC__MAX(s->pool, 1), full = s->n * oh * ow * s->o;
    for (int64_t i = 0; i < full; i++)
        t->full[i] = activated(s->activation, t->sums[i] + (with_bias ? get(t->bias, i % s->o) : 0));
    assert_ok(t->k->conv2d(s, t->x.data, t->weight.data, with_bias ? t->bias.data : NULL, t->y.data, t->argmax));
    double *want = calloc((size_t)t->y.n + 1, sizeof(double));
    for (int64_t i = 0; i < t->y.n; i++) {
        const int64_t o = i % s->o, pw = i / s->o % yw, ph = i / s->o / yw % yh, n = i / s->o / yw / yh;
        want[i] = -INFINITY;
        for (int64_t q = 0; q < pool * pool; q++) {
            const int64_t at = ((n * oh + ph * pool + q / pool) * ow + pw * pool + q % pool) * s->o + o;
            want[i] = t->full[at] > want[i] ? t->full[at] : want[i];
        }
        if (pool > 1) {
            assert_true(t->argmax[i] < pool * pool);
            const int64_t q = t->argmax[i];
            const int64_t at = ((n * oh + ph * pool + q / pool) * ow + pw * pool + q % pool) * s->o + o;
            assert_close(t->full[at], want[i], 20 * tolerance(t->k));
        }
    }
    compare(t, "y", t->y, want, 20);
    free(want);
}

static void check_backward(sample *t, bool want_dx, bool want_dweight, bool want_dbias)
{
    const pc__conv *s = &t->s;
    const int64_t oh = pc__conv_oh(s), ow = pc__conv_ow(s), yh = pc__conv_yh(s), yw = pc__conv_yw(s);
    const int64_t pool = PC__MAX(s->pool, 1), full = s->n * oh * ow * s->o;
    memset(t->dfull, 0, (size_t)full * sizeof(double));
    double *dbias_want = calloc((size_t)s->o + 1, sizeof(double));
    dx_want = calloc((size_t)t->x.n + 1, sizeof(double)),
    dweight_want = calloc((size_t)t->weight.n + 1, sizeof(double));
    for (int64_t i = 0; i < t->y.n; i++) {
        const int64_t o = i % s->o, pw = i / s->o % yw, ph = i / s->o / yw % yh, n = i / s->o / yw / yh;
        const int64_t q = pool > 1 ? t->argmax[i] : 0;
        const double y = get(t->y, i), dy = get(t->dy, i);
        const double slope[] = {1, y > 0, y * (1 - y), 1 - y * y};
        t->dfull[((n * oh + ph * pool + q / pool) * ow + pw * pool + q % pool) * s->o + o] = dy * slope[s->activation];
        dbias_want[o] += dy * slope[s->activation];
    }
    each_product(s, t->dfull, t, backward_product); /* pooling and ReLU leave most of it 0 */
    assert_ok(t->k->conv2d_backward(s, t->x.data, t->weight.data, t->y.data, pool > 1 ? t->argmax : NULL, t->dy.data,
                                    want_dx ? t->dx.data : NULL, want_dweight ? t->dweight.data : NULL,
                                    want_dbias ? t->dbias.data : NULL));
    if (want_dx)
        compare(t, "dx", t->dx, dx_want, 20 + (double)s->o);
    if (want_dweight)
        compare(t, "dweight", t->dweight, dweight_want, 20 + (double)(s->n * oh * ow) / 8);
    if (want_dbias)
        compare(t, "dbias", t->dbias, dbias_want, 20 + (double)(s->n * oh * ow) / 8);
    free(dbias_want), free(dx_want), free(dweight_want);
}

static sample sample_new(const kernels *k, pc__conv s)
{
    const int64_t y = s.n * pc__conv_yh(&s) * pc__conv_yw(&s) * s.o,
                  full = s.n * pc__conv_oh(&s) * pc__conv_ow(&s) * s.o;
    const int64_t x = s.n * s.h * s.w * s.c, weight = s.o * s.c * s.kh * s.kw;
    sample t = {k,
                s,
                array_new(k, x, 1),
                array_new(k, weight, 2),
                array_new(k, s.o, 3),
                array_new(k, y, 4),
                array_new(k, y, 5),
                array_new(k, x, 6),
                array_new(k, weight, 7),
                array_new(k, s.o, 8),
                calloc((size_t)full + 1, sizeof(double)),
                calloc((size_t)full + 1, sizeof(double)),
                NULL,
                calloc((size_t)y + 1, 1)};
    return t;
}

static void sample_free(sample t)
{
    array_free(t.x), array_free(t.weight), array_free(t.bias), array_free(t.y);
    array_free(t.dy), array_free(t.dx), array_free(t.dweight), array_free(t.dbias);
    free(t.full), free(t.dfull), free(t.argmax);
}

static const int64_t shapes[][11] = {
    /* n, h, w, c, o, kh, kw, sh, sw, ph, pw */
    {2, 9, 11, 3, 32, 3, 3, 1, 1, 0, 0},   {3, 13, 10, 3, 32, 3, 3, 3, 3, 0, 0}, {2, 8, 9, 1, 6, 5, 5, 1, 1, 2, 2},
    {1, 12, 7, 6, 16, 5, 5, 1, 1, 0, 0},   {9, 6, 6, 2, 5, 3, 3, 2, 2, 1, 1},    {2, 7, 7, 32, 64, 3, 3, 1, 1, 0, 0},
    {1, 6, 8, 64, 100, 3, 3, 1, 1, 1, 1},  {2, 9, 8, 4, 7, 1, 1, 1, 1, 0, 0},    {1, 9, 8, 5, 1, 1, 4, 2, 1, 0, 3},
    {1, 10, 11, 16, 33, 2, 3, 3, 2, 1, 0}, {11, 5, 4, 8, 17, 3, 2, 1, 2, 2, 1},  {1, 40, 140, 2, 3, 3, 3, 1, 1, 1, 1},
    {1, 2, 2, 3, 4, 3, 3, 1, 1, 0, 0},     {0, 5, 5, 3, 4, 3, 3, 1, 1, 0, 0},    {2, 5, 5, 3, 0, 3, 3, 1, 1, 0, 0},
    {2, 5, 5, 0, 3, 3, 3, 1, 1, 0, 0},     {1, 9, 9, 48, 20, 7, 7, 2, 2, 3, 3},  {2, 6, 5, 150, 9, 3, 3, 1, 1, 1, 0},
};

static pc__conv conv_of(const int64_t *v, pc__activation activation, int64_t pool)
{
    return (pc__conv){.n = v[0],
                      .h = v[1],
                      .w = v[2],
                      .c = v[3],
                      .o = v[4],
                      .kh = v[5],
                      .kw = v[6],
                      .sh = v[7],
                      .sw = v[8],
                      .ph = v[9],
                      .pw = v[10],
                      .activation = activation,
                      .pool = pool};
}

/* Of x and weight as sample_new draws them. */
static double *plain_sums(const kernels *k, const pc__conv *s)
{
    plain p = {array_new(k, s->n * s->h * s->w * s->c, 1), array_new(k, s->o * s->c * s->kh * s->kw, 2),
               calloc((size_t)(s->n * pc__conv_oh(s) * pc__conv_ow(s) * s->o) + 1, sizeof(double))};
    assert_non_null(p.sums);
    each_product(s, NULL, &p, forward_product);
    array_free(p.x), array_free(p.weight);
    return p.sums;
}

static void check_shape(const kernels *k, const int64_t *shape, int number, const double *sums)
{
    for (int pool = 0; pool <= 5; pool++)
        for (int activation = PC__ACT_NONE; activation <= PC__ACT_TANH; activation++) {
            sample t = sample_new(k, conv_of(shape, (pc__activation)activation, pool));
            t.sums = sums;
            check_forward(&t, (number + pool) % 3 != 0);
            check_backward(&t, activation != 2, activation != 3, activation != 1);
            sample_free(t);
        }
}

/* The plain sums take long: once for all levels, poolings and activations. */
static void check_shapes(bool is_double)
{
    for (int i = 0; i < PC__COUNT(shapes); i++) {
        const pc__conv s = conv_of(shapes[i], PC__ACT_NONE, 0);
        double *sums = plain_sums(&(kernels){.is_double = is_double}, &s);
        for (int j = 0; j < PC__COUNT(all_kernels); j++)
            if (all_kernels[j].is_double == is_double && level_runs(all_kernels[j].level))
                check_shape(&all_kernels[j], shapes[i], i, sums);
        free(sums);
    }
}

static void convolutions_agree(void **state)
{
    (void)state;
    check_shapes(false);
    check_shapes(true);
}

static void assert_same(array a, array b)
{
    assert_memory_equal(a.data, b.data, (size_t)a.n * (a.k->is_double ? 8 : 4));
}

static void check_threads_of(const kernels *k, pc__conv s)
{
    sample runs[3];
    for (int run = 0; run < 3; run++) {
        sample *t = &runs[run];
        *t = sample_new(k, s);
        pc_threads_set(run == 0 ? 1 : run == 1 ? 2 : 7);
        assert_ok(k->conv2d(&s, t->x.data, t->weight.data, t->bias.data, t->y.data, t->argmax));
        assert_ok(k->conv2d_backward(&s, t->x.data, t->weight.data, t->y.data, t->argmax, t->dy.data, t->dx.data,
                                     t->dweight.data, t->dbias.data));
    }
    pc_threads_set(0);
    for (int run = 1; run < 3; run++) {
        assert_same(runs[0].y, runs[run].y), assert_same(runs[0].dx, runs[run].dx);
        assert_same(runs[0].dweight, runs[run].dweight), assert_same(runs[0].dbias, runs[run].dbias);
    }
    for (int run = 0; run < 3; run++)
        sample_free(runs[run]);
}

/* Of many outputs, of few, and of few places; gradients that are cut by each activation first, in several pieces. */
static void check_threads(const kernels *k)
{
    for (int pool = 1; pool <= 2; pool++)
        for (int stride = 1; stride <= 2; stride++)
            for (int o = 3; o <= 24; o += 21)
                check_threads_of(
                    k, conv_of((int64_t[]){9, 31, 29, 8, o, 3, 3, stride, stride, pool - 1, 0}, PC__ACT_RELU, pool));
    check_threads_of(k, conv_of((int64_t[]){4, 6, 6, 96, 200, 3, 3, 2, 2, 0, 0}, PC__ACT_RELU, 1));
    for (pc__activation a = PC__ACT_RELU; a <= PC__ACT_TANH; a++) {
        check_threads_of(k, conv_of((int64_t[]){3, 31, 29, 3, 21, 3, 3, 1, 1, 1, 1}, a, 1));
        check_threads_of(k, conv_of((int64_t[]){16, 33, 31, 2, 2, 3, 3, 1, 1, 1, 1}, a, 1));
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    each_kernels(check_threads);
}

static void check_pool(const kernels *k, pc__pool s)
{
    const int64_t oh = pc__pool_oh(&s), ow = pc__pool_ow(&s), nx = s.n * s.h * s.w * s.c, ny = s.n * oh * ow * s.c;
    array x = array_new(k, nx, 1), y = array_new(k, ny, 2), mean = array_new(k, ny, 3), dy = array_new(k, ny, 4);
    array dx = array_new(k, nx, 5), dmean = array_new(k, nx, 6);
    double *want = calloc((size_t)nx + 1, 8), *want_mean = calloc((size_t)nx + 1, 8);
    int32_t *argmax = calloc((size_t)ny + 1, sizeof(int32_t));
    assert_ok(k->max_pool2d(&s, x.data, y.data, argmax));
    assert_ok(k->max_pool2d_backward(&s, argmax, dy.data, dx.data));
    assert_ok(k->avg_pool2d(&s, x.data, mean.data));
    assert_ok(k->avg_pool2d_backward(&s, dy.data, dmean.data));
    for (int64_t e = 0; e < ny; e++) {
        const int64_t c = e % s.c, j = e / s.c % ow, i = e / s.c / ow % oh, n = e / s.c / ow / oh;
        double most = -INFINITY, sum = 0;
        int64_t place = 0, count = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t h = i * s.sh - s.ph; h < i * s.sh - s.ph + s.kh; h++)
                for (int64_t w = j * s.sw - s.pw; w < j * s.sw - s.pw + s.kw; w++) {
                    if (h < 0 || h >= s.h || w < 0 || w >= s.w)
                        continue;
                    const int64_t at = ((n * s.h + h) * s.w + w) * s.c + c;
                    if (pass == 1) {
                        want_mean[at] += get(dy, e) / (double)(s.exclude_padding ? count : s.kh * s.kw);
                        continue;
                    }
                    count++, sum += get(x, at);
                    if (get(x, at) > most)
                        most = get(x, at), place = h * s.w + w;
                }
        want[(n * s.h * s.w + place) * s.c + c] += get(dy, e);
        assert_close(get(y, e), most, 0);
        assert_int_equal(argmax[e], place);
        assert_close(get(mean, e), sum / (double)(s.exclude_padding ? count : s.kh * s.kw), tolerance(k));
    }
    for (int64_t e = 0; e < nx; e++) {
        assert_close(get(dx, e), want[e], 4 * tolerance(k));
        assert_close(get(dmean, e), want_mean[e], 4 * tolerance(k));
    }
    array_free(x), array_free(y), array_free(mean), array_free(dy), array_free(dx), array_free(dmean);
    free(want), free(want_mean), free(argmax);
}

static void check_pools(const kernels *k)
{
    static const pc__pool pools[] = {
        {1, 5, 300, 1, 3, 3, 1, 1, 1, 1, false, false, false, 0, 0},
        {2, 6, 151, 3, 3, 2, 1, 2, 1, 1, true, false, false, 0, 0},
        {1, 7, 90, 5, 2, 3, 2, 3, 0, 1, true, false, false, 0, 0},
        {2, 8, 10, 32, 2, 2, 2, 2, 0, 0, false, false, false, 0, 0},
        {1, 9, 7, 3, 3, 3, 2, 2, 1, 1, false, false, false, 0, 0},
        {3, 9, 7, 5, 3, 2, 1, 3, 1, 1, true, false, false, 0, 0},
        {2, 5, 5, 17, 5, 5, 1, 1, 0, 0, false, false, false, 0, 0},
        {1, 1, 6, 1, 2, 3, 2, 1, 1, 0, true, false, false, 0, 0},
        {0, 4, 4, 3, 2, 2, 2, 2, 0, 0, false, false, false, 0, 0},
        {2, 40, 40, 24, 2, 2, 2, 2, 0, 0, true, false, false, 0, 0},
        {1, 2, 2, 3, 3, 3, 1, 1, 0, 0, false, false, false, 0, 0},
    };
    for (int i = 0; i < PC__COUNT(pools); i++)
        check_pool(k, pools[i]);
}

static void pools_agree(void **state)
{
    (void)state;
    each_kernels(check_pools);
}

/* NaN is the largest of a window, fused or not, wherever it stands. */
static void check_nan(const kernels *k)
{
    for (int at = 0; at < 4; at++) {
        enum { CHANNELS = 24, CHANNEL = 21 };
        array x = array_new(k, 4, 1), one = array_new(k, 1, 1), y = array_new(k, 1, 1);
        array deep = array_new(k, 4 * CHANNELS, 1), most = array_new(k, CHANNELS, 1);
        uint8_t place;
        int32_t where, places[CHANNELS];
        set(one, 0, 1), set(x, at, NAN);
        const pc__conv conv = conv_of((int64_t[]){1, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0}, PC__ACT_RELU, 2);
        assert_ok(k->conv2d(&conv, x.data, one.data, NULL, y.data, &place));
        assert_true(isnan(get(y, 0)));
        assert_int_equal(place, at);
        pc__pool pool = {1, 2, 2, 1, 2, 2, 2, 2, 0, 0, false, false, false, 0, 0};
        assert_ok(k->max_pool2d(&pool, x.data, y.data, &where));
        assert_true(isnan(get(y, 0)));
        assert_int_equal(where, at);
        set(deep, at * CHANNELS + CHANNEL, NAN);
        pool.c = CHANNELS;
        assert_ok(k->max_pool2d(&pool, deep.data, most.data, places));
        assert_true(isnan(get(most, CHANNEL)) && !isnan(get(most, CHANNEL - 1)));
        assert_int_equal(places[CHANNEL], at);
        array_free(x), array_free(one), array_free(y), array_free(deep), array_free(most);
    }
}

static void nan_survives_pooling(void **state)
{
    (void)state;
    each_kernels(check_nan);
}

static pc_status sample_run(void *context)
{
    const sample *t = context;
    PC__TRY(t->k->conv2d(&t->s, t->x.data, t->weight.data, t->bias.data, t->y.data, t->argmax));
    return t->k->conv2d_backward(&t->s, t->x.data, t->weight.data, t->y.data, t->argmax, t->dy.data, t->dx.data,
                                 t->dweight.data, t->dbias.data);
}

static void check_memory(const kernels *k)
{
    for (int pool = 1; pool <= 2; pool++) {
        sample t = sample_new(k, conv_of((int64_t[]){2, 9, 9, 32, 21, 3, 3, 1, 1, 1, 1}, PC__ACT_RELU, pool));
        assert_int_equal(sweep_allocations(sample_run, &t),
                         pool == 1 ? 5 : 4); /* 21 are no whole vectors: dy is cut first */
        sample_free(t);
    }
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    each_kernels(check_memory);
}

/* A sum that is the other infinity than the bias is no number, and its window has none then, as by ops apart. */
static void infinities_in_a_window(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16, PC_F16};
    for (int i = 0; i < 8; i++)
        PC_SCOPE {
            const float weights[] = {1, 1}, bias[] = {i % 2 ? -INFINITY : INFINITY, 1};
            float x[16] = {0}, got[8], want[8];
            x[0] = -INFINITY, x[3] = INFINITY, x[9] = 2;
            const pc_dtype dtype = dtypes[i / 2];
            pc_tensor *in = pc_cast(pc_from_data(x, PC_SHAPE(1, 1, 4, 4), PC_F32, PC_DEVICE_CPU), dtype),
                      *w = pc_cast(pc_from_data(weights, PC_SHAPE(2, 1, 1, 1), PC_F32, PC_DEVICE_CPU), dtype),
                      *b = pc_cast(pc_from_data(bias, PC_SHAPE(2), PC_F32, PC_DEVICE_CPU), dtype);
            pc_tensor *y = pc_fn_conv2d(in, w, b, (pc_fn_conv2d_options){.pool = 2});
            pc_tensor *z = pc_fn_max_pool2d(pc_fn_conv2d(in, w, b, (pc_fn_conv2d_options){.pool = 1}),
                                            (pc_fn_pool2d_options){.kernel = {2, 2}});
            assert_ok(pc_read(pc_cast(pc_contiguous(y), PC_F32), got, sizeof got));
            assert_ok(pc_read(pc_cast(pc_contiguous(z), PC_F32), want, sizeof want));
            assert_true(isnan(want[i % 2]) && !isnan(want[2]));
            for (int k = 0; k < 8; k++)
                assert_true(isnan(want[k]) ? isnan(got[k]) : got[k] == want[k]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_agree),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(pools_agree),
        cmocka_unit_test(nan_survives_pooling),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(infinities_in_a_window),
    };
    return cmocka_run_group_tests_name("cpu.conv", tests, NULL, NULL);
}

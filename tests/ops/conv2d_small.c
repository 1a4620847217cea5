/* Pictures of few pixels, whose kernels reach beyond them on all sides, and strides: against loops over every tap in double. */
#include "channels_last.h"
#include "device.h"
#include "failing.h"
#include "ops/apart.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/threads.h>

typedef struct layer {
    int64_t n, c, h, w, o, kh, kw, yh, yw;
    int stride[2], padding[2];
    pc_activation_kind activation;
    pc_dtype dtype;
    bool last, weights_last;
} layer;

enum { X, WEIGHT, BIAS, DY, NUMBERS };
enum { Y, DX, DWEIGHT, DBIAS, RESULTS };

static int draw(int from, int to)
{
    return from +
           (int)(pc_item(pc_rand(PC_SHAPE(1), PC_F32, PC_DEVICE_CPU)) * (float)(to - from + 1)) % (to - from + 1);
}

static int64_t places(int64_t size, int64_t kernel, int stride, int padding)
{
    return size + 2 * padding < kernel ? 0 : (size + 2 * padding - kernel) / stride + 1;
}

static layer drawn(int i)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16, PC_F32, PC_F16};
    static const pc_activation_kind activations[] = {PC_ACTIVATION_NONE, PC_ACTIVATION_NONE, PC_ACTIVATION_RELU,
                                                     PC_ACTIVATION_TANH};
    static const int outputs[] = {3, 64, 80, 130};
    layer l;
    do {
        l = (layer){.n = draw(1, 9),
                    .c = draw(1, draw(0, 1) ? 40 : 4),
                    .h = draw(1, draw(0, 2) ? 3 : 9),
                    .w = draw(1, draw(0, 2) ? 3 : 9),
                    .o = outputs[draw(0, 3)],
                    .kh = draw(1, 7),
                    .kw = draw(1, 5),
                    .stride = {draw(1, 3), draw(1, 3)},
                    .activation = activations[draw(0, 3)],
                    .dtype = dtypes[i % 5],
                    .last = draw(0, 1),
                    .weights_last = draw(0, 1)};
        l.padding[0] = draw(0, (int)l.kh), l.padding[1] = draw(0, (int)l.kw);
        l.yh = places(l.h, l.kh, l.stride[0], l.padding[0]), l.yw = places(l.w, l.kw, l.stride[1], l.padding[1]);
    } while (l.yh < 1 || l.yw < 1 || l.n * l.c * l.o * l.kh * l.kw * l.yh * l.yw > 2000000);
    return l;
}

static double *doubles(pc_tensor *t)
{
    return pc_data(pc_contiguous(pc_to(t, PC_DEVICE_CPU, PC_F64, false)));
}

static double activated(pc_activation_kind kind, double z)
{
    return kind == PC_ACTIVATION_RELU ? fmax(z, 0) : kind == PC_ACTIVATION_TANH ? tanh(z) : z;
}

static double gradient(pc_activation_kind kind, double y)
{
    return kind == PC_ACTIVATION_RELU ? y > 0 : kind == PC_ACTIVATION_TANH ? 1 - y * y : 1;
}

/* Each tap of one place (n, i, j) for output o that is on the picture: forward its sum, backward what `dz` gives. */
static double taps(const layer *l, int64_t n, int64_t o, int64_t i, int64_t j, double *const in[NUMBERS], double dz,
                   double *const out[RESULTS])
{
    double sum = 0;
    for (int64_t c = 0; c < l->c; c++)
        for (int64_t a = 0; a < l->kh; a++)
            for (int64_t b = 0; b < l->kw; b++) {
                const int64_t row = i * l->stride[0] - l->padding[0] + a, column = j * l->stride[1] - l->padding[1] + b;
                if (row < 0 || row >= l->h || column < 0 || column >= l->w)
                    continue;
                const int64_t x = ((n * l->c + c) * l->h + row) * l->w + column,
                              w = ((o * l->c + c) * l->kh + a) * l->kw + b;
                sum += in[X][x] * in[WEIGHT][w];
                out[DX][x] += dz * in[WEIGHT][w];
                out[DWEIGHT][w] += dz * in[X][x];
            }
    return sum;
}

static void by_loops(const layer *l, double *const in[NUMBERS], double *const out[RESULTS])
{
    for (int64_t at = 0; at < l->n * l->o * l->yh * l->yw; at++) {
        const int64_t j = at % l->yw, i = at / l->yw % l->yh, o = at / l->yw / l->yh % l->o,
                      n = at / l->yw / l->yh / l->o;
        out[Y][at] = activated(l->activation, taps(l, n, o, i, j, in, 0, out) + in[BIAS][o]);
        const double dz = in[DY][at] * gradient(l->activation, out[Y][at]);
        (void)taps(l, n, o, i, j, in, dz, out);
        out[DBIAS][o] += dz;
    }
}

/* The same by the library; and once more where one of the gradients is wanted alone. */
static void by_library(const layer *l, pc_tensor *const numbers[NUMBERS], int wanted, pc_tensor *out[RESULTS])
{
    pc_tensor *in[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        in[i] = pc_clone(pc_to(numbers[i], test_device(), l->dtype, false));
        if ((i == X && l->last) || (i == WEIGHT && l->weights_last))
            in[i] = as_channels_last(in[i]);
        assert_ok(pc_require_grad(in[i], i != DY && (wanted < 0 || wanted == i)));
    }
    out[Y] = pc_fn_conv2d(in[X], in[WEIGHT], in[BIAS],
                          (pc_fn_conv2d_options){.stride = {l->stride[0], l->stride[1]},
                                                 .padding = {l->padding[0], l->padding[1]},
                                                 .activation = l->activation});
    assert_not_null_ok(out[Y]);
    assert_ok(pc_backward_with(out[Y], in[DY]));
    for (int i = X; i <= BIAS; i++)
        out[DX + i] = pc_grad(in[i]);
}

static void compare(const layer *l, int result, pc_tensor *ours, const double *exact, double near)
{
    const double *numbers = doubles(ours);
    double most = 0, apart = 0;
    for (int64_t i = 0; i < pc_tensor_count(ours); i++) {
        most = fmax(most, fabs(exact[i]));
        apart = numbers[i] == numbers[i] ? fmax(apart, fabs(numbers[i] - exact[i])) : INFINITY;
    }
    if (!(apart <= near * fmax(most, 1)))
        fail_msg("%s [%d, %d, %d, %d] to %d by %d x %d, stride %d, %d, padding %d, %d, activation %d%s%s, result %d: "
                 "%g apart",
                 pc_dtype_name(l->dtype), (int)l->n, (int)l->c, (int)l->h, (int)l->w, (int)l->o, (int)l->kh, (int)l->kw,
                 l->stride[0], l->stride[1], l->padding[0], l->padding[1], l->activation,
                 l->last ? ", channels last" : "", l->weights_last ? ", weights last" : "", result,
                 apart / fmax(most, 1));
}

static pc_tensor *normal(pc_dtype dtype, pc_shape shape, double scale)
{
    return pc_cast(pc_cast(pc_mul_scalar(pc_randn(shape, PC_F32, PC_DEVICE_CPU), scale), dtype), PC_F64);
}

static void check(const layer *l)
{
    static const double near[] = {[PC_F32] = 1e-5, [PC_F64] = 1e-12, [PC_F16] = 4e-3, [PC_BF16] = 3e-2};
    pc_tensor *numbers[NUMBERS] = {
        normal(l->dtype, PC_SHAPE(l->n, l->c, l->h, l->w), 1), normal(l->dtype, PC_SHAPE(l->o, l->c, l->kh, l->kw), .2),
        normal(l->dtype, PC_SHAPE(l->o), .2), normal(l->dtype, PC_SHAPE(l->n, l->o, l->yh, l->yw), 1)};
    pc_tensor *ours[RESULTS], *alone[RESULTS];
    double *in[NUMBERS], *out[RESULTS];
    for (int i = 0; i < NUMBERS; i++)
        in[i] = doubles(numbers[i]);
    by_library(l, numbers, -1, ours);
    for (int i = 0; i < RESULTS; i++)
        out[i] = pc_data(pc_zeros(pc_tensor_shape(ours[i]), PC_F64, PC_DEVICE_CPU));
    by_loops(l, in, out);
    for (int i = 0; i < RESULTS; i++)
        compare(l, i, ours[i], out[i], near[l->dtype]);
    const int wanted = draw(X, BIAS);
    by_library(l, numbers, wanted, alone);
    compare(l, DX + wanted, alone[DX + wanted], out[DX + wanted], near[l->dtype]);
}

static void as_loops_over_taps(void **state)
{
    (void)state;
    pc_seed(90);
    for (int i = 0; i < (sampled() ? 40 : 160); i++)
        PC_SCOPE {
            const layer l = drawn(i);
            check(&l);
        }
    assert_no_leak();
}

/* What ends ResNets over pictures of 32 x 32: eight of nine weights meet padding alone, and have gradients of zero. */
static void one_pixel(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(4, 96, 1, 1), PC_F32, test_device());
        pc_tensor *w = pc_randn(PC_SHAPE(96, 96, 3, 3), PC_F32, test_device());
        assert_ok(pc_require_grad(w, true));
        pc_tensor *y = pc_fn_conv2d(x, w, NULL, (pc_fn_conv2d_options){.padding = {1, 1}});
        assert_not_null_ok(y);
        assert_ok(pc_backward_with(y, pc_ones(PC_SHAPE(4, 96, 1, 1), PC_F32, test_device())));
        assert_close(pc_item(pc_count_nonzero(pc_grad(w))), 96 * 96, 0);
        assert_close(pc_item(pc_count_nonzero(pc_slice(pc_slice(pc_grad(w), 3, 1, 2, 1), 2, 1, 2, 1))), 96 * 96, 0);
    }
    assert_no_leak();
}

/* The gradient of weights by pictures [from, to). */
static pc_tensor *weights_by(pc_tensor *const in[2], pc_tensor *dy, int64_t from, int64_t to, pc_dtype dtype)
{
    pc_tensor *x = pc_to(pc_slice(in[0], 0, from, to, 1), test_device(), dtype, false);
    pc_tensor *w = pc_clone(pc_to(in[1], test_device(), dtype, false));
    assert_ok(pc_require_grad(w, true));
    pc_tensor *y = pc_fn_conv2d(x, w, NULL, (pc_fn_conv2d_options){.padding = {1, 0}});
    assert_not_null_ok(y);
    assert_ok(pc_backward_with(y, pc_to(pc_slice(dy, 0, from, to, 1), test_device(), dtype, false)));
    return pc_cast(pc_grad(w), PC_F32);
}

/* Windows of more pictures than have room at once, so that gradients of weights are sums of several products; those of each
 * half have. */
static void many_pictures(void **state)
{
    enum { N = 23, HALF = 11, C = 20, H = 800, O = 64 };
    static const pc_dtype dtypes[] = {PC_BF16, PC_F16, PC_F32};
    (void)state;
    pc_seed(91);
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            pc_tensor *in[2] = {normal(dtypes[i], PC_SHAPE(N, C, H, 1), 1),
                                normal(dtypes[i], PC_SHAPE(O, C, 3, 1), .2)};
            pc_tensor *dy = normal(dtypes[i], PC_SHAPE(N, O, H, 1), 1);
            pc_tensor *all = weights_by(in, dy, 0, N, dtypes[i]);
            pc_tensor *halves = pc_add(weights_by(in, dy, 0, HALF, PC_F32), weights_by(in, dy, HALF, N, PC_F32));
            const double off = apart(all, halves), room = i == 0 ? 4e-3 : i == 1 ? 5e-4 : 1e-5;
            if (!(off <= room))
                fail_msg("%s: %g apart", pc_dtype_name(dtypes[i]), off);
        }
    assert_no_leak();
}

/* --- memory --- */

static atomic_size_t largest; /* bytes that were asked for at once */

static void *noted_alloc(void *context, size_t bytes, size_t alignment)
{
    size_t most = atomic_load(&largest);
    while (bytes > most && !atomic_compare_exchange_weak(&largest, &most, bytes)) {
    }
    return failing_alloc(context, bytes, alignment);
}

/* Windows have room for some pictures, however many threads there are. */
static void little_room(void **state)
{
    static const pc_allocator noted = {noted_alloc, failing_resize, failing_free, NULL};
    (void)state;
    if (pc_allocator_set(&noted) != PC_OK) { /* a device has memory of its own */
        pc_error_clear();
        skip();
    }
    pc_threads_set(64);
    for (int half = 0; half < 2; half++)
        PC_SCOPE {
            const pc_dtype dtype = half ? PC_BF16 : PC_F32;
            pc_tensor *x = pc_zeros(PC_SHAPE(1, 64, 96, 96), dtype, test_device());
            pc_tensor *w = pc_ones(PC_SHAPE(64, 64, 3, 3), dtype, test_device());
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = pc_fn_conv2d(x, w, NULL, (pc_fn_conv2d_options){.stride = {2, 2}, .padding = {1, 1}});
            assert_not_null_ok(y);
            atomic_store(&largest, 0);
            assert_ok(pc_backward_with(y, pc_ones(PC_SHAPE(1, 64, 48, 48), dtype, test_device())));
            assert_close(pc_item(pc_slice(pc_reshape(pc_grad(x), PC_SHAPE(64 * 96 * 96)), 0, 0, 1, 1)), 64, 0);
            assert_in_range(atomic_load(&largest), 1,
                            32 << 20); /* products have some for each thread; pictures would take 150 MB */
        }
    pc_threads_set(0);
    assert_no_leak();
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_loops_over_taps), cmocka_unit_test(one_pixel),
                                       cmocka_unit_test(many_pictures), cmocka_unit_test(little_room)};
    return cmocka_run_group_tests_name("ops.conv2d_small", tests, NULL, NULL);
}

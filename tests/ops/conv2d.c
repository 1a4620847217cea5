/* pool(activation(conv(x, weight) + bias)). */
#include "channels_last.h"
#include "ops/apart.h"
#include "ops/golden.h"

#include <paracord/random.h>
#include <unistd.h>

static pc_fn_conv2d_options spec_of(const golden *g)
{
    return (pc_fn_conv2d_options){.stride = {(int)g->args[0], (int)g->args[1]},
                                  .padding = {(int)g->args[2], (int)g->args[3]},
                                  .activation = (pc_activation_kind)g->args[4],
                                  .pool = (int)g->args[5]};
}

static bool is_channels_last(const pc_tensor *t)
{
    return pc_tensor_stride(t, 1) == 1 && pc_tensor_size(t, 1) > 1;
}

/* The result has the input's memory order, and is the same when no gradient is wanted. */
static void run_conv2d(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *bias = g->n_in > 2 ? in[2] : NULL;
    out[0] = pc_fn_conv2d(in[0], in[1], bias, spec_of(g));
    assert_not_null_ok(out[0]);
    if (strcmp(g->in[0].views, "cl") == 0)
        assert_true(is_channels_last(out[0]));
    else
        assert_true(pc_tensor_is_contiguous(out[0]));
    PC_NO_GRAD {
        pc_tensor *again = pc_fn_conv2d(in[0], in[1], bias, spec_of(g));
        assert_close(pc_item(pc_sum(pc_ne(again, out[0]))), 0, 0);
    }
}

static const golden_op ops[] = {{"conv2d", run_conv2d}};

static pc_tensor *zeros(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return pc_zeros(PC_SHAPE(a, b, c, d), PC_F32, test_device());
}

static void bad_input(void **state)
{
    (void)state;
    const pc_fn_conv2d_options plain = {0};
    PC_SCOPE {
        pc_tensor *x = zeros(1, 2, 5, 5), *w = zeros(3, 2, 3, 3);
        pc_tensor *b = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_fn_conv2d(zeros(1, 4, 5, 5), w, b, plain), PC_ERR_SHAPE, "[1, 4, 5, 5]");
        assert_fails(pc_fn_conv2d(pc_reshape(x, PC_SHAPE(2, 5, 5)), w, b, plain), PC_ERR_SHAPE, "[n, c, h, w]");
        assert_fails(pc_fn_conv2d(x, pc_reshape(w, PC_SHAPE(3, 18)), b, plain), PC_ERR_SHAPE, "[3, 18]");
        assert_fails(pc_fn_conv2d(x, w, pc_zeros(PC_SHAPE(2), PC_F32, test_device()), plain), PC_ERR_SHAPE,
                     "bias of shape [2]");
        assert_fails(pc_fn_conv2d(zeros(1, 2, 2, 5), w, b, plain), PC_ERR_SHAPE, "too small for a kernel of 3 x 3");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.pool = 4}), PC_ERR_SHAPE, "and pooling");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.stride = {-1, 1}}), PC_ERR_ARGUMENT, "stride -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.padding = {0, -1}}), PC_ERR_ARGUMENT, "padding -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.pool = -1}), PC_ERR_ARGUMENT, "pool -1");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.activation = (pc_activation_kind)7}),
                     PC_ERR_ARGUMENT, "activation 7");
        assert_fails(pc_fn_conv2d(x, pc_cast(w, PC_F64), b, plain), PC_ERR_DTYPE, "weight float64");
        assert_fails(pc_fn_conv2d(x, w, pc_cast(b, PC_F64), plain), PC_ERR_DTYPE, "bias float64");
        assert_fails(pc_fn_conv2d(pc_cast(x, PC_U8), pc_cast(w, PC_U8), NULL, plain), PC_ERR_DTYPE, "uint8");
        assert_fails(pc_fn_conv2d(NULL, w, b, plain), PC_ERR_ARGUMENT, "conv2d");
        assert_fails(pc_fn_conv2d(x, NULL, b, plain), PC_ERR_ARGUMENT, "conv2d");
        assert_fails(pc_fn_conv2d(pc_add(x, w), w, b, plain), PC_ERR_SHAPE, "add");
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.padding = {INT32_MAX, INT32_MAX}}), PC_ERR_MEMORY,
                     "conv2d");
        const int most = INT32_MAX / 2 - 1; /* of a result of a few places */
        assert_fails(pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.padding = {most, most}, .stride = {most, most}}),
                     PC_ERR_MEMORY, "conv2d: an input of shape");
    }
    assert_no_leak();
}

/* Only the gradients that are wanted are made, in each combination. */
static void gradients_on_request(void **state)
{
    (void)state;
    for (int wanted = 1; wanted < 8; wanted++)
        PC_SCOPE {
            pc_seed(3);
            pc_tensor *in[3] = {pc_randn(PC_SHAPE(2, 2, 6, 6), PC_F32, test_device()),
                                pc_randn(PC_SHAPE(3, 2, 3, 3), PC_F32, test_device()),
                                pc_randn(PC_SHAPE(3), PC_F32, test_device())};
            static double sums[3];
            for (int i = 0; i < 3; i++)
                assert_ok(pc_require_grad(in[i], wanted >> i & 1));
            pc_fn_conv2d_options spec = {.activation = PC_ACTIVATION_TANH, .pool = 2};
            assert_ok(pc_backward(pc_sum(pc_fn_conv2d(in[0], in[1], in[2], spec))));
            for (int i = 0; i < 3; i++)
                if (!(wanted >> i & 1))
                    assert_null(pc_grad(in[i]));
                else if (wanted == 1 << i)
                    sums[i] = pc_item(pc_sum(pc_grad(in[i])));
                else if (wanted == 7)
                    assert_close(pc_item(pc_sum(pc_grad(in[i]))), sums[i], 1e-4);
        }
    assert_no_leak();
}

/* A convolution with the sizes of one of the kernels' own ways. */
typedef struct sizes {
    int64_t n, c, h, w, o;
    int kh, kw, stride, padding, pool;
    pc_activation_kind activation;
} sizes;

static pc_fn_conv2d_options square(const sizes *z)
{
    return (pc_fn_conv2d_options){.stride = {z->stride, z->stride},
                                  .padding = {z->padding, z->padding},
                                  .activation = z->activation,
                                  .pool = z->pool};
}

/* y, and the gradients of x, weight and bias, of a convolution whose operands are these numbers. */
static void convolve(pc_fn_conv2d_options spec, pc_dtype dtype, pc_device device, bool last, pc_tensor *const *numbers,
                     pc_tensor **result)
{
    pc_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = pc_to(numbers[i], device, dtype, false);
        if (i == 0 && last)
            in[i] = as_channels_last(in[i]);
        assert_ok(pc_require_grad(in[i], true));
        pc_zero_grad(in[i]); /* where it is the caller's own tensor */
    }
    result[0] = pc_fn_conv2d(in[0], in[1], in[2], spec);
    assert_not_null_ok(result[0]);
    const int64_t *shape = (int64_t[]){pc_tensor_size(result[0], 0), pc_tensor_size(result[0], 1),
                                       pc_tensor_size(result[0], 2), pc_tensor_size(result[0], 3)};
    pc_tensor *weights = pc_to(pc_reshape(numbers[3], pc_shape_of(4, shape)), device, dtype, false);
    assert_ok(pc_backward(pc_sum(pc_mul(result[0], weights))));
    for (int i = 0; i < 3; i++)
        result[1 + i] = pc_grad(in[i]);
    for (int i = 0; i < 4; i++)
        result[i] = pc_to(result[i], PC_DEVICE_CPU, PC_F64, false);
}

/* Float32 by cuDNN may be Winograd's, which loses a digit. */
static double allowed(pc_dtype dtype, double near)
{
    return dtype == PC_F32 && pc_choice_get() != PC_CHOICE_OWN ? 5 * near : near;
}

/* Rows or columns of the result. */
static int64_t side_of(int64_t size, int kernel, const pc_fn_conv2d_options *spec, int axis)
{
    const int64_t left = size + 2 * spec->padding[axis] - kernel;
    return left < 0 ? 0 : (left / spec->stride[axis] + 1) / spec->pool;
}

/* Numbers for x, weight, bias and the gradient of the result that `factors` has too. */
static void make_numbers(const sizes *z, pc_fn_conv2d_options spec, pc_dtype factors, pc_tensor **numbers)
{
    const int64_t places = z->n * z->o * side_of(z->h, z->kh, &spec, 0) * side_of(z->w, z->kw, &spec, 1);
    numbers[0] = pc_randn(PC_SHAPE(z->n, z->c, z->h, z->w), PC_F32, PC_DEVICE_CPU);
    numbers[1] = pc_mul_scalar(pc_randn(PC_SHAPE(z->o, z->c, z->kh, z->kw), PC_F32, PC_DEVICE_CPU), 0.2);
    numbers[2] = pc_mul_scalar(pc_randn(PC_SHAPE(z->o), PC_F32, PC_DEVICE_CPU), 0.2);
    numbers[3] = pc_randn(PC_SHAPE(places), PC_F32, PC_DEVICE_CPU);
    for (int k = 0; k < 4; k++)
        numbers[k] = pc_cast(pc_cast(numbers[k], factors), PC_F32);
}

/* A convolution that pools by a call of its own rounds in front of it: of what is equal then the first is taken, as in
 * PyTorch, and gets the gradient of another one. */
static bool has_ties(const sizes *z, pc_dtype dtype)
{
    const bool by_cudnn = pc_choice_get() != PC_CHOICE_OWN && test_device().type == PC_CUDA;
    return z->pool > 1 && dtype != PC_F32 && by_cudnn;
}

/* On the emulated GPU, a row that PARACORD_ONLY puts first is run with the layers that it has there alone. By rule
 * (src/cuda/conv/rule.c) the row "plain" has layers of up to LEAST products, and 16 times as many when it is asked for;
 * "split" has those above, but for windows of one place or with a stride, and 16-bit numbers of few channels. */
static bool done_without(const sizes *z, pc_fn_conv2d_options spec, pc_dtype dtype)
{
    enum { LEAST = 1 << 19, LITTLE = 10000000, FEW = 8 };
    const char *only = emulated() ? getenv("PARACORD_ONLY") : NULL;
    const bool plain = only && strstr(only, "conv2d=plain"), split = only && strstr(only, "conv2d=split");
    const bool others = z->kh * z->kw == 1 || spec.stride[0] * spec.stride[1] > 1 || (dtype != PC_F32 && z->c <= FEW);
    spec.pool = 1;
    const int64_t products =
        z->n * side_of(z->h, z->kh, &spec, 0) * side_of(z->w, z->kw, &spec, 1) * z->o * z->c * z->kh * z->kw;
    return plain ? products <= LEAST || products > 16 * LEAST
                 : split && products > LEAST && products <= LITTLE && !others;
}

static void as_in_double(void **state)
{
    static const sizes list[] = {
        {3, 3, 64, 64, 32, 3, 3, 3, 0, 2, PC_ACTIVATION_RELU},
        {2, 3, 64, 64, 32, 3, 3, 1, 0, 2, PC_ACTIVATION_RELU},
        {2, 3, 17, 19, 40, 3, 3, 1, 1, 2, PC_ACTIVATION_TANH},
        {2, 3, 17, 18, 20, 3, 3, 2, 1, 1, PC_ACTIVATION_RELU},
        {5, 3, 9, 12, 8, 3, 3, 1, 0, 1, PC_ACTIVATION_NONE},
        {2, 3, 33, 20, 33, 3, 3, 2, 0, 2, PC_ACTIVATION_SIGMOID},
        {3, 32, 31, 31, 64, 3, 3, 1, 0, 2, PC_ACTIVATION_RELU},
        {2, 32, 13, 15, 64, 3, 3, 1, 1, 2, PC_ACTIVATION_NONE},
        {2, 32, 12, 12, 32, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
        {2, 16, 14, 11, 24, 5, 5, 1, 2, 1, PC_ACTIVATION_RELU},
        {2, 64, 10, 10, 128, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
        {2, 24, 15, 15, 40, 3, 3, 2, 1, 1, PC_ACTIVATION_RELU},
        {2, 48, 12, 14, 72, 3, 2, 2, 1, 2, PC_ACTIVATION_RELU},
        {1, 3, 40, 40, 16, 7, 7, 2, 3, 1, PC_ACTIVATION_RELU},
        {2, 6, 14, 14, 16, 5, 5, 1, 0, 2, PC_ACTIVATION_RELU},
        {2, 10, 11, 11, 7, 3, 3, 1, 1, 3, PC_ACTIVATION_RELU},
        {4, 1, 28, 28, 32, 3, 3, 1, 0, 2, PC_ACTIVATION_RELU},
        {1, 128, 8, 8, 128, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
    };
    static const struct {
        pc_dtype dtype;
        double apart;
    } kinds[] = {{PC_F32, 2e-6}, {PC_F16, 2e-3}, {PC_BF16, 1.5e-2}};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int order = sampled() ? i % 3 : 0; order < 6; order += sampled() ? 3 : 1) /* both layouts, two dtypes */
            PC_SCOPE {
                const pc_dtype dtype = kinds[order / 2].dtype;
                const sizes *z = &list[i];
                if (done_without(z, square(z), dtype))
                    continue;
                pc_seed(7 + (uint64_t)i);
                pc_tensor *numbers[4], *exact[4], *ours[4];
                make_numbers(z, square(z), dtype, numbers);
                convolve(square(z), PC_F64, PC_DEVICE_CPU, order % 2, numbers, exact);
                convolve(square(z), dtype, test_device(), order % 2, numbers, ours);
                for (int k = 0; k < (has_ties(z, dtype) ? 1 : 4); k++)
                    if (!(apart(ours[k], exact[k]) < allowed(dtype, kinds[order / 2].apart)))
                        fail_msg("case %d, order %d, result %d: %g apart", i, order, k, apart(ours[k], exact[k]));
            }
    assert_no_leak();
}

/* Outputs and channels that float32 kernels cut into tiles of 16, 32, 48 and 64, whole or not, in one of them or more:
 * each by pictures of several blocks, and the same bits again. */
static void by_tiles(void **state)
{
    static const sizes list[] = {
        {2, 9, 13, 12, 11, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
        {2, 12, 12, 17, 15, 5, 5, 2, 2, 1, PC_ACTIVATION_NONE},
        {1, 16, 18, 19, 13, 3, 3, 1, 0, 2, PC_ACTIVATION_TANH},
        {2, 11, 13, 12, 34, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
        {2, 36, 15, 13, 47, 3, 3, 2, 1, 1, PC_ACTIVATION_SIGMOID},
        {2, 34, 12, 11, 48, 1, 1, 1, 0, 2, PC_ACTIVATION_RELU},
        {1, 47, 14, 13, 33, 3, 2, 1, 1, 1, PC_ACTIVATION_NONE},
        {1, 10, 19, 21, 45, 3, 3, 1, 1, 3, PC_ACTIVATION_RELU},
        {1, 44, 12, 12, 80, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},
        {1, 14, 9, 30, 9, 7, 7, 1, 3, 1, PC_ACTIVATION_RELU},
        {3, 20, 9, 9, 60, 3, 3, 1, 1, 2, PC_ACTIVATION_NONE},
        {1, 50, 17, 16, 16, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
        {2, 16, 11, 15, 39, 4, 3, 3, 2, 1, PC_ACTIVATION_RELU},
        {1, 9, 40, 33, 12, 2, 2, 1, 0, 2, PC_ACTIVATION_SIGMOID},
    };
    (void)state;
    const pc_choice before = pc_choice_set(PC_CHOICE_OWN);
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int last = sampled() ? i % 2 : 0; last < 2; last += sampled() ? 2 : 1)
            PC_SCOPE {
                const sizes *z = &list[i];
                if (done_without(z, square(z), PC_F32))
                    continue;
                pc_seed(50 + (uint64_t)i);
                pc_tensor *numbers[4], *exact[4], *ours[4], *again[4];
                make_numbers(z, square(z), PC_F32, numbers);
                convolve(square(z), PC_F64, PC_DEVICE_CPU, last, numbers, exact);
                convolve(square(z), PC_F32, test_device(), last, numbers, ours);
                convolve(square(z), PC_F32, test_device(), last, numbers, again);
                for (int k = 0; k < 4; k++) {
                    if (!(apart(ours[k], exact[k]) < 2e-6))
                        fail_msg("case %d, order %d, result %d: %g apart", i, last, k, apart(ours[k], exact[k]));
                    assert_close(pc_item(pc_sum(pc_ne(ours[k], again[k]))), 0, 0);
                }
            }
    (void)pc_choice_set(before);
    assert_no_leak();
}

/* So many pixels that each block which adds up weights' gradients, with 132 multiprocessors, has some for 18 steps: what
 * it keeps of pixels goes round once. */
static void many_pixels(void **state)
{
    const sizes z = {1, 1, 601, 600, 13, 2, 1, 1, 0, 1, PC_ACTIVATION_RELU};
    (void)state;
    if (getenv("PARACORD_ONLY")) /* another row than the one that has such blocks */
        return;
    const pc_choice before = pc_choice_set(PC_CHOICE_OWN);
    PC_SCOPE {
        pc_tensor *numbers[4], *exact[4], *ours[4];
        pc_seed(70);
        make_numbers(&z, square(&z), PC_F32, numbers);
        convolve(square(&z), PC_F64, PC_DEVICE_CPU, true, numbers, exact);
        convolve(square(&z), PC_F32, test_device(), true, numbers, ours);
        for (int k = 0; k < 4; k++)
            if (!(apart(ours[k], exact[k]) < 2e-5))
                fail_msg("result %d: %g apart", k, apart(ours[k], exact[k]));
    }
    (void)pc_choice_set(before);
    assert_no_leak();
}

/* Of windows from 0 on, how many see row i. */
static int seen(int64_t i, int64_t windows, int kernel, int stride, int dilation)
{
    int times = 0;
    for (int64_t at = 0; at < windows; at++)
        for (int tap = 0; tap < kernel; tap++)
            times += at * stride + (int64_t)tap * dilation == i;
    return times;
}

/* A gradient of pictures gets memory that was NaN. With weights and a gradient of the result that are all 1, it says how many
 * windows see a place, and 0 where none does: between them, or behind the last one. */
static void unseen(pc_dtype dtype, bool last, int kernel, int stride, int dilation)
{
    enum { N = 2, C = 64, SIDE = 12 };
    static float got[N * C * SIDE * SIDE];
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N, C, SIDE, SIDE), dtype, test_device());
        pc_tensor *w = pc_ones(PC_SHAPE(C, C, kernel, kernel), dtype, test_device());
        x = last ? as_channels_last(x) : x;
        assert_ok(pc_require_grad(x, true));
        pc_tensor *y = pc_fn_conv2d(
            x, w, NULL, (pc_fn_conv2d_options){.stride = {stride, stride}, .dilation = {dilation, dilation}});
        PC_SCOPE {
            for (int i = 0; i < 4; i++)
                assert_not_null_ok(pc_full(PC_SHAPE(N, C, SIDE, SIDE), NAN, dtype, test_device()));
        }
        assert_ok(pc_backward(pc_sum(y)));
        assert_ok(pc_read(pc_contiguous(pc_cast(pc_grad(x), PC_F32)), got, sizeof got));
        const int64_t windows = pc_tensor_size(y, 2);
        for (int i = 0; i < N * C * SIDE * SIDE; i++) {
            const int want = C * seen(i / SIDE % SIDE, windows, kernel, stride, dilation) *
                             seen(i % SIDE, windows, kernel, stride, dilation);
            if (got[i] != (float)want)
                fail_msg("%s, kernel %d, stride %d, dilation %d, order %d, choice %d: place %d is %g, not %d",
                         pc_dtype_name(dtype), kernel, stride, dilation, last, (int)pc_choice_get(), i, (double)got[i],
                         want);
        }
    }
}

static void places_that_no_window_sees(void **state)
{
    static const struct {
        pc_dtype dtype;
        pc_precision precision;
    } kinds[] = {{PC_F32, PC_PRECISION_F32},
                 {PC_F32, PC_PRECISION_TF32},
                 {PC_F16, PC_PRECISION_F32},
                 {PC_BF16, PC_PRECISION_F32}};
    static const pc_choice choices[] = {PC_CHOICE_RULE, PC_CHOICE_CUDNN, PC_CHOICE_MEASURED};
    static const int windows[][3] = {{1, 2, 1}, {2, 3, 1}, {3, 2, 1}, {3, 2, 2}};
    (void)state;
    const pc_choice before = pc_choice_get();
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < (test_device().type == PC_CUDA && !sampled() ? 3 : 1); i++)
            for (int z = sampled() ? k : 0; z < 4; z += sampled() ? 4 : 1)
                for (int last = 0; last < 2; last++) {
                    const pc_precision was = pc_matmul_precision_set(kinds[k].precision);
                    (void)pc_choice_set(choices[i]);
                    unseen(kinds[k].dtype, last, windows[z][0], windows[z][1], windows[z][2]);
                    (void)pc_matmul_precision_set(was);
                }
    (void)pc_choice_set(before);
    assert_no_leak();
}

static int draw(int from, int to)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from + (int)((state >> 33) % (uint64_t)(to - from + 1));
}

/* Few channels to few; now and then so small that a block makes several pictures, or so large that a picture takes
 * several blocks. The strides and paddings of rows and columns may differ. */
static sizes drawn_sizes(pc_fn_conv2d_options *spec)
{
    static const int largest[] = {4, 12, 12, 40, 70};
    const int side = largest[draw(0, 4)];
    sizes z;
    do {
        z = (sizes){.n = draw(1, side < 5 ? 40 : 3),
                    .c = draw(1, 8),
                    .h = draw(1, side),
                    .w = draw(1, side),
                    .o = draw(1, 16),
                    .kh = draw(1, draw(0, 5) ? 5 : 9),
                    .kw = draw(1, draw(0, 5) ? 6 : 11),
                    .stride = draw(0, 1) ? 1 : draw(1, 4),
                    .padding = draw(0, 3),
                    .pool = draw(0, 2) ? 1 : draw(2, 3),
                    .activation = (pc_activation_kind)draw(PC_ACTIVATION_NONE, PC_ACTIVATION_TANH)};
        *spec = square(&z);
        spec->stride[1] += draw(0, 3) ? 0 : draw(0, 2);
        spec->padding[1] += draw(0, 1);
    } while (side_of(z.h, z.kh, spec, 0) < 1 || side_of(z.w, z.kw, spec, 1) < 1 ||
             z.h * z.w * z.kh * z.kw * z.c * z.o > 1000000);
    return z;
}

/* As has_ties; by rule ours pool small windows themselves, but for whole eights of channels. */
static bool has_few_ties(const sizes *z, pc_dtype dtype)
{
    return has_ties(z, dtype) && (pc_choice_get() != PC_CHOICE_RULE || z->pool > 2 || (z->c % 8 == 0 && z->o % 8 == 0));
}

static void few_channels(void **state)
{
    static const struct {
        pc_dtype dtype;
        double apart;
    } kinds[] = {{PC_F32, 3e-6}, {PC_F16, 3e-3}, {PC_BF16, 2e-2}};
    (void)state;
    for (int i = 0; i < (sampled() ? 45 : 90); i++)
        PC_SCOPE {
            pc_fn_conv2d_options spec;
            const sizes z = drawn_sizes(&spec);
            const pc_dtype dtype = kinds[i % 3].dtype;
            if (done_without(&z, spec, dtype))
                continue;
            pc_seed(100 + (uint64_t)i);
            pc_tensor *numbers[4], *exact[4], *ours[4], *again[4];
            make_numbers(&z, spec, dtype, numbers);
            convolve(spec, PC_F64, PC_DEVICE_CPU, i % 2, numbers, exact);
            convolve(spec, dtype, test_device(), i % 2, numbers, ours);
            convolve(spec, dtype, test_device(), i % 2, numbers, again);
            for (int k = 0; k < (has_few_ties(&z, dtype) ? 1 : 4); k++) {
                if (!(apart(ours[k], exact[k]) <= allowed(dtype, kinds[i % 3].apart)))
                    fail_msg("case %d, %s, [%d, %d, %d, %d] to %d by %d x %d, stride %d, %d, padding %d, %d, pool %d, "
                             "activation %d, result %d: %g apart",
                             i, pc_dtype_name(dtype), (int)z.n, (int)z.c, (int)z.h, (int)z.w, (int)z.o, z.kh, z.kw,
                             spec.stride[0], spec.stride[1], spec.padding[0], spec.padding[1], z.pool,
                             (int)z.activation, k, apart(ours[k], exact[k]));
                assert_close(pc_item(pc_sum(pc_ne(ours[k], again[k]))), 0, 0);
            }
        }
    assert_no_leak();
}

/* --- who does it: other devices than cuda have one way, whatever is asked for --- */

static bool same_bits(pc_tensor *a, pc_tensor *b)
{
    return pc_item(pc_sum(pc_ne(a, b))) == 0;
}

/* Near the exact numbers, and the same bits again. */
static void by_one_choice(const sizes *z, pc_dtype dtype, double near, pc_tensor *const *numbers, pc_tensor **exact)
{
    pc_tensor *first[4], *second[4];
    convolve(square(z), dtype, test_device(), true, numbers, first);
    convolve(square(z), dtype, test_device(), true, numbers, second);
    for (int k = 0; k < (has_ties(z, dtype) ? 1 : 4); k++) {
        if (!(apart(first[k], exact[k]) < allowed(dtype, near)))
            fail_msg("choice %d, %s, %d -> %d, result %d: %g apart", (int)pc_choice_get(), pc_dtype_name(dtype),
                     (int)z->c, (int)z->o, k, apart(first[k], exact[k]));
        assert_true(same_bits(first[k], second[k]));
    }
}

static void by_each_choice(void **state)
{
    const int last = getenv("PARACORD_ONLY") ? PC_CHOICE_OWN : PC_CHOICE_CUDNN; /* a forced row leaves no choice */
    const int most = emulated() && last ? PC_CHOICE_RULE : last; /* without cuDNN the others launch what these do */
    static const sizes list[] = {
        {2, 64, 12, 12, 64, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU}, {2, 64, 10, 10, 128, 1, 1, 1, 0, 1, PC_ACTIVATION_NONE},
        {3, 32, 15, 14, 64, 3, 3, 2, 1, 1, PC_ACTIVATION_RELU}, {2, 8, 9, 11, 16, 5, 5, 1, 2, 1, PC_ACTIVATION_RELU},
        {2, 8, 8, 8, 64, 3, 3, 1, 1, 1, PC_ACTIVATION_TANH},    {2, 64, 8, 8, 64, 3, 3, 1, 1, 2, PC_ACTIVATION_RELU},
        {1, 64, 6, 6, 128, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU},  {2, 16, 7, 9, 24, 1, 3, 1, 0, 1, PC_ACTIVATION_RELU},
        {2, 8, 9, 11, 64, 3, 3, 1, 1, 2, PC_ACTIVATION_TANH},   {3, 12, 10, 8, 22, 3, 3, 1, 1, 3, PC_ACTIVATION_RELU},
        {2, 16, 9, 7, 16, 2, 2, 1, 0, 4, PC_ACTIVATION_NONE},
    };
    static const struct {
        pc_dtype dtype, factors; /* of no more digits than the products keep: no sum is near 0 by rounding */
        pc_precision precision;
        double near;
    } kinds[] = {{PC_F32, PC_F32, PC_PRECISION_F32, 4e-6},  /* as a share of what tanh leaves of larger sums */
                 {PC_F32, PC_F16, PC_PRECISION_TF32, 5e-4}, /* gradients through tanh are rounded */
                 {PC_F16, PC_F16, PC_PRECISION_F32, 2e-3},
                 {PC_BF16, PC_BF16, PC_PRECISION_F32, 1.5e-2}};
    (void)state;
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
        for (int kind = sampled() ? i % 2 : 0; kind < (int)(sizeof kinds / sizeof *kinds); kind += sampled() ? 2 : 1)
            PC_SCOPE {
                const sizes *z = &list[i];
                if (done_without(z, square(z), kinds[kind].dtype))
                    continue;
                pc_seed(11 + (uint64_t)i);
                pc_tensor *exact[4], *numbers[4];
                make_numbers(z, square(z), kinds[kind].factors, numbers);
                convolve(square(z), PC_F64, PC_DEVICE_CPU, true, numbers, exact);
                const pc_precision before = pc_matmul_precision_set(kinds[kind].precision);
                for (int choice = PC_CHOICE_OWN; choice <= (i % 3 ? most : last); choice++) {
                    const pc_choice other = pc_choice_set((pc_choice)choice);
                    by_one_choice(z, kinds[kind].dtype, kinds[kind].near, numbers, exact);
                    (void)pc_choice_set(other);
                }
                (void)pc_matmul_precision_set(before);
            }
    assert_no_leak();
}

/* Bias or none, ReLU or none, and NaN, which no ReLU hides; a recording has the bits of the same call before it. */
static void forward_by_each_choice(void **state)
{
    const int last = emulated() && getenv("PARACORD_ONLY") ? PC_CHOICE_OWN : PC_CHOICE_CUDNN; /* as above */
    (void)state;
    for (int choice = PC_CHOICE_OWN; choice <= last; choice++)
        for (int around = 0; around < 8; around++)
            PC_SCOPE {
                const pc_choice before = pc_choice_set((pc_choice)choice);
                const pc_dtype dtype = around & 4 ? PC_BF16 : PC_F32;
                const pc_fn_conv2d_options spec = {.padding = {1, 1},
                                                   .activation = around & 1 ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE};
                pc_stream *stream = pc_stream_current(test_device());
                pc_seed(5);
                pc_tensor *w = pc_cast(pc_randn(PC_SHAPE(64, 64, 3, 3), PC_F32, test_device()), dtype);
                pc_tensor *b = around & 2 ? pc_cast(pc_randn(PC_SHAPE(64), PC_F32, test_device()), dtype) : NULL;
                float *values = malloc(2 * 64 * 64 * sizeof *values);
                assert_non_null(values);
                for (int i = 0; i < 2 * 64 * 64; i++)
                    values[i] = i == 64 * 64 + 5 ? NAN : (float)(i % 17 - 8) / 8; /* in the second picture */
                pc_tensor *x = pc_from_data(values, PC_SHAPE(2, 64, 8, 8), PC_F32, test_device());
                free(values);
                x = as_channels_last(pc_cast(x, dtype));
                pc_tensor *y = pc_fn_conv2d(x, w, b, spec);
                assert_not_null_ok(y);
                assert_true(isnan(pc_item(pc_sum(y))));
                x = pc_slice(x, 0, 0, 1, 1);
                y = pc_fn_conv2d(x, w, b, spec);
                assert_true(isfinite(pc_item(pc_sum(pc_cast(y, PC_F64)))));
                assert_ok(pc_graph_begin(stream));
                pc_tensor *recorded = pc_fn_conv2d(x, w, b, spec);
                pc_graph *graph = pc_graph_end(stream);
                assert_not_null_ok(recorded);
                assert_not_null_ok(graph);
                assert_ok(pc_graph_launch(graph, stream));
                assert_true(same_bits(recorded, y));
                pc_graph_free(graph);
                (void)pc_choice_set(before);
            }
    assert_no_leak();
}

/* Of no channels what comes out is the bias, whose gradient counts the places. */
static void no_channels(void **state)
{
    static const pc_dtype dtypes[] = {PC_F64, PC_F32, PC_BF16};
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        PC_SCOPE {
            pc_tensor *x = pc_zeros(PC_SHAPE(1, 0, 4, 4), dtypes[d], test_device()),
                      *w = pc_zeros(PC_SHAPE(2, 0, 3, 3), dtypes[d], test_device()),
                      *b = pc_full(PC_SHAPE(2), 3, dtypes[d], test_device());
            assert_ok(pc_require_grad(w, true));
            assert_ok(pc_require_grad(b, true));
            pc_tensor *y = pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.padding = {1, 1}});
            assert_close(pc_item(pc_sum(y)), 3 * 2 * 16, 0);
            assert_ok(pc_backward(pc_sum(y)));
            assert_close(pc_item(pc_sum(pc_grad(b))), 2 * 16, 0);
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input),
                                          cmocka_unit_test(no_channels),
                                          cmocka_unit_test(as_in_double),
                                          cmocka_unit_test(by_tiles),
                                          cmocka_unit_test(many_pixels),
                                          cmocka_unit_test(places_that_no_window_sees),
                                          cmocka_unit_test(by_each_choice),
                                          cmocka_unit_test(forward_by_each_choice),
                                          cmocka_unit_test(gradients_on_request),
                                          cmocka_unit_test(few_channels)};

/* What is measured here is remembered for as long as this runs. */
static char cache[] = "/tmp/paracord-conv2d-XXXXXX";

static void remove_cache(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/paracord/choices", cache);
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    rmdir(cache);
}

int main(void)
{
    if (!mkdtemp(cache) || setenv("XDG_CACHE_HOME", cache, 1) != 0 || atexit(remove_cache) != 0)
        return 1;
    return golden_main("ops.conv2d", ops, tests);
}

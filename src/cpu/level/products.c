/* products.c: ops over the heavy kernels of compute.h: products, convolutions, pooling. */
#include "cpu/level/compute.h"
#include "cpu/level/kernels.h"
#include "cpu/level/pairs.h"
#include "ops/conv2d.h"
#include "ops/linear.h"
#include "ops/pool2d.h"

#include <stdatomic.h>

/* The variant of a heavy kernel for a tensor's dtype. */
#define PICK(name, t) ((t)->dtype == PC_F32 ? PC__K(name##_f32) : PC__K(name##_f64))

/* A product of tensors of a's dtype, whose result is y. */
static pc_status gemm(const pc__gemm *g, const pc_tensor *a, const pc_tensor *y)
{
    return pc__is_half((pc_dtype)a->dtype) ? PC__K(gemm_half)(g, a->dtype == PC_F16, y->dtype == PC_F32)
                                           : PICK(gemm, a)(g);
}

/* Kernels that need dense memory of a certain order call on tensors that the op's wrapper made so. */

/* Products of a batch, whose parts are runs of them. */
typedef struct batch {
    const pc_tensor *a, *b, *y;
    pc__gemm g;
    int64_t count, together;
    atomic_bool failed;
} batch;

static pc_status product(const batch *s, int64_t i)
{
    const pc_tensor *a = s->a, *b = s->b, *y = s->y;
    const int lead = y->ndim - 2;
    const int64_t size = (int64_t)pc_dtype_size(a->dtype);
    int64_t rest = i, at_a = 0, at_b = 0;
    pc__gemm g = s->g;
    for (int d = lead - 1; d >= 0; d--) {
        int64_t index = rest % y->shape[d];
        int da = d - (lead - (a->ndim - 2)), db = d - (lead - (b->ndim - 2));
        rest /= y->shape[d];
        at_a += da >= 0 && a->shape[da] != 1 ? index * a->strides[da] : 0;
        at_b += db >= 0 && b->shape[db] != 1 ? index * b->strides[db] : 0;
    }
    g.a = (const char *)pc__data(a) + at_a * size;
    g.b = (const char *)pc__data(b) + at_b * size;
    g.c = (char *)pc__data(y) + i * g.m * g.n * (int64_t)pc_dtype_size(y->dtype);
    return gemm(&g, a, y);
}

static void some_products(void *context, int64_t part)
{
    batch *s = context;
    for (int64_t i = part * s->together; i < PC__MIN((part + 1) * s->together, s->count); i++)
        if (product(s, i) != PC_OK)
            atomic_store(&s->failed, true);
}

/* A batch against one b whose rows of a go on from matrix to matrix is one product. */
static void join_rows(batch *s)
{
    const pc_tensor *a = s->a;
    int64_t rows = s->g.m, step = s->g.a_rs;
    if (s->count < 2 || pc__count(s->b->ndim - 2, s->b->shape) != 1 || pc__count(a->ndim - 2, a->shape) != s->count)
        return;
    for (int d = a->ndim - 3; d >= 0; d--) {
        if (a->shape[d] == 1)
            continue;
        if (rows == 1)
            step = a->strides[d];
        else if (a->strides[d] != rows * step)
            return;
        rows *= a->shape[d];
    }
    s->g.m = rows;
    s->g.a_rs = step;
    s->g.c_rs = s->g.n;
    s->count = 1;
}

/* Many small products of 16-bit numbers that are multiplied as float32, and converted all together. */
static bool are_small(const batch *s)
{
    enum { SMALL = 32768, MANY = 4 };
    const pc__gemm *g = &s->g;
    const bool in_floats = s->a->dtype == PC_F16 || (s->a->dtype == PC_BF16 && !pc__has_pairs());
    return in_floats && s->count >= MANY && g->m * g->n + g->m * g->k + g->k * g->n <= SMALL;
}

/* Many products go to the cores whole, few are cut themselves; the bits are the same. */
PC__KERNEL(matmul)
{
    enum { MANY = 4, PART = 1 << 18 };
    const pc_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const int lead = y->ndim - 2;
    batch s = {.a = a,
               .b = b,
               .y = y,
               .g = {.m = y->shape[lead],
                     .n = y->shape[lead + 1],
                     .k = a->shape[a->ndim - 1],
                     .a_rs = a->strides[a->ndim - 2],
                     .a_cs = a->strides[a->ndim - 1],
                     .b_rs = b->strides[b->ndim - 2],
                     .b_cs = b->strides[b->ndim - 1],
                     .c_rs = y->strides[lead],
                     .c_cs = y->strides[lead + 1]},
               .count = pc__count(lead, y->shape)};
    join_rows(&s);
    if (are_small(&s))
        return PC__K(in_floats)(stream, call, PC__K(op_matmul));
    const int64_t each = 2 * s.g.m * s.g.n * s.g.k + 2048; /* and the call */
    const int threads = pc__threads(each * s.count);
    s.together = PC__MAX(PART / each, 1);
    if (threads > 1 && s.count >= MANY && s.count >= threads) {
        pc__parallel(threads, (s.count + s.together - 1) / s.together, some_products, &s);
        if (!atomic_load(&s.failed))
            return PC_OK;
    } /* what failed in another thread is told by doing it here */
    for (int64_t i = 0; i < s.count; i++)
        PC__TRY(product(&s, i));
    return PC_OK;
}

PC__KERNEL(linear)
{
    (void)stream;
    const pc__linear_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->out[0];
    const pc_tensor *bias = call->n_in > 2 ? call->in[2] : NULL;
    pc__gemm g = {.m = x->shape[0],
                  .n = w->shape[0],
                  .k = x->shape[1],
                  .a = pc__data(x),
                  .a_rs = x->strides[0],
                  .a_cs = x->strides[1],
                  .b = pc__data(w),
                  .b_rs = w->strides[1],
                  .b_cs = w->strides[0],
                  .c = pc__data(y),
                  .c_rs = y->strides[0],
                  .c_cs = y->strides[1],
                  .bias = bias ? pc__data(bias) : NULL,
                  .activation = (pc__activation)a->activation};
    return gemm(&g, x, y);
}

/* The gradient through the activation, and its column sums. */
static void through(pc_activation_kind kind, const pc_tensor *dy, const float *y, float *restrict g,
                    double *restrict sums)
{
    const int64_t n = dy->shape[1];
    const float *from = pc__data(dy);
    for (int64_t r = 0; r < dy->shape[0]; r++, from += n, y += n, g += n)
        for (int64_t i = 0; i < n; i++) {
            g[i] = kind == PC_ACTIVATION_RELU      ? (y[i] <= 0 ? 0 : from[i])
                   : kind == PC_ACTIVATION_SIGMOID ? from[i] * y[i] * (1 - y[i])
                   : kind == PC_ACTIVATION_TANH    ? from[i] * (1 - y[i] * y[i])
                                                   : from[i];
            sums[i] += (double)g[i];
        }
}

PC__KERNEL(linear_backward)
{
    (void)stream;
    const pc__linear_backward_attributes *a = call->attributes;
    const pc_tensor *dy = call->in[0], *x = call->in[2], *w = call->n_in > 3 ? call->in[3] : NULL;
    const int64_t m = dy->shape[0], n = dy->shape[1], k = x->shape[1];
    double *sums = pc__alloc_aligned((size_t)n * sizeof *sums + (size_t)(m * n) * sizeof(float), 64);
    if (!sums)
        return PC_ERR_MEMORY;
    float *g = (float *)(sums + n), *db = pc__data(call->out[2]);
    memset(sums, 0, (size_t)n * sizeof *sums);
    through(a->activation, dy, pc__data(call->in[1]), g, sums);
    for (int64_t i = 0; i < n; i++)
        db[i] = (float)sums[i];
    const pc__gemm dx = {.m = m,
                         .n = k,
                         .k = n,
                         .a = g,
                         .a_rs = n,
                         .a_cs = 1,
                         .b = w ? pc__data(w) : NULL,
                         .b_rs = k,
                         .b_cs = 1,
                         .c = pc__data(call->out[0]),
                         .c_rs = k,
                         .c_cs = 1};
    const pc__gemm dw = {.m = n,
                         .n = k,
                         .k = m,
                         .a = g,
                         .a_rs = 1,
                         .a_cs = n,
                         .b = pc__data(x),
                         .b_rs = x->strides[0],
                         .b_cs = x->strides[1],
                         .c = pc__data(call->out[1]),
                         .c_rs = k,
                         .c_cs = 1};
    pc_status status = w ? PC__K(gemm_f32)(&dx) : PC_OK;
    if (status == PC_OK)
        status = PC__K(gemm_f32)(&dw);
    pc__free(sums);
    return status;
}

/* Planes of one place, or one of them, lie in both orders: channels last is less work. Where windows have one place, a small
 * picture is one row. */
static pc__conv geometry(const pc_tensor *x, const pc_tensor *w, const pc__conv2d_attributes *a)
{
    enum { MANY = 4, SHORT = 512 };
    const pc_fn_conv2d_options *spec = &a->spec;
    pc__conv s = {.n = x->shape[0],
                  .c = x->shape[1],
                  .h = x->shape[2],
                  .w = x->shape[3],
                  .o = w->shape[0],
                  .kh = w->shape[2],
                  .kw = w->shape[3],
                  .sh = spec->stride[0],
                  .sw = spec->stride[1],
                  .ph = spec->padding[0],
                  .pw = spec->padding[1],
                  .activation = (pc__activation)spec->activation,
                  .pool = spec->pool,
                  .weights_last = pc__is_channels_last(w),
                  .half = pc__is_half((pc_dtype)x->dtype),
                  .is_f16 = x->dtype == PC_F16};
    if (s.kh * s.kw * s.sh * s.sw == 1 && s.ph + s.pw == 0 && s.pool <= 1 && s.n >= MANY && s.h * s.w <= SHORT)
        s.w *= s.h, s.h = 1;
    s.x_planes = pc__is_contiguous(x) && s.c > 1 && s.h * s.w > 1;
    s.y_planes = a->planes && s.o > 1 && pc__conv_yh(&s) * pc__conv_yw(&s) > 1;
    return s;
}

static void *data_or_null(const pc_tensor *t)
{
    return pc_tensor_count(t) ? pc__data(t) : NULL;
}

/* The variant of kernels that take 16-bit numbers as float32's. */
#define PICK_WIDE(name, t) ((t)->dtype == PC_F64 ? PC__K(name##_f64) : PC__K(name##_f32))

PC__KERNEL(conv2d)
{
    (void)stream;
    const pc__conv2d_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const pc__conv s = geometry(x, w, a);
    return PICK_WIDE(conv2d, x)(&s, pc__data(x), pc__data(w), call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                                pc__data(call->out[0]), data_or_null(call->out[1]));
}

/* Gradients of maxima of 16-bit numbers go by way of float32. */
PC__KERNEL(conv2d_backward)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->in[2], *g = call->in[4];
    const pc__conv s = geometry(x, w, a);
    if (s.half && s.pool > 1)
        return PC__K(in_floats)(stream, call, PC__K(op_conv2d_backward));
    return PICK_WIDE(conv2d_backward, x)(&s, pc__data(x), pc__data(w), pc__data(y), data_or_null(call->in[3]),
                                         pc__data(g), a->needs[0] ? pc__data(call->out[0]) : NULL,
                                         a->needs[1] ? pc__data(call->out[1]) : NULL,
                                         a->needs[2] ? pc__data(call->out[2]) : NULL);
}

static pc__pool windows(const pc__pool2d_attributes *a, pc_dtype dtype)
{
    const int64_t *x = a->in_shape;
    const pc_fn_pool2d_options *spec = &a->spec;
    return (pc__pool){.n = x[0],
                      .c = x[1],
                      .h = x[2],
                      .w = x[3],
                      .kh = spec->kernel[0],
                      .kw = spec->kernel[1],
                      .sh = spec->stride[0],
                      .sw = spec->stride[1],
                      .ph = spec->padding[0],
                      .pw = spec->padding[1],
                      .oh = a->windows[0],
                      .ow = a->windows[1],
                      .exclude_padding = spec->exclude_padding,
                      .half = pc__is_half(dtype),
                      .is_f16 = dtype == PC_F16};
}

PC__KERNEL(max_pool2d)
{
    (void)stream;
    const pc__pool2d_attributes *a = call->attributes;
    pc__pool s = windows(a, (pc_dtype)call->in[0]->dtype);
    int32_t *places = a->wants_places ? pc__data(call->out[1]) : NULL;
    return PICK_WIDE(max_pool2d, call->in[0])(&s, pc__data(call->in[0]), pc__data(call->out[0]), places);
}

PC__KERNEL(max_pool2d_backward)
{
    (void)stream;
    const pc__pool2d_attributes *a = call->attributes;
    pc__pool s = windows(a, (pc_dtype)call->in[0]->dtype);
    return PICK_WIDE(max_pool2d_backward, call->in[0])(&s, pc__data(call->in[1]), pc__data(call->in[0]),
                                                       pc__data(call->out[0]));
}

PC__KERNEL(avg_pool2d)
{
    (void)stream;
    const pc__pool2d_attributes *a = call->attributes;
    pc__pool s = windows(a, (pc_dtype)call->in[0]->dtype);
    return PICK_WIDE(avg_pool2d, call->in[0])(&s, pc__data(call->in[0]), pc__data(call->out[0]));
}

PC__KERNEL(avg_pool2d_backward)
{
    (void)stream;
    const pc__pool2d_attributes *a = call->attributes;
    pc__pool s = windows(a, (pc_dtype)call->in[0]->dtype);
    return PICK_WIDE(avg_pool2d_backward, call->in[0])(&s, pc__data(call->in[0]), pc__data(call->out[0]));
}

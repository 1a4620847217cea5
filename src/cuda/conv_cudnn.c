/* conv_cudnn.c: one product of a convolution by cuDNN, with what our kernels do on the way and cuDNN does not: weights
 * in its order and back, the way through a ReLU, the bias's gradient. */
#include "cuda/conv_cudnn.h"

#if PC__HAVE_CUDNN

#include "cuda/conv_unrelu.h"
#include "cuda/each.h"
#include "cuda/elementwise.h"
#include "cuda/gemm.h"
#include "ops/reduce.h"

#include <paracord/ops.h>

/* Where things are in the scratch memory. */
typedef struct rooms {
    size_t gradient, weight, workspace; /* bytes, each a multiple of 256 */
} rooms;

static size_t whole(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* cuDNN's order of the weights, [o][kh][kw][c], is ours. */
static bool same_order(const pc__cuda_conv *s)
{
    return s->c == 1 || s->kh * s->kw == 1;
}

static size_t elements_of_weight(const pc__cuda_conv *s)
{
    return (size_t)s->o * (size_t)s->c * (size_t)s->kh * (size_t)s->kw;
}

static size_t elements_of_result(const pc__cuda_conv *s)
{
    return (size_t)s->n * (size_t)s->oh * (size_t)s->ow * (size_t)s->o;
}

size_t pc__conv_result_bytes(const pc__conv_piece *p)
{
    const pc__cuda_conv *s = &p->s;
    const size_t size = pc_dtype_size((pc_dtype)s->dtype);
    return size * (p->direction == PC__CONV_FORWARD   ? elements_of_result(s)
                   : p->direction == PC__CONV_WEIGHTS ? elements_of_weight(s)
                                                      : (size_t)s->n * (size_t)s->h * (size_t)s->w * (size_t)s->c);
}

static rooms rooms_of(const pc__conv_piece *p, const pc__conv_way *way)
{
    const size_t size = pc_dtype_size((pc_dtype)p->s.dtype);
    const bool through = p->direction != PC__CONV_FORWARD && p->s.activation == PC_RELU;
    return (rooms){.gradient = through ? pc__conv_unrelu_scratch(p) : 0,
                   .weight = same_order(&p->s) ? 0 : whole(elements_of_weight(&p->s) * size),
                   .workspace = whole((size_t)way->plan.workspace)};
}

size_t pc__conv_cudnn_scratch(const pc__conv_piece *p, const pc__conv_way *way)
{
    const rooms r = rooms_of(p, way);
    return r.gradient + r.weight + r.workspace;
}

/* Memory as a tensor, without a count of who holds it. */
typedef struct plain {
    pc__storage storage;
    pc_tensor tensor;
} plain;

static pc_tensor *as_tensor(plain *t, int dtype, const void *data, int ndim, const int64_t *shape,
                            const int64_t *strides)
{
    *t = (plain){.storage = {.data = (void *)data}, .tensor = {.dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim}};
    t->tensor.storage = &t->storage;
    for (int i = 0; i < ndim; i++) {
        t->tensor.shape[i] = shape[i];
        t->tensor.strides[i] = strides[i];
    }
    return &t->tensor;
}

/* Weights between our order [o][c][kh][kw] and [o][kh][kw][c]. */
static pc_status reorder(pc_stream *stream, const pc_call *call, const pc__cuda_conv *s, const void *from, void *to,
                         bool back)
{
    const int64_t c = s->c, kh = s->kh, kw = s->kw, shape[4] = {s->o, kh, kw, c};
    const int64_t ours[4] = {c * kh * kw, kw, 1, kh * kw}, theirs[4] = {c * kh * kw, kw * c, c, 1};
    plain a, b;
    return pc__cuda_copy_tensor(stream, call, as_tensor(&b, s->dtype, to, 4, shape, back ? ours : theirs),
                                as_tensor(&a, s->dtype, from, 4, shape, back ? theirs : ours));
}

static void launch_unrelu(const pc__cuda_launch *launch, const void *context)
{
    pc__cuda_pointwise(launch, PC__POINTWISE_relu_backward, *(const int *)context);
}

static int64_t pixels(const pc__cuda_conv *s)
{
    return (int64_t)elements_of_result(s) / s->o;
}

static bool sums_on_the_way(const pc__conv_piece *p)
{
    return p->direction == PC__CONV_WEIGHTS && p->dbias && pc__cuda_has_unrelu(p->s.o, p->s.dtype);
}

static size_t gradient_bytes(const pc__conv_piece *p)
{
    return whole(elements_of_result(&p->s) * pc_dtype_size((pc_dtype)p->s.dtype));
}

size_t pc__conv_unrelu_scratch(const pc__conv_piece *p)
{
    return gradient_bytes(p) + (sums_on_the_way(p) ? whole(pc__cuda_unrelu_scratch(pixels(&p->s), p->s.o)) : 0);
}

static pc_status unrelu(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, void *to)
{
    const int64_t count = (int64_t)elements_of_result(&p->s), one = 1;
    const int dtype = p->s.dtype;
    plain out, dy, y;
    pc_tensor *operands[3] = {as_tensor(&out, dtype, to, 1, &count, &one),
                              as_tensor(&dy, dtype, p->dy, 1, &count, &one),
                              as_tensor(&y, dtype, p->y, 1, &count, &one)};
    return pc__cuda_each(stream, call, 3, operands, launch_unrelu, &dtype);
}

pc_status pc__conv_unrelu(pc_stream *stream, const pc_call *call, pc__conv_piece *p, void *scratch)
{
    const bool sums = sums_on_the_way(p);
    const pc__cuda_unrelu both = {.dy = p->dy,
                                  .y = p->y,
                                  .dz = scratch,
                                  .dbias = p->dbias,
                                  .rows = pixels(&p->s),
                                  .columns = p->s.o,
                                  .dtype = p->s.dtype,
                                  .early = pc__cuda_early(stream),
                                  .queue = pc__cuda_queue(stream)};
    if (sums)
        pc__cuda_unrelu_and_sum(&both, (char *)scratch + gradient_bytes(p));
    else
        PC__TRY(unrelu(stream, call, p, scratch));
    p->dy = scratch;
    p->s.activation = PC_NONE;
    p->dbias = sums ? NULL : p->dbias;
    return PC_OK;
}

/* The bias's gradient: sums over pixels, by the kernel of sums, whose scratch memory is another one. */
static pc_status add_up(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const void *dy)
{
    const pc__cuda_conv *s = &p->s;
    const int64_t rows = pixels(s), shape[2] = {rows, s->o}, strides[2] = {s->o, 1};
    const pc__reduce_attributes over = {.outer = 1, .reduced = rows, .inner = s->o};
    plain from, to;
    pc_tensor *in = as_tensor(&from, s->dtype, dy, 2, shape, strides);
    const pc_call sum = {.op = call->op,
                         .in = &in,
                         .n_in = 1,
                         .n_out = 1,
                         .out = {as_tensor(&to, s->dtype, p->dbias, 1, &shape[1], &strides[1])},
                         .attributes = &over,
                         .attribute_bytes = sizeof over};
    pc__cuda_stream *face = stream->implementation;
    face->scratch_level = 1;
    const pc_status status = pc__cuda_op_sum(stream, &sum);
    face->scratch_level = 0;
    return status;
}

/* The handle has one stream at a time. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;

static pc_status execute(pc_stream *stream, pc__conv_way *way, const pc__cudnn_operands *operands, bool *done)
{
    const cudnnHandle_t handle = pc__conv_handle(stream->device.index);
    char words[256] = "";
    pthread_mutex_lock(&running);
    cudnnStatus_t status = pc__cudnn.SetStream(handle, pc__cuda_queue(stream));
    if (status == CUDNN_STATUS_SUCCESS)
        status = pc__cudnn_run(handle, &way->plan, &way->shape, operands);
    if (status != CUDNN_STATUS_SUCCESS)
        pc__cudnn_words(words, sizeof words);
    pthread_mutex_unlock(&running);
    *done = status == CUDNN_STATUS_SUCCESS;
    if (*done)
        return PC_OK;
    if (status >= CUDNN_STATUS_INTERNAL_ERROR)
        return pc__fail_cause(PC_ERR_BACKEND, words,
                              "conv2d: cuDNN failed with status %d; PARACORD_CONV=own does without", (int)status);
    atomic_store(&way->refused, true); /* nothing was queued */
    pc__log(PC_LOG_WARNING, "conv2d: cuDNN refuses what it planned (status %d, %.160s): our kernels do it", (int)status,
            words);
    return PC_OK;
}

/* What a forward plan for the bare product leaves. */
static void follow(pc_stream *stream, const pc__conv_piece *p)
{
    const pc__cuda_conv *s = &p->s;
    const pc__cuda_gemm g = {.dtype = s->dtype,
                             .activation = s->activation,
                             .m = pixels(s),
                             .n = s->o,
                             .batch = 1,
                             .bias = p->bias,
                             .c = p->result};
    pc__cuda_gemm_finish(pc__cuda_queue(stream), &g);
}

pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *way,
                         void *scratch, bool *done)
{
    const rooms r = rooms_of(p, way);
    char *const gradient = scratch, *const weight = gradient + r.gradient, *const workspace = weight + r.weight;
    const bool weights = p->direction == PC__CONV_WEIGHTS;
    pc__conv_piece in_front = *p;
    *done = false;
    if (r.gradient)
        PC__TRY(pc__conv_unrelu(stream, call, &in_front, gradient));
    pc__cudnn_operands o = {.x = p->x,
                            .weight = r.weight ? weight : p->weight,
                            .dy = in_front.dy,
                            .bias = p->bias,
                            .result = weights && r.weight ? weight : p->result,
                            .workspace = r.workspace ? workspace : NULL};
    if (r.weight && !weights)
        PC__TRY(reorder(stream, call, &p->s, p->weight, weight, false));
    PC__TRY(execute(stream, way, &o, done));
    if (!*done)
        return PC_OK;
    if (way->plan.bare)
        follow(stream, p);
    if (weights && r.weight)
        PC__TRY(reorder(stream, call, &p->s, weight, p->result, true));
    if (weights && in_front.dbias)
        PC__TRY(add_up(stream, call, p, o.dy));
    return pc__cuda_launched(call);
}

#else

size_t pc__conv_cudnn_scratch(const pc__conv_piece *p, const pc__conv_way *way)
{
    (void)p, (void)way;
    return 0;
}

size_t pc__conv_unrelu_scratch(const pc__conv_piece *p)
{
    (void)p;
    return 0;
}

pc_status pc__conv_unrelu(pc_stream *stream, const pc_call *call, pc__conv_piece *p, void *scratch)
{
    (void)stream, (void)call, (void)p, (void)scratch;
    return PC_OK;
}

pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *way,
                         void *scratch, bool *done)
{
    (void)stream, (void)call, (void)p, (void)way, (void)scratch;
    *done = false;
    return PC_OK;
}

#endif

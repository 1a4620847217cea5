/* conv_cudnn.c: one product of a convolution by cuDNN, with what our kernels do on the way and cuDNN does not: operands
 * in its format and back, the way through a ReLU, the bias's gradient. */
#include "cuda/conv_cudnn.h"

#if PC__HAVE_CUDNN

#include "cuda/conv_stage.h"
#include "cuda/conv_unrelu.h"
#include "cuda/each.h"
#include "cuda/elementwise.h"
#include "cuda/gemm.h"
#include "ops/reduce.h"

#include <paracord/ops.h>

static size_t whole(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t size_of(const pc__cuda_conv *s)
{
    return pc_dtype_size((pc_dtype)s->dtype);
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
    return size_of(s) * (p->direction == PC__CONV_FORWARD ? elements_of_result(s)
                         : p->direction == PC__CONV_WEIGHTS
                             ? elements_of_weight(s)
                             : (size_t)s->n * (size_t)s->h * (size_t)s->w * (size_t)s->c);
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

/* --- operands in cuDNN's format --- */

/* Pictures of one operand, ours with c channels, cuDNN's with `made`. */
typedef struct pictures {
    int format, dtype, c, made;
    int64_t n, area; /* pixels of one */
} pictures;

static pictures inputs_of(const pc__conv_piece *p, const pc__conv_shape *made)
{
    return (pictures){made->format, p->s.dtype, p->s.c, made->c, p->s.n, (int64_t)p->s.h * p->s.w};
}

static pictures results_of(const pc__conv_piece *p, const pc__conv_shape *made)
{
    return (pictures){made->format, p->s.dtype, p->s.o, made->o, p->s.n, (int64_t)p->s.oh * p->s.ow};
}

/* Bytes in cuDNN's format; 0 where ours is the same. */
static size_t pictures_room(const pictures *of)
{
    const bool same = of->format == PC__CONV_PLANES ? of->c == 1 || of->area == 1 : of->c == of->made;
    return same ? 0 : whole((size_t)of->n * (size_t)of->area * (size_t)of->made * pc_dtype_size((pc_dtype)of->dtype));
}

/* From our format, or `back` to it. */
static pc_status turn_pictures(pc_stream *stream, const pc_call *call, const pictures *of, const void *from, void *to,
                               bool back)
{
    const int64_t shape[3] = {of->n, of->area, of->c}, picture = of->area * of->c;
    const int64_t ours[3] = {picture, of->c, 1}, theirs[3] = {picture, 1, of->area};
    plain a, b;
    if (of->format == PC__CONV_PLANES)
        return pc__cuda_copy_tensor(stream, call, as_tensor(&b, of->dtype, to, 3, shape, back ? ours : theirs),
                                    as_tensor(&a, of->dtype, from, 3, shape, back ? theirs : ours));
    pc__cuda_conv_rows(pc__cuda_queue(stream), from, back ? of->made : of->c, to, back ? of->c : of->made,
                       of->n * of->area, pc_dtype_size((pc_dtype)of->dtype), pc__cuda_early(stream));
    return PC_OK;
}

/* As with pictures. */
static size_t weight_room(const pc__cuda_conv *s, const pc__conv_shape *made)
{
    const bool same_order = made->format == PC__CONV_PLANES || s->c == 1 || s->kh * s->kw == 1;
    const size_t numbers = (size_t)made->o * (size_t)made->c * (size_t)s->kh * (size_t)s->kw;
    return same_order && s->c == made->c && s->o == made->o ? 0 : whole(numbers * size_of(s));
}

static pc_status turn_weight(pc_stream *stream, const pc_call *call, const pc__cuda_conv *s, const pc__conv_shape *made,
                             const void *from, void *to, bool back)
{
    const int64_t c = s->c, kh = s->kh, kw = s->kw, shape[4] = {s->o, kh, kw, c};
    const int64_t ours[4] = {c * kh * kw, kw, 1, kh * kw}, theirs[4] = {c * kh * kw, kw * c, c, 1};
    const pc__cuda_conv_filter filter = {s->o,      s->c, s->kh * s->kw, made->o, made->c, pc__cuda_early(stream),
                                         size_of(s)};
    plain a, b;
    if (made->format != PC__CONV_PADDED)
        return pc__cuda_copy_tensor(stream, call, as_tensor(&b, s->dtype, to, 4, shape, back ? ours : theirs),
                                    as_tensor(&a, s->dtype, from, 4, shape, back ? theirs : ours));
    (back ? pc__cuda_conv_filter_cut : pc__cuda_conv_filter_pad)(pc__cuda_queue(stream), &filter, from, to);
    return PC_OK;
}

/* --- the way through a ReLU, the bias's gradient --- */

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
        status = pc__cudnn_run(handle, &way->plan, &way->made, operands);
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

/* --- all of a product --- */

/* What lies where in the scratch memory: bytes, each a multiple of 256, in this order. */
typedef struct rooms {
    size_t gradient, x, weight, bias, y, workspace;
} rooms;

static rooms rooms_of(const pc__conv_piece *p, const pc__conv_way *way)
{
    const pc__conv_shape *made = &way->made;
    const pictures x = inputs_of(p, made), y = results_of(p, made);
    const bool bias = p->direction == PC__CONV_FORWARD && p->bias && made->bias && made->o != p->s.o;
    return (rooms){.gradient =
                       p->direction != PC__CONV_FORWARD && p->s.activation == PC_RELU ? pc__conv_unrelu_scratch(p) : 0,
                   .x = pictures_room(&x),
                   .weight = weight_room(&p->s, made),
                   .bias = bias ? whole((size_t)made->o * size_of(&p->s)) : 0,
                   .y = pictures_room(&y),
                   .workspace = whole((size_t)way->plan.workspace)};
}

size_t pc__conv_cudnn_scratch(const pc__conv_piece *p, const pc__conv_way *way)
{
    const rooms r = rooms_of(p, way);
    return r.gradient + r.x + r.weight + r.bias + r.y + r.workspace;
}

size_t pc__conv_staged_bytes(const pc__conv_piece *p, const pc__conv_way *way)
{
    const pictures y = results_of(p, &way->made);
    return pictures_room(&y);
}

pc_status pc__conv_stage(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                         void *to)
{
    const pictures y = results_of(p, &way->made);
    return turn_pictures(stream, call, &y, p->dy, to, false);
}

/* Operands into their rooms, as far as they have some; *o then says where all are. */
static pc_status bring(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                       const rooms *r, char *at, pc__cudnn_operands *o)
{
    const pictures x = inputs_of(p, &way->made), y = results_of(p, &way->made);
    char *const weight = at + r->x, *const bias = weight + r->weight, *const dy = bias + r->bias;
    char *const own[PC__CONV_DIRECTIONS] = {r->y ? dy : NULL, r->x ? at : NULL, r->weight ? weight : NULL};
    *o = (pc__cudnn_operands){.x = p->x,
                              .weight = p->weight,
                              .dy = p->staged_dy ? p->staged_dy : p->dy,
                              .bias = p->bias,
                              .result = own[p->direction] ? own[p->direction] : p->result,
                              .workspace = r->workspace ? dy + r->y : NULL};
    if (r->x && p->direction != PC__CONV_INPUT) {
        PC__TRY(turn_pictures(stream, call, &x, p->x, at, false));
        o->x = at;
    }
    if (r->weight && p->direction != PC__CONV_WEIGHTS) {
        PC__TRY(turn_weight(stream, call, &p->s, &way->made, p->weight, weight, false));
        o->weight = weight;
    }
    if (r->bias) {
        pc__cuda_conv_rows(pc__cuda_queue(stream), p->bias, p->s.o, bias, way->made.o, 1, size_of(&p->s),
                           pc__cuda_early(stream));
        o->bias = bias;
    }
    if (r->y && p->direction != PC__CONV_FORWARD && !p->staged_dy) {
        PC__TRY(turn_pictures(stream, call, &y, p->dy, dy, false));
        o->dy = dy;
    }
    return PC_OK;
}

/* The result from its room to where it belongs. */
static pc_status take_back(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                           const pc__cudnn_operands *o)
{
    const pictures x = inputs_of(p, &way->made), y = results_of(p, &way->made);
    if (o->result == p->result)
        return PC_OK;
    if (p->direction == PC__CONV_WEIGHTS)
        return turn_weight(stream, call, &p->s, &way->made, o->result, p->result, true);
    return turn_pictures(stream, call, p->direction == PC__CONV_FORWARD ? &y : &x, o->result, p->result, true);
}

pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *way,
                         void *scratch, bool *done)
{
    const rooms r = rooms_of(p, way);
    pc__conv_piece in_front = *p;
    pc__cudnn_operands o;
    *done = false;
    if (r.gradient)
        PC__TRY(pc__conv_unrelu(stream, call, &in_front, scratch));
    PC__TRY(bring(stream, call, &in_front, way, &r, (char *)scratch + r.gradient, &o));
    PC__TRY(execute(stream, way, &o, done));
    if (!*done)
        return PC_OK;
    PC__TRY(take_back(stream, call, p, way, &o));
    if (way->plan.bare)
        follow(stream, p);
    if (p->direction == PC__CONV_WEIGHTS && in_front.dbias)
        PC__TRY(add_up(stream, call, p, in_front.dy));
    return pc__cuda_launched(call);
}

#else

size_t pc__conv_staged_bytes(const pc__conv_piece *p, const pc__conv_way *way)
{
    (void)p, (void)way;
    return 0;
}

pc_status pc__conv_stage(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                         void *to)
{
    (void)stream, (void)call, (void)p, (void)way, (void)to;
    return PC_OK;
}

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

/* conv.c: the fused convolution and its gradients. */
#include "cuda/conv.h"
#include "cuda/conv_half.h"
#include "cuda/conv_way.h"
#include "cuda/cudnn.h"

#include "cuda/cuda.h"
#include "ops/conv2d.h"
#include "ops/table.h"

static int out_size(int64_t n, int64_t kernel, int64_t stride, int64_t padding)
{
    return (int)(n + 2 * padding < kernel ? 0 : (n + 2 * padding - kernel) / stride + 1);
}

/* Kernels count rows, columns and channels in 32 bits, one picture's elements too. */
static pc_status geometry(const pc_stream *stream, const pc_call *call, pc__cuda_conv *s)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_conv2d_spec *spec = &a->spec;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const int64_t oh = out_size(x->shape[2], w->shape[2], spec->stride[0], spec->padding[0]);
    const int64_t ow = out_size(x->shape[3], w->shape[3], spec->stride[1], spec->padding[1]);
    const double picture = (double)x->shape[1] * (double)x->shape[2] * (double)x->shape[3];
    const double result = (double)w->shape[0] * (double)oh * (double)ow;
    const double kernel = (double)w->shape[1] * (double)w->shape[2] * (double)w->shape[3] * (double)w->shape[0];
    if (picture > INT32_MAX || result > INT32_MAX || kernel > INT32_MAX)
        return pc__fail(PC_ERR_SHAPE, "conv2d: a picture of shape %s or a weight of shape %s is too large for cuda",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(w));
    *s = (pc__cuda_conv){.dtype = x->dtype,
                         .activation = (int)spec->activation,
                         .planes = a->planes,
                         .early = pc__cuda_early(stream),
                         .multiprocessors = pc__cuda_multiprocessors(stream),
                         .tf32 = pc_matmul_precision() == PC_PRECISION_TF32,
                         .ready_x = pc__cuda_ready(stream, x),
                         .ready_weight = pc__cuda_ready(stream, w),
                         .n = x->shape[0],
                         .h = (int)x->shape[2],
                         .w = (int)x->shape[3],
                         .c = (int)x->shape[1],
                         .o = (int)w->shape[0],
                         .kh = (int)w->shape[2],
                         .kw = (int)w->shape[3],
                         .sh = spec->stride[0],
                         .sw = spec->stride[1],
                         .ph = spec->padding[0],
                         .pw = spec->padding[1],
                         .oh = (int)oh,
                         .ow = (int)ow,
                         .pool = PC__MAX(spec->pool, 1)};
    s->yh = s->oh / s->pool;
    s->yw = s->ow / s->pool;
    return PC_OK;
}

/* Our kernels pool on the way, cuDNN's do not, and where it is the faster one by far a pooling of its own costs less. */
bool pc__cuda_is_faster_apart(const pc_call *call)
{
    const pc_conv_choice_kind choice = pc_conv_choice();
    if (call->op->index != PC__OP_conv2d || choice == PC_CONV_OWN)
        return false;
    const pc_conv2d_spec *spec = &((const pc__conv2d_attributes *)call->attributes)->spec;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const pc__conv_shape shape = {.n = x->shape[0],
                                  .c = (int)w->shape[1],
                                  .o = (int)w->shape[0],
                                  .kh = (int)w->shape[2],
                                  .kw = (int)w->shape[3],
                                  .oh = out_size(x->shape[2], w->shape[2], spec->stride[0], spec->padding[0]),
                                  .ow = out_size(x->shape[3], w->shape[3], spec->stride[1], spec->padding[1]),
                                  .direction = PC__CONV_FORWARD,
                                  .dtype = x->dtype,
                                  .tf32 = x->dtype == PC_F32 && pc_matmul_precision() == PC_PRECISION_TF32};
    return (choice == PC_CONV_CUDNN || pc__conv_rule(&shape)) && !pc__cudnn_missing();
}

static void *data_or_null(const pc_tensor *t)
{
    return pc__count(t->ndim, t->shape) ? pc__data(t) : NULL;
}

/* Matrix units multiply 16-bit numbers from compute capability 8.0 on. */
static bool has_matrix_units(const pc_stream *stream)
{
    int major = 0;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, stream->device.index) == cudaSuccess &&
           major >= 8;
}

size_t pc__conv_own_scratch(const pc__conv_piece *p)
{
    if (p->direction == PC__CONV_FORWARD)
        return pc__cuda_conv_scratch(&p->s);
    if (pc__is_half((pc_dtype)p->s.dtype))
        return pc__cuda_conv_half_backward_scratch(&p->s, p->direction == PC__CONV_INPUT,
                                                   p->direction == PC__CONV_WEIGHTS);
    return p->direction == PC__CONV_INPUT ? pc__cuda_conv_input_scratch(&p->s) : pc__cuda_conv_weights_scratch(&p->s);
}

void pc__conv_own(cudaStream_t queue, const pc__conv_piece *p, void *scratch)
{
    const pc__cuda_conv *s = &p->s;
    void *const dx = p->direction == PC__CONV_INPUT ? p->result : NULL, *const dweight = dx ? NULL : p->result;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_forward(queue, s, p->x, p->weight, p->bias, p->result, p->places, scratch);
    else if (pc__is_half((pc_dtype)s->dtype))
        pc__cuda_conv_half_backward(queue, s, p->x, p->weight, p->y, p->argmax, p->dy, dx, dweight, p->dbias, scratch);
    else if (dx)
        pc__cuda_conv_input(queue, s, p->weight, p->y, p->argmax, p->dy, dx, scratch);
    else
        pc__cuda_conv_weights(queue, s, p->x, p->y, p->argmax, p->dy, dweight, p->dbias, scratch);
}

/* What all pieces together need; cuDNN's may come back to our kernels. */
static size_t scratch_of(const pc__conv_piece *pieces, pc__conv_way *const *ways, int count, size_t front)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        most = PC__MAX(most, pc__conv_own_scratch(&pieces[i]));
        if (ways[i])
            most = PC__MAX(most, pc__conv_cudnn_scratch(&pieces[i], ways[i]));
    }
    return front + most;
}

/* Scratch memory for cuDNN's ways too; NULL without an error where there is only enough for our kernels. */
static void *try_scratch(pc_stream *stream, size_t bytes)
{
    pc_error before = pc__error_take();
    void *scratch = pc__cuda_scratch(stream, bytes);
    if (!scratch)
        (void)pc__error_take();
    (void)pc__error_put(&before);
    return scratch;
}

/* Piece by piece, at least one of them cuDNN's way. *enough is false, and nothing was done, where there is too little
 * memory for that. */
static pc_status by_cudnn(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, pc__conv_way *const *ways,
                          int count, bool *enough)
{
    static const char *const notes[1 << PC__CONV_DIRECTIONS] = {
        [1 << PC__CONV_FORWARD] = "by cuDNN",
        [1 << PC__CONV_INPUT] = "the input's gradient by cuDNN",
        [1 << PC__CONV_WEIGHTS] = "the weights' gradient by cuDNN",
        [1 << PC__CONV_INPUT | 1 << PC__CONV_WEIGHTS] = "both gradients by cuDNN"};
    int made = 0; /* bits by direction */
    const bool shared = count == 2 && ways[0] && ways[1] && pieces[0].s.activation == PC_RELU;
    const size_t front = shared ? pc__conv_unrelu_scratch(&pieces[0]) : 0;
    char *scratch = try_scratch(stream, scratch_of(pieces, ways, count, front));
    *enough = scratch != NULL;
    if (!scratch)
        return PC_OK;
    if (shared)
        PC__TRY(pc__conv_unrelu(stream, call, &pieces[0], scratch));
    for (int i = 0; i < count; i++) {
        bool done = false;
        if (shared)
            pieces[i].dy = pieces[0].dy, pieces[i].s.activation = PC_NONE;
        if (ways[i])
            PC__TRY(pc__conv_cudnn(stream, call, &pieces[i], ways[i], scratch + front, &done));
        if (!done)
            pc__conv_own(pc__cuda_queue(stream), &pieces[i], scratch + front);
        made |= done << pieces[i].direction;
    }
    ((pc__cuda_stream *)stream->implementation)->note = notes[made];
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_conv2d(pc_stream *stream, const pc_call *call)
{
    pc__conv_piece p = {.direction = PC__CONV_FORWARD};
    pc__conv_way *way;
    bool enough = false;
    PC__TRY(geometry(stream, call, &p.s));
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    if (pc__is_half(call->in[0]->dtype) &&
        !(has_matrix_units(stream) && pc__cuda_conv_native(&p.s, pc__data(call->in[0]))))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d);
    p.x = pc__data(call->in[0]), p.weight = pc__data(call->in[1]);
    p.bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
    p.result = pc__data(call->out[0]), p.places = data_or_null(call->out[1]);
    PC__TRY(pc__conv_choose(stream, call, &p, &way));
    if (way)
        PC__TRY(by_cudnn(stream, call, &p, &way, 1, &enough));
    if (enough)
        return PC_OK;
    void *scratch = pc__cuda_scratch(stream, pc__conv_own_scratch(&p));
    if (!scratch)
        return PC_ERR_MEMORY;
    pc__conv_own(pc__cuda_queue(stream), &p, scratch);
    return pc__cuda_launched(call);
}

/* Both gradients by our kernels; those of 16-bit numbers share what they turn. */
static pc_status own_backward(pc_stream *stream, const pc_call *call, const pc__conv_piece *input,
                              const pc__conv_piece *weights)
{
    const cudaStream_t queue = pc__cuda_queue(stream);
    const pc__conv_piece *any = input ? input : weights;
    const bool half = pc__is_half((pc_dtype)any->s.dtype);
    const size_t for_half = half ? pc__cuda_conv_half_backward_scratch(&any->s, input, weights) : 0;
    const size_t for_input = input && !half ? pc__conv_own_scratch(input) : 0;
    const size_t for_weights = weights && !half ? pc__conv_own_scratch(weights) : 0;
    void *scratch = pc__cuda_scratch(stream, PC__MAX(PC__MAX(for_weights, for_input), for_half));
    if (!scratch)
        return PC_ERR_MEMORY;
    if (half)
        pc__cuda_conv_half_backward(queue, &any->s, any->x, any->weight, any->y, any->argmax, any->dy,
                                    input ? input->result : NULL, weights ? weights->result : NULL,
                                    weights ? weights->dbias : NULL, scratch);
    if (weights && !half)
        pc__conv_own(queue, weights, scratch);
    if (input && !half)
        pc__conv_own(queue, input, scratch);
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_conv2d_backward(pc_stream *stream, const pc_call *call)
{
    const pc__conv2d_attributes *a = call->attributes;
    pc__conv_piece pieces[2], all = {0}, *input = NULL, *weights = NULL;
    pc__conv_way *ways[2] = {NULL, NULL};
    int count = 0;
    bool enough = false;
    PC__TRY(geometry(stream, call, &all.s));
    all.x = pc__data(call->in[0]), all.weight = pc__data(call->in[1]), all.y = pc__data(call->in[2]);
    all.argmax = data_or_null(call->in[3]), all.dy = pc__data(call->in[4]);
    void *dx = a->needs[0] ? data_or_null(call->out[0]) : NULL,
         *dweight = a->needs[1] ? data_or_null(call->out[1]) : NULL;
    void *dbias = a->needs[2] ? data_or_null(call->out[2]) : NULL;
    if (pc__is_half(call->in[0]->dtype) &&
        !(has_matrix_units(stream) && pc__cuda_conv_native_backward(&all.s, all.x, all.dy, dx, dweight || dbias)))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d_backward);
    if (dweight || dbias) {
        weights = &pieces[count++];
        *weights = all, weights->direction = PC__CONV_WEIGHTS, weights->result = dweight, weights->dbias = dbias;
    }
    if (dx) {
        input = &pieces[count++];
        *input = all, input->direction = PC__CONV_INPUT, input->result = dx;
    }
    if (!count)
        return PC_OK;
    for (int i = 0; i < count; i++)
        PC__TRY(pc__conv_choose(stream, call, &pieces[i], &ways[i]));
    if (ways[0] || ways[1])
        PC__TRY(by_cudnn(stream, call, pieces, ways, count, &enough));
    return enough ? PC_OK : own_backward(stream, call, input, weights);
}

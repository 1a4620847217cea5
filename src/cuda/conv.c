/* conv.c: the fused convolution and its gradients. */
#include "cuda/conv.h"
#include "cuda/conv_half.h"

#include "cuda/cuda.h"
#include "ops/conv2d.h"

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

pc_status pc__cuda_op_conv2d(pc_stream *stream, const pc_call *call)
{
    pc__cuda_conv s;
    PC__TRY(geometry(stream, call, &s));
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    if (pc__is_half(call->in[0]->dtype) &&
        !(has_matrix_units(stream) && pc__cuda_conv_native(&s, pc__data(call->in[0]))))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d);
    void *scratch = pc__cuda_scratch(stream, pc__cuda_conv_scratch(&s));
    if (!scratch)
        return PC_ERR_MEMORY;
    pc__cuda_conv_forward(pc__cuda_queue(stream), &s, pc__data(call->in[0]), pc__data(call->in[1]),
                          call->n_in > 2 ? pc__data(call->in[2]) : NULL, pc__data(call->out[0]),
                          data_or_null(call->out[1]), scratch);
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_conv2d_backward(pc_stream *stream, const pc_call *call)
{
    const pc__conv2d_attributes *a = call->attributes;
    const cudaStream_t queue = pc__cuda_queue(stream);
    pc__cuda_conv s;
    PC__TRY(geometry(stream, call, &s));
    const void *x = pc__data(call->in[0]), *w = pc__data(call->in[1]), *y = pc__data(call->in[2]);
    const uint8_t *argmax = data_or_null(call->in[3]);
    const void *dy = pc__data(call->in[4]);
    void *dx = a->needs[0] ? data_or_null(call->out[0]) : NULL,
         *dweight = a->needs[1] ? data_or_null(call->out[1]) : NULL;
    void *dbias = a->needs[2] ? data_or_null(call->out[2]) : NULL;
    if (pc__is_half(call->in[0]->dtype) &&
        !(has_matrix_units(stream) && pc__cuda_conv_native_backward(&s, x, dy, dx, dweight || dbias)))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d_backward);
    if (!dx && !dweight && !dbias)
        return PC_OK;
    const bool half = pc__is_half(call->in[0]->dtype), weights = dweight || dbias;
    const size_t for_weights = weights && !half ? pc__cuda_conv_weights_scratch(&s) : 0;
    const size_t for_input = dx && !half ? pc__cuda_conv_input_scratch(&s) : 0;
    const size_t for_half = half ? pc__cuda_conv_half_backward_scratch(&s, dx, weights) : 0;
    void *scratch = pc__cuda_scratch(stream, PC__MAX(PC__MAX(for_weights, for_input), for_half));
    if (!scratch)
        return PC_ERR_MEMORY;
    if (half)
        pc__cuda_conv_half_backward(queue, &s, x, w, y, argmax, dy, dx, dweight, dbias, scratch);
    if (weights && !half)
        pc__cuda_conv_weights(queue, &s, x, y, argmax, dy, dweight, dbias, scratch);
    if (dx && !half)
        pc__cuda_conv_input(queue, &s, w, y, argmax, dy, dx, scratch);
    return pc__cuda_launched(call);
}

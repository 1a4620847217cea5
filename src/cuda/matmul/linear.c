/* linear.c: the linear layer: small ones in a launch of our own each way, others as a product. */
#include "cuda/matmul/linear.h"

#include "cuda/pointwise/each.h"
#include "cuda/matmul/gemm.h"
#include "cuda/loss/head.h"
#include "cuda/matmul/lt.h"
#include "ops/linear.h"

_Static_assert(PC__CUDA_LINEAR_TILES <= PC__CUDA_COUNTERS, "a counter for each tile");

static pc_status as_product(pc_stream *stream, const pc_call *call)
{
    const pc__linear_attributes *attributes = call->attributes;
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->out[0];
    const pc__cuda_gemm g = {.dtype = y->dtype,
                             .activation = (int)attributes->activation,
                             .m = x->shape[0],
                             .n = w->shape[0],
                             .k = x->shape[1],
                             .batch = 1,
                             .a = pc__data(x),
                             .b = pc__data(w),
                             .bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                             .c = pc__data(y),
                             .a_rs = x->strides[0],
                             .a_cs = x->strides[1],
                             .b_rs = w->strides[1],
                             .b_cs = w->strides[0]};
    return pc__cuda_product(stream, call, &g);
}

/* From x [m, k], and y or its gradient [m, n]. The queue is asked for where it is known what goes there. */
static pc__cuda_linear layer(pc_stream *stream, const pc_tensor *x, const pc_tensor *y)
{
    return (pc__cuda_linear){.dtype = y->dtype,
                             .m = (int)x->shape[0],
                             .n = (int)y->shape[1],
                             .k = (int)x->shape[1],
                             .x_row = x->strides[0],
                             .x = pc__data(x),
                             .counters = pc__cuda_counters(stream),
                             .multiprocessors = pc__cuda_multiprocessors(stream),
                             .early = pc__cuda_early(stream),
                             .ready_x = pc__cuda_ready(stream, x)};
}

/* Of 16-bit layers with more inputs than MOST cuBLASLt's kernels are the faster ones, though they are two. */
static bool suits(const pc_tensor *x, const pc_tensor *w, const pc_tensor *y)
{
    enum { MOST = 4096 };
    return y->dtype != PC_F64 && (y->dtype == PC_F32 || x->shape[1] <= MOST) &&
           (x->strides[1] == 1 || x->shape[1] == 1) && pc__is_contiguous(w) &&
           pc__linear_is_small(x->shape[0], w->shape[0], x->shape[1]) && x->strides[0] <= INT32_MAX / x->shape[0] &&
           pc__cuda_linear_tiles(x->shape[0], w->shape[0]) <= PC__CUDA_LINEAR_TILES;
}

PC__CUDA_KERNEL(linear)
{
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->out[0];
    if (pc__count(y->ndim, y->shape) == 0)
        return PC_OK;
    if (!suits(x, w, y))
        return as_product(stream, call);
    pc__cuda_linear l = layer(stream, x, y);
    l.weight = pc__data(w);
    l.ready_weight = pc__cuda_ready(stream, w);
    l.activation = (int)((const pc__linear_attributes *)call->attributes)->activation;
    l.bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
    l.y = pc__data(y);
    l.queue = pc__cuda_queue(stream);
    const size_t bytes = pc__cuda_linear_scratch(&l);
    l.scratch = bytes ? pc__cuda_scratch(stream, bytes) : NULL;
    if (bytes && !l.scratch)
        return PC_ERR_MEMORY;
    if (!pc__cuda_head_layer(stream, &l))
        (void)pc__cuda_linear_forward(&l);
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(linear_backward)
{
    const pc__linear_backward_attributes *a = call->attributes;
    if (pc__cuda_head_backward(stream, call))
        return PC_OK;
    pc__cuda_linear l = layer(stream, call->in[2], call->in[0]);
    l.activation = (int)a->activation;
    l.dy = pc__data(call->in[0]);
    l.y = pc__data(call->in[1]);
    l.weight = call->n_in > 3 ? pc__data(call->in[3]) : NULL;
    l.ready_weight = l.weight && pc__cuda_ready(stream, call->in[3]);
    l.dx = l.weight ? pc__data(call->out[0]) : NULL;
    l.dweight = pc__data(call->out[1]);
    l.db = pc__data(call->out[2]);
    if (pc__cuda_head_behind(stream, &l))
        return pc__cuda_launched(call);
    l.queue = pc__cuda_queue(stream);
    (void)pc__cuda_linear_backward(&l);
    return pc__cuda_launched(call);
}

/* c_order.c: weights that lie channels last, [o][kh][kw][c], which is how cuDNN reads them. For kernels of ours they are
 * turned to C order, and what these make of their gradient back. And pictures in C order that no kernel here reads so. */
#include "cuda/conv/c_order.h"

#include "cuda/conv/format.h"
#include "cuda/pointwise/each.h"
#include "ops/conv2d.h"
#include "ops/table.h"

pc_status pc__conv_in_channels_last(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    enum { MOST = 5 };
    const pc_tensor *x = call->in[0];
    const int64_t *s = x->shape, strides[4] = {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
    pc__conv_plain turned;
    pc_tensor *in[MOST];
    pc_call inner = *call;
    void *memory = pc__cuda_scratch(stream, (size_t)pc__count(4, s) * pc_dtype_size((pc_dtype)x->dtype));
    if (!memory)
        return PC_ERR_MEMORY;
    memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
    in[0] = pc__conv_as_tensor(&turned, x->dtype, memory, 4, s, strides);
    in[0]->storage->device = x->storage->device;
    PC__TRY(pc__cuda_copy_tensor(stream, call, in[0], call->in[0]));
    inner.in = in;
    pc__cuda_deeper(stream, 1);
    const pc_status status = kernel(stream, &inner);
    pc__cuda_deeper(stream, -1);
    return status;
}

static pc_tensor *in_c_order(pc__conv_plain *plain, const pc_tensor *weight, void *memory)
{
    const int64_t *s = weight->shape, strides[4] = {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
    pc_tensor *t = pc__conv_as_tensor(plain, weight->dtype, memory, 4, s, strides);
    t->storage->device = weight->storage->device;
    return t;
}

pc_status pc__conv_in_c_order(pc_stream *stream, const pc_call *call, const bool *needs, pc__kernel kernel)
{
    enum { MOST = 5 };
    const pc_tensor *weight = call->in[1];
    const size_t bytes = pc__cuda_whole((size_t)pc__count(4, weight->shape) * pc_dtype_size((pc_dtype)weight->dtype));
    const bool gradient = needs && needs[1];
    pc__conv2d_attributes attributes = *(const pc__conv2d_attributes *)call->attributes;
    pc__conv_plain turned, made;
    pc_tensor *in[MOST];
    pc_call inner = *call;
    char *memory = pc__cuda_scratch(stream, gradient ? 2 * bytes : bytes);
    if (!memory)
        return PC_ERR_MEMORY;
    memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
    in[1] = in_c_order(&turned, weight, memory);
    if (!needs || needs[0])
        PC__TRY(pc__cuda_copy_tensor(stream, call, in[1], call->in[1]));
    if (needs)
        memcpy(attributes.needs, needs, sizeof attributes.needs);
    if (gradient)
        inner.out[1] = in_c_order(&made, weight, memory + bytes);
    inner.in = in;
    inner.attributes = &attributes;
    pc__cuda_deeper(stream, 1);
    const pc_status status = kernel(stream, &inner);
    pc__cuda_deeper(stream, -1);
    return status == PC_OK && gradient ? pc__cuda_copy_tensor(stream, call, call->out[1], inner.out[1]) : status;
}

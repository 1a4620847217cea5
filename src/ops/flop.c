/* flop.c: floating-point operations of the calls that have most of them. */
#include "ops/flop.h"

#include "ops/attention.h"
#include "ops/conv2d.h"
#include "ops/table.h"

/* Products of q with each key, and of the weights with each value. */
static double attention(const pc_call *call)
{
    pc__attention_operands o;
    pc__attention_take(&o, call->attributes, call->in);
    const double keys = (double)o.of[1]->shape[o.of[1]->ndim - 2];
    return 2 * keys * (double)(pc_tensor_count(o.of[0]) + pc_tensor_count(call->out[0]));
}

/* Every place in front of a pooling is a product with the weights of one output. */
static double convolution(const pc_call *call)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_tensor *weight = call->in[1];
    const double pooled = a->spec.pool > 1 ? a->spec.pool * a->spec.pool : 1;
    const double each = weight->shape[0] ? (double)pc_tensor_count(weight) / (double)weight->shape[0] : 0;
    return 2 * (double)pc_tensor_count(call->out[0]) * pooled * each;
}

double pc__call_flop(const pc_call *call)
{
    const double results = (double)pc_tensor_count(call->out[0]);
    const pc_tensor *a = call->in[0];
    switch (call->op->index) {
    case PC__OP_matmul:
        return 2 * results * (double)a->shape[a->ndim - 1];
    case PC__OP_linear:
        return 2 * results * (double)call->in[1]->shape[1];
    case PC__OP_conv2d:
        return convolution(call);
    case PC__OP_attention:
        return attention(call);
    default:
        return 0;
    }
}

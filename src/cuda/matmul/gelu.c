/* gelu.c: products with gelu_tanh behind them, or the gradient of it, or with sums of an operand: by cuBLASLt where it has a
 * way, else as the calls that plans have made one of (plan/gelu.c, plan/biases.c). */
#include "cuda/matmul/gelu.h"

#include "cuda/pointwise/each.h"
#include "ops/reduce.h"

PC__CUDA_KERNEL(gelu_tanh);
PC__CUDA_KERNEL(gelu_tanh_backward);
PC__CUDA_KERNEL(sum);

static pc_status apart(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc__cuda_gelu gelu,
                       pc_tensor *aux)
{
    pc__cuda_gemm product = *g;
    pc_tensor *in[2] = {gelu == PC__CUDA_GELU_FORWARD ? aux : call->out[0], aux};
    const pc_call then = {
        .op = call->op, .in = in, .n_in = gelu == PC__CUDA_GELU_FORWARD ? 1 : 2, .n_out = 1, .out = {call->out[0]}};
    product.c = pc__data(in[0]);
    PC__TRY(pc__matmul_run(stream, call, &product));
    if (((const pc__cuda_stream *)stream->implementation)->prepares)
        return PC_OK;
    return gelu == PC__CUDA_GELU_FORWARD ? pc__cuda_op_gelu_tanh(stream, &then)
                                         : pc__cuda_op_gelu_tanh_backward(stream, &then);
}

pc_status pc__matmul_gelu(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc__cuda_gelu gelu,
                          pc_tensor *aux)
{
    bool done = false;
    if (!pc__matmul_rows.only && !((const pc__cuda_stream *)stream->implementation)->prepares)
        PC__TRY(pc__cuda_lt_gelu(stream, g, gelu, pc__data(aux), &done));
    if (!done)
        return apart(stream, call, g, gelu, aux);
    pc__rows_say(stream, "by cuBLASLt with gelu");
    return PC_OK;
}

pc_status pc__matmul_sums(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *sums)
{
    const pc__reduce_attributes attributes = {.outer = 1, .reduced = g->k, .inner = g->m, .divisor = 1};
    const bool prepares = ((const pc__cuda_stream *)stream->implementation)->prepares;
    bool done = false;
    if (!pc__matmul_rows.only && !prepares)
        PC__TRY(pc__cuda_lt_sums(stream, g, pc__data(sums), &done));
    if (done) {
        pc__rows_say(stream, "by cuBLASLt with sums");
        return PC_OK;
    }
    PC__TRY(pc__matmul_run(stream, call, g));
    if (prepares)
        return PC_OK;
    pc_tensor rows = *call->in[0];
    rows.shape[0] = g->k, rows.shape[1] = g->m;
    rows.strides[0] = g->m, rows.strides[1] = 1;
    const pc_call then = {.op = call->op,
                          .in = (pc_tensor *[]){&rows},
                          .n_in = 1,
                          .n_out = 1,
                          .out = {sums},
                          .attributes = &attributes,
                          .attribute_bytes = sizeof attributes};
    pc__cuda_deeper(stream, 1); /* the product's scratch memory is another one */
    const pc_status status = pc__cuda_op_sum(stream, &then);
    pc__cuda_deeper(stream, -1);
    return status;
}

/* gelu.c: products with gelu_tanh behind them, or the gradient of it: by cuBLASLt where it has a way, else as the calls that
 * plans have made one of (plan/gelu.c). */
#include "cuda/matmul/gelu.h"

#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(gelu_tanh);
PC__CUDA_KERNEL(gelu_tanh_backward);

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

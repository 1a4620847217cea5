/* gelu.c: products with gelu_tanh behind them: by cuBLASLt where it has a way, else as the calls that plans have made one of
 * (plan/gelu.c). */
#include "cuda/matmul/gelu.h"

#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(gelu_tanh);

static pc_status apart(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *aux)
{
    pc__cuda_gemm product = *g;
    const pc_call then = {.op = call->op, .in = &aux, .n_in = 1, .n_out = 1, .out = {call->out[0]}};
    product.c = pc__data(aux);
    PC__TRY(pc__matmul_run(stream, call, &product));
    return ((const pc__cuda_stream *)stream->implementation)->prepares ? PC_OK : pc__cuda_op_gelu_tanh(stream, &then);
}

pc_status pc__matmul_gelu(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *aux)
{
    bool done = false;
    if (!pc__matmul_rows.only && !((const pc__cuda_stream *)stream->implementation)->prepares)
        PC__TRY(pc__cuda_lt_gelu(stream, g, pc__data(aux), &done));
    if (!done)
        return apart(stream, call, g, aux);
    pc__rows_say(stream, "by cuBLASLt with gelu");
    return PC_OK;
}

/* gelu.c: products with gelu_tanh behind them: by cuBLASLt where it has a way, else as the calls that plans have made one of
 * (plan/gelu.c). */
#include "cuda/matmul/gelu.h"

#include "cuda/pointwise/each.h"

PC__CUDA_KERNEL(gelu);
PC__CUDA_KERNEL(gelu_tanh);

pc_status pc__matmul_gelu_apart(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_activation_kind kind,
                                pc_tensor *front)
{
    pc__cuda_gemm product = *g;
    const pc_call then = {.op = call->op, .in = &front, .n_in = 1, .n_out = 1, .out = {call->out[0]}};
    product.activation = PC_ACTIVATION_NONE;
    product.c = pc__data(front);
    PC__TRY(pc__matmul_run(stream, call, &product));
    if (((const pc__cuda_stream *)stream->implementation)->prepares)
        return PC_OK;
    return kind == PC_ACTIVATION_GELU ? pc__cuda_op_gelu(stream, &then) : pc__cuda_op_gelu_tanh(stream, &then);
}

pc_status pc__matmul_gelu(pc_stream *stream, const pc_call *call, const pc__cuda_gemm *g, pc_tensor *aux)
{
    bool done = false;
    if (!pc__matmul_rows.only && !((const pc__cuda_stream *)stream->implementation)->prepares)
        PC__TRY(pc__cuda_lt_gelu(stream, g, pc__data(aux), &done));
    if (!done)
        return pc__matmul_gelu_apart(stream, call, g, PC_ACTIVATION_GELU_TANH, aux);
    pc__rows_say(stream, "by cuBLASLt with gelu");
    return PC_OK;
}

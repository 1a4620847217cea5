/* own.c: ops that the program has registered, by its functions that launch kernels. */
#include "cuda/pointwise/each.h"
#include "ops/own.h"

PC__CUDA_KERNEL(own)
{
    const pc_op *op = pc__own_of(call->op);
    return op->run(call, op->cuda, pc__cuda_queue(stream));
}

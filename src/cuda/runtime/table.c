/* table.c: the kernels by op. Those that nobody has written are not there: a weak reference is NULL then. */
#include "cuda/runtime/cuda.h"
#include "ops/table.h"

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    __attribute__((weak)) pc_status pc__cuda_op_##name(pc_stream *stream, const pc_call *call);
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

static const pc__kernel kernels[PC__OP_COUNT] = {
#define PC__OP(name, outputs, flags, infer, gradient) [PC__OP_##name] = pc__cuda_op_##name,
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
};

const pc__kernel *pc__cuda_kernels(void)
{
    return kernels;
}

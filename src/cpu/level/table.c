/* table.c: the array of this level's kernels. */
#include "cpu/level/kernels.h"

const pc__kernel PC__K(kernels)[PC__OP_COUNT] = {
#define PC__OP(name, outputs, flags, infer, gradient) [PC__OP_##name] = PC__K(op_##name),
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
};

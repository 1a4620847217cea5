/* table.c: the rows of ops.def as data. */
#include "ops/table.h"

#include "ops/names.h"

const pc__op pc__ops[PC__OP_COUNT] = {
#define PC__OP(name, outputs, flags, infer, gradient) {#name, PC__OP_##name, outputs, flags, infer, gradient},
#define PC__VIEW_OP(name, infer, gradient) {#name, PC__OP_##name, 1, PC__VIEW, infer, gradient},
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
};

pc_status pc__no_gradient(pc__grad *grad)
{
    return pc__fail(PC_ERR_UNSUPPORTED, "%s has no gradient", grad->op->name);
}

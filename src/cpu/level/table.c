/* table.c: the array of this level's kernels. */
#include "cpu/level/kernels.h"
#include "tensor/floats.h"

/* Kernels that read and write 16-bit numbers themselves; the others do it by way of float32. */
static bool takes_halves(int op)
{
    return op == PC__OP_cast || op == PC__OP_cast_many || op == PC__OP_copy || op == PC__OP_fill || op == PC__OP_cat ||
           op == PC__OP_where || op == PC__OP_index_select || op == PC__OP_uniform || op == PC__OP_normal;
}

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    static pc_status run_##name(pc_stream *stream, const pc_call *call)                                                \
    {                                                                                                                  \
        if (!takes_halves(PC__OP_##name) && pc__has_halves(call))                                                      \
            return PC__K(in_floats)(stream, call, PC__K(op_##name));                                                   \
        return PC__K(op_##name)(stream, call);                                                                         \
    }
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

const pc__kernel PC__K(kernels)[PC__OP_COUNT] = {
#define PC__OP(name, outputs, flags, infer, gradient) [PC__OP_##name] = run_##name,
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
};

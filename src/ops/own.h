/* own.h: ops that the program has registered (op.h). They share one row of ops.def, `own`: their index is the row's, so
 * that every array by op holds for them, and each backend has one kernel, which calls the op's. Whatever tells ops
 * apart does so by the address of their pc__op, which is the first member here. */
#ifndef PC__OP_OWN_H
#define PC__OP_OWN_H

#include "tensor/call.h"

#include <paracord/op.h>

struct pc_op {
    pc__op row;
    char name[PC_OP_NAME_MAX + 1];
    int inputs;
    size_t attribute_bytes;
    bool strided;
    pc_op_shape_fn shape;
    pc_op_gradient_fn gradient;
    pc_op_kernel_fn cpu, cuda;
    /* Call a kernel of it. Here for plug-ins, which cannot link the library's functions. */
    pc_status (*run)(const pc_call *call, pc_op_kernel_fn kernel, void *stream);
};

static inline const pc_op *pc__own_of(const pc__op *op)
{
    return (const pc_op *)(const void *)op;
}

pc_status pc__grad_own(pc__grad *grad);
PC__FOR_LEVELS pc_status pc__own_run(const pc_call *call, pc_op_kernel_fn kernel, void *stream);

#endif

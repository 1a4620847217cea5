/* kernels.h: this level's kernel of every op, named op_<op>, and its array by op. */
#ifndef PC__KERNELS_H
#define PC__KERNELS_H

#include "cpu/level/level.h"
#include "base/parallel.h"
#include "ops/table.h"

#define PC__OP(name, outputs, flags, infer, gradient)                                                                  \
    pc_status PC__K(op_##name)(pc_stream * stream, const pc_call *call);
#define PC__VIEW_OP(name, infer, gradient)
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP

extern const pc__kernel PC__K(kernels)[PC__OP_COUNT];

#define PC__KERNEL(name) pc_status PC__K(op_##name)(pc_stream * stream, const pc_call *call)

/* half.c: a call with 16-bit numbers by a kernel that has none. */
pc_status PC__K(in_floats)(pc_stream *stream, const pc_call *call, pc__kernel kernel);

#endif

/* each.h: host side of element-by-element kernels: from tensors to launches. */
#ifndef PC__CUDA_EACH_H
#define PC__CUDA_EACH_H

#include "cuda/runtime/cuda.h"
#include "cuda/pointwise/loop.h"

/* Declares and begins the kernel of an op. */
#define PC__CUDA_KERNEL(name)                                                                                          \
    pc_status pc__cuda_op_##name(pc_stream *stream, const pc_call *call);                                              \
    pc_status pc__cuda_op_##name(pc_stream *stream, const pc_call *call)

/* Dtypes as bits. */
#define PC__BIT(dtype) (1u << (dtype))
#define PC__HALVES (PC__BIT(PC_F16) | PC__BIT(PC_BF16))
#define PC__FLOATS (PC__BIT(PC_F32) | PC__BIT(PC_F64) | PC__HALVES)
#define PC__NUMBERS (PC__FLOATS | PC__BIT(PC_U8) | PC__BIT(PC_I32) | PC__BIT(PC_I64))

/* PC_ERR_DTYPE, naming the op, unless the call's first input has one of `dtypes`. */
pc_status pc__cuda_takes(const pc_call *call, unsigned dtypes);

/* Starts the kernels for one walk; the context is the caller's. */
typedef void (*pc__cuda_launcher)(const pc__cuda_launch *launch, const void *context);

/* Walk `count` operands, operands[0] the output to whose shape the others broadcast. Nothing is launched for tensors
 * without elements. */
pc_status pc__cuda_each(pc_stream *stream, const pc_call *call, int count, pc_tensor *const *operands,
                        pc__cuda_launcher launcher, const void *context);

/* tiles.c: the dimension along which one input, *turned, is dense, where the output, and another input if there is one, is
 * that along the last; else -1. */
int pc__cuda_turned(const pc__cuda_launch *launch, int *turned);

/* cast.c: `from` into `to`, of any dtypes and strides; shapes broadcast. */
pc_status pc__cuda_copy_tensor(pc_stream *stream, const pc_call *call, pc_tensor *to, pc_tensor *from);

#endif

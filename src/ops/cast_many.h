/* cast_many.h: conversion of a list of tensors in one kernel. */
#ifndef PC__OP_CAST_MANY_H
#define PC__OP_CAST_MANY_H

#include "tensor/tensor.h"

/* tensors[i] becomes tensors[n + i] in dtype, for i below n, and belongs to the scope around; on the tape each is a
 * cast of its own. All of one device and dtype, contiguous or channels last; float32 to 16 bits, or back. */
pc_status pc__cast_many(pc_tensor **tensors, int n, pc_dtype dtype);

/* `to`, dense like from, has its numbers: on the tape it is a cast of it. */
pc_status pc__cast_record(pc_tensor *from, pc_tensor *to);

/* into[i], there already, gets the numbers of into[n + i]; else as pc__cast_many, and nothing for the tape. */
pc_status pc__cast_into(pc_tensor **into, int n);

#endif

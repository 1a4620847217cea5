/* cast_many.h: conversion of a list of tensors in one kernel. */
#ifndef PC__OP_CAST_MANY_H
#define PC__OP_CAST_MANY_H

#include "tensor/tensor.h"

/* tensors[i] becomes tensors[n + i] in dtype, for i below n, and belongs to the scope around; on the tape each is a
 * cast of its own. All of one device and dtype, contiguous or channels last; float32 to 16 bits, or back. */
pc_status pc__cast_many(pc_tensor **tensors, int n, pc_dtype dtype);

#endif

/* cast_many.h: conversion of a list of tensors in one kernel. Plans make it of single casts (plan/casts.c). */
#ifndef PC__OP_CAST_MANY_H
#define PC__OP_CAST_MANY_H

#include "tensor/tensor.h"

/* into[i], there already, gets the numbers of into[n + i], for i below n; nothing for the tape. All into[i] are of one
 * device and dtype, as are all others, and each lies in memory as its source does, dense; float32 to 16 bits, or back. */
pc_status pc__cast_into(pc_tensor **into, int n);

#endif

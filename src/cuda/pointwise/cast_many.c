/* cast_many.c: conversion of a list of tensors, as many in a launch as its arguments hold. */
#include "cuda/pointwise/cast_many.h"

#include "cuda/runtime/cuda.h"

pc_status pc__cuda_op_cast_many(pc_stream *stream, const pc_call *call)
{
    const int n = call->n_in / 2;
    pc__cuda_conversions all = {.from = call->in[n]->dtype, .to = call->in[0]->dtype, .early = pc__cuda_early(stream)};
    for (int i = 0; i < n; i++) {
        const pc_tensor *to = call->in[i], *from = call->in[n + i];
        const int64_t count = pc__count(to->ndim, to->shape);
        if (count > 0)
            all.of[all.count++] = (pc__cuda_conversion){pc__data(to), pc__data(from), count};
        if (all.count == PC__CAST_MOST || (i == n - 1 && all.count > 0)) {
            pc__cuda_convert_all(pc__cuda_queue(stream), &all);
            PC__TRY(pc__cuda_launched(call));
            all.count = 0;
        }
    }
    return PC_OK;
}

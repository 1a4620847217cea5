/* cast.c: conversion between dtypes, strided copies, filling. */
#include "cuda/pointwise/cast.h"

#include "cuda/pointwise/each.h"
#include "cuda/pointwise/elementwise.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "tensor/half.h"

static void launch_convert(const pc__cuda_launch *launch, const void *context)
{
    const int *dtypes = context;
    const bool same = dtypes[0] == dtypes[1];
    const size_t size = pc_dtype_size((pc_dtype)dtypes[0]);
    int turned;
    const int along = same ? pc__cuda_turned(launch, &turned) : -1;
    if (along >= 0)
        pc__cuda_transpose(launch, size, along);
    else if (!same || !pc__cuda_copy_rows(launch, size))
        pc__cuda_convert(launch, dtypes[0], dtypes[1]);
}

pc_status pc__cuda_copy_tensor(pc_stream *stream, const pc_call *call, pc_tensor *to, pc_tensor *from)
{
    return pc__cuda_each(stream, call, 2, (pc_tensor *[]){to, from}, launch_convert, (int[]){from->dtype, to->dtype});
}

PC__CUDA_KERNEL(cast)
{
    return pc__cuda_copy_tensor(stream, call, call->out[0], call->in[0]);
}

PC__CUDA_KERNEL(copy)
{
    pc_tensor *to = call->out[0], *from = call->in[0];
    if (pc__cuda_small_hold(stream, PC__COPY, 0, 2, (pc_tensor *[]){to, from}))
        return PC_OK;
    return pc__cuda_copy_tensor(stream, call, to, from);
}

typedef struct filling {
    size_t size;
    uint64_t bits;
} filling;

static void launch_fill(const pc__cuda_launch *launch, const void *context)
{
    const filling *f = context;
    pc__cuda_fill(launch, f->size, f->bits);
}

PC__CUDA_KERNEL(fill)
{
    const pc__fill_attributes *a = call->attributes;
    pc_tensor *t = call->out[0];
    filling f = {pc_dtype_size(t->dtype), 0};
    const float fraction = (float)a->value;
    if (pc__cuda_small_hold(stream, PC__FILL, a->value, 1, &t))
        return PC_OK;
    switch ((pc_dtype)t->dtype) {
    case PC_BOOL:
        f.bits = a->value != 0;
        break;
    case PC_F16:
        f.bits = pc__f16_of(fraction).bits;
        break;
    case PC_BF16:
        f.bits = pc__bf16_of(fraction).bits;
        break;
    case PC_F32:
        memcpy(&f.bits, &fraction, sizeof fraction); /* the low bytes: CUDA's hosts are little-endian */
        break;
    case PC_F64:
        memcpy(&f.bits, &a->value, sizeof a->value);
        break;
    default:
        f.bits = (uint64_t)(int64_t)a->value; /* narrower ones take the low bytes */
    }
    return pc__cuda_each(stream, call, 1, &t, launch_fill, &f);
}

typedef struct scaling {
    int dtype;
    double factor;
} scaling;

static void launch_saxpy(const pc__cuda_launch *launch, const void *context)
{
    const scaling *s = context;
    const bool fraction = pc__is_float((pc_dtype)s->dtype);
    pc__cuda_saxpy(launch, s->dtype, s->factor, fraction ? 0 : (uint64_t)(int64_t)s->factor);
}

PC__CUDA_KERNEL(saxpy)
{
    PC__TRY(pc__cuda_takes(call, PC__NUMBERS));
    pc_tensor *y = call->out[0], *operands[3] = {y, y, call->in[0]};
    const scaling s = {y->dtype, ((const pc__fill_attributes *)call->attributes)->value};
    if (pc__cuda_small_hold(stream, PC__SAXPY, s.factor, 3, operands))
        return PC_OK;
    return pc__cuda_each(stream, call, 3, operands, launch_saxpy, &s);
}

PC__CUDA_KERNEL(arange)
{
    const pc__arange_attributes *a = call->attributes;
    pc_tensor *t = call->out[0];
    if (t->shape[0] == 0)
        return PC_OK;
    pc__cuda_arange(pc__data(t), t->dtype, t->shape[0], a->start, a->step, pc__cuda_multiprocessors(stream),
                    pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

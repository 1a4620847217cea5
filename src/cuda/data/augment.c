/* augment.c: byte pictures of a batch, transformed into floats. */
#include "cuda/data/augment.h"

#include "cuda/pointwise/each.h"
#include "ops/epoch.h"

_Static_assert((int)PC__CUDA_NEAREST == PC__EDGE_NEAREST && (int)PC__CUDA_CONSTANT == PC__EDGE_CONSTANT &&
                   (int)PC__CUDA_REFLECT == PC__EDGE_REFLECT && (int)PC__CUDA_WRAP == PC__EDGE_WRAP,
               "the kernel's edges are the op's");

_Static_assert(PC__AUGMENT_COLUMNS == 17 && offsetof(pc__augment_row, jitter) == 8 * sizeof(double) &&
                   offsetof(pc__augment_row, erased) == 13 * sizeof(double),
               "the kernel reads rows by number");

static void take(pc__cuda_augment *to, const pc__augment_attributes *a)
{
    to->edge = (int)a->edge;
    to->cval = a->cval;
    to->scale = a->scale;
    to->colours = a->colours;
    to->normalises = a->normalises;
    memcpy(to->mean, a->mean, sizeof to->mean);
    memcpy(to->std, a->std, sizeof to->std);
}

PC__CUDA_KERNEL(augment)
{
    const pc__augment_attributes *a = call->attributes;
    const pc_tensor *pictures = call->in[0];
    pc__cuda_augment augment = {.pictures = pc__data(pictures),
                                .table = pc__data(call->in[1]),
                                .index = call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                                .out = pc__data(call->out[0]),
                                .n = call->out[0]->shape[0],
                                .total = pictures->shape[0],
                                .height = (int)pictures->shape[1],
                                .width = (int)pictures->shape[2],
                                .channels = (int)pictures->shape[3],
                                .multiprocessors = pc__cuda_multiprocessors(stream),
                                .early = pc__cuda_early(stream),
                                .fault = pc__cuda_fault_of(stream)};
    if (augment.n == 0)
        return PC_OK;
    take(&augment, a);
    pc__cuda_augment_run(&augment, pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(epoch_batch)
{
    const pc__epoch_batch_attributes *a = call->attributes;
    const pc_tensor *pictures = call->in[0], *labels = call->in[1], *order = call->in[2];
    pc__cuda_augment augment = {.pictures = pc__data(pictures),
                                .table = pc__data(call->in[3]),
                                .index = pc__data(order),
                                .out = pc__data(call->out[0]),
                                .n = call->out[0]->shape[0],
                                .total = pictures->shape[0],
                                .place = pc__data(call->out[2]),
                                .at = a->at,
                                .length = order->shape[0],
                                .counter = pc__cuda_counters(stream),
                                .labels = pc__data(labels),
                                .y = pc__data(call->out[1]),
                                .label_bytes = (int)pc_dtype_size((pc_dtype)labels->dtype),
                                .height = (int)pictures->shape[1],
                                .width = (int)pictures->shape[2],
                                .channels = (int)pictures->shape[3],
                                .multiprocessors = pc__cuda_multiprocessors(stream),
                                .early = pc__cuda_early(stream),
                                .fault = pc__cuda_fault_of(stream)};
    if (augment.n == 0)
        return PC_OK;
    take(&augment, &a->augment);
    pc__cuda_augment_run(&augment, pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

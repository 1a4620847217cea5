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

/* What both kernels have: the call's pictures, the rows that say what is done to them, and how. */
static pc__cuda_augment augment_of(const pc_stream *stream, const pc_call *call, const pc_tensor *table,
                                   const pc__augment_attributes *a)
{
    const pc_tensor *pictures = call->in[0];
    pc__cuda_augment augment = {.pictures = pc__data(pictures),
                                .table = pc__data(table),
                                .out = pc__data(call->out[0]),
                                .n = call->out[0]->shape[0],
                                .total = pictures->shape[0],
                                .height = (int)pictures->shape[1],
                                .width = (int)pictures->shape[2],
                                .channels = (int)pictures->shape[3],
                                .edge = (int)a->edge,
                                .cval = a->cval,
                                .margin = a->crops ? 0.5 : 0,
                                .scale = a->scale,
                                .colours = a->colours,
                                .normalises = a->normalises,
                                .multiprocessors = pc__cuda_multiprocessors(stream)};
    memcpy(augment.mean, a->mean, sizeof augment.mean);
    memcpy(augment.std, a->std, sizeof augment.std);
    return augment;
}

static pc_status run(pc_stream *stream, const pc_call *call, pc__cuda_augment *augment)
{
    if (augment->n == 0)
        return PC_OK;
    augment->early = pc__cuda_early(stream);
    augment->fault = pc__cuda_fault_of(stream);
    pc__cuda_augment_run(augment, pc__cuda_queue(stream));
    return pc__cuda_launched(call);
}

PC__CUDA_KERNEL(augment)
{
    pc__cuda_augment augment = augment_of(stream, call, call->in[1], call->attributes);
    augment.index = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
    return run(stream, call, &augment);
}

PC__CUDA_KERNEL(epoch_batch)
{
    const pc__epoch_batch_attributes *a = call->attributes;
    const pc_tensor *labels = call->in[1], *order = call->in[2];
    pc__cuda_augment augment = augment_of(stream, call, call->in[3], &a->augment);
    augment.index = pc__data(order);
    augment.place = pc__data(call->out[2]);
    augment.at = a->at;
    augment.length = order->shape[0];
    augment.counter = pc__cuda_counters(stream);
    augment.labels = pc__data(labels);
    augment.y = pc__data(call->out[1]);
    augment.label_bytes = (int)pc_dtype_size((pc_dtype)labels->dtype);
    return run(stream, call, &augment);
}

/* epoch.c: an epoch's order and table, and its batches. The arithmetic is in ops/, which is not compiled for this
 * level: without fused multiply-add the bits are the same at every level. */
#include "ops/epoch.h"

#include "cpu/level/kernels.h"

PC__KERNEL(epoch)
{
    const pc__epoch_attributes *a = call->attributes;
    const int64_t n = call->out[0]->shape[0];
    int64_t *order = pc__data(call->out[0]);
    (void)stream;
    if (a->shuffle)
        pc__epoch_order(a->plan.seed, a->plan.epoch, n, order, pc__data(call->out[1]));
    else
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
    pc__epoch_table(&a->plan, order, n, pc__data(call->out[2]));
    return PC_OK;
}

typedef struct batch {
    const pc__augment_attributes *attributes;
    const uint8_t *pictures, *labels;
    const int64_t *order;        /* of the batch */
    const pc__augment_row *rows; /* of the batch */
    int height, width, channels;
    size_t label_bytes;
    float *x;
    uint8_t *y;
} batch;

static void one_picture(void *context, int64_t i)
{
    const batch *b = context;
    const size_t size = (size_t)b->height * (size_t)b->width * (size_t)b->channels;
    const size_t from = (size_t)b->order[i];
    pc__augment_one(b->attributes, &b->rows[i], b->pictures + from * size, b->height, b->width, b->channels,
                    b->x + (size_t)i * size);
    memcpy(b->y + (size_t)i * b->label_bytes, b->labels + from * b->label_bytes, b->label_bytes);
}

static pc_status check(const batch *b, int64_t first, int64_t n, int64_t all, int64_t pictures)
{
    if (first < 0 || first > all - n)
        return pc__fail(PC_ERR_RANGE, "epoch_batch: %lld pictures from place %lld on; the epoch has %lld", (long long)n,
                        (long long)first, (long long)all);
    for (int64_t i = 0; i < n; i++)
        if (b->order[i] < 0 || b->order[i] >= pictures)
            return pc__fail(PC_ERR_RANGE, "epoch_batch: place %lld of the order is %lld; it must be 0 to %lld",
                            (long long)(first + i), (long long)b->order[i], (long long)pictures - 1);
    return PC_OK;
}

PC__KERNEL(epoch_batch)
{
    enum { WORK = 32 }; /* for a byte */
    (void)stream;
    const pc__epoch_batch_attributes *a = call->attributes;
    const pc_tensor *pictures = call->in[0], *labels = call->in[1], *order = call->in[2];
    const int64_t n = call->out[0]->shape[0];
    int64_t *place = pc__data(call->out[2]);
    const int64_t first = a->at >= 0 ? a->at : *place;
    const batch b = {.attributes = &a->augment,
                     .pictures = pc__data(pictures),
                     .labels = pc__data(labels),
                     .order = (const int64_t *)pc__data(order) + first,
                     .rows = (const pc__augment_row *)pc__data(call->in[3]) + first,
                     .height = (int)pictures->shape[1],
                     .width = (int)pictures->shape[2],
                     .channels = (int)pictures->shape[3],
                     .label_bytes = pc_dtype_size((pc_dtype)labels->dtype),
                     .x = pc__data(call->out[0]),
                     .y = pc__data(call->out[1])};
    if (a->at < 0 && first > order->shape[0] - n)
        return PC_OK;
    PC__TRY(check(&b, first, n, order->shape[0], pictures->shape[0]));
    *place = first + n;
    pc__parallel(pc__threads(pc_tensor_count(call->out[0]) * WORK), n, one_picture, (void *)&b);
    return PC_OK;
}

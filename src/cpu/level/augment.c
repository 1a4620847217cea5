/* augment.c: pictures of a batch on all cores. The arithmetic is in ops/augment_host.c, which is not compiled for this
 * level: without fused multiply-add a batch has the same bits at every level. */
#include "ops/augment.h"

#include "cpu/level/kernels.h"

typedef struct batch {
    const pc__augment_attributes *attributes;
    const uint8_t *pictures;
    const pc__augment_row *rows;
    const int64_t *index; /* may be NULL */
    int height, width, channels;
    float *out;
} batch;

static void one_picture(void *context, int64_t i)
{
    const batch *b = context;
    const size_t size = (size_t)b->height * (size_t)b->width * (size_t)b->channels;
    const size_t from = (size_t)(b->index ? b->index[i] : i);
    pc__augment_one(b->attributes, &b->rows[i], b->pictures + from * size, b->height, b->width, b->channels,
                    b->out + (size_t)i * size);
}

PC__KERNEL(augment)
{
    enum { WORK = 32 }; /* for a byte */
    (void)stream;
    const pc_tensor *pictures = call->in[0];
    const int64_t n = call->out[0]->shape[0], count = pictures->shape[0];
    batch b = {.attributes = call->attributes,
               .pictures = pc__data(pictures),
               .rows = pc__data(call->in[1]),
               .index = call->n_in > 2 ? pc__data(call->in[2]) : NULL,
               .height = (int)pictures->shape[1],
               .width = (int)pictures->shape[2],
               .channels = (int)pictures->shape[3],
               .out = pc__data(call->out[0])};
    for (int64_t i = 0; b.index && i < n; i++)
        if (b.index[i] < 0 || b.index[i] >= count)
            return pc__fail(PC_ERR_RANGE, "augment: entry %lld of the index is %lld; it must be 0 to %lld",
                            (long long)i, (long long)b.index[i], (long long)count - 1);
    pc__parallel(pc__threads(pc_tensor_count(call->out[0]) * WORK), n, one_picture, &b);
    return PC_OK;
}

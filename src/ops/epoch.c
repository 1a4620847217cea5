/* epoch.c: the ops of pictures that stay on the device. No gradient. */
#include "ops/epoch.h"

#include "device/failure.h"
#include "ops/table.h"

pc_status pc__epoch(pc_tensor *order, pc_tensor *keys, pc_tensor *table, const pc__epoch_attributes *attributes)
{
    pc_call call = {.op = &pc__ops[PC__OP_epoch],
                    .n_out = 3,
                    .out = {order, keys, table},
                    .attributes = attributes,
                    .attribute_bytes = sizeof *attributes};
    return pc_dispatch(&call);
}

pc_status pc__epoch_batch(const pc__epoch_tensors *from, pc_tensor *x, pc_tensor *y,
                          const pc__epoch_batch_attributes *attributes)
{
    if (attributes->at >= 0 && pc__ever_failed()) /* it is set, though kernels of recordings read it */
        PC__TRY(pc_fill(from->place, 0));
    pc_tensor *in[] = {from->pictures, from->labels, from->order, from->table};
    pc_call call = {.op = &pc__ops[PC__OP_epoch_batch],
                    .in = in,
                    .n_in = PC__COUNT(in),
                    .n_out = 3,
                    .out = {x, y, from->place},
                    .attributes = attributes,
                    .attribute_bytes = sizeof *attributes};
    return pc_dispatch(&call);
}

static bool is_vector(const pc_tensor *t, pc_dtype dtype, int64_t n)
{
    return t->dtype == dtype && t->ndim == 1 && t->shape[0] == n && pc__is_contiguous(t);
}

static bool is_table(const pc_tensor *t, int64_t n)
{
    return t->dtype == PC_F64 && t->ndim == 2 && t->shape[0] == n && t->shape[1] == PC__AUGMENT_COLUMNS &&
           pc__is_contiguous(t);
}

pc_status pc__infer_epoch(pc_call *call, pc__meta *unused)
{
    const pc_tensor *order = call->out[0], *keys = call->out[1], *table = call->out[2];
    const int64_t n = order->ndim == 1 ? order->shape[0] : -1;
    (void)unused;
    if (!is_vector(order, PC_I64, n) || !is_vector(keys, PC_I64, n) || !is_table(table, n))
        return pc__fail(PC_ERR_SHAPE,
                        "epoch: an order %s, keys %s and a table %s; for n samples they are int64 [n] "
                        "twice and float64 [n, %d]",
                        PC__SHAPE_OF(order), PC__SHAPE_OF(keys), PC__SHAPE_OF(table), PC__AUGMENT_COLUMNS);
    return PC_OK;
}

static bool is_batch(const pc_tensor *x, const pc_tensor *pictures)
{
    return x->dtype == PC_F32 && x->ndim == 4 && x->shape[1] == pictures->shape[3] &&
           x->shape[2] == pictures->shape[1] && x->shape[3] == pictures->shape[2] && pc__is_nhwc(x);
}

static bool are_labels(const pc_tensor *t, pc_dtype dtype, int64_t n)
{
    return t->dtype == dtype && t->ndim >= 1 && t->shape[0] == n && pc_tensor_count(t) == n && pc__is_contiguous(t);
}

pc_status pc__infer_epoch_batch(pc_call *call, pc__meta *unused)
{
    const pc_tensor *pictures = call->in[0], *labels = call->in[1], *order = call->in[2], *table = call->in[3];
    const pc_tensor *x = call->out[0], *y = call->out[1], *place = call->out[2];
    (void)unused;
    if (pictures->dtype != PC_U8 || pictures->ndim != 4 || !pc__is_contiguous(pictures) || !is_batch(x, pictures))
        return pc__fail(PC_ERR_SHAPE,
                        "epoch_batch: a batch %s of pictures %s; they are uint8 [total, height, width, channels] and "
                        "float32 [n, channels, height, width], channels last in memory",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(pictures));
    PC__TRY(pc__augment_check_size(pictures->shape[1], pictures->shape[2], pictures->shape[3]));
    if (!are_labels(labels, (pc_dtype)labels->dtype, pictures->shape[0]) ||
        !are_labels(y, (pc_dtype)labels->dtype, x->shape[0]))
        return pc__fail(PC_ERR_SHAPE, "epoch_batch: labels %s for a batch's %s; one for each picture, of one dtype",
                        PC__SHAPE_OF(labels), PC__SHAPE_OF(y));
    if (order->ndim != 1 || !is_vector(order, PC_I64, order->shape[0]) || !is_table(table, order->shape[0]) ||
        !is_vector(place, PC_I64, 1))
        return pc__fail(PC_ERR_SHAPE,
                        "epoch_batch: an order %s, a table %s and a place %s; they are int64 [m], float64 [m, %d] and "
                        "int64 [1]",
                        PC__SHAPE_OF(order), PC__SHAPE_OF(table), PC__SHAPE_OF(place), PC__AUGMENT_COLUMNS);
    return PC_OK;
}

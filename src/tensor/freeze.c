/* freeze.c: one block holds the call, its attributes, and copies of its tensors and their storages. */
#include "tensor/freeze.h"

struct pair {
    pc_tensor tensor;
    pc__storage storage;
};

static pc_tensor *freeze_tensor(struct pair *pair, const pc_tensor *t, ptrdiff_t shift)
{
    pair->storage = (pc__storage){.device = t->storage->device,
                                  .data = (char *)t->storage->data + shift,
                                  .bytes = t->storage->bytes,
                                  .capacity = t->storage->capacity};
    pair->tensor = (pc_tensor){.dtype = t->dtype, .ndim = t->ndim, .offset = t->offset, .storage = &pair->storage};
    memcpy(pair->tensor.shape, t->shape, sizeof t->shape);
    memcpy(pair->tensor.strides, t->strides, sizeof t->strides);
    return &pair->tensor;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

pc_call *pc__call_freeze(const pc_call *call, ptrdiff_t shift)
{
    size_t tensors = (size_t)(call->n_in + call->n_out);
    size_t head = rounded(sizeof(pc_call)), list = rounded((size_t)call->n_in * sizeof(pc_tensor *)),
           attributes = rounded(call->attribute_bytes);
    char *block = pc__alloc(head + list + attributes + tensors * sizeof(struct pair));
    if (!block)
        return NULL;
    pc_call *copy = (pc_call *)(void *)block;
    struct pair *pair = (struct pair *)(void *)(block + head + list + attributes);
    *copy = *call;
    copy->in = (pc_tensor **)(void *)(block + head);
    if (call->attribute_bytes)
        copy->attributes = memcpy(block + head + list, call->attributes, call->attribute_bytes);
    for (int i = 0; i < call->n_in; i++)
        copy->in[i] = freeze_tensor(pair++, call->in[i], shift);
    for (int i = 0; i < call->n_out; i++)
        copy->out[i] = freeze_tensor(pair++, call->out[i], shift);
    return copy;
}

static bool alike(const pc_tensor *a, const pc_tensor *b)
{
    if (a->dtype != b->dtype || !pc__same_shape(a, b))
        return false;
    return memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof a->strides[0]) == 0;
}

static pc_status differ(const char *who, int i, const pc_tensor *a, const pc_tensor *b, const char *name)
{
    if (alike(a, b))
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE, "%s: op %d, %s, has a tensor of %s %s in one and of %s %s in the other", who, i, name,
                    pc_dtype_name(a->dtype), PC__SHAPE_OF(a), pc_dtype_name(b->dtype), PC__SHAPE_OF(b));
}

pc_status pc__call_same(const char *who, int i, const pc_call *a, const pc_call *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->attribute_bytes != b->attribute_bytes)
        return pc__fail(PC_ERR_SHAPE, "%s: op %d is %s in one and %s in the other", who, i, a->op->name, b->op->name);
    for (int k = 0; k < a->n_in; k++)
        PC__TRY(differ(who, i, a->in[k], b->in[k], a->op->name));
    for (int k = 0; k < a->n_out; k++)
        PC__TRY(differ(who, i, a->out[k], b->out[k], a->op->name));
    return PC_OK;
}

/* freeze.c: one block holds the call, its attributes, and copies of its tensors, with or without their storages. */
#include "tensor/freeze.h"

struct pair {
    pc_tensor tensor;
    pc__storage storage; /* of frozen calls */
};

static size_t rounded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

/* `item`: the bytes for each tensor. */
static pc_call *copy(const pc_call *call, size_t item, char **tensors)
{
    const size_t head = rounded(sizeof(pc_call)), list = rounded((size_t)call->n_in * sizeof(pc_tensor *)),
                 attributes = rounded(call->attribute_bytes);
    char *block = pc__alloc(head + list + attributes + (size_t)(call->n_in + call->n_out) * item);
    if (!block)
        return NULL;
    pc_call *made = (pc_call *)(void *)block;
    *made = *call;
    made->in = (pc_tensor **)(void *)(block + head);
    if (call->attribute_bytes)
        made->attributes = memcpy(block + head + list, call->attributes, call->attribute_bytes);
    *tensors = block + head + list + attributes;
    for (int i = 0; i < call->n_in; i++)
        made->in[i] = (pc_tensor *)(void *)(*tensors + (size_t)i * item);
    for (int i = 0; i < call->n_out; i++)
        made->out[i] = (pc_tensor *)(void *)(*tensors + (size_t)(call->n_in + i) * item);
    return made;
}

static void copy_tensor(pc_tensor *to, const pc_tensor *t, pc__storage *storage)
{
    *to = (pc_tensor){.dtype = t->dtype, .ndim = t->ndim, .offset = t->offset, .storage = storage};
    memcpy(to->shape, t->shape, sizeof t->shape);
    memcpy(to->strides, t->strides, sizeof t->strides);
}

pc_call *pc__call_freeze(const pc_call *call, ptrdiff_t shift)
{
    char *tensors;
    pc_call *made = copy(call, sizeof(struct pair), &tensors);
    for (int i = 0; made && i < call->n_in + call->n_out; i++) {
        const pc_tensor *t = pc__call_tensor(call, i);
        struct pair *pair = (struct pair *)(void *)tensors + i;
        pair->storage = (pc__storage){.device = t->storage->device,
                                      .data = (char *)t->storage->data + (pc__is_hosted(t->storage) ? 0 : shift),
                                      .bytes = t->storage->bytes,
                                      .capacity = t->storage->capacity};
        copy_tensor(&pair->tensor, t, &pair->storage);
    }
    return made;
}

pc_call *pc__call_copy(const pc_call *call)
{
    char *tensors;
    pc_call *made = copy(call, sizeof(pc_tensor), &tensors);
    for (int i = 0; made && i < call->n_in + call->n_out; i++)
        copy_tensor((pc_tensor *)(void *)tensors + i, pc__call_tensor(call, i), pc__call_tensor(call, i)->storage);
    return made;
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

/* How many bytes of the attributes, from the first on, say what is computed. */
static size_t work_bytes(const pc_call *call)
{
    if (call->op->flags & PC__BY_ALL_ATTRIBUTES)
        return call->attribute_bytes;
    return call->op->flags & PC__BY_ATTRIBUTES ? (size_t) * (const int *)call->attributes : 0;
}

pc_status pc__call_same(const char *who, int i, const pc_call *a, const pc_call *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->attribute_bytes != b->attribute_bytes)
        return pc__fail(PC_ERR_SHAPE, "%s: op %d is %s in one and %s in the other", who, i, a->op->name, b->op->name);
    if (work_bytes(a) && memcmp(a->attributes, b->attributes, work_bytes(a)) != 0)
        return pc__fail(PC_ERR_SHAPE, "%s: op %d, %s, does other work in one than in the other", who, i, a->op->name);
    for (int k = 0; k < a->n_in; k++)
        PC__TRY(differ(who, i, a->in[k], b->in[k], a->op->name));
    for (int k = 0; k < a->n_out; k++)
        PC__TRY(differ(who, i, a->out[k], b->out[k], a->op->name));
    return PC_OK;
}

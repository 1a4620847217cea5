/* tensor.c: the life of a tensor, and questions to it. */
#include "tensor/tensor.h"

#include "device/graph.h"
#include "tensor/half.h"
#include "tensor/node.h"
#include "tensor/read.h"

#include <math.h>

static void drop(void *tensor)
{
    pc_tensor_free(tensor);
}

static pc__storage *memory_for(const pc__meta *meta, pc_device device, const char *maker)
{
    if (meta->view_of) {
        pc__storage_retain(meta->view_of->storage);
        return meta->view_of->storage;
    }
    pc_stream *stream = pc_stream_current(device);
    if (!stream)
        return NULL;
    return pc__storage_new(stream, (size_t)pc__count(meta->ndim, meta->shape) * pc_dtype_size(meta->dtype), maker);
}

pc_status pc__tensor_found(pc_tensor *t)
{
    if (!pc__recorder_any() ||
        !atomic_load_explicit(&t->references, memory_order_relaxed)) /* 0: it stands for a storage */
        return PC_OK;
    return pc__graph_finds(&t->life, t->recording);
}

static pc_tensor *make(const pc__meta *meta, pc_device device, const char *maker)
{
    if (meta->view_of && pc__tensor_found(meta->view_of) != PC_OK)
        return NULL;
    pc_tensor *t = pc__alloc(sizeof *t);
    if (!t)
        return NULL;
    t->storage = memory_for(meta, device, maker);
    if (!t->storage) {
        pc__free(t);
        return NULL;
    }
    atomic_init(&t->references, 1);
    t->dtype = (uint8_t)meta->dtype;
    t->ndim = (uint8_t)meta->ndim;
    t->requires_grad = false;
    t->output = 0;
    t->moved = t->averaged = false;
    memcpy(t->shape, meta->shape, sizeof t->shape);
    memcpy(t->strides, meta->strides, sizeof t->strides);
    t->offset = meta->offset;
    t->node = NULL;
    t->grad = NULL;
    t->watch = NULL;
    atomic_init(&t->life, NULL);
    t->recording = pc__recorder_any() ? pc__recorder_any()->number : 0;
    return t;
}

pc_tensor *pc__tensor_unscoped(const pc__meta *meta, pc_device device)
{
    return make(meta, device, "pc_empty");
}

pc_tensor *pc__tensor_for(const pc__meta *meta, pc_device device, const char *maker)
{
    pc_tensor *t = make(meta, device, maker);
    return t && pc_scope_own(t, drop) == PC_OK ? t : NULL;
}

pc_tensor *pc__tensor_new(const pc__meta *meta, pc_device device)
{
    return pc__tensor_for(meta, device, "pc_empty");
}

pc_tensor *pc_tensor_retain(pc_tensor *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
    return t;
}

void pc_tensor_free(pc_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1)
        return;
    pc_tensor_free(t->grad);
    pc__node_drop(t->node);
    pc__storage_drop(t->storage);
    pc__life_end(&t->life);
    pc__free(t);
}

pc_tensor *pc_keep(pc_tensor *t)
{
    return pc_scope_release(t) == PC_OK ? t : NULL;
}

pc_dtype pc_tensor_dtype(const pc_tensor *t)
{
    return t ? (pc_dtype)t->dtype : PC_F32;
}

pc_device pc_tensor_device(const pc_tensor *t)
{
    return t ? t->storage->device : (pc_device){-1, 0};
}

pc_shape pc_tensor_shape(const pc_tensor *t)
{
    return t ? pc_shape_of(t->ndim, t->shape) : pc_shape_of(0, NULL);
}

int pc_tensor_ndim(const pc_tensor *t)
{
    return t ? t->ndim : 0;
}

static int64_t entry(const pc_tensor *t, int dim, const int64_t *list)
{
    if (dim < 0)
        dim += t->ndim;
    return dim >= 0 && dim < t->ndim ? list[dim] : -1;
}

int64_t pc_tensor_size(const pc_tensor *t, int dim)
{
    return t ? entry(t, dim, t->shape) : -1;
}

int64_t pc_tensor_stride(const pc_tensor *t, int dim)
{
    return t ? entry(t, dim, t->strides) : -1;
}

int64_t pc_tensor_count(const pc_tensor *t)
{
    return t ? pc__count(t->ndim, t->shape) : 0;
}

bool pc_tensor_is_contiguous(const pc_tensor *t)
{
    return t && pc__is_contiguous(t);
}

typedef union number {
    bool b;
    uint8_t u8;
    int32_t i32;
    int64_t i64;
    pc_f16 f16;
    pc_bf16 bf16;
    float f32;
    double f64;
} number;

static pc_status read_one(const pc_tensor *t, number *value, const char *who)
{
    if (pc_tensor_count(t) != 1)
        return pc__fail(PC_ERR_SHAPE, "%s: the tensor has shape %s; only one element can be read as a number", who,
                        PC__SHAPE_OF(t));
    return pc__read(t, value, pc_dtype_size(t->dtype), who);
}

int64_t pc_item_i64(const pc_tensor *t)
{
    PC__NEED_OR(INT64_MIN, t);
    number value;
    if (pc__is_float((pc_dtype)t->dtype)) {
        (void)pc__fail(PC_ERR_DTYPE, "pc_item_i64: the tensor is %s, which has fractions; use pc_item, or pc_cast",
                       pc_dtype_name((pc_dtype)t->dtype));
        return INT64_MIN;
    }
    if (read_one(t, &value, "pc_item_i64") != PC_OK)
        return INT64_MIN;
    switch ((pc_dtype)t->dtype) {
    case PC_BOOL:
        return value.b;
    case PC_U8:
        return value.u8;
    case PC_I32:
        return value.i32;
    default:
        return value.i64;
    }
}

double pc_item(const pc_tensor *t)
{
    PC__NEED_OR((double)NAN, t);
    number value;
    if (read_one(t, &value, "pc_item") != PC_OK)
        return NAN;
    switch ((pc_dtype)t->dtype) {
    case PC_BOOL:
        return value.b;
    case PC_U8:
        return value.u8;
    case PC_I32:
        return value.i32;
    case PC_I64:
        return (double)value.i64;
    case PC_F16:
        return (double)pc__f16_float(value.f16);
    case PC_BF16:
        return (double)pc__bf16_float(value.bf16);
    case PC_F32:
        return (double)value.f32;
    default:
        return value.f64;
    }
}

pc_tensor *pc__tensor_discard(pc_tensor *t)
{
    if (t && pc__scope_forget(t))
        pc_tensor_free(t);
    return NULL;
}

/* half.c: calls with 16-bit numbers, by the kernels of float32: inputs are converted, results rounded once where they
 * are stored. Sums inside a kernel are those of float32. */
#include "cpu/level/kernels.h"
#include "ops/copy.h"

/* A tensor of the call as float32. */
typedef struct single {
    pc_tensor tensor;
    pc__storage storage;
    pc_tensor *of;
} single;

bool PC__K(has_halves)(const pc_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (pc__is_half((pc_dtype)call->in[i]->dtype))
            return true;
    for (int i = 0; i < call->n_out; i++)
        if (pc__is_half((pc_dtype)call->out[i]->dtype))
            return true;
    return false;
}

static pc_status convert(pc_stream *stream, pc_tensor *to, pc_tensor *from)
{
    pc_call copy = {.op = &pc__ops[PC__OP_copy], .in = &from, .n_in = 1, .n_out = 1, .out = {to}};
    return PC__K(op_copy)(stream, &copy);
}

/* Memory of its own, in t's order where that is dense. */
static pc_status single_make(single *s, pc_tensor *t)
{
    pc__meta meta;
    s->of = t;
    if (pc__is_channels_last(t))
        pc__meta_channels_last(&meta, PC_F32, t->shape);
    else
        pc__meta_contiguous(&meta, PC_F32, t->ndim, t->shape);
    s->tensor = (pc_tensor){.dtype = PC_F32, .ndim = t->ndim, .storage = &s->storage};
    memcpy(s->tensor.shape, meta.shape, sizeof meta.shape);
    memcpy(s->tensor.strides, meta.strides, sizeof meta.strides);
    s->storage = (pc__storage){.device = t->storage->device, .bytes = (size_t)pc_tensor_count(t) * sizeof(float)};
    s->storage.data = pc__try_alloc_aligned(PC__MAX(s->storage.bytes, 64), 64);
    return s->storage.data ? PC_OK
                           : pc__fail(PC_ERR_MEMORY, "out of memory: %zu bytes for %s as float32", s->storage.bytes,
                                      PC__SHAPE_OF(t));
}

static bool same(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc__data(a) == pc__data(b) && pc__same_shape(a, b) &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof a->strides[0]) == 0;
}

/* The call's tensor i, inputs first; an output that is an input too (an optimiser's) has one place. */
static pc_tensor **place(pc_call *call, int i)
{
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

static pc_status make_all(pc_stream *stream, pc_call *call, single *list, int *count)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc_tensor **at = place(call, i);
        if (!pc__is_half((pc_dtype)(*at)->dtype))
            continue;
        int k = i < call->n_in ? *count : 0;
        while (k < *count && !same(list[k].of, *at))
            k++;
        if (k == *count) {
            PC__TRY(single_make(&list[k], *at));
            ++*count;
            if (i < call->n_in || call->op->flags & PC__IN_PLACE)
                PC__TRY(convert(stream, &list[k].tensor, *at));
        }
        *at = &list[k].tensor;
    }
    return PC_OK;
}

static pc_status store_all(pc_stream *stream, const pc_call *call, const pc_call *floats, single *list, int count)
{
    for (int k = 0; k < count; k++) {
        bool written = call->op->flags & PC__WRITES_IN;
        for (int i = 0; i < call->n_out; i++)
            written |= floats->out[i] == &list[k].tensor;
        if (written)
            PC__TRY(convert(stream, list[k].of, &list[k].tensor));
    }
    return PC_OK;
}

pc_status PC__K(in_floats)(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    int tensors = call->n_in + call->n_out, count = 0;
    single *list = pc__calloc((size_t)tensors, sizeof *list + sizeof(pc_tensor *));
    if (!list)
        return PC_ERR_MEMORY;
    pc_call floats = *call;
    floats.in = (pc_tensor **)(void *)(list + tensors);
    memcpy(floats.in, call->in, (size_t)call->n_in * sizeof(pc_tensor *));
    pc_status status = make_all(stream, &floats, list, &count);
    if (status == PC_OK)
        status = kernel(stream, &floats);
    if (status == PC_OK)
        status = store_all(stream, call, &floats, list, count);
    for (int k = 0; k < tensors; k++)
        pc__free(list[k].storage.data);
    pc__free(list);
    return status;
}

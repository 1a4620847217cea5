/* half.c: calls with 16-bit numbers by kernels that have none: inputs are converted to float32, results rounded once
 * where they are stored. */
#include "cuda/each.h"
#include "ops/table.h"

/* Kernels that read and write 16-bit numbers themselves. */
static const bool native[PC__OP_COUNT] = {
    [PC__OP_add] = true,
    [PC__OP_sub] = true,
    [PC__OP_mul] = true,
    [PC__OP_div] = true,
    [PC__OP_neg] = true,
    [PC__OP_exp] = true,
    [PC__OP_log] = true,
    [PC__OP_sqrt] = true,
    [PC__OP_relu] = true,
    [PC__OP_sigmoid] = true,
    [PC__OP_tanh] = true,
    [PC__OP_relu_backward] = true,
    [PC__OP_sigmoid_backward] = true,
    [PC__OP_tanh_backward] = true,
    [PC__OP_eq] = true,
    [PC__OP_ne] = true,
    [PC__OP_lt] = true,
    [PC__OP_le] = true,
    [PC__OP_gt] = true,
    [PC__OP_ge] = true,
    [PC__OP_where] = true,
    [PC__OP_cast] = true,
    [PC__OP_copy] = true,
    [PC__OP_fill] = true,
    [PC__OP_saxpy] = true,
    [PC__OP_arange] = true,
    [PC__OP_uniform] = true,
    [PC__OP_normal] = true,
    [PC__OP_cat] = true,
    [PC__OP_index_select] = true,
    [PC__OP_dropout] = true,
    [PC__OP_unscale] = true,
    [PC__OP_matmul] = true,
    [PC__OP_linear] = true,
    [PC__OP_sum] = true,
    [PC__OP_max] = true,
    [PC__OP_softmax] = true,
    [PC__OP_softmax_backward] = true,
    [PC__OP_log_softmax] = true,
    [PC__OP_log_softmax_backward] = true,
    [PC__OP_max_pool2d] = true,
    [PC__OP_max_pool2d_backward] = true,
    [PC__OP_avg_pool2d] = true,
    [PC__OP_avg_pool2d_backward] = true,
    [PC__OP_conv2d] = true,
    [PC__OP_conv2d_backward] = true,
};

/* A tensor of the call as float32. */
typedef struct single {
    pc_tensor tensor;
    pc__storage storage;
    pc_tensor *of;
} single;

static pc_tensor **place(pc_call *call, int i)
{
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

bool pc__cuda_wants_floats(const pc_call *call)
{
    if (native[call->op->index])
        return false;
    for (int i = 0; i < call->n_in + call->n_out; i++)
        if (pc__is_half((pc_dtype)(*place((pc_call *)call, i))->dtype))
            return true;
    return false;
}

static size_t room_for(const pc_tensor *t)
{
    return ((size_t)pc_tensor_count(t) * sizeof(float) + 255) / 256 * 256;
}

/* In t's order where that is dense. */
static void describe(single *s, pc_tensor *t, char *memory)
{
    pc__meta meta;
    if (pc__is_channels_last(t))
        pc__meta_channels_last(&meta, PC_F32, t->shape);
    else
        pc__meta_contiguous(&meta, PC_F32, t->ndim, t->shape);
    s->of = t;
    s->storage = (pc__storage){.device = t->storage->device, .data = memory, .bytes = room_for(t)};
    s->tensor = (pc_tensor){.dtype = PC_F32, .ndim = t->ndim, .storage = &s->storage};
    memcpy(s->tensor.shape, meta.shape, sizeof meta.shape);
    memcpy(s->tensor.strides, meta.strides, sizeof meta.strides);
}

static bool same(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc__data(a) == pc__data(b) && pc__same_shape(a, b) &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof a->strides[0]) == 0;
}

/* An output that is an input too (an optimiser's) has one place. Returns the bytes of all; with memory NULL only these.
 */
static size_t arrange(const pc_call *call, pc_call *floats, single *list, int *count, char *memory)
{
    size_t bytes = 0;
    *count = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        pc_tensor *t = *place((pc_call *)call, i);
        if (!pc__is_half((pc_dtype)t->dtype))
            continue;
        int k = i < call->n_in ? *count : 0;
        while (k < *count && !same(list[k].of, t))
            k++;
        if (k == *count) {
            describe(&list[k], t, memory ? memory + bytes : NULL);
            bytes += room_for(t);
            ++*count;
        }
        *place(floats, i) = &list[k].tensor;
    }
    return bytes;
}

static bool is_written(const pc_call *floats, const single *s)
{
    bool written = floats->op->flags & PC__WRITES_IN;
    for (int i = 0; i < floats->n_out; i++)
        written |= floats->out[i] == &s->tensor;
    return written;
}

static pc_status run(pc_stream *stream, const pc_call *call, pc_call *floats, single *list, pc__kernel kernel)
{
    int count;
    size_t bytes = arrange(call, floats, list, &count, NULL);
    char *memory = pc__cuda_scratch(stream, PC__MAX(bytes, 1));
    if (!memory)
        return PC_ERR_MEMORY;
    (void)arrange(call, floats, list, &count, memory);
    for (int k = 0; k < count; k++)
        if (!is_written(floats, &list[k]) || call->op->flags & PC__IN_PLACE)
            PC__TRY(pc__cuda_copy_tensor(stream, call, &list[k].tensor, list[k].of));
    pc__cuda_stream *face = stream->implementation;
    face->scratch_level = 1;
    pc_status status = kernel(stream, floats);
    face->scratch_level = 0;
    for (int k = 0; k < count && status == PC_OK; k++)
        if (is_written(floats, &list[k]))
            status = pc__cuda_copy_tensor(stream, call, list[k].of, &list[k].tensor);
    return status;
}

pc_status pc__cuda_in_floats(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    int tensors = call->n_in + call->n_out;
    single *list = pc__calloc((size_t)tensors, sizeof *list + sizeof(pc_tensor *));
    if (!list)
        return PC_ERR_MEMORY;
    pc_call floats = *call;
    floats.in = (pc_tensor **)(void *)(list + tensors);
    memcpy(floats.in, call->in, (size_t)call->n_in * sizeof(pc_tensor *));
    pc_status status = run(stream, call, &floats, list, kernel);
    pc__free(list);
    return status;
}

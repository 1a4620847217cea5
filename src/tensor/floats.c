/* floats.c: calls with 16-bit numbers as calls of float32. */
#include "tensor/floats.h"

static pc_tensor **place(pc_call *call, int i)
{
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

bool pc__has_halves(const pc_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (pc__is_half((pc_dtype)call->in[i]->dtype))
            return true;
    for (int i = 0; i < call->n_out; i++)
        if (pc__is_half((pc_dtype)call->out[i]->dtype))
            return true;
    return false;
}

/* In t's order where that is dense. */
static void describe(pc__single *s, pc_tensor *t)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, PC_F32, t->ndim, t->shape);
    s->of = t;
    s->storage =
        (pc__storage){.device = t->storage->device, .bytes = (size_t)pc__count(t->ndim, t->shape) * sizeof(float)};
    s->tensor = (pc_tensor){.dtype = PC_F32, .ndim = t->ndim, .storage = &s->storage};
    memcpy(s->tensor.shape, meta.shape, sizeof meta.shape);
    memcpy(s->tensor.strides, pc__is_dense(t) ? t->strides : meta.strides, sizeof meta.strides);
}

static bool same(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc__data(a) == pc__data(b) && pc__same_shape(a, b) &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof a->strides[0]) == 0;
}

/* The entry of tensor i, inputs first; an output that is an input too (an optimiser's) shares its. */
static pc__single *entry_of(pc__floats *f, pc_tensor *t, int i)
{
    for (int k = i < f->call.n_in ? f->count : 0; k < f->count; k++)
        if (same(f->list[k].of, t))
            return &f->list[k];
    describe(&f->list[f->count], t);
    return &f->list[f->count++];
}

pc_status pc__floats_make(pc__floats *f, const pc_call *call)
{
    int tensors = call->n_in + call->n_out;
    f->call = *call;
    f->count = 0;
    f->list = pc__calloc((size_t)tensors, sizeof *f->list + sizeof(pc_tensor *));
    if (!f->list)
        return PC_ERR_MEMORY;
    f->call.in = (pc_tensor **)(void *)(f->list + tensors);
    for (int i = 0; i < call->n_in; i++)
        f->call.in[i] = call->in[i];
    for (int i = 0; i < tensors; i++) {
        pc_tensor **at = place(&f->call, i);
        if (!pc__is_half((pc_dtype)(*at)->dtype))
            continue;
        pc__single *s = entry_of(f, *at, i);
        s->is_read |= i < call->n_in || call->op->flags & PC__IN_PLACE;
        s->is_written |= pc__call_writes(call, i);
        *at = &s->tensor;
    }
    return PC_OK;
}

void pc__floats_free(pc__floats *f)
{
    pc__free(f->list);
}

/* join.c: cat, index_select and its gradient. All tensors seen as [outer, along, inner] bytes. */
#include "ops/join.h"

#include "cpu/level/kernels.h"
#include "cpu/level/loop.h"
#include "ops/copy.h"

PC__KERNEL(cat)
{
    const pc__dim_attributes *a = call->attributes;
    pc_tensor *out = call->out[0];
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        pc_tensor part = *out; /* the place of input i in the output, as a view without an owner */
        part.shape[a->dim] = call->in[i]->shape[a->dim];
        part.offset = out->offset + at * out->strides[a->dim];
        at += part.shape[a->dim];
        pc_call copy = {.op = &pc__ops[PC__OP_copy], .in = &call->in[i], .n_in = 1, .n_out = 1, .out = {&part}};
        if (pc_tensor_count(&part))
            PC__TRY(PC__K(op_copy)(stream, &copy));
    }
    return PC_OK;
}

static pc_status check_index(const char *who, const int64_t *index, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < count; i++)
        if (index[i] < 0 || index[i] >= n)
            return pc__fail(PC_ERR_RANGE, "%s: entry %lld of the index is %lld; it must be 0 to %lld", who,
                            (long long)i, (long long)index[i], (long long)n - 1);
    return PC_OK;
}

PC__KERNEL(index_select)
{
    (void)stream;
    const pc__dim_attributes *a = call->attributes;
    const pc_tensor *t = call->in[0];
    const int64_t *index = pc__data(call->in[1]);
    int64_t count = call->in[1]->shape[0], n = t->shape[a->dim];
    PC__TRY(check_index("index_select", index, count, n));
    int64_t outer = pc__count(a->dim, t->shape);
    size_t row = (size_t)pc__count(t->ndim - a->dim - 1, t->shape + a->dim + 1) * pc_dtype_size(t->dtype);
    const char *from = pc__data(t);
    char *to = pc__data(call->out[0]);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)(o * count + i) * row, from + (size_t)(o * n + index[i]) * row, row);
    return PC_OK;
}

#define ADD_ROWS(T)                                                                                                    \
    static void add_##T(T *to, const T *from, int64_t n)                                                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] += from[i];                                                                                          \
    }
ADD_ROWS(float)
ADD_ROWS(double)

/* out[..., index[i], ...] += in[0][..., i, ...] */
PC__KERNEL(index_add)
{
    (void)stream;
    const pc__dim_attributes *a = call->attributes;
    const pc_tensor *t = call->out[0];
    const int64_t *index = pc__data(call->in[1]);
    int64_t count = call->in[1]->shape[0], n = t->shape[a->dim];
    PC__TRY(check_index("index_add", index, count, n));
    int64_t outer = pc__count(a->dim, t->shape), row = pc__count(t->ndim - a->dim - 1, t->shape + a->dim + 1);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++) {
            int64_t to = (o * n + index[i]) * row, from = (o * count + i) * row;
            if (t->dtype == PC_F32)
                add_float((float *)pc__data(t) + to, (const float *)pc__data(call->in[0]) + from, row);
            else
                add_double((double *)pc__data(t) + to, (const double *)pc__data(call->in[0]) + from, row);
        }
    return PC_OK;
}

/* resample_places.c: the kernels of pictures of another size, and which places they are made of. */
#include "cpu/level/kernels.h"
#include "cpu/level/resample.h"
#include "ops/resample.h"

static pc__taps taps_of(const pc__axis *axis, bool backward, int64_t i)
{
    if (!backward)
        return pc__taps_of(axis, i);
    const pc__outputs s = pc__outputs_of(axis, i);
    return (pc__taps){s.first, s.end - s.first, {0, 0}};
}

static double weight_of(const pc__axis *axis, bool backward, int64_t i, const pc__taps *t, int64_t k)
{
    if (!backward)
        return t->weight[k > 0];
    const pc__taps of_output = pc__taps_of(axis, t->first + k);
    return pc__weight_in(&of_output, i);
}

/* One block of memory, which pc__free(p->first) releases; NULL there: PC_ERR_MEMORY. */
static pc__places places_of(const pc__axis *axis, bool backward)
{
    pc__places p = {.n = backward ? axis->in : axis->out};
    int64_t all = 0;
    for (int64_t i = 0; i < p.n; i++)
        all += taps_of(axis, backward, i).count;
    p.first = pc__alloc((size_t)(2 * p.n + 1) * sizeof *p.first + (size_t)all * sizeof *p.weight);
    if (!p.first)
        return p;
    p.at = p.first + p.n;
    p.weight = (double *)(void *)(p.at + p.n + 1);
    p.at[0] = 0;
    p.copies = all == p.n;
    for (int64_t i = 0; i < p.n; i++) {
        const pc__taps t = taps_of(axis, backward, i);
        p.first[i] = t.first;
        p.at[i + 1] = p.at[i] + t.count;
        for (int64_t k = 0; k < t.count; k++)
            p.weight[p.at[i] + k] = weight_of(axis, backward, i, &t, k);
        p.copies = p.copies && t.count == 1 && p.weight[p.at[i]] == 1;
    }
    return p;
}

static pc_status resample(pc_stream *stream, const pc_call *call, bool backward, pc__kernel kernel)
{
    const pc__resample_attributes *a = call->attributes;
    const pc_tensor *x = call->in[0];
    pc__resampling s = {.outer = x->shape[0],
                        .h = x->shape[1],
                        .w = x->shape[2],
                        .inner = x->shape[3],
                        .from = pc__data(x),
                        .to = pc__data(call->out[0])};
    if (pc_tensor_count(call->out[0]) == 0)
        return PC_OK;
    s.rows = places_of(&a->axis[0], backward);
    s.columns = places_of(&a->axis[1], backward);
    pc_status status = PC_OK;
    if (!s.rows.first || !s.columns.first)
        status = PC_ERR_MEMORY;
    else if (s.rows.copies && s.columns.copies)
        pc__resample_copies(&s, pc_dtype_size((pc_dtype)x->dtype));
    else if (pc__is_half((pc_dtype)x->dtype))
        status = PC__K(in_floats)(stream, call, kernel);
    else
        status = x->dtype == PC_F64 ? pc__resample_f64(&s) : pc__resample_f32(&s);
    pc__free(s.rows.first);
    pc__free(s.columns.first);
    return status;
}

PC__KERNEL(resample)
{
    return resample(stream, call, false, PC__K(op_resample));
}

PC__KERNEL(resample_backward)
{
    return resample(stream, call, true, PC__K(op_resample_backward));
}

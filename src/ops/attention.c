/* attention.c: scaled dot-product attention as one op, which never has all scores in memory. Queries, keys and values are
 * read where they lie; results lie in the order of what they belong to, so that heads which are views of one tensor go
 * back into one without a copy. */
#include "ops/attention.h"

#include "ops/autocast.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/no_grad.h>

static pc_status check_options(const pc_fn_attention_options *o)
{
    if (!(o->dropout >= 0 && o->dropout <= 1))
        return pc__fail(PC_ERR_ARGUMENT, "attention: dropout is %g; it must be 0 to 1", o->dropout);
    if (!isfinite(o->scale))
        return pc__fail(PC_ERR_ARGUMENT, "attention: scale is %g; it must be finite (0: 1 / sqrt(e))", o->scale);
    if (!o->mask)
        return PC_OK;
    if (o->mask->dtype != PC_BOOL && !pc__is_float(o->mask->dtype))
        return pc__fail(PC_ERR_DTYPE, "attention: the mask is %s; it must be bool (true: attends) or floating (added)",
                        pc_dtype_name(o->mask->dtype));
    if (o->mask->requires_grad && pc_grad_enabled())
        return pc__fail(PC_ERR_UNSUPPORTED, "attention: the mask requires a gradient, which it has none of; "
                                            "detach it (pc_detach), or write the attention with pc_softmax");
    return PC_OK;
}

static pc_status check(const pc_tensor *q, const pc_tensor *k, const pc_tensor *v)
{
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
        return pc__fail(
            PC_ERR_SHAPE,
            "attention: q, k and v of shapes %s, %s and %s need at least two dimensions each: [..., length, "
            "size]",
            PC__SHAPE_OF(q), PC__SHAPE_OF(k), PC__SHAPE_OF(v));
    if (q->dtype != k->dtype || q->dtype != v->dtype || !pc__is_float(q->dtype))
        return pc__fail(PC_ERR_DTYPE, "attention: q is %s, k %s and v %s; all must be of one floating dtype (pc_cast)",
                        pc_dtype_name(q->dtype), pc_dtype_name(k->dtype), pc_dtype_name(v->dtype));
    if (q->shape[q->ndim - 1] != k->shape[k->ndim - 1] || k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return pc__fail(
            PC_ERR_SHAPE,
            "attention: q %s, k %s and v %s: the last sizes of q and k must agree, and the lengths of k and v",
            PC__SHAPE_OF(q), PC__SHAPE_OF(k), PC__SHAPE_OF(v));
    return PC_OK;
}

/* The shape in front of the last two dimensions, as a tensor's. */
static pc_tensor lead_of(const pc_tensor *t)
{
    pc_tensor lead = {.ndim = (uint8_t)(t->ndim - 2)};
    memcpy(lead.shape, t->shape, sizeof lead.shape);
    return lead;
}

/* The batch's shape, in which all three meet. */
static pc_status join(const pc_tensor *q, const pc_tensor *k, const pc_tensor *v, pc_tensor *batch)
{
    const pc_tensor leads[] = {lead_of(q), lead_of(k), lead_of(v)};
    int ndim;
    *batch = leads[0];
    for (int i = 1; i < 3; i++) {
        int64_t shape[PC_MAX_DIMS];
        PC__TRY(pc__broadcast("attention", batch, &leads[i], &ndim, shape));
        batch->ndim = (uint8_t)ndim;
        memcpy(batch->shape, shape, (size_t)ndim * sizeof *shape);
    }
    return PC_OK;
}

/* t seen with the batch's shape and its own last two dimensions. */
static pc_tensor *spread(pc_tensor *t, const pc_tensor *batch)
{
    if (!t)
        return NULL;
    int64_t shape[PC_MAX_DIMS];
    memcpy(shape, batch->shape, sizeof shape);
    memcpy(shape + batch->ndim, t->shape + t->ndim - 2, 2 * sizeof *shape);
    const int ndim = batch->ndim + 2;
    const bool same = t->ndim == ndim && memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
    return same ? t : pc_expand(t, pc_shape_of(ndim, shape));
}

/* The mask in the dtype that scores have, seen as [batch..., l, s]. */
static pc_tensor *spread_mask(pc_tensor *mask, const pc_tensor *batch, int64_t l, int64_t s, pc_dtype dtype)
{
    pc_tensor whole = *batch;
    int64_t joint[PC_MAX_DIMS];
    int ndim;
    whole.shape[whole.ndim++] = l;
    whole.shape[whole.ndim++] = s;
    if (pc__broadcast("attention, mask", mask, &whole, &ndim, joint) != PC_OK)
        return NULL;
    if (ndim != whole.ndim || memcmp(joint, whole.shape, (size_t)ndim * sizeof *joint) != 0)
        return pc__null(PC_ERR_SHAPE, "attention: a mask of shape %s does not broadcast to the scores' shape %s",
                        PC__SHAPE_OF(mask), PC__SHAPE_OF(&whole));
    pc_tensor *same = mask->dtype == PC_BOOL ? mask : pc__as_dtype(mask, dtype);
    return same ? pc_expand(same, pc_shape_of(ndim, whole.shape)) : NULL;
}

static pc_dtype dtype_of_norms(const pc_tensor *q)
{
    return q->dtype == PC_F64 ? PC_F64 : PC_F32;
}

/* The op over the operands that are in `in`, for scores of [batch..., l, s]. */
static pc_tensor *attend(pc_tensor **in, int n_in, const pc_tensor *batch, int64_t l, int64_t s, int64_t e,
                         const pc_fn_attention_options *o)
{
    const pc_dtype norms = dtype_of_norms(in[0]);
    pc__attention_attributes a = {.scale = o->scale != 0 ? o->scale
                                           : e > 0       ? 1 / sqrt((double)e)
                                                         : 1,
                                  .causal = o->causal,
                                  .packed = n_in == 1,
                                  .masked = o->mask != NULL};
    if (o->mask && !(in[n_in++] = spread_mask(o->mask, batch, l, s, norms)))
        return NULL;
    if (o->dropout > 0) {
        a.drawn = pc__draw(PC__PURPOSE_DROPOUT, o->dropout, 0);
        if ((in[n_in] = pc__draw_relative(&a.drawn)))
            n_in++;
    }
    return pc__call(PC__OP_attention, in, n_in, &a, sizeof a);
}

static pc_tensor *attention(pc_tensor *q, pc_tensor *k, pc_tensor *v, const pc_fn_attention_options *o)
{
    pc_tensor batch;
    if (!q || !k || !v || check(q, k, v) != PC_OK || join(q, k, v, &batch) != PC_OK)
        return NULL;
    if (batch.ndim > PC_MAX_DIMS - 2)
        return pc__null(PC_ERR_SHAPE, "attention: q, k and v have more than %d dimensions together", PC_MAX_DIMS);
    pc_tensor *in[5] = {spread(q, &batch), spread(k, &batch), spread(v, &batch)};
    return in[0] && in[1] && in[2]
               ? attend(in, 3, &batch, q->shape[q->ndim - 2], k->shape[k->ndim - 2], q->shape[q->ndim - 1], o)
               : NULL;
}

pc_tensor *pc_fn_attention(pc_tensor *q, pc_tensor *k, pc_tensor *v, pc_fn_attention_options options)
{
    PC__NEED_OR(NULL, q);
    PC__NEED_OR(NULL, k);
    PC__NEED_OR(NULL, v);
    if (check_options(&options) != PC_OK)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *in[] = {pc__autocast_down(q), pc__autocast_down(k), pc__autocast_down(v)};
        result = pc_keep(attention(in[0], in[1], in[2], &options));
    }
    return result;
}

pc_tensor *pc_fn_self_attention(pc_tensor *qkv, pc_fn_attention_options options)
{
    PC__NEED_OR(NULL, qkv);
    if (check_options(&options) != PC_OK)
        return NULL;
    const int n = qkv->ndim;
    if (n < 3 || qkv->shape[0] != 3)
        return pc__null(PC_ERR_SHAPE, "self_attention: a tensor of shape %s is not [3, ..., length, size]",
                        PC__SHAPE_OF(qkv));
    if (!pc__is_float(qkv->dtype))
        return pc__null(PC_ERR_DTYPE, "self_attention: the input is %s; it must be floating (pc_cast)",
                        pc_dtype_name(qkv->dtype));
    pc_tensor batch = {.ndim = (uint8_t)(n - 3)}, *result = NULL;
    memcpy(batch.shape, qkv->shape + 1, (size_t)(n - 3) * sizeof *batch.shape);
    PC_SCOPE {
        pc_tensor *in[3] = {pc__autocast_down(qkv)};
        if (in[0])
            result = pc_keep(attend(in, 1, &batch, qkv->shape[n - 2], qkv->shape[n - 2], qkv->shape[n - 1], &options));
    }
    return result;
}

/* Describe what has t's shape but for the last size: dense, in the order of t's strides in front of that. */
static void meta_in_order_of(pc__meta *meta, const pc_tensor *t, int64_t last)
{
    int order[PC_MAX_DIMS], n = 0;
    int64_t shape[PC_MAX_DIMS], step = last;
    memcpy(shape, t->shape, sizeof shape);
    shape[t->ndim - 1] = last;
    pc__meta_contiguous(meta, (pc_dtype)t->dtype, t->ndim, shape);
    for (int d = 0; d < t->ndim - 1; d++) {
        int at = n++;
        for (; at > 0 && t->strides[order[at - 1]] < t->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    if (pc__count(t->ndim, shape) == 0)
        return;
    for (int i = n - 1; i >= 0; step *= shape[order[i--]])
        meta->strides[order[i]] = step;
}

pc_status pc__infer_attention(pc_call *call, pc__meta *out)
{
    const int64_t none = 0;
    pc__attention_operands o;
    pc__attention_take(&o, call->attributes, call->in);
    const pc_tensor *q = o.of[0], *v = o.of[2];
    meta_in_order_of(&out[0], q, v->shape[v->ndim - 1]);
    if (pc__tape_wants(call))
        pc__meta_contiguous(&out[1], dtype_of_norms(q), q->ndim - 1, q->shape);
    else
        pc__meta_contiguous(&out[1], dtype_of_norms(q), 1, &none);
    return PC_OK;
}

pc_status pc__infer_attention_backward(pc_call *call, pc__meta *out)
{
    const int64_t none = 0;
    const int n = pc__attention_inputs(call->attributes);
    for (int i = 0; i < 3; i++)
        if (i < n)
            meta_in_order_of(&out[i], call->in[i], call->in[i]->shape[call->in[i]->ndim - 1]);
        else
            pc__meta_contiguous(&out[i], (pc_dtype)call->in[0]->dtype, 1, &none);
    return PC_OK;
}

pc_status pc__grad_attention(pc__grad *grad)
{
    const int n = pc__attention_inputs(grad->attributes);
    pc_tensor *in[8], *out[3];
    for (int i = 0; i < grad->n_in; i++)
        in[i < n ? i : i + 3] = grad->in[i];
    in[n] = grad->out_grad[0];
    in[n + 1] = grad->out[0];
    in[n + 2] = grad->out[1];
    PC__TRY(pc__call_all(PC__OP_attention_backward, in, 3 + grad->n_in, grad->attributes,
                         sizeof(pc__attention_attributes), out));
    for (int i = 0; i < n; i++)
        if (grad->needs[i])
            PC__TRY(pc__set_grad(grad, i, out[i]));
    return PC_OK;
}

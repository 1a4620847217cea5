/* matmul.c: matrix products, in batches too. Any strides: the kernel reads transposed views where they lie. */
#include "ops/matmul.h"

#include "ops/autocast.h"
#include "ops/table.h"

static pc_dtype result_of(const pc_call *call)
{
    const pc__matmul_attributes *a = call->attributes;
    const pc_dtype dtype = call->in[0]->dtype;
    return a && a->wide && pc__is_half(dtype) ? PC_F32 : dtype;
}

/* Shape rule for [..., m, k] x [..., k, n]; leading dimensions broadcast. */
pc_status pc__infer_matmul(pc_call *call, pc__meta *out)
{
    const pc_tensor *a = call->in[0], *b = call->in[1];
    int64_t shape[PC_MAX_DIMS];
    int ndim;
    pc_tensor lead_a = {.ndim = (uint8_t)(a->ndim - 2)}, lead_b = {.ndim = (uint8_t)(b->ndim - 2)};
    memcpy(lead_a.shape, a->shape, sizeof lead_a.shape);
    memcpy(lead_b.shape, b->shape, sizeof lead_b.shape);
    PC__TRY(pc__broadcast("matmul", &lead_a, &lead_b, &ndim, shape));
    shape[ndim] = a->shape[a->ndim - 2];
    shape[ndim + 1] = b->shape[b->ndim - 1];
    pc__meta_contiguous(&out[0], result_of(call), ndim + 2, shape);
    return PC_OK;
}

static pc_status check(const pc_tensor *a, const pc_tensor *b)
{
    if (a->ndim == 0 || b->ndim == 0)
        return pc__fail(PC_ERR_SHAPE, "matmul: both tensors need at least one dimension, got %s and %s",
                        PC__SHAPE_OF(a), PC__SHAPE_OF(b));
    if (a->dtype != b->dtype || !pc__is_float(a->dtype))
        return pc__fail(PC_ERR_DTYPE, "matmul: the dtypes are %s and %s; both must be of one floating dtype (pc_cast)",
                        pc_dtype_name(a->dtype), pc_dtype_name(b->dtype));
    int64_t ka = a->shape[a->ndim - 1], kb = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
    if (ka != kb)
        return pc__fail(PC_ERR_SHAPE, "matmul: %s x %s: the inner sizes %lld and %lld differ", PC__SHAPE_OF(a),
                        PC__SHAPE_OF(b), (long long)ka, (long long)kb);
    return PC_OK;
}

/* Whether the rows of all matrices of a batch lie as those of one would. Dimensions of one element are no steps. */
static bool folds(const pc_tensor *t)
{
    int64_t next = -1; /* from one to the next in the dimension before, of several */
    for (int d = t->ndim - 2; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if (next >= 0 && t->strides[d] != next)
            return false;
        next = t->strides[d] * t->shape[d];
    }
    return true;
}

/* Whether a batch's matrices have so few rows, all times one matrix, that reading that for each is most of the work. */
static bool are_slight(const pc_tensor *a, const pc_tensor *b)
{
    enum { FEW = 16, LESS = 4 /* times as many columns */, MANY = 1 << 22 /* elements read */ };
    const int64_t rows = a->shape[a->ndim - 2], all = pc__count(a->ndim - 1, a->shape), n = b->shape[b->ndim - 1];
    return rows < FEW && all > rows && rows * LESS <= n && pc__count(b->ndim - 2, b->shape) == 1 &&
           (double)(all / rows) * (double)a->shape[a->ndim - 1] * (double)n >= MANY;
}

/* Whether small matrices of a batch, all times one matrix, are better copied, so that their rows go on from one to the next: then it
 * is one product of all rows. The copy is smaller than the result, or than what is read again and again. */
static bool is_better_joined(const pc_tensor *a, const pc_tensor *b)
{
    enum { FEW = 128 /* rows */, MANY = 1 << 20 /* elements of the result */ };
    const int64_t rows = a->shape[a->ndim - 2], all = pc__count(a->ndim - 1, a->shape), n = b->shape[b->ndim - 1];
    const bool less = rows < FEW && all > rows && a->shape[a->ndim - 1] < n && (double)all * (double)n >= MANY;
    return (less || are_slight(a, b)) && pc__count(b->ndim - 2, b->shape) == 1 && b->ndim <= a->ndim && !folds(a);
}

static pc_tensor *product(pc_tensor *a, pc_tensor *b)
{
    if (!is_better_joined(a, b))
        return PC__CALL_PLAIN(matmul, a, b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(PC__CALL_PLAIN(matmul, pc_contiguous(a), b));
    }
    return result;
}

static pc_tensor *matmul(pc_tensor *a, pc_tensor *b)
{
    if (!a || !b)
        return PC__CALL_PLAIN(matmul, a, b);
    if (check(a, b) != PC_OK)
        return NULL;
    if (a->ndim > 1 && b->ndim > 1)
        return product(a, b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *left = a->ndim == 1 ? pc_unsqueeze(a, 0) : a, *right = b->ndim == 1 ? pc_unsqueeze(b, 1) : b;
        pc_tensor *both = PC__CALL_PLAIN(matmul, left, right);
        if (b->ndim == 1)
            both = pc_squeeze(both, -1);
        if (a->ndim == 1)
            both = pc_squeeze(both, b->ndim == 1 ? -1 : -2);
        result = pc_keep(both);
    }
    return result;
}

pc_tensor *pc_matmul(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (!pc__autocasting())
        return matmul(a, b);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(matmul(pc__autocast_down(a), pc__autocast_down(b)));
    }
    return result;
}

pc_tensor *pc__matmul_wide(pc_tensor *a, pc_tensor *b)
{
    return PC__CALL(matmul, (&(pc__matmul_attributes){.wide = true}), a, b);
}

/* Whether matrices lie column by column, as a transposed view's do. */
static bool lies_turned(const pc__meta *m)
{
    const int64_t rows = m->shape[m->ndim - 2], columns = m->shape[m->ndim - 1];
    return rows > 1 && columns > 1 && m->strides[m->ndim - 2] == 1 && m->strides[m->ndim - 1] == rows;
}

pc_tensor *pc__matmul_as(pc_tensor *a, pc_tensor *b, const pc__meta *of)
{
    const bool one = a && b && are_slight(a, b) && folds(a); /* product, which would be many if it lay turned */
    return lies_turned(of) && !one ? pc_transpose(pc_matmul(pc_transpose(b, -1, -2), pc_transpose(a, -1, -2)), -1, -2)
                                   : pc_matmul(a, b);
}

/* a x b, of so many matrices, as the gradient of an operand of that shape. What was broadcast over a batch is summed: in 16 bits its parts stay float32 until they are. */
static pc_tensor *gradient(pc_tensor *a, pc_tensor *b, int64_t batch, const pc__meta *of)
{
    if (!a || !b)
        return NULL;
    const bool summed = batch != pc__count(of->ndim - 2, of->shape);
    pc_tensor *sum = pc__sum_to(summed ? pc__matmul_wide(a, b) : pc__matmul_as(a, b, of), of->ndim, of->shape);
    return sum && sum->dtype != of->dtype ? pc_cast(sum, of->dtype) : sum;
}

static pc_tensor *folded(pc_tensor *t)
{
    return pc_reshape(t, PC_SHAPE(pc__count(t->ndim - 1, t->shape), t->shape[t->ndim - 1]));
}

/* Whether copies of those whose rows do not go on from matrix to matrix are no more than a product for each matrix would be. */
static bool copies_less(const pc_tensor *a, const pc_tensor *g)
{
    const double rows = (double)pc__count(a->ndim - 1, a->shape), m = (double)a->shape[a->ndim - 2],
                 k = (double)a->shape[a->ndim - 1], n = (double)g->shape[g->ndim - 1];
    return (folds(a) ? 0 : k) + (folds(g) ? 0 : n) <= (rows > 0 ? k * n / m : 0);
}

/* The gradient of a matrix that all of the batch is multiplied by: one product over all rows. */
static pc_tensor *gradient_of_one(pc_tensor *a, pc_tensor *g, const pc__meta *of)
{
    return pc_reshape(pc__matmul_as(pc_transpose(folded(a), -1, -2), folded(g), of), pc_shape_of(of->ndim, of->shape));
}

pc_status pc__grad_matmul(pc__grad *grad)
{
    pc_tensor *g = pc__as_dtype(grad->out_grad[0], (pc_dtype)grad->in_meta[0].dtype); /* of wide products float32 */
    pc_tensor *a = grad->in[0], *b = grad->in[1];
    if (!g)
        return pc_error_last()->status;
    const int64_t batch = pc__count(g->ndim - 2, g->shape);
    if (grad->needs[0])
        PC__TRY(pc__set_grad(grad, 0, gradient(g, pc_transpose(b, -1, -2), batch, &grad->in_meta[0])));
    if (!grad->needs[1])
        return PC_OK;
    const pc__meta *of = &grad->in_meta[1];
    const bool one = batch > 1 && pc__count(a->ndim - 2, a->shape) == batch && pc__count(of->ndim - 2, of->shape) == 1;
    if (one && copies_less(a, g))
        return pc__set_grad(grad, 1, gradient_of_one(a, g, of));
    PC__TRY(pc__set_grad(grad, 1, gradient(pc_transpose(a, -1, -2), g, batch, of)));
    return PC_OK;
}

/* multinomial.c: drawing places by their weights, by the thread's generator. */
#include "ops/table.h"

#include <paracord/no_grad.h>

/* Exponentially distributed numbers of the weights' shape, never 0. */
static pc_tensor *exponential(pc_tensor *weights)
{
    pc_tensor *unit = pc_rand(pc_tensor_shape(weights), PC_F32, weights->storage->device);
    pc_tensor *inside = pc_add_scalar(pc_mul_scalar(unit, 1 - 0x1p-23), 0x1p-25);
    return pc_neg(pc_log(inside));
}

/* Of weights over exponential numbers each is the largest with its probability, and the next ones are what would be drawn
 * from the rest. */
static pc_tensor *draw_apart(pc_tensor *weights, int64_t count)
{
    pc_tensor *places = NULL, *times = exponential(weights);
    pc_tensor *values = times ? pc_topk(pc_div(weights, times), count, -1, true, &places) : NULL;
    return values ? places : NULL;
}

/* Where uniform numbers up to the sum of all weights fall among their running sums. What rounding lifts to the sum itself
 * is the last place that has a weight. */
static pc_tensor *draw_again(pc_tensor *weights, int64_t count)
{
    pc_shape shape = pc_tensor_shape(weights);
    const int last = shape.ndim - 1;
    const int64_t n = shape.dim[last];
    pc_tensor *sums = pc_cumsum(weights, last), *all = pc_slice(sums, last, n - 1, n, 1);
    shape.dim[last] = count;
    pc_tensor *at = pc_mul(pc_rand(shape, PC_F32, weights->storage->device), all);
    pc_tensor *most = pc_searchsorted(sums, all, false);
    return most ? pc_minimum(pc_searchsorted(sums, at, true), most) : NULL;
}

pc_tensor *pc_multinomial(pc_tensor *weights, int64_t count, bool replacement)
{
    PC__NEED_OR(NULL, weights);
    if (!pc__is_float(weights->dtype))
        return pc__null(PC_ERR_DTYPE, "multinomial: the weights are %s; they must be floating",
                        pc_dtype_name(weights->dtype));
    if (weights->ndim < 1 || weights->ndim > 2 || weights->shape[weights->ndim - 1] < 1)
        return pc__null(PC_ERR_SHAPE, "multinomial: weights of shape %s; they must be [n] or [rows, n], n at least 1",
                        PC__SHAPE_OF(weights));
    const int64_t n = weights->shape[weights->ndim - 1];
    if (count < 1 || (!replacement && count > n))
        return pc__null(PC_ERR_RANGE, "multinomial: %lld places of %lld%s", (long long)count, (long long)n,
                        replacement ? "" : " without replacement");
    pc_tensor *result = NULL;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *w = pc__as_dtype(weights, PC_F32);
            if (w)
                result = pc_keep(replacement && count > 1 ? draw_again(w, count) : draw_apart(w, count));
        }
    }
    return result;
}

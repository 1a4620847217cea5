/* multinomial.c: drawing places by their weights, by the thread's generator. */
#include "device/graph.h"
#include "ops/table.h"

#include <paracord/no_grad.h>

/* What is drawn of each row: places [..., count], and by which numbers [..., 1] the row is known to be one to draw from,
 * finite and above 0. */
typedef struct drawn {
    pc_tensor *places, *total, *least;
} drawn;

/* Uniform numbers in [0, 1) of 48 bits, float64, by one draw of the generator. Of 24 bits the ends of [0, 1) would show where places
 * are many. */
static pc_tensor *uniform(pc_shape shape, pc_device device)
{
    pc_shape two = {.ndim = shape.ndim + 1, .dim = {2}};
    memcpy(two.dim + 1, shape.dim, (size_t)shape.ndim * sizeof *shape.dim);
    pc_tensor *parts = pc_rand(two, PC_F64, device); /* of 24 bits each */
    pc_tensor *high = pc_slice(parts, 0, 0, 1, 1), *low = pc_slice(parts, 0, 1, 2, 1);
    return pc_reshape(pc_add(high, pc_mul_scalar(low, 0x1p-24)), shape);
}

/* Of weights over exponentially distributed numbers, which are never 0, each is the largest with its probability, and the next ones are
 * what would be drawn from the rest. */
static drawn draw_apart(pc_tensor *weights, int64_t count)
{
    drawn d = {0};
    pc_tensor *unit = uniform(pc_tensor_shape(weights), weights->storage->device);
    pc_tensor *times = pc_neg(pc_log(pc_add_scalar(unit, 0x1p-49)));
    pc_tensor *values = times ? pc_topk(pc_div(weights, times), count, -1, true, &d.places) : NULL;
    d.least = pc_slice(values, -1, count - 1, count, 1);
    d.total = pc_sum_dims(weights, PC_SHAPE(-1), true);
    return d;
}

/* Where uniform numbers up to the sum of all weights fall among their running sums. What rounding lifts to the sum itself
 * is the last place that has a weight. */
static drawn draw_again(pc_tensor *weights, int64_t count)
{
    pc_shape shape = pc_tensor_shape(weights);
    const int last = shape.ndim - 1;
    const int64_t n = shape.dim[last];
    pc_tensor *sums = pc_cumsum(weights, last), *all = pc_slice(sums, last, n - 1, n, 1);
    shape.dim[last] = count;
    pc_tensor *at = pc_mul(uniform(shape, weights->storage->device), all);
    pc_tensor *most = pc_searchsorted(sums, all, false);
    return (drawn){pc_minimum(pc_searchsorted(sums, at, true), most), all, all};
}

/* In float64 no sum of narrower weights is infinite; of its own each row's largest becomes 1. */
static pc_tensor *wide(pc_tensor *weights)
{
    return weights->dtype == PC_F64 ? pc_div(weights, pc_max_dim(weights, -1, true, NULL)) : pc_cast(weights, PC_F64);
}

/* Which rows are to be drawn from, bool [..., 1]; what is NaN is nowhere at least 0. */
static pc_tensor *sound_rows(pc_tensor *weights, const drawn *d)
{
    pc_tensor *none = pc_zeros(PC_SHAPE(1), PC_F32, weights->storage->device);
    pc_tensor *lowest = pc_min_dim(weights, -1, true, NULL);
    return pc_logical_and(pc_logical_and(pc_ge(lowest, none), pc_isfinite(d->total)), pc_gt(d->least, none));
}

/* The places, where all rows are sound. Where that is not known yet, those of others are n, which is then found to be none. */
static pc_tensor *checked(pc_tensor *weights, const drawn *d, int64_t n, int64_t each)
{
    const pc_device device = weights->storage->device;
    pc_tensor *sound = sound_rows(weights, d);
    if (sound && d->places && device.type == PC_CPU && !pc__graph_here(device))
        return pc_item(pc_all(sound)) != 0 ? d->places
                                           : pc__null(PC_ERR_RANGE,
                                                      "multinomial: the weights of each row must be at least 0, with "
                                                      "no infinity among them, and %lld of them must be above 0",
                                                      (long long)each);
    pc_tensor *places = pc_where(sound, d->places, pc_full(PC_SHAPE(1), (double)n, PC_I64, device));
    pc_tensor *there = pc_index_select(pc_arange(0, (double)n, 1, PC_I64, device), 0, pc_reshape(places, PC_SHAPE(-1)));
    return pc_reshape(there, pc_tensor_shape(places));
}

pc_tensor *pc_multinomial(pc_tensor *weights, int64_t count, bool replacement)
{
    enum { MOST = 1 << 24 };
    PC__NEED_OR(NULL, weights);
    if (!pc__is_float(weights->dtype))
        return pc__null(PC_ERR_DTYPE, "multinomial: the weights are %s; they must be floating",
                        pc_dtype_name(weights->dtype));
    if (weights->ndim < 1 || weights->ndim > 2 || weights->shape[weights->ndim - 1] < 1)
        return pc__null(PC_ERR_SHAPE, "multinomial: weights of shape %s; they must be [n] or [rows, n], n at least 1",
                        PC__SHAPE_OF(weights));
    const int64_t n = weights->shape[weights->ndim - 1];
    if (n > MOST)
        return pc__null(PC_ERR_RANGE, "multinomial: weights of %lld places; there are at most %d", (long long)n, MOST);
    if (count < 1 || (!replacement && count > n))
        return pc__null(PC_ERR_RANGE, "multinomial: %lld places of %lld%s", (long long)count, (long long)n,
                        replacement ? "" : " without replacement");
    pc_tensor *result = NULL;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *w = wide(weights);
            if (w) {
                const bool again = replacement || count == 1;
                const drawn d = again ? draw_again(w, count) : draw_apart(w, count);
                result = pc_keep(checked(weights, &d, n, again ? 1 : count));
            }
        }
    }
    return result;
}

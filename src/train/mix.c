/* mix.c: mixup (Zhang, Cisse, Dauphin, Lopez-Paz, 2018) and label smoothing (Szegedy and others, 2016). */
#include "train/mix.h"

#include "ops/table.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/loss.h>
#include <paracord/no_grad.h>

enum { CELLS = 4096, BITS = 24 };

#define ALPHA_MOST 100.0

pc_status pc__mix_check(const char *who, double smoothing, double mixup)
{
    if (!(smoothing >= 0 && smoothing < 1))
        return pc__fail(PC_ERR_ARGUMENT, "%s: a label smoothing of %g; it must be 0 to below 1", who, smoothing);
    if (!(mixup >= 0 && mixup <= ALPHA_MOST))
        return pc__fail(PC_ERR_ARGUMENT, "%s: a mixup of %g; it must be 0 to %g", who, mixup, ALPHA_MOST);
    return PC_OK;
}

/* --- the share --- */

/* Quantiles of the smaller of l and 1 - l. With s = x^alpha the density x^(alpha - 1) (1 - x)^(alpha - 1), which has a
 * pole at 0 for alpha below 1, becomes (1 - x)^(alpha - 1), which has none for x up to a half: that is summed up by the
 * trapezoidal rule and turned round by straight lines. */
static void fill_quantiles(double alpha, float *quantiles)
{
    const double end = pow(0.5, alpha), step = end / CELLS;
    double all = 0, sum = 0, before = 0;
    for (int i = 0; i < CELLS; i++)
        all += (pow(1 - pow(i * step, 1 / alpha), alpha - 1) + pow(1 - pow((i + 1) * step, 1 / alpha), alpha - 1)) / 2;
    int filled = 0;
    for (int i = 0; i < CELLS; i++) {
        const double x = pow((i + 1) * step, 1 / alpha), from = pow(i * step, 1 / alpha);
        before = sum;
        sum += (pow(1 - from, alpha - 1) + pow(1 - x, alpha - 1)) / 2;
        for (; filled < CELLS && filled * all <= sum * CELLS; filled++) {
            const double s = i + (filled * all / CELLS - before) / (sum - before);
            quantiles[filled] = (float)pow(s * step, 1 / alpha);
        }
    }
    quantiles[CELLS] = 0.5f;
}

static pc_tensor *owned(const float *values, int64_t n, pc_device device)
{
    pc_tensor *t = NULL;
    PC_SCOPE {
        t = pc_tensor_retain(pc_from_data(values, PC_SHAPE(n), PC_F32, device));
    }
    return t;
}

pc_status pc__mix_open(pc__mix *mix, double smoothing, double alpha, pc_device device)
{
    *mix = (pc__mix){.smoothing = smoothing};
    if (alpha == 0)
        return PC_OK;
    float halves[BITS], *quantiles = pc__alloc((CELLS + 1) * sizeof *quantiles);
    if (!quantiles)
        return PC_ERR_MEMORY;
    fill_quantiles(alpha, quantiles);
    for (int i = 0; i < BITS; i++)
        halves[i] = ldexpf(1, -i - 2);
    mix->quantiles = owned(quantiles, CELLS + 1, device);
    mix->halves = mix->quantiles ? owned(halves, BITS, device) : NULL;
    pc__free(quantiles);
    return mix->halves ? PC_OK : pc_error_last()->status;
}

void pc__mix_close(pc__mix *mix)
{
    pc_tensor_free(mix->quantiles);
    pc_tensor_free(mix->halves);
    *mix = (pc__mix){0};
}

/* Uniform in [0, 1): bits from a dropout, the one draw that recordings can make anew in every launch. It doubles what it
 * leaves. */
static pc_tensor *uniform(const pc__mix *mix)
{
    return pc_sum_dims(pc_fn_dropout(mix->halves, 0.5), PC_SHAPE(0), true);
}

static pc_tensor *draw_share(const pc__mix *mix)
{
    pc_tensor *at = pc_mul_scalar(uniform(mix), CELLS), *cell = pc_floor(at);
    pc_tensor *index = pc_cast(cell, PC_I64);
    pc_tensor *low = pc_index_select(mix->quantiles, 0, index);
    pc_tensor *high = pc_index_select(mix->quantiles, 0, pc_add_scalar(index, 1));
    pc_tensor *share = pc_add(low, pc_mul(pc_sub(at, cell), pc_sub(high, low)));
    return pc_reshape(share, PC_SHAPE_SCALAR);
}

/* --- the batch --- */

static pc_tensor *before(pc_tensor *t)
{
    return pc_roll(t, PC_SHAPE(1), PC_SHAPE(0));
}

/* Pictures keep their order in memory, in which rows of a batch lie one behind the other. */
static pc_tensor *blend(pc_tensor *x, pc_tensor *share)
{
    const bool pictures = x->ndim == 4 && !pc__is_contiguous(x);
    pc_tensor *own = pictures ? pc_permute(x, PC_SHAPE(0, 2, 3, 1)) : x;
    pc_tensor *result = pc_add(own, pc_mul(share, pc_sub(before(own), own)));
    return pictures ? pc_permute(result, PC_SHAPE(0, 3, 1, 2)) : result;
}

pc_status pc__mix_batch(const pc__mix *mix, const pc_batch *batch, pc__blended *blended)
{
    *blended = (pc__blended){.batch = *batch};
    if (!mix->quantiles)
        return PC_OK;
    PC_NO_GRAD {
        blended->share = draw_share(mix);
        blended->batch.x =
            blended->share ? blend(batch->x, pc__as_dtype(blended->share, (pc_dtype)batch->x->dtype)) : NULL;
        blended->batch.tensor[0] = blended->batch.x;
        blended->partner = blended->batch.x ? before(batch->y) : NULL;
    }
    return blended->partner ? PC_OK : pc_error_last()->status;
}

/* --- the loss --- */

/* The mean of losses, each times the weight of its sample's class; w are the weights of classes. */
static pc_tensor *weighed(pc_tensor *losses, pc_tensor *classes, pc_tensor *w)
{
    if (!w || !losses)
        return pc_mean(losses);
    pc_tensor *index = pc__as_dtype(pc_reshape(classes, PC_SHAPE(pc_tensor_count(classes))), PC_I64);
    pc_tensor *each = pc_index_select(w, 0, index);
    return pc_mean(pc_mul(losses, pc_reshape(each, pc_tensor_shape(losses))));
}

static pc_tensor *smoothed(double smoothing, pc_tensor *outputs, pc_tensor *y, pc_tensor *weights)
{
    if (!pc__is_float((pc_dtype)y->dtype)) {
        const pc_fn_cross_entropy_options o = {.reduction = PC_REDUCTION_NONE, .label_smoothing = smoothing};
        return weighed(pc_fn_cross_entropy(outputs, pc__as_dtype(y, PC_I64), o), y, weights);
    }
    pc_tensor *target = pc_add_scalar(pc_mul_scalar(y, 1 - smoothing), smoothing / 2);
    return weighed(pc_fn_bce_with_logits(outputs, target, (pc_fn_bce_options){.reduction = PC_REDUCTION_NONE}), y,
                   weights);
}

static pc_tensor *loss_by(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc_batch *batch,
                          pc_tensor *y, pc_tensor *weights)
{
    if (mix->smoothing > 0 && outputs)
        return smoothed(mix->smoothing, outputs, y, weights);
    pc_batch by = *batch;
    by.y = by.tensor[1] = y;
    return pc__judge_loss(judge, outputs, &by, weights);
}

pc_tensor *pc__mix_loss(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc__blended *blended,
                        pc_tensor *weights)
{
    pc_tensor *own = loss_by(mix, judge, outputs, &blended->batch, blended->batch.y, weights);
    if (!own || !blended->partner)
        return own;
    pc_tensor *other = loss_by(mix, judge, outputs, &blended->batch, blended->partner, weights);
    return other ? pc_add(own, pc_mul(blended->share, pc_sub(other, own))) : NULL;
}
